//! Reading a plan's rows: pages by row key, streamed from the socket into the sink.
//!
//! A page is one statement. The first page holds about as many rows as the caller wants; later ones grow, so that a long scan
//! waits for few round trips, yet stay small enough that little is in vain when the sink stops. Within a page the server, the
//! socket and the sink work at the same time: rows go to the sink where they lie in the receive buffer, and nothing is
//! read ahead of the sink but what the socket's buffers hold.

use crate::connection::Event;
use crate::failure::Result;
use crate::failure::sql;
use crate::lane;
use crate::plan::{MariaDbPlan, key_param};
use crate::pool::Lease;
use crate::store::MariaDbStore;
use crate::table::Table;
use mariadb_wire::Param;
use mariadb_wire::row::BinaryRow;
use std::sync::Arc;
use store::{Flow, Position, ScanEnd, Sink, StoredDoc, rules, views};

/// Bytes of documents that a page should hold once their size is known.
const PAGE_BYTES: usize = 8 << 20;

/// Rows of a page before anything is known of their size.
const FIRST_PAGE_ROWS_MAX: usize = 16_000;

const PAGE_ROWS_MAX: usize = 100_000;

/// Rows of the first page of a condition that some of them may not meet.
const INEXACT_PAGE_ROWS_MIN: usize = 16;

/// When the sink stops, so many rows are read and dropped to keep the connection; for more it is closed.
const DRAIN_BYTES_MAX: usize = 16 << 20;

/// How far a scan has come.
struct Progress {
    /// Key of the last row that was taken (or where to begin).
    key: Option<Vec<u8>>,
    rows: usize,
    bytes: usize,
}

pub(crate) async fn scan(
    store: &MariaDbStore,
    plan: &MariaDbPlan,
    after: Option<&Position>,
    wanted: usize,
    sink: &mut dyn Sink,
) -> Result<ScanEnd> {
    rows(store, plan, after, wanted, &mut |_, json| sink.accept(StoredDoc::Json(json))).await
}

/// Takes a row: its key and its document's text.
pub(crate) type Take<'t> = dyn FnMut(&[u8], &[u8]) -> error::Result<Flow> + 't;

/// As [`scan`], for those who need the rows' keys.
pub(crate) async fn rows(
    store: &MariaDbStore,
    plan: &MariaDbPlan,
    after: Option<&Position>,
    wanted: usize,
    take: &mut Take<'_>,
) -> Result<ScanEnd> {
    if store::Plan::facts(plan).view {
        return Err(views::taken_for_a_collection().into());
    }
    let Some(table) = plan.table.clone().filter(|_| !plan.access.nothing) else { return Ok(ScanEnd::Exhausted) };
    let key = after.map(|position| position.0.clone()).filter(|key| !key.is_empty());
    let mut progress = Progress { key, rows: 0, bytes: 0 };
    if let (Some(id), None) = (plan.access.single_id(), &progress.key) {
        match store.lane.lookup(&table.statements.by_id, &[Param::Text(id)]).await {
            Ok(row) => return lookup(row, take),
            Err(failure) if failure.is_missing_table() => return Ok(ScanEnd::Exhausted),
            // Tried again below, on a connection of its own.
            Err(failure) if failure.is_lost() || failure.sql_code() == Some(sql::UNKNOWN_COLUMN) => {}
            Err(failure) => return Err(failure),
        }
    }
    let mut lease = store.pool.lease().await?;
    if let (Some(key), Some(_)) = (&progress.key, table.cap()) {
        check_position(&mut lease, plan, &table, key).await?;
    }
    match pages(&mut lease, plan, &table, wanted, take, &mut progress).await {
        Err(failure) if failure.is_missing_table() => Ok(ScanEnd::Exhausted),
        // Nothing was delivered: the same again does no harm.
        Err(failure) if failure.is_lost() && progress.rows == 0 => {
            drop(lease);
            let mut lease = store.pool.lease_fresh().await?;
            pages(&mut lease, plan, &table, wanted, take, &mut progress).await
        }
        Err(failure) if failure.sql_code() == Some(sql::UNKNOWN_COLUMN) && progress.rows == 0 => {
            store.catalog.forget(&plan.namespace);
            match store.catalog.table(&mut lease, &plan.namespace).await? {
                Some(table) => pages(&mut lease, plan, &table, wanted, take, &mut progress).await,
                None => Ok(ScanEnd::Exhausted),
            }
        }
        outcome => outcome,
    }
}

/// The row of one id, or none.
fn lookup(row: Option<lane::Row>, take: &mut Take<'_>) -> Result<ScanEnd> {
    let Some((payload, types)) = row else { return Ok(ScanEnd::Exhausted) };
    let mut row = BinaryRow::new(&payload, &types)?;
    let key = row.next_bytes()?.unwrap_or_default();
    let Some(json) = row.next_bytes()? else { return Ok(ScanEnd::Exhausted) };
    Ok(match take(key, json)? {
        Flow::Continue => ScanEnd::Exhausted,
        Flow::StopAfter => ScanEnd::Stopped(Position(key.to_vec())),
        Flow::StopBefore => ScanEnd::Stopped(Position(Vec::new())),
    })
}

