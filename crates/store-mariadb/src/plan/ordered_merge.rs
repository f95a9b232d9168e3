//! Ordered merges: an index that has the order after one value of its leading fields has it after
//! several values, range by range, and so have the branches of an `$or`.

use crate::catalog::row_key::RowKey;
use crate::catalog::table::Table;
use crate::plan::access::{Access, AccessChoice};
use crate::plan::candidate::IndexCandidate;
use crate::plan::usable_indexes::{BRANCHES_MAX, branches_of, usable_indexes};
use access::conditions::PlannerQuery;
use std::sync::Arc;
use store::PlanFacts;

/// Queries for more documents are sorted instead: each page reads up to this many keys of each
/// range.
const ROWS_MAX: u64 = 1_000;

/// Plans a sort with a limit as an ordered merge.
pub(crate) fn in_order(table: &Arc<Table>, wanted: &PlannerQuery<'_>) -> Option<AccessChoice> {
    let is_short = wanted.limit.is_some_and(|limit| (1..=ROWS_MAX).contains(&limit));
    if !is_short || !wanted.trusts_order || table.row_key != RowKey::Sequence {
        return None;
    }
    let sort = wanted.sort?;
    let candidates = split_by_points(table, wanted).or_else(|| {
        let mut all = Vec::new();
        for branch in branches_of(wanted)? {
            let mut part = PlannerQuery::of_node(branch);
            part.sort = Some(sort);
            all.extend(of_branch(table, &part)?);
        }
        Some(all)
    })?;
    if candidates.len() < 2 {
        return None;
    }
    let probe = IndexCandidate::common_probe(&candidates);
    let rows = IndexCandidate::merged(candidates, wanted)?;
    Some((Access::Rows(rows), PlanFacts { exact: false, sorted: true, view: false }, Some(probe)))
}

fn of_branch<'t>(table: &'t Arc<Table>, part: &PlannerQuery<'_>) -> Option<Vec<IndexCandidate<'t>>> {
    let in_order = usable_indexes(table)
        .map(|index| IndexCandidate::new(index, table, part, false))
        .filter(|candidate| candidate.is_bounded() && candidate.is_sorted())
        .max_by_key(|candidate| candidate.score);
    match in_order {
        Some(candidate) => Some(vec![candidate]),
        None => split_by_points(table, part),
    }
}

/// Splits an index scan into one per combination of the single values that precede the sort's
/// fields.
fn split_by_points<'t>(table: &'t Arc<Table>, wanted: &PlannerQuery<'_>) -> Option<Vec<IndexCandidate<'t>>> {
    usable_indexes(table)
        .map(|index| IndexCandidate::new(index, table, wanted, false))
        .filter(|candidate| candidate.score > 0)
        .filter_map(|candidate| Some((candidate.score, candidate.split(wanted, BRANCHES_MAX)?)))
        .max_by_key(|(score, _)| *score)
        .map(|(_, split)| split)
}
