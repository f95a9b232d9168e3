//! Fields to add to documents, as a tree of names.
//!
//! Existing fields keep their order; new ones follow, in the order of the specification. Arrays on
//! a path are traversed element by element; values that are no documents are replaced by one.

use document::{ArrayWriter, Doc, DocWriter, Value};
use error::Result;
use hashbrown::{HashMap, HashSet};
use steps::Counted;
use values::name_index::NameIndex;

/// One level of fields, in the order of the specification.
#[derive(Clone, Debug)]
pub(super) struct FieldTree<L> {
    fields: Vec<(Box<str>, FieldNode<L>)>,
    indices: NameIndex,
}

#[derive(Clone, Debug)]
enum FieldNode<L> {
    Leaf(L),
    Nested(FieldTree<L>),
}

impl<L> Default for FieldTree<L> {
    fn default() -> Self {
        FieldTree { fields: Vec::new(), indices: NameIndex::default() }
    }
}

impl<L> FieldTree<L> {
    /// Inserts a leaf at a path that conflicts with no other.
    pub fn insert(&mut self, path: &str, leaf: L) {
        steps::step();
        let Some((name, rest)) = path.split_once('.') else {
            self.push(path, FieldNode::Leaf(leaf));
            return;
        };
        let index = self.index_of(name.as_bytes()).unwrap_or_else(|| {
            self.push(name, FieldNode::Nested(FieldTree::default()));
            self.fields.len() - 1
        });
        if let Some((_, FieldNode::Nested(below))) = self.fields.get_mut(index) {
            below.insert(rest, leaf);
        }
    }

    fn push(&mut self, name: &str, node: FieldNode<L>) {
        self.fields.push((name.into(), node));
        self.indices.push(name);
    }

    #[inline]
    fn index_of(&self, name: &[u8]) -> Option<usize> {
        self.indices.index_of(name, self.fields.iter().map(|(name, _)| &**name))
    }

    /// Passes each leaf with its dotted path to `take`.
    pub fn each_path(&self, take: &mut dyn FnMut(&str, &L)) {
        for (name, node) in &self.fields {
            steps::step();
            match node {
                FieldNode::Leaf(leaf) => take(name, leaf),
                FieldNode::Nested(below) => below.each_path(&mut |path, leaf| take(&format!("{name}.{path}"), leaf)),
            }
        }
    }

    /// Writes the elements of `document` with the fields added; `write` writes a leaf under a name,
    /// or nothing.
    pub fn apply<F>(&self, document: Doc<'_>, writer: &mut DocWriter<'_>, write: &mut F) -> Result<()>
    where
        F: FnMut(&L, &str, &mut DocWriter<'_>) -> Result<()>,
    {
        let mut found = 0u64;
        let mut found_beyond = HashSet::new();
        for element in document.elements() {
            steps::step();
            let index = self.index_of(element.key_bytes());
            let Some((index, (name, node))) = index.and_then(|index| Some((index, self.fields.get(index)?))) else {
                writer.append_element(element);
                continue;
            };
            match u32::try_from(index) {
                Ok(bit) if bit < u64::BITS => found |= 1 << bit,
                _ => drop(found_beyond.insert(index)),
            }
            node.write(name, Some(element.value()), writer, write)?;
        }
        for (index, (name, node)) in self.fields.iter().enumerate() {
            steps::step();
            let is_written = if index < 64 { found >> index & 1 == 1 } else { found_beyond.contains(&index) };
            if !is_written {
                node.write(name, None, writer, write)?;
            }
        }
        Ok(())
    }

    /// Returns the first failure of `compute` in the order of the specification, which MongoDB
    /// reports; [`Self::apply`] has the order of the document.
    pub fn first_failure(&self, document: Doc<'_>, compute: &mut dyn FnMut(&L) -> Result<()>) -> Result<()> {
        self.fields.iter().counted().try_for_each(|(name, node)| match node {
            FieldNode::Leaf(leaf) => compute(leaf),
            FieldNode::Nested(below) => below.first_failure_below(document.get(name), compute),
        })
    }

    fn first_failure_below(&self, current: Option<Value<'_>>, compute: &mut dyn FnMut(&L) -> Result<()>) -> Result<()> {
        match current {
            Some(Value::Document(document)) => self.first_failure(document, compute),
            Some(Value::Array(array)) => {
                array.values().counted().try_for_each(|value| self.first_failure_below(Some(value), compute))
            }
            _ => self.first_failure(Doc::EMPTY, compute),
        }
    }

    fn apply_to_elements<F>(&self, array: Doc<'_>, mut writer: ArrayWriter<'_>, write: &mut F) -> Result<()>
    where
        F: FnMut(&L, &str, &mut DocWriter<'_>) -> Result<()>,
    {
        for value in array.values() {
            steps::step();
            match value {
                Value::Document(document) => self.apply(document, &mut writer.document(), write)?,
                Value::Array(nested) => self.apply_to_elements(nested, writer.array(), write)?,
                _ => self.apply(Doc::EMPTY, &mut writer.document(), write)?,
            }
        }
        Ok(())
    }
}

impl<L> FieldNode<L> {
    fn write<F>(&self, name: &str, current: Option<Value<'_>>, writer: &mut DocWriter<'_>, write: &mut F) -> Result<()>
    where
        F: FnMut(&L, &str, &mut DocWriter<'_>) -> Result<()>,
    {
        let below = match self {
            FieldNode::Leaf(leaf) => return write(leaf, name, writer),
            FieldNode::Nested(below) => below,
        };
        match current {
            Some(Value::Document(document)) => below.apply(document, &mut writer.document(name), write),
            Some(Value::Array(array)) => below.apply_to_elements(array, writer.array(name), write),
            _ => below.apply(Doc::EMPTY, &mut writer.document(name), write),
        }
    }
}

/// A set of paths, none of which is equal to another or a prefix of it.
#[derive(Default)]
pub(super) struct PathSet {
    /// The index of each path in the order of insertion.
    paths: HashMap<Box<str>, usize>,
    /// The proper prefixes of paths, each with the index of its first path.
    prefixes: HashMap<Box<str>, usize>,
}

impl PathSet {
    /// Adds a path. If it conflicts with others, returns the index of the first of them instead.
    pub fn insert(&mut self, path: &str) -> Option<usize> {
        steps::step();
        let prefixes = || path.match_indices('.').map(|(end, _)| &path[..end]);
        let found =
            prefixes().chain([path]).filter_map(|prefix| self.paths.get(prefix)).chain(self.prefixes.get(path)).min();
        if let Some(index) = found {
            return Some(*index);
        }
        let index = self.paths.len();
        for prefix in prefixes() {
            self.prefixes.entry(prefix.into()).or_insert(index);
        }
        self.paths.insert(path.into(), index);
        None
    }
}

/// Returns whether two dotted paths are equal, or one is a prefix of the other.
pub(super) fn conflict(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
    long.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::{PathSet, conflict};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn conflicts_agree_with_a_linear_search(paths in prop::collection::vec("[ab!](\\.[ab!]){0,3}", 0..8)) {
            let (mut set, mut known) = (PathSet::default(), Vec::<String>::new());
            for path in paths {
                let first = known.iter().position(|other| conflict(other, &path));
                prop_assert_eq!(set.insert(&path), first);
                if first.is_none() {
                    known.push(path);
                }
            }
        }
    }
}
