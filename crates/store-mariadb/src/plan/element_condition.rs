//! Conditions of `$elemMatch` on the elements of an array.

use query::predicate::{Node, Test};

/// A condition on an array's element, or on a field of it.
#[derive(Debug)]
pub(crate) struct ElementCondition<'q> {
    /// The number of the `$elemMatch`: its conditions are about one element.
    pub scope: usize,
    /// The path to the array.
    pub array: &'q str,
    /// The path to the tested value.
    pub path: String,
    pub test: &'q Test,
}

impl ElementCondition<'_> {
    pub fn is_at(&self, path: &str) -> bool {
        self.path == path
    }
}

/// Appends the conditions of an `$elemMatch`.
pub(crate) fn read<'q>(array: &'q str, test: &'q Test, conditions: &mut Vec<ElementCondition<'q>>) {
    let scope = conditions.last().map_or(0, |last| last.scope + 1);
    match test {
        Test::ElementMatches(node) => read_within(node, array, scope, conditions),
        Test::ElementSatisfies(tests) => conditions.extend(tests.iter().map(|test| {
            let path = array.to_owned();
            ElementCondition { scope, array, path, test }
        })),
        _ => {}
    }
}

fn read_within<'q>(node: &'q Node, array: &'q str, scope: usize, conditions: &mut Vec<ElementCondition<'q>>) {
    match node {
        Node::And(all) => all.iter().for_each(|node| read_within(node, array, scope, conditions)),
        // A number may be a position in an element that is an array.
        Node::Path { path, test } if document::path::position(path.first()).is_none() => {
            let path = format!("{array}.{path}");
            conditions.push(ElementCondition { scope, array, path, test });
        }
        _ => {}
    }
}
