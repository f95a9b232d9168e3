//! Reading rows page by page, streamed from the socket into the sink.

use crate::catalog::table::Table;
use crate::plan::access::Rows;
use crate::plan::row_position::{RowPosition, key_param};
use crate::plan::{MariaDbPlan, prefetched_rows};
use crate::read::handler_counters::Watch;
use crate::read::result_cache::{self, Delivered, Kept, Recording};
use crate::read::row_sink::{Take, number};
use crate::store::MariaDbStore;
use error::{Code, Error};
use mariadb_client::{Event, Lease, Result, server_error};
use mariadb_wire::row::BinaryRow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use store::{Examined, Flow, Position, ScanEnd, rules};

/// Bytes of documents that a page should hold once their size is known.
const PAGE_BYTES: usize = 8 << 20;

/// What a document is taken for where pages are held whole and nothing is known of the size of documents.
const UNKNOWN_DOCUMENT_BYTES: usize = 64 << 10;

/// Rows of a page before anything is known of their size.
const FIRST_PAGE_ROWS_MAX: usize = 16_000;

const PAGE_ROWS_MAX: usize = 100_000;

/// Rows of the first page of a condition that some of them may not meet.
const INEXACT_PAGE_ROWS_MIN: usize = 16;

/// When the sink stops, so many rows are read and dropped to keep the connection; for more it is closed.
const DRAIN_BYTES_MAX: usize = 16 << 20;

/// Rows that have come are taken for so long before others of the worker are let in; and rows between two looks at the clock.
const SLICE: Duration = Duration::from_millis(2);
const ROWS_PER_LOOK: usize = 8;

/// So many keys that do not tell their values, and none that does, are taken for all of an index.
const UNTOLD_MIN: u64 = 32;

/// How far a scan has come.
struct Progress {
    /// The last row that was taken (or where to begin).
    at: Option<RowPosition>,
    rows: usize,
    bytes: usize,
}

impl Progress {
    fn position(&self) -> Position {
        let mut bytes = Vec::new();
        self.at.iter().for_each(|at| at.write(&mut bytes));
        Position(bytes)
    }
}

pub(crate) async fn of(
    store: &MariaDbStore,
    plan: &MariaDbPlan,
    table: &Arc<Table>,
    rows: &Rows,
    after: Option<&[u8]>,
    wanted: usize,
    take: &mut Take<'_>,
) -> Result<ScanEnd> {
    let columns = rows.index.as_ref().map_or(0, |index| index.columns.len());
    let mut at = after.and_then(|bytes| RowPosition::read(bytes, columns));
    let counts_closely = plan.counts_closely.load(Ordering::Relaxed);
    let ahead = plan.ahead.take().filter(|_| at.is_none() && !counts_closely);
    let recording = match ahead {
        // They came before anybody could note which changes they may miss.
        Some(_) => None,
        None => match result_cache::of_rows(store, plan, table, rows, at.as_ref(), wanted).await {
            Kept::Rows(set) => match result_cache::deliver(&set, after, take).await? {
                Delivered::End(end) => return Ok(end),
                Delivered::GoesOn(reached) => {
                    at = reached.and_then(|reached| RowPosition::read(&reached.0, columns)).or(at);
                    None
                }
            },
            Kept::Nothing(recording) => recording,
        },
    };
    let progress = Progress { at, rows: 0, bytes: 0 };
    let told = Vec::new();
    let (received, joined, fetched, untold) = (0, 0, 0, 0);
    let mut pages = Pages { plan, rows, wanted, take, progress, received, joined, fetched, untold, told, recording };
    if let Some(first) = ahead {
        let end = pages.deliver(&first);
        store.spare.set(first.into_spare());
        if let Some(end) = end? {
            rows.tally.add(pages.examined());
            return Ok(end);
        }
    }
    let mut lease = store.pool.lease_for(&plan.namespace).await?;
    if let (Some(at), Some(_), None) = (&pages.progress.at, table.cap(), &rows.index) {
        check_position(&mut lease, plan, table, &at.row).await?;
    }
    let watch = match plan.counts_closely.load(Ordering::Relaxed) {
        true => Some(Watch::begin(&mut lease).await?),
        false => None,
    };
    let outcome = pages.read(&mut lease, table).await;
    if let Ok(end) = &outcome {
        pages.keep(end);
    }
    if let (Some(_), Some(index)) = (&rows.covered, &rows.index)
        && pages.untold >= UNTOLD_MIN
        && pages.fetched == pages.received
    {
        table.untold.note(&index.key);
    }
    let (received, joined, fetched) = (pages.received, pages.joined, pages.fetched);
    let examined = pages.examined();
    let read = match watch {
        // A connection that was given up in the middle of a page tells nothing any more.
        Some(watch) if outcome.is_ok() => watch.end(&mut lease).await.ok(),
        _ => None,
    };
    rows.tally.add(match read {
        None => examined,
        Some(read) if rows.covered.is_some() => read.of_covered(received, fetched),
        Some(read) => read.examined(rows, received, joined),
    });
    match outcome {
        // The table with the values of arrays is gone, and the index with it.
        Err(failure) if failure.is_missing_table() && rows.found.is_some() => {
            store.catalog.invalidate(&plan.namespace);
            Err(index_dropped("").into())
        }
        Err(failure) if failure.is_missing_table() => Ok(ScanEnd::Exhausted),
        // Nothing was delivered: the same again does no harm.
        Err(failure) if failure.is_lost() && pages.progress.rows == 0 => {
            drop(lease);
            pages.read(&mut store.pool.lease_fresh_for(&plan.namespace).await?, table).await
        }
        Err(failure)
            if matches!(failure.sql_code(), Some(server_error::UNKNOWN_COLUMN | server_error::UNKNOWN_KEY)) =>
        {
            store.catalog.invalidate(&plan.namespace);
            if let Some(index) = &rows.index {
                return Err(index_dropped(&index.spec.name).into());
            }
            match store.catalog.table(&mut lease, &plan.namespace).await? {
                Some(table) if pages.progress.rows == 0 => pages.read(&mut lease, &table).await,
                Some(_) => Err(failure),
                None => Ok(ScanEnd::Exhausted),
            }
        }
        outcome => outcome,
    }
}

