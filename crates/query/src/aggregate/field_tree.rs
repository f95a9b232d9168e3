//! Fields to put into documents, as a tree of names.
//!
//! Fields keep their order in the document; new ones come behind, in the order of the specification. On the way to a field,
//! arrays are entered element by element, and what is no document gives way to one.

use document::{ArrayWriter, Doc, DocWriter, Value};
use error::Result;

/// One level of fields, in the order of the specification.
#[derive(Clone, Debug)]
pub(super) struct FieldTree<L>(Vec<(Box<str>, Node<L>)>);

#[derive(Clone, Debug)]
enum Node<L> {
    Leaf(L),
    Below(FieldTree<L>),
}

impl<L> Default for FieldTree<L> {
    fn default() -> Self {
        FieldTree(Vec::new())
    }
}

impl<L> FieldTree<L> {
    /// Puts a leaf at a path with which none before is in conflict.
    pub fn insert(&mut self, path: &str, leaf: L) {
        let Some((name, rest)) = path.split_once('.') else {
            self.0.push((path.into(), Node::Leaf(leaf)));
            return;
        };
        let index = self.0.iter().position(|(known, _)| **known == *name).unwrap_or_else(|| {
            self.0.push((name.into(), Node::Below(FieldTree::default())));
            self.0.len() - 1
        });
        if let Some((_, Node::Below(below))) = self.0.get_mut(index) {
            below.insert(rest, leaf);
        }
    }

    /// Each leaf with its dotted path.
    pub fn each_path(&self, take: &mut dyn FnMut(&str, &L)) {
        for (name, node) in &self.0 {
            match node {
                Node::Leaf(leaf) => take(name, leaf),
                Node::Below(below) => below.each_path(&mut |path, leaf| take(&format!("{name}.{path}"), leaf)),
            }
        }
    }

    /// Writes the elements of `document` with the fields put in; `write` writes a leaf under a name, or nothing.
    pub fn apply<F>(&self, document: Doc<'_>, writer: &mut DocWriter<'_>, write: &mut F) -> Result<()>
    where
        F: FnMut(&L, &str, &mut DocWriter<'_>) -> Result<()>,
    {
        let mut found = 0u64;
        let mut found_beyond: Vec<usize> = Vec::new();
        for element in document.elements() {
            let index = self.0.iter().position(|(name, _)| name.as_bytes() == element.key_bytes());
            let Some((index, (name, node))) = index.and_then(|index| Some((index, self.0.get(index)?))) else {
                writer.append_element(element);
                continue;
            };
            match u32::try_from(index) {
                Ok(bit) if bit < u64::BITS => found |= 1 << bit,
                _ => found_beyond.push(index),
            }
            node.write(name, Some(element.value()), writer, write)?;
        }
        for (index, (name, node)) in self.0.iter().enumerate() {
            let known = if index < 64 { found >> index & 1 == 1 } else { found_beyond.contains(&index) };
            if !known {
                node.write(name, None, writer, write)?;
            }
        }
        Ok(())
    }

    /// The first failure of `compute` in the order of the specification, which is the one that MongoDB meets; [`Self::apply`]
    /// goes by the order of the document.
    pub fn first_failure(&self, document: Doc<'_>, compute: &mut dyn FnMut(&L) -> Result<()>) -> Result<()> {
        self.0.iter().try_for_each(|(name, node)| match node {
            Node::Leaf(leaf) => compute(leaf),
            Node::Below(below) => below.first_failure_below(document.get(name), compute),
        })
    }

    fn first_failure_below(&self, current: Option<Value<'_>>, compute: &mut dyn FnMut(&L) -> Result<()>) -> Result<()> {
        match current {
            Some(Value::Document(document)) => self.first_failure(document, compute),
            Some(Value::Array(array)) => {
                array.values().try_for_each(|value| self.first_failure_below(Some(value), compute))
            }
            _ => self.first_failure(Doc::EMPTY, compute),
        }
    }

    fn apply_to_elements<F>(&self, array: Doc<'_>, mut writer: ArrayWriter<'_>, write: &mut F) -> Result<()>
    where
        F: FnMut(&L, &str, &mut DocWriter<'_>) -> Result<()>,
    {
        for value in array.values() {
            match value {
                Value::Document(document) => self.apply(document, &mut writer.document(), write)?,
                Value::Array(nested) => self.apply_to_elements(nested, writer.array(), write)?,
                _ => self.apply(Doc::EMPTY, &mut writer.document(), write)?,
            }
        }
        Ok(())
    }
}

impl<L> Node<L> {
    fn write<F>(&self, name: &str, current: Option<Value<'_>>, writer: &mut DocWriter<'_>, write: &mut F) -> Result<()>
    where
        F: FnMut(&L, &str, &mut DocWriter<'_>) -> Result<()>,
    {
        let below = match self {
            Node::Leaf(leaf) => return write(leaf, name, writer),
            Node::Below(below) => below,
        };
        match current {
            Some(Value::Document(document)) => below.apply(document, &mut writer.document(name), write),
            Some(Value::Array(array)) => below.apply_to_elements(array, writer.array(name), write),
            _ => below.apply(Doc::EMPTY, &mut writer.document(name), write),
        }
    }
}

/// Whether two dotted paths are the same, or one leads through the other.
pub(super) fn collide(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
    long.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
