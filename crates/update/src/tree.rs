//! The operators of an update, grouped by the paths they change: one tree, walked once beside the
//! document.
//!
//! Two operators on one path, or on a path and a prefix of it, fail with 40.

use super::operator::Operator;
use super::target::is_digits;
use error::{Code, Error, Result};
use std::cmp::Ordering;
use values::name_index::NameIndex;

/// Maximal number of components of a path. Documents have fewer levels, so deeper paths can be
/// neither found nor created.
const COMPONENTS_MAX: usize = 255;

/// The change at one place of the document.
#[derive(Clone, Debug)]
pub(super) enum UpdateNode {
    /// No operator; only while the tree is built.
    Vacant,
    Leaf(Operator),
    Fields(FieldNodes),
    Elements(SelectedElements),
}

/// Changes below named fields (or array positions).
#[derive(Clone, Debug, Default)]
pub(super) struct FieldNodes {
    /// In the order of [`compare_names`], in which new fields are added; in order of insertion
    /// while the tree is built.
    pub children: Vec<(Box<str>, UpdateNode)>,
    /// Indices of children by name, while the tree is built.
    indices: NameIndex,
    /// Changes below `$`: the position that made the document match.
    pub positional: Option<Box<UpdateNode>>,
}

/// Changes below `$[identifier]`, by identifier; the empty one selects all elements.
#[derive(Clone, Debug, Default)]
pub(super) struct SelectedElements {
    pub by_identifier: Vec<(Box<str>, UpdateNode)>,
    /// Indices of the filters by identifier, while the tree is built.
    indices: NameIndex,
}

/// One component of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathComponent<'a> {
    Field(&'a str),
    /// `$`
    Positional,
    /// `$[identifier]`
    Selected(&'a str),
}

pub(super) fn path_component(name: &str) -> PathComponent<'_> {
    match name.strip_prefix('$') {
        Some("") => PathComponent::Positional,
        Some(rest) => match rest.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(identifier) => PathComponent::Selected(identifier),
            None => PathComponent::Field(name),
        },
        None => PathComponent::Field(name),
    }
}

/// Compares names in the order of new fields: numbers by value, all others by bytes.
pub(super) fn compare_names(a: &str, b: &str) -> Ordering {
    compare_name_bytes(a.as_bytes(), b.as_bytes())
}

/// Like [`compare_names`], on the bytes of keys.
pub(super) fn compare_name_bytes(a: &[u8], b: &[u8]) -> Ordering {
    if !is_digits(a) || !is_digits(b) {
        return a.cmp(b);
    }
    let (a_digits, b_digits) = (without_leading_zeros(a), without_leading_zeros(b));
    a_digits.len().cmp(&b_digits.len()).then_with(|| a_digits.cmp(b_digits)).then_with(|| a.len().cmp(&b.len()))
}

fn without_leading_zeros(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
    &digits[zeros..]
}

/// Inserts `operator` at `path`, whose components from byte `from` on are below `node`.
pub(super) fn insert(node: &mut UpdateNode, path: &str, from: usize, operator: Operator) -> Result<()> {
    steps::step();
    if from > path.len() {
        return match node {
            UpdateNode::Vacant => {
                *node = UpdateNode::Leaf(operator);
                Ok(())
            }
            _ => Err(conflict_error(path, path)),
        };
    }
    let here = &path[..from.saturating_sub(1)];
    let end = path[from..].find('.').map_or(path.len(), |length| from + length);
    let below = match path_component(&path[from..end]) {
        PathComponent::Field(name) => fields_mut(node, path, here)?.child_mut(name),
        PathComponent::Positional => {
            fields_mut(node, path, here)?.positional.get_or_insert_with(|| Box::new(UpdateNode::Vacant))
        }
        PathComponent::Selected(identifier) => elements_mut(node, path, here)?.child(identifier),
    };
    insert(below, path, end + 1, operator)
}

