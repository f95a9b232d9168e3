//! Sorting rows by the keys of other indexes, before their documents are fetched.

use crate::catalog::row_key::RowKey;
use crate::catalog::table::Table;
use crate::index::key_column::KeyColumn;
use crate::plan::access::{Access, AccessChoice, OrderedMerge};
use crate::plan::candidate::IndexCandidate;
use crate::plan::sibling_index_filter::column_of;
use access::conditions::PlannerQuery;
use document::DocBuf;
use store::PlanFacts;

/// Queries for more documents are sorted by the gateway: each page sorts the keys of all rows
/// again.
const SORTED_ROWS_MAX: u64 = 1_000;

/// Plans a sort with a limit that no index has, of the rows that `found` finds: the server sorts
/// them by their keys.
pub(crate) fn in_order(found: &IndexCandidate<'_>, table: &Table, wanted: &PlannerQuery<'_>) -> Option<AccessChoice> {
    let is_short = wanted.limit.is_some_and(|limit| (1..=SORTED_ROWS_MAX).contains(&limit));
    let sort = wanted.sort.filter(|sort| is_short && wanted.trusts_order && sort.collation().is_simple())?;
    if table.row_key != RowKey::Sequence || !found.is_bounded() {
        return None;
    }
    let mut indexes = Vec::new();
    let mut columns = Vec::new();
    for part in sort.parts() {
        let (index, column) = column_of(table, part.path.as_str())?;
        indexes.push(IndexCandidate::new(Some(index), table, &PlannerQuery::default(), true));
        columns.push(KeyColumn { descends: !part.ascending, ..column });
    }
    let probe = IndexCandidate::common_probe(&indexes);
    let pattern = DocBuf::build(|writer| {
        sort.parts().iter().for_each(|part| {
            writer.append(part.path.as_str(), if part.ascending { 1 } else { -1 });
        });
    });
    let branches = found.branches_by(&columns, wanted)?;
    let descends = columns.iter().map(|column| column.descends);
    let rows = found.rows_of(OrderedMerge { branches, sorted: Some(pattern) }, descends, true);
    Some((Access::Rows(rows), PlanFacts { exact: false, sorted: true, view: false }, Some(probe)))
}
