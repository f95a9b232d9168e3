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
pub(super) fn safe_part(condition: &Node) -> Option<Node> {
    steps::step();
    match condition {
        Node::And(parts) => {
            let mut safe: Vec<Node> = parts.iter().filter_map(safe_part).collect();
            if safe.len() > 1 { Some(Node::And(safe)) } else { safe.pop() }
        }
        Node::Or(parts) => parts.iter().map(safe_part).collect::<Option<Vec<_>>>().map(Node::Or),
        // Positions change if elements are removed.
        Node::Path { path, .. } if path.components().any(|name| position(name).is_some()) => None,
        Node::Path { path, test } => Some(Node::Path { path: path.clone(), test: safe_test(test)? }),
        _ => None,
    }
}

fn safe_test(test: &Test) -> Option<Test> {
    match test {
        Test::Type(_) | Test::Regex(_) | Test::Mod { .. } | Test::Bits(_) => Some(test.clone()),
        Test::Equal(value)
        | Test::Less(value)
        | Test::LessOrEqual(value)
        | Test::Greater(value)
        | Test::GreaterOrEqual(value) => is_safe(value).then(|| test.clone()),
        Test::In(list) => list.values().iter().counted().all(is_safe).then(|| test.clone()),
        Test::ElementMatches(node) => safe_part(node).map(|node| Test::ElementMatches(Box::new(node))),
        Test::ElementSatisfies(tests) => {
            let safe: Vec<Test> = tests.iter().filter_map(safe_test).collect();
            (!safe.is_empty()).then_some(Test::ElementSatisfies(safe))
        }
        Test::Collated(test, collation) => {
            safe_test(test).map(|test| Test::Collated(Box::new(test), collation.clone()))
        }
        _ => None,
    }
}

fn is_safe(value: &ValueBuf) -> bool {
    !matches!(value.as_value(), Value::Array(_) | Value::Document(_) | Value::Null | Value::Undefined)
}
