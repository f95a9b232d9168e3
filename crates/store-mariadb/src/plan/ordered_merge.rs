//! Orders put together: an index that gives the order behind one value of its leading fields gives it behind several, place by place,
//! and so do the branches of an `$or`.

use crate::catalog::row_key::RowKey;
use crate::catalog::table::Table;
use crate::plan::access::{Access, Choice};
use crate::plan::candidate::Candidate;
use crate::plan::planner_query::Wanted;
use crate::plan::usable_indexes::{BRANCHES_MAX, branches_of, shown};
use std::sync::Arc;
use store::{PlanFacts, Query};

/// Each page begins with so many keys of each place, so queries for more documents have theirs sorted.
const ROWS_MAX: u64 = 1_000;

/// The plan for a sort with a limit whose order no index gives as it stands.
pub(crate) fn in_order(table: &Arc<Table>, query: &Query<'_>, wanted: &Wanted<'_>) -> Option<Choice> {
    let is_short = query.limit.is_some_and(|limit| (1..=ROWS_MAX).contains(&limit));
    if !is_short || !wanted.ordered || table.row_key != RowKey::Sequence {
        return None;
    }
    let sort = wanted.sort?;
    let candidates = places(table, wanted).or_else(|| {
        let mut all = Vec::new();
        for branch in branches_of(query.predicate.root())? {
            let mut part = Wanted { sort: Some(sort), ordered: true, ..Wanted::default() };
            part.read(branch);
            all.extend(of_branch(table, &part)?);
        }
        Some(all)
    })?;
    if candidates.len() < 2 {
        return None;
    }
    let probe = Candidate::common_probe(&candidates);
    let rows = Candidate::merged(candidates, wanted)?;
    Some((Access::Rows(rows), PlanFacts { exact: false, sorted: true, view: false }, Some(probe)))
}

fn of_branch<'t>(table: &'t Arc<Table>, part: &Wanted<'_>) -> Option<Vec<Candidate<'t>>> {
    let in_order = shown(table)
        .map(|index| Candidate::new(index, table, part, false))
        .filter(|candidate| candidate.is_bounded() && candidate.is_sorted())
        .max_by_key(|candidate| candidate.score);
    match in_order {
        Some(candidate) => Some(vec![candidate]),
        None => places(table, part),
    }
}

/// The places of one index that are bounded to single values in front of the sort's fields.
fn places<'t>(table: &'t Arc<Table>, wanted: &Wanted<'_>) -> Option<Vec<Candidate<'t>>> {
    shown(table)
        .map(|index| Candidate::new(index, table, wanted, false))
        .filter(|candidate| candidate.score > 0)
        .filter_map(|candidate| Some((candidate.score, candidate.split(wanted, BRANCHES_MAX)?)))
        .max_by_key(|(score, _)| *score)
        .map(|(_, places)| places)
}
