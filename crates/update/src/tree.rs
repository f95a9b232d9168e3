//! The operators of an update, grouped by the paths they change: one tree, walked once beside the
//! document.
//!
//! Two operators on one path, or on a path and a prefix of it, fail with 40.

use super::operator::Operator;
use error::{Code, Error, Result};
use std::cmp::Ordering;
use values::name_index::NameIndex;

/// Maximal number of components of a path. Documents have fewer levels, so deeper paths can be
/// neither found nor created.
const COMPONENTS_MAX: usize = 255;

/// The change at one place of the document.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// No operator; only while the tree is built.
    Vacant,
    Leaf(Operator),
    Fields(Fields),
    Elements(Elements),
}

/// Changes below named fields (or array positions).
#[derive(Clone, Debug, Default)]
pub(super) struct Fields {
    /// In the order of [`compare_names`], in which new fields are added; in order of insertion
    /// while the tree is built.
    pub children: Vec<(Box<str>, Node)>,
    /// Indices of children by name, while the tree is built.
    indices: NameIndex,
    /// Changes below `$`: the position that made the document match.
    pub positional: Option<Box<Node>>,
}

/// Changes below `$[identifier]`, by identifier; the empty one selects all elements.
#[derive(Clone, Debug, Default)]
pub(super) struct Elements {
    pub filtered: Vec<(Box<str>, Node)>,
    /// Indices of the filters by identifier, while the tree is built.
    indices: NameIndex,
}

/// One component of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Component<'a> {
    Field(&'a str),
    /// `$`
    Positional,
    /// `$[identifier]`
    Filtered(&'a str),
}

pub(super) fn component(name: &str) -> Component<'_> {
    match name.strip_prefix('$') {
        Some("") => Component::Positional,
        Some(rest) => match rest.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(identifier) => Component::Filtered(identifier),
            None => Component::Field(name),
        },
        None => Component::Field(name),
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

fn is_digits(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(u8::is_ascii_digit)
}

fn without_leading_zeros(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
    &digits[zeros..]
}

/// Returns the array index that a component denotes, if any.
pub(super) fn array_index(name: &str) -> Option<usize> {
    is_digits(name.as_bytes()).then(|| name.parse::<u32>().ok())?.and_then(|index| usize::try_from(index).ok())
}

/// Inserts `operator` at `path`, whose components from byte `from` on are below `node`.
pub(super) fn insert(node: &mut Node, path: &str, from: usize, operator: Operator) -> Result<()> {
    steps::step();
    if from > path.len() {
        return match node {
            Node::Vacant => {
                *node = Node::Leaf(operator);
                Ok(())
            }
            _ => Err(conflict_error(path, path)),
        };
    }
    let here = &path[..from.saturating_sub(1)];
    let end = path[from..].find('.').map_or(path.len(), |length| from + length);
    let below = match component(&path[from..end]) {
        Component::Field(name) => fields_mut(node, path, here)?.child(name),
        Component::Positional => fields_mut(node, path, here)?.positional.get_or_insert_with(|| Box::new(Node::Vacant)),
        Component::Filtered(identifier) => elements_mut(node, path, here)?.child(identifier),
    };
    insert(below, path, end + 1, operator)
}

fn fields_mut<'n>(node: &'n mut Node, path: &str, here: &str) -> Result<&'n mut Fields> {
    if matches!(node, Node::Vacant) {
        *node = Node::Fields(Fields::default());
    }
    match node {
        Node::Fields(fields) => Ok(fields),
        _ => Err(conflict_error(path, here)),
    }
}

fn elements_mut<'n>(node: &'n mut Node, path: &str, here: &str) -> Result<&'n mut Elements> {
    if matches!(node, Node::Vacant) {
        *node = Node::Elements(Elements::default());
    }
    match node {
        Node::Elements(elements) => Ok(elements),
        _ => Err(conflict_error(path, here)),
    }
}

fn conflict_error(path: &str, at: &str) -> Error {
    Error::new(
        Code::CONFLICTING_UPDATE_OPERATORS,
        format!("Updating the path '{path}' would create a conflict at '{at}'"),
    )
}

