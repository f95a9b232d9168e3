//! The part of a condition that can be tested before a `$redact` as well, which removes nested
//! documents.
//!
//! It consists of conditions on values that cannot result from a removal: none on documents, arrays
//! and nulls. They are tested again after the stage.

use document::path::position;
use document::{Value, ValueBuf};
use query::predicate::{Node, Test};
use steps::Counted;

/// Returns the part of a condition that holds before a `$redact` whenever the condition holds after
/// it.
pub(super) fn part_before_redact(condition: &Node) -> Option<Node> {
    steps::step();
    match condition {
        Node::And(parts) => {
            let mut safe: Vec<Node> = parts.iter().filter_map(part_before_redact).collect();
            if safe.len() > 1 { Some(Node::And(safe)) } else { safe.pop() }
        }
        Node::Or(parts) => parts.iter().map(part_before_redact).collect::<Option<Vec<_>>>().map(Node::Or),
        // Positions change if elements are removed.
        Node::Path { path, .. } if path.components().any(|name| position(name).is_some()) => None,
        Node::Path { path, test } => Some(Node::Path { path: path.clone(), test: test_before_redact(test)? }),
        _ => None,
    }
}

fn test_before_redact(test: &Test) -> Option<Test> {
    match test {
        Test::Type(_) | Test::Regex(_) | Test::Mod { .. } | Test::Bits(_) => Some(test.clone()),
        Test::Equal(value)
        | Test::Less(value)
        | Test::LessOrEqual(value)
        | Test::Greater(value)
        | Test::GreaterOrEqual(value) => is_safe(value).then(|| test.clone()),
        Test::In(list) => list.values().iter().counted().all(is_safe).then(|| test.clone()),
        Test::ElementMatches(node) => part_before_redact(node).map(|node| Test::ElementMatches(Box::new(node))),
        Test::ElementSatisfies(tests) => {
            let safe: Vec<Test> = tests.iter().filter_map(test_before_redact).collect();
            (!safe.is_empty()).then_some(Test::ElementSatisfies(safe))
        }
        Test::Collated(test, collation) => {
            test_before_redact(test).map(|test| Test::Collated(Box::new(test), collation.clone()))
        }
        _ => None,
    }
}

fn is_safe(value: &ValueBuf) -> bool {
    !matches!(value.as_value(), Value::Array(_) | Value::Document(_) | Value::Null | Value::Undefined)
}
