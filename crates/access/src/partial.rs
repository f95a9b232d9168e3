//! Whether a query needs only documents of a partial index.

use crate::bounds::{self, FieldContext};
use crate::conditions::{PlannerQuery, Scope};
use crate::ranges;
use document::Collation;
use index_keys::{IndexField, IndexShape};
use query::Predicate;
use query::predicate::{Node, Test};
use steps::Counted;

/// Returns whether an index, if it is partial, has all documents that the query needs.
pub fn covers_query(shape: &IndexShape, wanted: &PlannerQuery<'_>) -> bool {
    shape.partial.as_ref().is_none_or(|filter| implies(wanted, filter, &shape.fields))
}

/// Returns whether every document of the query matches the index's filter.
pub fn implies(wanted: &PlannerQuery<'_>, filter: &Predicate, fields: &[IndexField]) -> bool {
    let simple = Collation::SIMPLE;
    let collation = fields.first().map_or(&simple, |field| &field.collation);
    implies_node(wanted, filter.root(), collation)
}

fn implies_node(wanted: &PlannerQuery<'_>, filter: &Node, collation: &Collation) -> bool {
    steps::step();
    let itself = match filter {
        Node::And(all) => all.iter().all(|node| implies_node(wanted, node, collation)),
        Node::Or(any) => any.iter().any(|node| implies_node(wanted, node, collation)),
        Node::Path { path, test } => wanted.conditions.iter().counted().any(|condition| {
            condition.scope == Scope::DOCUMENT
                && *condition.path == *path.as_str()
                && implies_test(condition.test, test, collation)
        }),
        _ => false,
    };
    // All branches of a disjunction may imply what no other condition does.
    itself
        || wanted
            .disjunctions
            .iter()
            .any(|branches| branches.iter().all(|branch| implies_node(&wanted.branch(branch), filter, collation)))
}

/// Returns whether one condition implies another on the same path: its values are among the
/// other's, with or without arrays.
fn implies_test(test: &Test, filter: &Test, collation: &Collation) -> bool {
    let context = FieldContext { collation, single: false };
    let Some(wanted) = bounds::of(test, context) else {
        return matches!(filter, Test::Exists) && matches!(test, Test::Exists);
    };
    if matches!(filter, Test::Exists) {
        return wanted.excludes_missing;
    }
    match bounds::of(filter, context) {
        Some(filter) => {
            filter.exact
                && wanted.universal == filter.universal
                && !wanted.universal
                && ranges::is_subset(&wanted.ranges, &filter.ranges)
        }
        None => false,
    }
}