/// Error 175: a cursor goes on with an index that there is no more.
fn index_dropped(name: &str) -> Error {
    Error::new(Code::QUERY_PLAN_KILLED, format!("query plan killed :: index '{name}' dropped"))
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

impl Rows {
    /// What reading so many rows is taken to have looked at.
    pub fn examined(&self, received: u64) -> Examined {
        let by_keys = self.ids.is_some() || self.index.is_some() || self.found.is_some();
        let keys = if by_keys { received } else { 0 };
        Examined { keys, entries: keys, documents: received, seeks: 1 }
    }
}

/// A scan of rows, page by page.
struct Pages<'p, 't> {
    plan: &'p MariaDbPlan,
    rows: &'p Rows,
    wanted: usize,
    take: &'p mut Take<'t>,
    progress: Progress,
    /// Rows that have come.
    received: u64,
    /// Those among them whose documents were fetched behind all keys.
    joined: u64,
    /// Those among them whose documents were fetched, where keys may do.
    fetched: u64,
    /// Those among these whose keys are not null's.
    untold: u64,
    /// The text of a document that keys tell.
    told: Vec<u8>,
    /// Where rows are noted that are to be kept.
    recording: Option<Box<Recording>>,
}

enum Page {
    /// The sink stopped.
    Stopped,
    Read {
        rows: usize,
    },
}

impl Pages<'_, '_> {
    /// Keeps the rows that were taken.
    fn keep(&mut self, end: &ScanEnd) {
        if let Some(recording) = self.recording.take() {
            recording.finish(*end == ScanEnd::Exhausted);
        }
    }

    /// What it is taken to have looked at.
    fn examined(&self) -> Examined {
        let examined = self.rows.examined(self.received);
        match self.rows.covered {
            Some(_) => Examined { documents: self.fetched, ..examined },
            None => examined,
        }
    }

    /// Gives rows that are here already; how the scan ends, if it does with them.
    fn deliver(&mut self, first: &prefetched_rows::Rows) -> Result<Option<ScanEnd>> {
        for row in first.iter() {
            if self.take(row?)? != Flow::Continue {
                return Ok(Some(ScanEnd::Stopped(self.progress.position())));
            }
        }
        Ok(first.all.then_some(ScanEnd::Exhausted))
    }

    /// Gives a row to the sink: its key, its document, the keys of the index.
    fn take(&mut self, mut row: BinaryRow<'_>) -> Result<Flow> {
        let progress = &mut self.progress;
        self.received += 1;
        let key = row.next_bytes()?.unwrap_or_default();
        let mut json = row.next_bytes()?;
        if let Some(covered) = &self.rows.covered {
            self.told.clear();
            if json.is_some() {
                self.fetched += 1;
                self.untold += u64::from(!covered.has_null(row.clone())?);
            } else if covered.write(row.clone(), &mut self.told)? {
                json = Some(&self.told);
            }
        }
        let flow = match json {
            Some(json) => {
                progress.bytes += json.len();
                (self.take)(key, json)?
            }
            // One that somebody made by force, or that is gone since it was found.
            None => Flow::Continue,
        };
        if flow != Flow::StopBefore {
            progress.rows += 1;
            let at = progress.at.get_or_insert_default();
            replace(&mut at.row, key);
            at.keys.resize_with(self.rows.index.as_ref().map_or(0, |index| index.columns.len()), Vec::new);
            for key in &mut at.keys {
                replace(key, row.next_bytes()?.unwrap_or_default());
            }
            if let Some(recording) = &mut self.recording {
                recording.note(key, || progress.position(), json);
            }
        }
        Ok(flow)
    }

    async fn read(&mut self, lease: &mut Lease, table: &Table) -> Result<ScanEnd> {
        let mut limit = self.wanted.clamp(1, FIRST_PAGE_ROWS_MAX);
        let facts = store::Plan::facts(self.plan);
        // Few rows of an index are in vain.
        if !facts.exact && self.rows.index.is_none() && self.rows.found.is_none() {
            limit = limit.max(INEXACT_PAGE_ROWS_MIN);
        }
        if lease.holds_results() {
            let each = match table.document_bytes.get() {
                0 => UNKNOWN_DOCUMENT_BYTES,
                mean => mean as usize,
            };
            limit = limit.min(PAGE_BYTES / each).max(1);
        }
        loop {
            let joins = self.rows.joins(table, limit as u64);
            let written = self.plan.written.as_deref();
            self.rows.queue(lease, table, written, self.progress.at.as_ref(), limit as u64);
            let page = self.page(lease, limit, joins).await?;
            if self.rows.covered.is_none() {
                table.document_bytes.note(self.progress.bytes, self.progress.rows);
            }
            match page {
                Page::Stopped => return Ok(ScanEnd::Stopped(self.progress.position())),
                Page::Read { rows } if rows < limit && self.plan.tailable => {
                    return Ok(ScanEnd::Stopped(self.progress.position()));
                }
                Page::Read { rows } if rows < limit => return Ok(ScanEnd::Exhausted),
                Page::Read { .. } => {}
            }
            let average = (self.progress.bytes / self.progress.rows.max(1)).max(1);
            limit = (limit * 8).clamp(1, (PAGE_BYTES / average).clamp(1, PAGE_ROWS_MAX));
        }
    }

    async fn page(&mut self, lease: &mut Lease, limit: usize, joins: bool) -> Result<Page> {
        let mut rows = 0_usize;
        let mut began = Instant::now();
        while let Event::Row(range) = lease.next().await? {
            // A condition may take its time with each row, while the socket always has more of them.
            if rows % ROWS_PER_LOOK == ROWS_PER_LOOK - 1 && began.elapsed() > SLICE {
                tokio::task::yield_now().await;
                began = Instant::now();
            }
            rows += 1;
            self.joined += u64::from(joins);
            let flow = self.take(lease.row(range)?)?;
            if flow != Flow::Continue {
                let average = self.progress.bytes / self.progress.rows.max(1);
                if limit.saturating_sub(rows).saturating_mul(average) <= DRAIN_BYTES_MAX {
                    lease.finish().await?;
                }
                return Ok(Page::Stopped);
            }
        }
        Ok(Page::Read { rows })
    }
}

/// Keeps bytes without allocating for each row.
fn replace(kept: &mut Vec<u8>, bytes: &[u8]) {
    kept.clear();
    kept.extend_from_slice(bytes);
}
