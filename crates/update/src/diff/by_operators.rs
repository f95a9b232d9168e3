//! The difference that operators have made, found at their paths.

use super::super::operator::Operator;
use super::super::tree::{FieldNodes, UpdateNode, merge_all};
use super::tree::{ElementChanges, FieldChanges, NestedChanges, has_equal_names, same_value};
use document::{Doc, DocBuf, Element, Kind};

/// Returns the difference at the paths of the operators. Returns `None` if it does not explain the
/// change, or if names are ambiguous.
pub fn difference(tree: &FieldNodes, before: Doc<'_>, after: Doc<'_>) -> Option<DocBuf> {
    steps::bytes(before.size() + after.size());
    let changes = fields(tree, before, after)?;
    (!changes.is_empty()).then(|| changes.to_document())
}

fn fields<'d>(nodes: &FieldNodes, before: Doc<'d>, after: Doc<'d>) -> Option<FieldChanges<'d>> {
    if has_equal_names(before) || has_equal_names(after) {
        return None;
    }
    let mut changes = FieldChanges::new();
    for (name, node) in &nodes.children {
        match (before.element(name), after.element(name)) {
            (None, None) => {}
            (Some(was), None) => changes.remove(was.key_bytes()),
            (None, Some(is)) => changes.insert(is),
            (Some(was), Some(is)) if same_value(was, is) => {}
            (Some(was), Some(is)) => match nested(node, was, is) {
                Some(nested) => changes.nest(is.key_bytes(), nested),
                None => changes.update(is),
            },
        }
    }
    Some(changes)
}

/// Returns the changes within a value; `None` if it is logged as a whole.
fn nested<'d>(node: &UpdateNode, was: Element<'d>, is: Element<'d>) -> Option<NestedChanges<'d>> {
    if was.kind != is.kind {
        return None;
    }
    let (before, after) = (Doc::from_bytes(was.raw_value())?, Doc::from_bytes(is.raw_value())?);
    match (node, is.kind) {
        (UpdateNode::Leaf(Operator::Push(push)), Kind::Array) if !push.sorts() => {
            appended(before, after).map(NestedChanges::Elements)
        }
        (UpdateNode::Fields(nodes), Kind::Document) => {
            let changes = fields(nodes, before, after)?;
            (!changes.is_empty()).then_some(NestedChanges::Fields(changes))
        }
        (UpdateNode::Fields(_) | UpdateNode::Elements(_), Kind::Array) => {
            elements(node, before, after).map(NestedChanges::Elements)
        }
        _ => None,
    }
}

/// Returns the elements that were appended to an array that was not empty; `None` for any other
/// change.
fn appended<'d>(before: Doc<'d>, after: Doc<'d>) -> Option<ElementChanges<'d>> {
    let mut new = after.elements().enumerate();
    let kept = before.elements().all(|was| new.next().is_some_and(|(_, is)| same_value(was, is)));
    if !kept || before.is_empty() {
        return None;
    }
    let mut changes = ElementChanges::new();
    new.for_each(|(index, element)| changes.update(index, element));
    (!changes.is_empty()).then_some(changes)
}

/// Returns the changes of elements at their positions. Elements that were added to reach a position
/// are null, and are not logged.
fn elements<'d>(node: &UpdateNode, before: Doc<'d>, after: Doc<'d>) -> Option<ElementChanges<'d>> {
    let mut changes = ElementChanges::new();
    let mut old = before.elements();
    for (index, is) in after.elements().enumerate() {
        match old.next() {
            None if is.kind == Kind::Null && child(node, index).is_none() => {}
            None => changes.update(index, is),
            Some(was) if same_value(was, is) => {}
            Some(was) => match selected(node, index).and_then(|node| nested(&node, was, is)) {
                Some(nested) => changes.nest(index, nested),
                None => changes.update(index, is),
            },
        }
    }
    (!changes.is_empty() && old.next().is_none()).then_some(changes)
}

/// Returns the node of the element at this position that names the position.
fn child(node: &UpdateNode, index: usize) -> Option<&UpdateNode> {
    let UpdateNode::Fields(nodes) = node else { return None };
    nodes.children.iter().find(|(name, _)| name.parse() == Ok(index)).map(|(_, node)| node)
}

/// Returns the node that concerns the element at this position; `None` if that is not clear.
fn selected(node: &UpdateNode, index: usize) -> Option<UpdateNode> {
    match node {
        UpdateNode::Fields(nodes) => {
            let mut found: Vec<&UpdateNode> = child(node, index).into_iter().collect();
            found.extend(nodes.positional.as_deref());
            merge_all(&found, "").ok()
        }
        UpdateNode::Elements(elements) => {
            let found: Vec<&UpdateNode> = elements.by_identifier.iter().map(|(_, node)| node).collect();
            merge_all(&found, "").ok()
        }
        UpdateNode::Vacant | UpdateNode::Leaf(_) => None,
    }
}
