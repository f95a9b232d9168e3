//! What the keys of other indexes say of the rows that one index finds, before their documents are fetched.
//!
//! A row's keys lie in the row, while a document of some length lies beside it, and has to be sent and read. So rows whose keys tell that
//! they do not match are left where they are ([`filter`]), and of a sort with a limit only the rows are fetched that come first by their
//! keys ([`in_order`]).

use crate::catalog::table::{RowKey, Table};
use crate::index::Index;
use crate::plan::candidate::{Candidate, within};
use crate::plan::index_bounds::Bounds;
use crate::plan::planner::{Choice, Wanted};
use crate::plan::pushdown::Condition;
use crate::plan::{Access, KeyColumn, Merged};
use document::DocBuf;
use store::{PlanFacts, Query};

/// Shorter documents are sent in the time that it takes to look at their rows twice.
const FILTERED_BYTES_MIN: u64 = 1_024;

/// Columns that are looked at in each row.
const COLUMNS_MAX: usize = 4;

/// Queries for more documents have theirs sorted here: each page sorts the keys of all rows again.
const SORTED_ROWS_MAX: u64 = 1_000;

/// Whether looking at other keys is worth it, as far as is known. Changes as documents are read.
pub(crate) fn has_long_documents(table: &Table) -> bool {
    table.document_bytes.get() >= FILTERED_BYTES_MIN
}

/// What the server can tell by the keys of other indexes than `own`, where documents are long: true for every document that matches.
pub(crate) fn filter(own: &Index, table: &Table, wanted: &Wanted<'_>) -> Option<Condition> {
    has_long_documents(table).then(|| filter_of_any(Some(own), table, wanted)).flatten()
}

/// The same for documents of any length. `None` for `own`: the index on `_id`.
pub(crate) fn filter_of_any(own: Option<&Index>, table: &Table, wanted: &Wanted<'_>) -> Option<Condition> {
    if own.is_some_and(|own| !own.stands_alone) || table.row_key != RowKey::Sequence {
        return None;
    }
    let mut paths: Vec<&str> = wanted.conditions.iter().map(|(path, _)| *path).collect();
    paths.sort_unstable();
    paths.dedup();
    paths.retain(|path| !own.is_some_and(|own| own.fields().any(|field| field == *path)));
    let condition = |path: &&str| {
        let (index, column) = column_of(table, path)?;
        let bounds = Bounds::of(path, &wanted.conditions, index.bytes())?;
        Some(within(&column.name, &bounds.all()))
    };
    let parts: Vec<Condition> = paths.iter().filter_map(condition).take(COLUMNS_MAX).collect();
    (!parts.is_empty()).then(|| Condition::joined(parts, " AND "))
}

/// The plan for a sort with a limit that no index gives, of what `found` finds: the server puts the rows in order by their keys.
pub(crate) fn in_order(found: &Candidate<'_>, table: &Table, query: &Query<'_>, wanted: &Wanted<'_>) -> Option<Choice> {
    let is_short = query.limit.is_some_and(|limit| (1..=SORTED_ROWS_MAX).contains(&limit));
    let sort = wanted.sort.filter(|sort| is_short && wanted.ordered && sort.collation().is_simple())?;
    if table.row_key != RowKey::Sequence || !found.is_bounded() {
        return None;
    }
    let mut indexes = Vec::new();
    let mut columns = Vec::new();
    for part in sort.parts() {
        let (index, column) = column_of(table, part.path.as_str())?;
        indexes.push(Candidate::new(Some(index), table, &Wanted::default(), true));
        columns.push(KeyColumn { descends: !part.ascending, ..column });
    }
    let probe = Candidate::common_probe(&indexes);
    let pattern = DocBuf::build(|writer| {
        sort.parts().iter().for_each(|part| {
            writer.append(part.path.as_str(), if part.ascending { 1 } else { -1 });
        });
    });
    let branches = found.branches_by(&columns, wanted)?;
    let descends = columns.iter().map(|column| column.descends);
    let rows = found.rows_of(Merged { branches, sorted: Some(pattern) }, descends, true);
    Some((Access::Rows(rows), PlanFacts { exact: false, sorted: true, view: false }, Some(probe)))
}

/// A column with the key that every document has for a path.
fn column_of<'t>(table: &'t Table, path: &str) -> Option<(&'t Index, KeyColumn)> {
    let mut all = table
        .indexes
        .iter()
        .filter(|index| index.stands_alone && index.has_keys() && !index.leaves_out() && !index.is_hidden());
    all.find_map(|index| {
        let position = index.fields().position(|field| field == path)?;
        Some((index, index.key_columns.get(position)?.clone()))
    })
}
