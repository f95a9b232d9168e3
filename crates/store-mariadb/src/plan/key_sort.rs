//! Sorting rows by the keys of other indexes, before their documents are fetched.

use crate::catalog::row_key::RowKey;
use crate::catalog::table::Table;
use crate::index::key_column::KeyColumn;
use crate::plan::access::{Access, Choice, Merged};
use crate::plan::candidate::Candidate;
use crate::plan::planner_query::Wanted;
use crate::plan::sibling_index_filter::column_of;
use document::DocBuf;
use store::{PlanFacts, Query};

/// Queries for more documents have theirs sorted here: each page sorts the keys of all rows again.
const SORTED_ROWS_MAX: u64 = 1_000;

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
