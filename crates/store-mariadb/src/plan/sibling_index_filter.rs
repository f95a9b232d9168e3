//! Filters the rows that one index finds by the keys of sibling indexes, before documents are
//! fetched.
//!
//! Keys are in the row, while a long document is on pages of its own, and must be fetched, sent and
//! parsed. So rows whose keys do not match are skipped ([`filter`]), and for a sort with a limit
//! only the first rows by their keys are fetched ([`crate::plan::key_sort`]).

use crate::catalog::row_key::RowKey;
use crate::catalog::table::Table;
use crate::index::Index;
use crate::index::key_column::KeyColumn;
use crate::plan::index_bounds::IndexBounds;
use crate::plan::key_condition::in_ranges;
use crate::plan::pushdown::Condition;
use access::conditions::PlannerQuery;

/// The most columns checked in each row.
const COLUMNS_MAX: usize = 4;

/// Returns a condition on the keys of indexes other than `own`, which every matching document
/// meets. `None` if documents are short.
pub(crate) fn filter(own: &Index, table: &Table, wanted: &PlannerQuery<'_>) -> Option<Condition> {
    table.has_long_documents().then(|| filter_regardless_of_length(Some(own), table, wanted)).flatten()
}

/// As [`filter`], for documents of any length. `None` for `own` is the index on `_id`.
pub(crate) fn filter_regardless_of_length(
    own: Option<&Index>,
    table: &Table,
    wanted: &PlannerQuery<'_>,
) -> Option<Condition> {
    if own.is_some_and(|own| !own.has_column_keys()) || table.row_key != RowKey::Sequence {
        return None;
    }
    let mut paths: Vec<&str> = wanted.document_conditions().map(|(path, _)| path).collect();
    paths.sort_unstable();
    paths.dedup();
    paths.retain(|path| !own.is_some_and(|own| own.fields().any(|field| field == *path)));
    let condition = |path: &&str| {
        let (index, column) = column_of(table, path)?;
        let bounds = IndexBounds::of(wanted.tests_of(path), index.bytes())?;
        Some(in_ranges(&column.name, &bounds.all()))
    };
    let parts: Vec<Condition> = paths.iter().filter_map(condition).take(COLUMNS_MAX).collect();
    (!parts.is_empty()).then(|| Condition::joined(parts, " AND "))
}

/// Returns a column with the keys of a path, from an index that has every document.
pub(crate) fn column_of<'t>(table: &'t Table, path: &str) -> Option<(&'t Index, KeyColumn)> {
    let mut all = table
        .indexes
        .iter()
        .filter(|index| index.has_column_keys() && !index.excludes_documents() && !index.is_hidden());
    all.find_map(|index| {
        let position = index.fields().position(|field| field == path)?;
        Some((index, index.key_columns().get(position)?.clone()))
    })
}
