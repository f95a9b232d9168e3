//! Order and equality of values that ignore the order of a document's fields, for `enum` and
//! `uniqueItems`.

use document::compare::kind_rank;
use document::{Doc, Element, Value, compare};
use smallvec::SmallVec;
use std::cmp::Ordering;
use steps::Counted;

/// Returns whether no two items are equal.
pub(super) fn all_differ(array: Doc<'_>) -> bool {
    let mut items: Vec<Value<'_>> = array.values().counted().collect();
    items.sort_by(|a, b| order(*a, *b));
    items.windows(2).counted().all(|pair| order(pair[0], pair[1]) != Ordering::Equal)
}

pub(super) fn order(a: Value<'_>, b: Value<'_>) -> Ordering {
    steps::step();
    match (a, b) {
        (Value::Document(a), Value::Document(b)) => order_fields(a, b),
        (Value::Array(a), Value::Array(b)) => order_items(a, b),
        _ => compare(a, b),
    }
}

fn order_items(a: Doc<'_>, b: Doc<'_>) -> Ordering {
    let (mut a, mut b) = (a.values(), b.values());
    loop {
        let found = match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(a), Some(b)) => order(a, b),
        };
        if found != Ordering::Equal {
            return found;
        }
    }
}

fn order_fields(a: Doc<'_>, b: Doc<'_>) -> Ordering {
    let (a, b) = (by_name(a), by_name(b));
    for (a, b) in a.iter().zip(&b) {
        let found = kind_rank(a.kind)
            .cmp(&kind_rank(b.kind))
            .then_with(|| a.key_bytes().cmp(b.key_bytes()))
            .then_with(|| order(a.value(), b.value()));
        if found != Ordering::Equal {
            return found;
        }
    }
    a.len().cmp(&b.len())
}

fn by_name(document: Doc<'_>) -> SmallVec<[Element<'_>; 16]> {
    let mut fields: SmallVec<[Element<'_>; 16]> = document.elements().counted().collect();
    fields.sort_by(|a, b| {
        steps::step();
        a.key_bytes().cmp(b.key_bytes())
    });
    fields
}
