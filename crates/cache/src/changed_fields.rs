//! The fields that differ between a document's images, so that conditions on other fields are
//! evaluated once instead of for both images.

use crate::bounded_evaluation;
use crate::invalidation_keys::first_name;
use document::Doc;
use query::Predicate;
use query::predicate::{Node, Test};
use smallvec::SmallVec;
use store::Change;

/// Names of the fields that differ; `None`: any may.
pub struct ChangedFields<'d>(Option<SmallVec<[&'d [u8]; 8]>>);

impl<'d> ChangedFields<'d> {
    pub fn any() -> Self {
        ChangedFields(None)
    }

    pub fn of(change: &'d Change) -> ChangedFields<'d> {
        match change {
            Change::Document { before: Some(before), after: Some(after) } => {
                ChangedFields(between(before.as_doc(), after.as_doc()))
            }
            _ => ChangedFields::any(),
        }
    }

    /// Returns whether the images may differ at a path that begins with this name.
    pub fn may_concern(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|names| may_concern(name, names))
    }

    /// Returns whether one of several conditions fails for both images, because it depends on
    /// fields that do not differ. A condition before it that may fail with an error rules nothing
    /// out, since the error would be the result.
    pub fn rules_out(&self, predicate: &Predicate, image: Doc<'_>) -> bool {
        let (Some(names), Node::And(all)) = (&self.0, predicate.root()) else { return false };
        for condition in all {
            if reads(condition, names) {
                if !is_infallible(condition) {
                    return false;
                }
                continue;
            }
            match bounded_evaluation::evaluate(|| condition.matches(image)) {
                Some(true) => {}
                Some(false) => return true,
                None => return false,
            }
        }
        false
    }

    /// Returns whether a predicate may hold for one image and not for the other.
    pub fn matters_to(&self, predicate: &Predicate) -> bool {
        self.is_read_by(predicate.root())
    }

    /// As [`ChangedFields::matters_to`], for one condition.
    pub fn is_read_by(&self, node: &Node) -> bool {
        self.0.as_ref().is_none_or(|names| reads(node, names))
    }
}

/// Compares field by field, while the order of the fields is the same, as most updates leave it.
fn between<'d>(before: Doc<'d>, after: Doc<'d>) -> Option<SmallVec<[&'d [u8]; 8]>> {
    let (mut before, mut after) = (before.elements(), after.elements());
    let mut names = SmallVec::new();
    loop {
        match (before.next(), after.next()) {
            (None, None) => return Some(names),
            (Some(was), Some(is)) if was.key_bytes() != is.key_bytes() => return None,
            (Some(was), Some(is)) if was.kind == is.kind && was.raw_value() == is.raw_value() => {}
            (was, is) => names.extend(was.or(is).map(|element| element.key_bytes())),
        }
    }
}

/// A field without a name can be reached through other paths too.
fn may_concern(name: &str, changed: &[&[u8]]) -> bool {
    name.is_empty() || changed.contains(&name.as_bytes())
}

fn reads(node: &Node, names: &[&[u8]]) -> bool {
    match node {
        Node::And(branches) | Node::Or(branches) | Node::Nor(branches) => {
            branches.iter().any(|branch| reads(branch, names))
        }
        Node::Path { path, .. } => may_concern(first_name(path), names),
        Node::Never => false,
        _ => true,
    }
}

/// Returns whether a condition cannot fail with an error, where that is cheap to determine.
pub fn is_infallible(node: &Node) -> bool {
    let test = match node {
        Node::And(branches) | Node::Or(branches) | Node::Nor(branches) => return branches.iter().all(is_infallible),
        Node::Path { test, .. } => test,
        _ => return matches!(node, Node::Never),
    };
    let test = if let Test::Not(inner) = test { inner } else { test };
    match test {
        Test::In(list) => list.regexes().is_empty(),
        Test::Less(_) | Test::LessOrEqual(_) | Test::Greater(_) | Test::GreaterOrEqual(_) | Test::Equal(_) => true,
        Test::Exists | Test::Type(_) | Test::Mod { .. } | Test::Bits(_) | Test::Size(_) | Test::Never => true,
        _ => false,
    }
}
