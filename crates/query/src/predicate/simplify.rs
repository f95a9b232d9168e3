//! Brings trees into the form that planners and positional updates rely on.
//!
//! Nested conjunctions and nested disjunctions are flattened, a single branch replaces its parent,
//! and a disjunction of equalities on one path becomes an `$in`. Branches are in MongoDB's order
//! ([`arrange`]): by kind of test, then by path.
//!
//! The order determines which array element the positional operator `$` selects (that of the last
//! test of a conjunction that finds one). It also determines the order of the fields that an upsert
//! takes from its filter.

use super::in_list::InList;
use super::level::Level;
use super::tree::{Node, Test};
use document::path::Path;
use document::{Kind, ValueBuf};
use std::cmp::Ordering;
use steps::Counted;
use values::regex::Regex;

pub(crate) fn and(branches: Vec<Node>) -> Node {
    let (mut all, mut nested) = (Vec::with_capacity(branches.len()), Vec::new());
    for branch in branches {
        steps::step();
        match branch {
            Node::And(inner) => nested.extend(inner),
            branch if is_conjunction(&branch) => nested.push(branch),
            branch => all.push(branch),
        }
    }
    // As in MongoDB, nested branches come last.
    all.extend(nested);
    // Other branches do not matter beside one that no document matches.
    if all.iter().counted().any(is_nothing) {
        return Node::Never;
    }
    shelled(all, Node::And)
}

/// Returns whether it is a conjunction of several conditions.
pub fn is_conjunction(node: &Node) -> bool {
    match node {
        Node::And(_) => true,
        Node::Schema(schema) => schema.is_conjunction(),
        _ => false,
    }
}

pub(crate) fn or(branches: Vec<Node>, level: Level<'_>) -> Node {
    let (mut any, mut nested) = (Vec::with_capacity(branches.len()), Vec::new());
    for branch in branches {
        steps::step();
        match branch {
            Node::Or(inner) => nested.extend(inner),
            branch => any.push(branch),
        }
    }
    any.extend(nested);
    // Branches that no document matches do not matter beside others.
    any.retain(|branch| {
        steps::step();
        !is_nothing(branch)
    });
    if any.is_empty() {
        return Node::Never;
    }
    one_list(&any, level).unwrap_or_else(|| shelled(any, Node::Or))
}

/// Merges several equalities and regular expressions on one path into one `$in`, as MongoDB does:
/// the positional operator `$` then selects the first element that meets any of them.
fn one_list(branches: &[Node], level: Level<'_>) -> Option<Node> {
    let collation = &level.context.collation;
    let (mut values, mut regexes) = (Vec::new(), Vec::new());
    let mut common: Option<&Path> = None;
    for branch in branches {
        steps::step();
        let Node::Path { path, test } = branch else { return None };
        if common.get_or_insert(path).as_str() != path.as_str() {
            return None;
        }
        match only_value(test)? {
            // A regular expression in front has no collation, and MongoDB merges only tests with
            // equal collations.
            Listed::Value(_) if values.is_empty() && !regexes.is_empty() && !collation.is_simple() => return None,
            Listed::Value(value) => values.push(value.clone()),
            Listed::Regex(regex) => regexes.push(regex.clone()),
        }
    }
    let path = common.filter(|_| branches.len() > 1)?.clone();
    let list = InList::new(values, regexes, collation.clone());
    Some(Node::Path { path, test: level.collated(Test::In(list)) })
}

enum Listed<'t> {
    Value(&'t ValueBuf),
    Regex(&'t Regex),
}

/// Returns the only value or regular expression that a test compares with.
fn only_value(test: &Test) -> Option<Listed<'_>> {
    match test {
        // MongoDB does not merge an equality with a regular expression, as opposed to a match.
        Test::Equal(value) if value.kind() != Kind::Regex => Some(Listed::Value(value)),
        Test::Regex(regex) => Some(Listed::Regex(regex)),
        Test::Collated(inner, _) => only_value(inner),
        _ => None,
    }
}

