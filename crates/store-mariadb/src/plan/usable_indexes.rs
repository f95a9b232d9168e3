//! The indexes that may serve a query, and the branches of its disjunction.

use crate::catalog::table::Table;
use crate::index::Index;
use access::conditions::PlannerQuery;
use query::predicate::Node;

/// The most branches of an `$or` that are looked up one by one.
pub(crate) const BRANCHES_MAX: usize = 64;

/// Returns the indexes on columns that may serve a query; `None` is the index on `_id`.
pub(crate) fn usable_indexes(table: &Table) -> impl Iterator<Item = Option<&Index>> {
    let secondary = table.indexes.iter().filter(|index| !index.is_hidden() && index.has_column_keys()).map(Some);
    table.has_id_key.then_some(None).into_iter().chain(secondary)
}

/// Returns the branches of the first `$or` that must hold, unless there are too many.
pub(crate) fn branches_of<'q>(wanted: &PlannerQuery<'q>) -> Option<&'q [Node]> {
    wanted.disjunctions.first().copied().filter(|branches| branches.len() <= BRANCHES_MAX)
}