impl Fields {
    fn child(&mut self, name: &str) -> &mut Node {
        child(&mut self.children, &mut self.indices, name)
    }

    /// Sorts the children of all levels; call it once the tree is complete.
    pub fn settle(&mut self) {
        settle(&mut self.children, &mut self.indices, compare_names);
        if let Some(positional) = &mut self.positional {
            positional.settle();
        }
    }
}

impl Elements {
    fn child(&mut self, identifier: &str) -> &mut Node {
        child(&mut self.filtered, &mut self.indices, identifier)
    }
}

impl Node {
    fn settle(&mut self) {
        match self {
            Node::Vacant | Node::Leaf(_) => {}
            Node::Fields(fields) => fields.settle(),
            Node::Elements(elements) => settle(&mut elements.filtered, &mut elements.indices, str::cmp),
        }
    }
}

/// Returns the node of a name; adds a vacant one if there was none.
fn child<'n>(children: &'n mut Children, places: &mut NameIndex, name: &str) -> &'n mut Node {
    let known = places.place(name.as_bytes(), children.iter().map(|(known, _)| &**known));
    let index = known.unwrap_or_else(|| {
        places.push(name);
        children.push((name.into(), Node::Vacant));
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
pub(super) fn merge(a: &Node, b: &Node, at: &str) -> Result<Node> {
    let collision = || Error::new(Code::CONFLICTING_UPDATE_OPERATORS, format!("Update created a conflict at '{at}'"));
    match (a, b) {
        (Node::Vacant, other) | (other, Node::Vacant) => Ok(other.clone()),
        (Node::Fields(a), Node::Fields(b)) => Ok(Node::Fields(Fields {
            children: merge_children(&a.children, &b.children, compare_names, at)?,
            positional: match (&a.positional, &b.positional) {
                (Some(a), Some(b)) => Some(Box::new(merge(a, b, &format!("{at}.$"))?)),
                (one, other) => one.clone().or_else(|| other.clone()),
            },
            indices: NameIndex::default(),
        })),
        (Node::Elements(a), Node::Elements(b)) => {
            let filtered = merge_children(&a.filtered, &b.filtered, str::cmp, at)?;
            Ok(Node::Elements(Elements { filtered, indices: NameIndex::default() }))
        }
        _ => Err(collision()),
    }
}

/// Like [`merge`], for two or more. Merges by halves, because each merge visits both trees
/// completely.
pub(super) fn merge_all(nodes: &[&Node], at: &str) -> Result<Node> {
    match nodes {
        [] => Ok(Node::Vacant),
        [one] => Ok((*one).clone()),
        [one, other] => merge(one, other, at),
        several => {
            let (some, others) = several.split_at(several.len() / 2);
            merge(&merge_all(some, at)?, &merge_all(others, at)?, at)
        }
    }
}

type Children = Vec<(Box<str>, Node)>;

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
                    merged.push((name.clone(), merge(ours, theirs, &format!("{at}.{name}"))?));
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
    let mut positionals = path.split('.').filter(|name| component(name) == Component::Positional);
    if positionals.next().is_some() && positionals.next().is_some() {
        return Err(Error::bad_value(format!("Too many positional (i.e. '$') elements found in path '{path}'")));
    }
    let refused = match component(path.split('.').next().unwrap_or_default()) {
        Component::Positional => "positional (i.e. '$') element",
        Component::Filtered(_) => "array filter identifier (i.e. '$[<id>]') element",
        Component::Field(_) => return Ok(()),
    };
    Err(Error::bad_value(format!("Cannot have {refused} in the first position in path '{path}'")))
}

/// Returns whether the path has a component that depends on the document: `$` or `$[identifier]`.
pub(super) fn is_dynamic(path: &str) -> bool {
    path.split('.').any(|name| !matches!(component(name), Component::Field(_)))
}

/// Returns the identifiers of the path's `$[identifier]` components.
pub(super) fn identifiers(path: &str) -> impl Iterator<Item = &str> {
    path.split('.').filter_map(|name| match component(name) {
        Component::Filtered(identifier) if !identifier.is_empty() => Some(identifier),
        _ => None,
    })
}
