//! Conditions of `$elemMatch` on the elements of an array.

use access::conditions::{Condition, PlannerQuery, Scope};
use query::predicate::Test;

/// A condition on an array's element, or on a field of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ElementCondition<'w> {
    /// The number of the `$elemMatch`: its conditions are about one element.
    pub scope: u32,
    /// The path to the array.
    pub array: &'w str,
    /// The path to the tested value.
    pub path: &'w str,
    pub test: &'w Test,
}

/// Returns the conditions of a query on single elements.
pub(crate) fn of_query<'w>(wanted: &'w PlannerQuery<'_>) -> impl Iterator<Item = ElementCondition<'w>> + Clone {
    wanted.conditions.iter().enumerate().flat_map(|(position, condition)| {
        let Condition { path, test, scope } = condition;
        let (whole, scope, tests): (bool, u32, &[Test]) = match test {
            // Operators without paths have no scope: each `$elemMatch` of them gets a number that
            // no scope has.
            Test::ElementSatisfies(tests) if *scope == Scope::DOCUMENT => (true, u32::MAX - position as u32, tests),
            _ if *scope == Scope::DOCUMENT => (true, 0, &[]),
            test => (false, scope.id, std::slice::from_ref(*test)),
        };
        let array = if whole { path } else { first_components(path, condition.scope.depth) };
        tests.iter().map(move |test| ElementCondition { scope, array, path, test })
    })
}

/// Returns the front of a path.
fn first_components(path: &str, count: u32) -> &str {
    let mut dots = path.match_indices('.').skip((count as usize).saturating_sub(1));
    dots.next().map_or(path, |(at, _)| &path[..at])
}
