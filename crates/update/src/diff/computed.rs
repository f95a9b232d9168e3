//! The difference of two documents, found by comparing them.

use super::tree::{ElementChanges, FieldChanges, NestedChanges, has_equal_names, same_value};
use document::{Doc, DocBuf, Element, Kind};
use std::collections::BTreeSet;

/// The bytes of an entry beside the difference: with them it must be smaller than the document.
const ENTRY_BYTES: usize = 15;

/// Compares two documents. Returns `None` if the difference is not smaller than `after`, which is
/// then logged as a whole.
pub fn compute(before: Doc<'_>, after: Doc<'_>) -> Option<DocBuf> {
    within(before, after, ENTRY_BYTES, after.size())
}

/// Compares two documents. Returns `None` if their difference cannot be described.
pub fn compare(before: Doc<'_>, after: Doc<'_>) -> Option<DocBuf> {
    within(before, after, 0, usize::MAX)
}

fn within(before: Doc<'_>, after: Doc<'_>, padding: usize, limit: usize) -> Option<DocBuf> {
    fields(before, after, padding, limit).map(|changes| changes.to_document())
}

fn fields<'d>(before: Doc<'d>, after: Doc<'d>, padding: usize, limit: usize) -> Option<FieldChanges<'d>> {
    steps::bytes(before.size() + after.size());
    if has_equal_names(before) || has_equal_names(after) {
        return None;
    }
    let mut changes = FieldChanges::new();
    let mut removed: BTreeSet<&[u8]> = BTreeSet::new();
    let (mut old, mut new) = (before.elements().peekable(), after.elements().peekable());
    while let (Some(was), Some(is)) = (old.peek().copied(), new.peek().copied()) {
        if changes.size() + padding > limit {
            return None;
        }
        old.next();
        if was.key_bytes() != is.key_bytes() {
            // If it has only moved, it is removed and appended: see below.
            removed.insert(was.key_bytes());
            continue;
        }
        new.next();
        match nested(was, is) {
            _ if same_value(was, is) => {}
            Some(nested) => changes.nest(is.key_bytes(), nested),
            None => changes.update(is),
        }
    }
    old.for_each(|element| changes.remove(element.key_bytes()));
    for element in new {
        removed.remove(element.key_bytes());
        changes.insert(element);
    }
    removed.into_iter().for_each(|name| changes.remove(name));
    (changes.size() + padding < limit).then_some(changes)
}

fn elements<'d>(before: Doc<'d>, after: Doc<'d>) -> Option<ElementChanges<'d>> {
    steps::bytes(before.size() + after.size());
    let limit = after.size();
    let mut changes = ElementChanges::new();
    let mut old = before.elements();
    let mut length = 0;
    for (index, is) in after.elements().enumerate() {
        length = index + 1;
        let Some(was) = old.next() else {
            changes.update(index, is);
            continue;
        };
        if changes.size() > limit {
            return None;
        }
        match nested(was, is) {
            _ if same_value(was, is) => {}
            Some(nested) => changes.nest(index, nested),
            None => changes.update(index, is),
        }
    }
    if old.next().is_some() {
        changes.truncate(length);
    }
    (changes.size() < limit).then_some(changes)
}

/// Returns the difference of two nested documents or two arrays, if it is smaller than the new
/// value.
fn nested<'d>(was: Element<'d>, is: Element<'d>) -> Option<NestedChanges<'d>> {
    if same_value(was, is) || was.kind != is.kind {
        return None;
    }
    let (before, after) = (Doc::from_bytes(was.raw_value())?, Doc::from_bytes(is.raw_value())?);
    match is.kind {
        Kind::Document => fields(before, after, 0, after.size()).map(NestedChanges::Fields),
        Kind::Array => elements(before, after).map(NestedChanges::Elements),
        _ => None,
    }
}
