//! The part of the log that a query needs: an entry's number is its `ts`, so conditions on `ts` are
//! bounds on rows.

use super::{Oplog, is_oplog, seq_of};
use crate::catalog::Collection;
use crate::plan::RowRange;
use access::conditions::PlannerQuery;
use document::Value;
use query::Predicate;
use query::predicate::Test;
use store::{FeedPosition, Query};

/// Returns the rows of a collection that can match: not all of them, if it is the log and the query
/// has conditions on `ts`.
pub fn rows_of(collection: &Collection, wanted: &PlannerQuery<'_>) -> RowRange {
    let mut rows = RowRange::ALL;
    if !is_oplog(&collection.namespace) {
        return rows;
    }
    for condition in wanted.conditions.iter().filter(|condition| condition.path == "ts") {
        let (Test::Equal(bound)
        | Test::Greater(bound)
        | Test::GreaterOrEqual(bound)
        | Test::Less(bound)
        | Test::LessOrEqual(bound)) = condition.test
        else {
            continue;
        };
        let Value::Timestamp { time, increment } = bound.as_value() else { continue };
        let seq = seq_of(FeedPosition { time, increment });
        // An entry at the bound itself is left to the filter.
        if matches!(condition.test, Test::Equal(_) | Test::Greater(_) | Test::GreaterOrEqual(_)) {
            rows.behind = rows.behind.max(seq - 1);
        }
        if matches!(condition.test, Test::Equal(_) | Test::Less(_) | Test::LessOrEqual(_)) {
            rows.last = rows.last.min(seq);
        }
    }
    rows
}

/// As [`rows_of`], for a scan that goes on with later entries. It includes the latest entry in any
/// case: a cursor that has seen none is closed.
pub fn rows_to_follow(oplog: Option<&Oplog>, collection: &Collection, predicate: &Predicate) -> RowRange {
    let latest = oplog.map_or(i64::MIN, |oplog| seq_of(oplog.latest()) - 1);
    let rows = rows_of(collection, &PlannerQuery::of(&Query::of(predicate)));
    RowRange { behind: rows.behind.min(latest), last: i64::MAX }
}