/// Sorts branches into MongoDB's order.
pub(crate) fn arrange(node: &mut Node) {
    steps::step();
    match node {
        Node::And(branches) | Node::Or(branches) | Node::Nor(branches) => {
            branches.iter_mut().for_each(arrange);
            branches.sort_by(order);
        }
        Node::Path { test, .. } => arrange_test(test),
        Node::Expression(_) | Node::Schema(_) | Node::Near(_) | Node::KeyRange(_) => {}
        Node::Text { .. } | Node::Never => {}
    }
}

/// Sorts branches into the order that MongoDB has if documents are found by an index: conditions on
/// the index's fields, then those without a path, then the others by path.
pub(crate) fn arrange_beside(node: &mut Node, indexed: &[&str]) {
    steps::step();
    let rank = |node: &Node| match node {
        Node::Path { path, .. } if indexed.contains(&path.as_str()) => None,
        Node::Path { test: Test::Not(_), .. } => Some(String::new()),
        Node::Path { path, .. } => Some(path.as_str().to_owned()),
        _ => Some(String::new()),
    };
    if let Node::And(branches) | Node::Or(branches) | Node::Nor(branches) = node {
        branches.iter_mut().for_each(|branch| arrange_beside(branch, &[]));
        branches.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| order(a, b)));
    }
}

fn arrange_test(test: &mut Test) {
    steps::step();
    match test {
        Test::ElementMatches(node) => arrange(node),
        Test::Not(test) => arrange_test(test),
        Test::ElementSatisfies(tests) | Test::And(tests) => tests.iter_mut().for_each(arrange_test),
        Test::Collated(test, _) => arrange_test(test),
        _ => {}
    }
}

fn is_nothing(node: &Node) -> bool {
    matches!(node, Node::Never | Node::Path { test: Test::Never, .. })
}

fn shelled(mut branches: Vec<Node>, shell: fn(Vec<Node>) -> Node) -> Node {
    match (branches.pop(), branches.is_empty()) {
        (Some(only), true) => only,
        (last, _) => {
            branches.extend(last);
            shell(branches)
        }
    }
}

fn order(a: &Node, b: &Node) -> Ordering {
    steps::step();
    node_rank(a).cmp(&node_rank(b)).then_with(|| match (a, b) {
        (Node::Path { path: a, .. }, Node::Path { path: b, .. }) => a.as_str().cmp(b.as_str()),
        (Node::And(a), Node::And(b)) | (Node::Or(a), Node::Or(b)) | (Node::Nor(a), Node::Nor(b)) => {
            let parts = a.iter().zip(b).map(|(a, b)| order(a, b));
            parts.fold(Ordering::Equal, Ordering::then).then(a.len().cmp(&b.len()))
        }
        _ => Ordering::Equal,
    })
}

fn node_rank(node: &Node) -> u8 {
    match node {
        Node::And(_) => 0,
        Node::Or(_) => 1,
        Node::Path { test, .. } => test_rank(test),
        // MongoDB converts one branch to a `$not`.
        Node::Nor(branches) if branches.len() == 1 => 20,
        Node::Nor(_) => 21,
        Node::Expression(_) => 24,
        Node::Schema(_) => 26,
        Node::KeyRange(_) => 24,
        Node::Text { .. } => 27,
        Node::Never => 25,
        Node::Near(_) => 27,
    }
}

fn test_rank(test: &Test) -> u8 {
    match test {
        Test::ElementMatches(_) => 2,
        Test::ElementSatisfies(_) => 3,
        Test::Size(_) => 4,
        Test::Equal(_) => 5,
        Test::LessOrEqual(_) => 6,
        Test::Less(_) => 7,
        Test::Greater(_) => 8,
        Test::GreaterOrEqual(_) => 9,
        Test::Regex(_) => 10,
        Test::Mod { .. } => 11,
        Test::Exists => 12,
        Test::Geometry(_) => 23,
        Test::In(_) => 13,
        Test::Collated(test, _) => test_rank(test),
        Test::Bits(bits) => 14 + bits.condition as u8,
        Test::Not(_) | Test::And(_) => 20,
        Test::Type(_) => 22,
        Test::Never => 25,
    }
}