fn fields_mut<'n>(node: &'n mut UpdateNode, path: &str, here: &str) -> Result<&'n mut FieldNodes> {
    if matches!(node, UpdateNode::Vacant) {
        *node = UpdateNode::Fields(FieldNodes::default());
    }
    match node {
        UpdateNode::Fields(fields) => Ok(fields),
        _ => Err(conflict_error(path, here)),
    }
}

fn elements_mut<'n>(node: &'n mut UpdateNode, path: &str, here: &str) -> Result<&'n mut SelectedElements> {
    if matches!(node, UpdateNode::Vacant) {
        *node = UpdateNode::Elements(SelectedElements::default());
    }
    match node {
        UpdateNode::Elements(elements) => Ok(elements),
        _ => Err(conflict_error(path, here)),
    }
}

fn conflict_error(path: &str, at: &str) -> Error {
    Error::new(
        Code::CONFLICTING_UPDATE_OPERATORS,
        format!("Updating the path '{path}' would create a conflict at '{at}'"),
    )
}

impl FieldNodes {
    fn child_mut(&mut self, name: &str) -> &mut UpdateNode {
        child(&mut self.children, &mut self.indices, name)
    }

    /// Sorts the children of all levels; call it once the tree is complete.
    pub fn sort_children(&mut self) {
        settle(&mut self.children, &mut self.indices, compare_names);
        if let Some(positional) = &mut self.positional {
            positional.settle();
        }
    }
}

impl SelectedElements {
    fn child(&mut self, identifier: &str) -> &mut UpdateNode {
        child(&mut self.by_identifier, &mut self.indices, identifier)
    }
}

impl UpdateNode {
    fn settle(&mut self) {
        match self {
            UpdateNode::Vacant | UpdateNode::Leaf(_) => {}
            UpdateNode::Fields(fields) => fields.sort_children(),
            UpdateNode::Elements(elements) => settle(&mut elements.by_identifier, &mut elements.indices, str::cmp),
        }
    }
}

/// Returns the node of a name; adds a vacant one if there was none.
fn child<'n>(children: &'n mut Children, places: &mut NameIndex, name: &str) -> &'n mut UpdateNode {
    let known = places.index_of(name.as_bytes(), children.iter().map(|(known, _)| &**known));
    let index = known.unwrap_or_else(|| {
        places.push(name);
        children.push((name.into(), UpdateNode::Vacant));
        children.len() - 1
    });
    &mut children[index].1
}

fn settle(children: &mut Children, places: &mut NameIndex, order: fn(&str, &str) -> Ordering) {
    *places = NameIndex::default();
    children.sort_by(|(a, _), (b, _)| {
        steps::step();
        order(a, b)
    });
    children.iter_mut().for_each(|(_, node)| node.settle());
}

/// Merges two branches that reach the same place (`a.$` and `a.0`, or two filters that select the
/// same element). `at` is that place, for the message.
pub(super) fn merge_nodes(a: &UpdateNode, b: &UpdateNode, at: &str) -> Result<UpdateNode> {
    let collision = || Error::new(Code::CONFLICTING_UPDATE_OPERATORS, format!("Update created a conflict at '{at}'"));
    match (a, b) {
        (UpdateNode::Vacant, other) | (other, UpdateNode::Vacant) => Ok(other.clone()),
        (UpdateNode::Fields(a), UpdateNode::Fields(b)) => Ok(UpdateNode::Fields(FieldNodes {
            children: merge_children(&a.children, &b.children, compare_names, at)?,
            positional: match (&a.positional, &b.positional) {
                (Some(a), Some(b)) => Some(Box::new(merge_nodes(a, b, &format!("{at}.$"))?)),
                (one, other) => one.clone().or_else(|| other.clone()),
            },
            indices: NameIndex::default(),
        })),
        (UpdateNode::Elements(a), UpdateNode::Elements(b)) => {
            let filtered = merge_children(&a.by_identifier, &b.by_identifier, str::cmp, at)?;
            Ok(UpdateNode::Elements(SelectedElements { by_identifier: filtered, indices: NameIndex::default() }))
        }
        _ => Err(collision()),
    }
}

