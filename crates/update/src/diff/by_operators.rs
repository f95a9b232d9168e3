//! The difference that operators have made, found at their paths.

use super::super::array_filter::ArrayFilters;
use super::super::operator::Operator;
use super::super::parse::Operators;
use super::super::tree::{FieldNodes, SelectedElements, UpdateNode, merge_all};
use super::tree::{ElementChanges, FieldChanges, NestedChanges, has_equal_names, same_value};
use document::{Doc, DocBuf, Element, Kind};

/// Returns the difference at the paths of the operators. Returns `None` if it does not explain the
/// change, or if names are ambiguous.
pub fn difference(operators: &Operators, before: Doc<'_>, after: Doc<'_>) -> Option<DocBuf> {
    steps::bytes(before.size() + after.size());
    let changes = Walk { filters: &operators.filters }.fields(&operators.tree, before, after)?;
    (!changes.is_empty()).then(|| changes.to_document())
}

/// A walk along the operators' tree, beside both documents.
#[derive(Clone, Copy)]
struct Walk<'o> {
    filters: &'o ArrayFilters,
}

impl Walk<'_> {
    fn fields<'d>(self, nodes: &FieldNodes, before: Doc<'d>, after: Doc<'d>) -> Option<FieldChanges<'d>> {
        if has_equal_names(before) || has_equal_names(after) {
            return None;
        }
        let mut changes = FieldChanges::new();
        for (name, node) in &nodes.children {
            match (before.element(name), after.element(name)) {
                (None, None) => {}
                (Some(was), None) => changes.remove(was.key_bytes()),
                (None, Some(is)) => changes.insert(is),
                (Some(was), Some(is)) if same_value(was, is) && !rewrites(node, is) => {}
                (Some(was), Some(is)) => match self.nested(node, was, is) {
                    Some(nested) => changes.nest(is.key_bytes(), nested),
                    None => changes.update(is),
                },
            }
        }
        Some(changes)
    }

    /// Returns the changes within a value; `None` if it is logged as a whole.
    fn nested<'d>(self, node: &UpdateNode, was: Element<'d>, is: Element<'d>) -> Option<NestedChanges<'d>> {
        if was.kind != is.kind {
            return None;
        }
        let (before, after) = (Doc::from_bytes(was.raw_value())?, Doc::from_bytes(is.raw_value())?);
        match (node, is.kind) {
            (UpdateNode::Leaf(Operator::Push(push)), Kind::Array) => {
                let count = push.appended_count(before.elements().count())?;
                appended(before, after, count).map(NestedChanges::Elements)
            }
            (UpdateNode::Fields(nodes), Kind::Document) => {
                let changes = self.fields(nodes, before, after)?;
                (!changes.is_empty()).then_some(NestedChanges::Fields(changes))
            }
            (UpdateNode::Fields(nodes), Kind::Array) => {
                self.positions(nodes, before, after).map(NestedChanges::Elements)
            }
            (UpdateNode::Elements(selected), Kind::Array) => {
                self.selected(selected, before, after).map(NestedChanges::Elements)
            }
            _ => None,
        }
    }

    /// Returns the changes of elements at positions that the operators name. Elements that were
    /// added to reach a position are null, and are not logged.
    fn positions<'d>(self, nodes: &FieldNodes, before: Doc<'d>, after: Doc<'d>) -> Option<ElementChanges<'d>> {
        let child = |index| nodes.children.iter().find(|(name, _)| name.parse() == Ok(index)).map(|(_, node)| node);
        let mut changes = ElementChanges::new();
        let mut old = before.elements();
        for (index, is) in after.elements().enumerate() {
            match old.next() {
                None if is.kind == Kind::Null && child(index).is_none() => {}
                None => changes.update(index, is),
                Some(was) if same_value(was, is) && !child(index).is_some_and(|node| rewrites(node, is)) => {}
                Some(was) => {
                    let named = child(index).into_iter().chain(nodes.positional.as_deref());
                    let node = merge_all(&named.collect::<Vec<_>>(), "").ok();
                    match node.and_then(|node| self.nested(&node, was, is)) {
                        Some(nested) => changes.nest(index, nested),
                        None => changes.update(index, is),
                    }
                }
            }
        }
        (!changes.is_empty() && old.next().is_none()).then_some(changes)
    }

    /// Returns the changes of elements that filters select. MongoDB logs the whole array if several
    /// have changed, and a whole element if several are selected and one has changed.
    fn selected<'d>(self, selected: &SelectedElements, before: Doc<'d>, after: Doc<'d>) -> Option<ElementChanges<'d>> {
        let mut scratch = Vec::new();
        let mut changed = None;
        let mut selected_count = 0;
        let mut new = after.elements();
        for (index, was) in before.elements().enumerate() {
            let is = new.next()?;
            let mut nodes = Vec::new();
            for (identifier, node) in &selected.by_identifier {
                if self.filters.selects(identifier, was, &mut scratch).ok()? {
                    nodes.push(node);
                }
            }
            selected_count += usize::from(!nodes.is_empty());
            if !same_value(was, is) && changed.replace((index, was, is, nodes)).is_some() {
                return None;
            }
        }
        let (index, was, is, nodes) = changed?;
        let mut changes = ElementChanges::new();
        let node = merge_all(&nodes, "").ok().filter(|_| selected_count == 1);
        match node.and_then(|node| self.nested(&node, was, is)) {
            Some(nested) => changes.nest(index, nested),
            None => changes.update(index, is),
        }
        Some(changes)
    }
}

/// Returns whether MongoDB logs a value although it has not changed: a `$push` has written it
/// again.
fn rewrites(node: &UpdateNode, value: Element<'_>) -> bool {
    let Some(content) = Doc::from_bytes(value.raw_value()) else { return false };
    match (node, value.kind) {
        (UpdateNode::Leaf(Operator::Push(push)), Kind::Array) => push.always_changes(content.elements().count()),
        (UpdateNode::Fields(nodes), Kind::Document | Kind::Array) => {
            let mut children = nodes.children.iter().filter_map(|(name, node)| Some((node, content.element(name)?)));
            children.any(|(node, element)| rewrites(node, element))
        }
        _ => false,
    }
}

/// Returns the `count` elements that were appended to an array that was not empty; `None` for any
/// other change.
fn appended<'d>(before: Doc<'d>, after: Doc<'d>, count: usize) -> Option<ElementChanges<'d>> {
    let mut new = after.elements().enumerate();
    let kept = before.elements().all(|was| new.next().is_some_and(|(_, is)| same_value(was, is)));
    if !kept || before.is_empty() {
        return None;
    }
    let mut changes = ElementChanges::new();
    let appended = new.map(|(index, element)| changes.update(index, element)).count();
    (appended > 0 && appended == count).then_some(changes)
}
