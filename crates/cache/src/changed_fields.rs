//! Which fields a change of a document is about, so that what asks for others is asked once and not of both images.

use crate::bounded_evaluation;
use crate::invalidation_index::first_name;
use document::Doc;
use query::Predicate;
use query::predicate::{Node, Test};
use smallvec::SmallVec;
use store::Change;

/// Names of fields that differ; `None`: any may.
pub struct Changed<'d>(Option<SmallVec<[&'d [u8]; 8]>>);

impl<'d> Changed<'d> {
    pub fn any() -> Self {
        Changed(None)
    }

    pub fn of(change: &'d Change) -> Changed<'d> {
        match change {
            Change::Document { before: Some(before), after: Some(after) } => {
                Changed(between(before.as_doc(), after.as_doc()))
            }
            _ => Changed::any(),
        }
    }

    /// Whether the images may differ in what a path that begins with this name reaches.
    pub fn may_be_about(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|names| may_be_about(name, names))
    }

    /// Whether one of several conditions fails for both images, since it is about what they have in common. None of those before it may
    /// end in an error for one of them, which would be the answer.
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

    /// Whether a predicate may hold for one of the images and not for the other.
    pub fn matters_to(&self, predicate: &Predicate) -> bool {
        self.is_read_by(predicate.root())
    }

    /// The same for one condition.
    pub fn is_read_by(&self, node: &Node) -> bool {
        self.0.as_ref().is_none_or(|names| reads(node, names))
    }
}

/// Field by field, as long as they come in the same order, which most updates leave as it is.
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

/// What has no name is reached in other ways too.
fn may_be_about(name: &str, changed: &[&[u8]]) -> bool {
    name.is_empty() || changed.contains(&name.as_bytes())
}

fn reads(node: &Node, names: &[&[u8]]) -> bool {
    match node {
        Node::And(branches) | Node::Or(branches) | Node::Nor(branches) => {
            branches.iter().any(|branch| reads(branch, names))
        }
        Node::Path { path, .. } => may_be_about(first_name(path), names),
        Node::Never => false,
        _ => true,
    }
}

/// Whether a condition certainly ends in no error: those that are quickly told.
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