/// Like [`merge_nodes`], for two or more. Merges by halves, because each merge visits both trees
/// completely.
pub(super) fn merge_all(nodes: &[&UpdateNode], at: &str) -> Result<UpdateNode> {
    match nodes {
        [] => Ok(UpdateNode::Vacant),
        [one] => Ok((*one).clone()),
        [one, other] => merge_nodes(one, other, at),
        several => {
            let (some, others) = several.split_at(several.len() / 2);
            merge_nodes(&merge_all(some, at)?, &merge_all(others, at)?, at)
        }
    }
}

type Children = Vec<(Box<str>, UpdateNode)>;

/// Merges two sorted lists into one.
fn merge_children(a: &Children, b: &Children, order: fn(&str, &str) -> Ordering, at: &str) -> Result<Children> {
    let mut merged = Children::with_capacity(a.len() + b.len());
    let (mut ours, mut theirs) = (a.iter().peekable(), b.iter().peekable());
    loop {
        steps::step();
        let first = match (ours.peek(), theirs.peek()) {
            (None, None) => return Ok(merged),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((a, _)), Some((b, _))) => order(a, b),
        };
        match first {
            Ordering::Less => merged.extend(ours.next().cloned()),
            Ordering::Greater => merged.extend(theirs.next().cloned()),
            Ordering::Equal => {
                if let (Some((name, ours)), Some((_, theirs))) = (ours.next(), theirs.next()) {
                    merged.push((name.clone(), merge_nodes(ours, theirs, &format!("{at}.{name}"))?));
                }
            }
        }
    }
}

/// Fails if a path cannot be updated: it is empty or has empty components, has too many of them,
/// has several `$`, or begins with `$` or `$[identifier]`.
pub(super) fn check_path(path: &str) -> Result<()> {
    if path.is_empty() {
        return Err(Error::new(Code::EMPTY_FIELD_NAME, "An empty update path is not valid."));
    }
    if path.split('.').any(str::is_empty) {
        let message = format!("The update path '{path}' contains an empty field name, which is not allowed.");
        return Err(Error::new(Code::EMPTY_FIELD_NAME, message));
    }
    if path.split('.').count() > COMPONENTS_MAX {
        let message = format!("Document exceeds maximum nesting depth of {}", document::DEPTH_STORED_MAX);
        return Err(Error::new(Code::OVERFLOW, message));
    }
    let mut positionals = path.split('.').filter(|name| path_component(name) == PathComponent::Positional);
    if positionals.next().is_some() && positionals.next().is_some() {
        return Err(Error::bad_value(format!("Too many positional (i.e. '$') elements found in path '{path}'")));
    }
    let refused = match path_component(path.split('.').next().unwrap_or_default()) {
        PathComponent::Positional => "positional (i.e. '$') element",
        PathComponent::Selected(_) => "array filter identifier (i.e. '$[<id>]') element",
        PathComponent::Field(_) => return Ok(()),
    };
    Err(Error::bad_value(format!("Cannot have {refused} in the first position in path '{path}'")))
}

/// Returns whether the path has a component that depends on the document: `$` or `$[identifier]`.
pub(super) fn depends_on_document(path: &str) -> bool {
    path.split('.').any(|name| !matches!(path_component(name), PathComponent::Field(_)))
}

/// Returns the identifiers of the path's `$[identifier]` components.
pub(super) fn identifiers(path: &str) -> impl Iterator<Item = &str> {
    path.split('.').filter_map(|name| match path_component(name) {
        PathComponent::Selected(identifier) if !identifier.is_empty() => Some(identifier),
        _ => None,
    })
}
