//! Brings trees into the form that planners and positional updates count on.
//!
//! Conjunctions inside of conjunctions and disjunctions inside of disjunctions are flattened, a branch of its own loses
//! its shell, and branches stand in MongoDB's order: by kind of test, then by path. The order decides which array
//! element the positional operator `$` means (the last test of a conjunction to find one) and the order of the fields
//! an upsert takes from its filter.

use super::{Node, Test};
use std::cmp::Ordering;

pub(crate) fn and(branches: Vec<Node>) -> Node {
    let mut all = Vec::with_capacity(branches.len());
    for branch in branches {
        match branch {
            Node::And(inner) => all.extend(inner),
            branch => all.push(branch),
        }
    }
    all.sort_by(order);
    shelled(all, Node::And)
}

pub(crate) fn or(branches: Vec<Node>) -> Node {
    let mut any = Vec::with_capacity(branches.len());
    for branch in branches {
        match branch {
            Node::Or(inner) => any.extend(inner),
            branch => any.push(branch),
        }
    }
    any.sort_by(order);
    shelled(any, Node::Or)
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
    node_rank(a).cmp(&node_rank(b)).then_with(|| match (a, b) {
        (Node::Path { path: a, .. }, Node::Path { path: b, .. }) => a.as_str().cmp(b.as_str()),
        _ => Ordering::Equal,
    })
}

fn node_rank(node: &Node) -> u8 {
    match node {
        Node::And(_) => 0,
        Node::Or(_) => 1,
        Node::Path { test, .. } => test_rank(test),
        Node::Nor(_) => 21,
        Node::Expression(_) => 23,
        Node::Schema(_) => 25,
        Node::KeyRange(_) => 23,
        Node::Never => 24,
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
        Test::Geometry(_) => 26,
        Test::In(_) => 13,
        Test::Collated(test, _) => test_rank(test),
        Test::Bits(bits) => 14 + bits.condition as u8,
        Test::Not(_) | Test::And(_) => 20,
        Test::Type(_) => 22,
        Test::Never => 24,
    }
}
