//! Executes a plan's scan.
//!
//! Rows are read in pages, each of which is one statement ([`crate::read::pages`]). The first page
//! has about as many rows as the caller requests. Later ones grow, so that a long scan waits for
//! few round trips, yet stay small enough that little is wasted when the sink stops. Within a page
//! the server, the socket and the sink work at the same time: the sink gets rows from the receive
//! buffer, and only the socket's buffers are read ahead. A page begins after the last row of the
//! one before, by row key or by the keys of the index that gives the order.

use crate::catalog::row_key::RowKey;
use crate::catalog::table::Table;
use crate::encoding;
use crate::plan::MariaDbPlan;
use crate::plan::access::{Access, RowSource};
use crate::read::result_cache::{self, CachedRows, Delivered, Recording};
use crate::read::row_sink::{RowSink, row_number};
use crate::read::{pages, rings};
use crate::store::MariaDbStore;
use document::Doc;
use mariadb_client::{Failure, LookupRow, Result, server_error};
use mariadb_wire::Param;
use mariadb_wire::row::BinaryRow;
use query::Predicate;
use std::sync::Arc;
use store::{Flow, Position, ScanEnd, Sink, StoredDoc, views};

/// Scans a plan into a sink.
pub(crate) async fn scan(
    store: &MariaDbStore,
    plan: &MariaDbPlan,
    after: Option<&Position>,
    wanted: usize,
    sink: &mut dyn Sink,
) -> Result<ScanEnd> {
    let numbered = sink.wants_records() && plan.table.as_ref().is_some_and(|table| table.row_key == RowKey::Sequence);
    let mut take = |key: &[u8], json: &[u8]| {
        if numbered {
            sink.record(row_number(key));
        }
        sink.accept(StoredDoc::Json(json))
    };
    rows(store, plan, after, wanted, &mut take).await
}

/// As [`scan`], for callers that need row keys.
pub(crate) async fn rows(
    store: &MariaDbStore,
    plan: &MariaDbPlan,
    after: Option<&Position>,
    wanted: usize,
    take: &mut RowSink<'_>,
) -> Result<ScanEnd> {
    if store::Plan::facts(plan).view {
        return Err(views::scanned_as_collection().into());
    }
    let Some(table) = &plan.table else { return Ok(ScanEnd::Exhausted) };
    let after = after.map(|position| position.0.as_slice()).filter(|bytes| !bytes.is_empty());
    match &plan.access {
        Access::Nothing => Ok(ScanEnd::Exhausted),
        Access::Rows(rows) => {
            if let Some(rings) = rows.rings() {
                return rings::scan(store, plan, (table, rows, rings), after, take).await;
            }
            if let (Some(id), None) = (plan.single_id(), after) {
                let recording = match result_cache::row_of_id(store, plan, table, id).await {
                    CachedRows::Hit(set) => match result_cache::deliver(&set, None, take).await? {
                        Delivered::End(end) => return Ok(end),
                        Delivered::Continues(_) => return Ok(ScanEnd::Exhausted),
                    },
                    CachedRows::Miss(recording) => recording,
                };
                match store.look_up_document(&plan.namespace, &table.statements.by_id, &[Param::Text(id)]).await {
                    Ok(row) => {
                        rows.tally.add(rows.examined(u64::from(row.is_some())));
                        return lookup(row, recording, take);
                    }
                    Err(failure) if failure.is_missing_table() => return Ok(ScanEnd::Exhausted),
                    // Retried below on a connection of its own, which waits for locks.
                    Err(failure)
                        if failure.is_lost()
                            || failure.is_contention()
                            || failure.sql_code() == Some(server_error::UNKNOWN_COLUMN) => {}
                    Err(failure) => return Err(failure),
                }
            }
            let Some(side) = rows.side().filter(|side| side.only.is_some()) else {
                return pages::scan_rows(store, plan, table, rows, after, wanted, take).await;
            };
            let mut bson = Vec::new();
            let mut take_own = |key: &[u8], json: &[u8]| {
                bson.clear();
                encoding::decode(json, &mut bson)?;
                let given = side.includes(Doc::from_bytes(&bson).unwrap_or(Doc::EMPTY));
                if given { take(key, json) } else { Ok(Flow::Continue) }
            };
            pages::scan_rows(store, plan, table, rows, after, wanted, &mut take_own).await
        }
        Access::Union(branches) => union(store, plan, table, branches, after, wanted, take).await,
    }
}

/// Scans the branches of a union one by one. A position begins with the number of the branch.
async fn union(
    store: &MariaDbStore,
    plan: &MariaDbPlan,
    table: &Arc<Table>,
    branches: &[(Option<Predicate>, RowSource)],
    after: Option<&[u8]>,
    wanted: usize,
    take: &mut RowSink<'_>,
) -> Result<ScanEnd> {
    let (first, mut after) = match after.and_then(<[u8]>::split_first) {
        Some((branch, rest)) => (usize::from(*branch), Some(rest).filter(|rest| !rest.is_empty())),
        None => (0, None),
    };
    let mut bson = Vec::new();
    for (number, (_, rows)) in branches.iter().enumerate().skip(first) {
        let own = branches[..=number].iter().rposition(|(filter, _)| filter.is_some());
        let mut take_own = |key: &[u8], json: &[u8]| {
            let Some(own) = own else { return take(key, json) };
            bson.clear();
            encoding::decode(json, &mut bson)?;
            let document = Doc::from_bytes(&bson).unwrap_or(Doc::EMPTY);
            for (earlier, (predicate, _)) in branches[..=own].iter().enumerate() {
                let Some(predicate) = predicate else { continue };
                if predicate.matches(document)? {
                    return if earlier == own { take(key, json) } else { Ok(Flow::Continue) };
                }
            }
            Ok(Flow::Continue)
        };
        match pages::scan_rows(store, plan, table, rows, after.take(), wanted, &mut take_own).await? {
            ScanEnd::Exhausted => {}
            ScanEnd::Stopped(Position(position)) => {
                return Ok(ScanEnd::Stopped(Position([&[number as u8][..], &position].concat())));
            }
        }
    }
    Ok(ScanEnd::Exhausted)
}

/// Delivers the row of one id, if there is one.
fn lookup(row: Option<LookupRow>, recording: Option<Box<Recording>>, take: &mut RowSink<'_>) -> Result<ScanEnd> {
    let mut row = match &row {
        Some((payload, types)) => Some(BinaryRow::new(payload, types)?),
        None => None,
    };
    let mut parts = || {
        let Some(row) = &mut row else { return Ok(None) };
        let key = row.next_bytes()?.unwrap_or_default();
        Ok::<_, Failure>(row.next_bytes()?.map(|json| (key, json)))
    };
    let found = parts()?;
    if let Some(mut recording) = recording {
        found.into_iter().for_each(|(key, json)| recording.add(key, || Position(key.to_vec()), Some(json)));
        recording.finish(true);
    }
    let Some((key, json)) = found else { return Ok(ScanEnd::Exhausted) };
    Ok(match take(key, json)? {
        Flow::Continue => ScanEnd::Exhausted,
        Flow::StopAfter => ScanEnd::Stopped(Position(key.to_vec())),
        Flow::StopBefore => ScanEnd::Stopped(Position(Vec::new())),
    })
}