/// Counts a plan's rows on the server, where the plan says all there is to the filter.
pub(crate) async fn count(store: &MariaDbStore, plan: &MariaDbPlan, enough: Option<u64>) -> Result<Option<u64>> {
    if !store::Plan::facts(plan).exact || plan.access.condition.is_some() {
        return Ok(None);
    }
    let Some(table) = plan.table.as_ref().filter(|_| !plan.access.nothing) else { return Ok(Some(0)) };
    let (statement, ids) = plan.access.count_statement(table);
    let mut lease = store.pool.lease().await?;
    lease.queue_execute(&statement, &ids);
    let mut count = 0;
    loop {
        match lease.next().await {
            Ok(Event::Row(range)) => count = lease.row(range)?.next_u64()?,
            Ok(Event::Finished(_)) => return Ok(Some(enough.map_or(count, |enough| count.min(enough)))),
            Err(failure) if failure.is_missing_table() => return Ok(Some(0)),
            Err(failure) => return Err(failure),
        }
    }
}

/// A capped collection is read without gaps or not at all. Error 136.
async fn check_position(lease: &mut Lease, plan: &MariaDbPlan, table: &Table, key: &[u8]) -> Result<()> {
    lease.queue_execute(&table.statements.by_key, &[key_param(table.row_key, key)]);
    let mut found = false;
    while let Event::Row(_) = lease.next().await? {
        found = true;
    }
    let record = std::str::from_utf8(key).ok().and_then(|key| key.parse().ok()).unwrap_or_else(|| number(key));
    if found { Ok(()) } else { Err(rules::position_lost(plan.tailable, record).into()) }
}

/// A row key as the server sends it.
fn number(key: &[u8]) -> i64 {
    key.iter().rev().fold(0, |number, byte| number << 8 | i64::from(*byte))
}

async fn pages(
    lease: &mut Lease,
    plan: &MariaDbPlan,
    table: &Arc<Table>,
    wanted: usize,
    take: &mut Take<'_>,
    progress: &mut Progress,
) -> Result<ScanEnd> {
    let access = &plan.access;
    if let (Some(id), None) = (access.single_id(), &progress.key) {
        lease.queue_execute(&table.statements.by_id, &[Param::Text(id)]);
        return Ok(match page(lease, 1, take, progress).await? {
            Page::Stopped(key) => ScanEnd::Stopped(Position(key)),
            Page::Read { .. } => ScanEnd::Exhausted,
        });
    }
    let mut limit = wanted.clamp(1, FIRST_PAGE_ROWS_MAX);
    if !store::Plan::facts(plan).exact {
        limit = limit.max(INEXACT_PAGE_ROWS_MIN);
    }
    loop {
        let after = progress.key.take();
        let statement = access.statement(table, after.is_some());
        lease.queue_execute(&statement, &access.params(table, after.as_deref(), limit as u64));
        progress.key = after;
        match page(lease, limit, take, progress).await? {
            Page::Stopped(key) => return Ok(ScanEnd::Stopped(Position(key))),
            Page::Read { rows } if rows < limit && plan.tailable => {
                return Ok(ScanEnd::Stopped(Position(progress.key.take().unwrap_or_default())));
            }
            Page::Read { rows } if rows < limit => return Ok(ScanEnd::Exhausted),
            Page::Read { .. } => {}
        }
        let average = (progress.bytes / progress.rows.max(1)).max(1);
        limit = (limit * 8).clamp(1, (PAGE_BYTES / average).clamp(1, PAGE_ROWS_MAX));
    }
}

enum Page {
    /// The sink stopped: go on behind this key (empty: from the start).
    Stopped(Vec<u8>),
    Read {
        rows: usize,
    },
}

async fn page(lease: &mut Lease, limit: usize, take: &mut Take<'_>, progress: &mut Progress) -> Result<Page> {
    let mut rows = 0;
    while let Event::Row(range) = lease.next().await? {
        rows += 1;
        let mut row = lease.row(range)?;
        let key = row.next_bytes()?.unwrap_or_default();
        // A row without a document can only be one that somebody made by force.
        let Some(json) = row.next_bytes()? else { continue };
        progress.bytes += json.len();
        let flow = take(key, json)?;
        if flow != Flow::StopBefore {
            progress.rows += 1;
            remember(&mut progress.key, key);
        }
        if flow != Flow::Continue {
            let average = progress.bytes / progress.rows.max(1);
            if limit.saturating_sub(rows).saturating_mul(average) <= DRAIN_BYTES_MAX {
                lease.finish().await?;
            }
            return Ok(Page::Stopped(progress.key.take().unwrap_or_default()));
        }
    }
    Ok(Page::Read { rows })
}

/// Keeps a key without allocating for each row.
fn remember(kept: &mut Option<Vec<u8>>, key: &[u8]) {
    let kept = kept.get_or_insert_default();
    kept.clear();
    kept.extend_from_slice(key);
}
