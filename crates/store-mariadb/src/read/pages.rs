//! Reading rows page by page, streamed from the socket into the sink.

use crate::catalog::attempts::{ATTEMPTS_MAX, pause};
use crate::catalog::table::Table;
use crate::plan::access::RowSource;
use crate::plan::row_position::{RowPosition, key_param};
use crate::plan::{MariaDbPlan, prefetched_rows};
use crate::read::handler_counters::HandlerCounters;
use crate::read::result_cache::{self, CachedRows, Delivered, Recording};
use crate::read::row_sink::{RowSink, row_number};
use crate::store::MariaDbStore;
use error::{Code, Error};
use mariadb_client::{Connection, Event, Failure, Result, server_error};
use mariadb_wire::row::BinaryRow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use store::{Examined, Flow, Position, ScanEnd, rules};

/// Bytes of documents that a page should hold once their size is known.
const PAGE_BYTES: usize = 8 << 20;

/// The assumed size of a document if pages are held as a whole and no document was read yet.
const UNKNOWN_DOCUMENT_BYTES: usize = 64 << 10;

/// The most rows of a page while their size is unknown.
const FIRST_PAGE_ROWS_MAX: usize = 16_000;

const PAGE_ROWS_MAX: usize = 100_000;

/// The least rows of the first page if some of them may not match.
const INEXACT_PAGE_ROWS_MIN: usize = 16;

/// If the sink stops, up to this many bytes of rows are read and dropped to reuse the connection;
/// otherwise it is closed.
const DRAIN_BYTES_MAX: usize = 16 << 20;

/// How long buffered rows are processed before the worker's other tasks may run, and rows between
/// two checks of the clock.
const YIELD_AFTER: Duration = Duration::from_millis(2);
const ROWS_PER_CHECK: usize = 8;

/// An index counts as undecodable after this many keys that do not give their values, and none that
/// does.
const UNDECODABLE_MIN: u64 = 32;

/// The progress of a scan.
struct ScanProgress {
    /// The last row that was delivered, or the start.
    at: Option<RowPosition>,
    rows: usize,
    bytes: usize,
}

impl ScanProgress {
    fn position(&self) -> Position {
        let mut bytes = Vec::new();
        self.at.iter().for_each(|at| at.write(&mut bytes));
        Position(bytes)
    }
}

/// Scans one row source.
pub(crate) async fn scan_rows(
    store: &MariaDbStore,
    plan: &MariaDbPlan,
    table: &Arc<Table>,
    rows: &RowSource,
    after: Option<&[u8]>,
    wanted: usize,
    take: &mut RowSink<'_>,
) -> Result<ScanEnd> {
    let columns = rows.index.as_ref().map_or(0, |index| index.columns.len());
    let mut at = after.and_then(|bytes| RowPosition::read(bytes, columns));
    let exact_counts = plan.exact_counts.load(Ordering::Relaxed);
    let prefetched = plan.prefetched.take().filter(|_| at.is_none() && !exact_counts);
    let recording = match prefetched {
        // They were read before changes could be tracked for the cache.
        Some(_) => None,
        None => match result_cache::rows_of_plan(store, plan, table, rows, at.as_ref(), wanted).await {
            CachedRows::Hit(set) => match result_cache::deliver(&set, after, take).await? {
                Delivered::End(end) => return Ok(end),
                Delivered::Continues(reached) => {
                    at = reached.and_then(|reached| RowPosition::read(&reached.0, columns)).or(at);
                    None
                }
            },
            CachedRows::Miss(recording) => recording,
        },
    };
    let progress = ScanProgress { at, rows: 0, bytes: 0 };
    let decoded = Vec::new();
    let (received, joined, fetched, undecodable) = (0, 0, 0, 0);
    let mut pages =
        Pages { plan, rows, wanted, take, progress, received, joined, fetched, undecodable, decoded, recording };
    if let Some(first) = prefetched {
        let end = pages.deliver(&first);
        store.row_buffer.set(first.into_buffer());
        if let Some(end) = end? {
            rows.tally.add(pages.examined());
            return Ok(end);
        }
    }
    let mut lease = store.lease_documents(&plan.namespace).await?;
    if let (Some(at), Some(_), None) = (&pages.progress.at, table.cap(), &rows.index) {
        check_position(&mut lease, plan, table, &at.row).await?;
    }
    let counters = match plan.exact_counts.load(Ordering::Relaxed) {
        true => Some(HandlerCounters::begin(&mut lease).await?),
        false => None,
    };
    let outcome = pages.read(&mut lease, table).await;
    if let Ok(end) = &outcome {
        pages.store_recording(end);
    }
    if let (Some(_), Some(index)) = (&rows.covered, &rows.index)
        && pages.undecodable >= UNDECODABLE_MIN
        && pages.fetched == pages.received
    {
        table.plan_cache.undecodable.insert(&index.sql_name);
    }
    let (received, joined, fetched) = (pages.received, pages.joined, pages.fetched);
    let examined = pages.examined();
    let read = match counters {
        // A connection abandoned in the middle of a page cannot be queried.
        Some(counters) if outcome.is_ok() => counters.end(&mut lease).await.ok(),
        _ => None,
    };
    rows.tally.add(match read {
        None => examined,
        Some(read) if rows.covered.is_some() => read.of_covered(received, fetched),
        Some(read) => read.examined(rows, received, joined),
    });
    let outcome = match outcome {
        Err(failure) if failure.is_contention() => pages.read_again(&mut lease, table, failure).await,
        outcome => outcome,
    };
    match outcome {
        // The element table or side table was dropped with its index.
        Err(failure) if failure.is_missing_table() && rows.lookup.is_some() => {
            store.catalog.invalidate(&plan.namespace);
            Err(index_dropped("").into())
        }
        Err(failure) if failure.is_missing_table() => Ok(ScanEnd::Exhausted),
        // Nothing was delivered, so a retry is safe.
        Err(failure) if failure.is_lost() && pages.progress.rows == 0 => {
            lease.close_idle();
            drop(lease);
            let mut again = store.lease_documents(&plan.namespace).await?;
            pages.read(&mut again, table).await
        }
        Err(failure)
            if matches!(failure.sql_code(), Some(server_error::UNKNOWN_COLUMN | server_error::UNKNOWN_KEY)) =>
        {
            store.catalog.invalidate(&plan.namespace);
            if let Some(index) = &rows.index {
                return Err(index_dropped(&index.spec.name).into());
            }
            drop(lease);
            match store.known_table(&plan.namespace).await? {
                Some(table) if pages.progress.rows == 0 => {
                    let mut again = store.lease_documents(&plan.namespace).await?;
                    pages.read(&mut again, &table).await
                }
                Some(_) => Err(failure),
                None => Ok(ScanEnd::Exhausted),
            }
        }
        outcome => outcome,
    }
}

/// Returns error 175: the index of a cursor was dropped.
fn index_dropped(name: &str) -> Error {
    Error::new(Code::QUERY_PLAN_KILLED, format!("query plan killed :: index '{name}' dropped"))
}

/// Fails with 136 if the row at a position of a capped collection was deleted: it must be read
/// without gaps.
async fn check_position(connection: &mut Connection, plan: &MariaDbPlan, table: &Table, key: &[u8]) -> Result<()> {
    connection.queue_execute(&table.statements.by_key, &[key_param(table.row_key, key)]);
    let mut found = false;
    while let Event::Row(_) = connection.next().await? {
        found = true;
    }
    let record = std::str::from_utf8(key).ok().and_then(|key| key.parse().ok()).unwrap_or_else(|| row_number(key));
    if found { Ok(()) } else { Err(rules::position_lost(plan.tailable, record).into()) }
}

impl RowSource {
    /// Returns what reading this many rows counts as examined.
    pub fn examined(&self, received: u64) -> Examined {
        let by_keys = self.ids.is_some() || self.index.is_some() || self.lookup.is_some();
        let keys = if by_keys { received } else { 0 };
        Examined { keys, entries: keys, documents: received, seeks: 1 }
    }
}

/// A scan of rows, page by page.
struct Pages<'p, 't> {
    plan: &'p MariaDbPlan,
    rows: &'p RowSource,
    wanted: usize,
    take: &'p mut RowSink<'t>,
    progress: ScanProgress,
    /// Number of rows received.
    received: u64,
    /// Those whose documents were joined to keys.
    joined: u64,
    /// Those whose documents were fetched although fields may be read from keys.
    fetched: u64,
    /// Those of these without a null key.
    undecodable: u64,
    /// The JSON text of a document built from keys.
    decoded: Vec<u8>,
    /// Records the rows for the result-set cache.
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
    /// Caches the recorded rows.
    fn store_recording(&mut self, end: &ScanEnd) {
        if let Some(recording) = self.recording.take() {
            recording.finish(*end == ScanEnd::Exhausted);
        }
    }

    /// Reads again while nothing was delivered, after a node of a Galera cluster has ended the
    /// statement, because it was in the way of another node's change of the definition.
    async fn read_again(&mut self, connection: &mut Connection, table: &Table, first: Failure) -> Result<ScanEnd> {
        let mut failure = first;
        for attempt in 1..ATTEMPTS_MAX {
            if self.progress.rows > 0 || !failure.is_contention() {
                break;
            }
            pause(attempt).await;
            match self.read(connection, table).await {
                Err(again) => failure = again,
                end => return end,
            }
        }
        Err(failure)
    }

    /// Returns the numbers of keys and documents examined.
    fn examined(&self) -> Examined {
        let examined = self.rows.examined(self.received);
        match self.rows.covered {
            Some(_) => Examined { documents: self.fetched, ..examined },
            None => examined,
        }
    }

    /// Delivers prefetched rows; returns how the scan ends, if it does with them.
    fn deliver(&mut self, first: &prefetched_rows::PrefetchedRows) -> Result<Option<ScanEnd>> {
        for row in first.iter() {
            if self.take(row?)? != Flow::Continue {
                return Ok(Some(ScanEnd::Stopped(self.progress.position())));
            }
        }
        Ok(first.is_complete.then_some(ScanEnd::Exhausted))
    }

    /// Delivers a row: its row key, its document, and the keys of the index.
    fn take(&mut self, mut row: BinaryRow<'_>) -> Result<Flow> {
        let progress = &mut self.progress;
        self.received += 1;
        let key = row.next_bytes()?.unwrap_or_default();
        let mut json = row.next_bytes()?;
        if let Some(covered) = &self.rows.covered {
            self.decoded.clear();
            if json.is_some() {
                self.fetched += 1;
                self.undecodable += u64::from(!covered.has_null(row.clone())?);
            } else if covered.write(row.clone(), &mut self.decoded)? {
                json = Some(&self.decoded);
            }
        }
        let flow = match json {
            Some(json) => {
                progress.bytes += json.len();
                (self.take)(key, json)?
            }
            // A row without a document, or deleted since its key was read.
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
                recording.add(key, || progress.position(), json);
            }
        }
        Ok(flow)
    }

    async fn read(&mut self, connection: &mut Connection, table: &Table) -> Result<ScanEnd> {
        let mut limit = self.wanted.clamp(1, FIRST_PAGE_ROWS_MAX);
        let facts = store::Plan::facts(self.plan);
        // Few rows of an index do not match.
        if !facts.exact && self.rows.index.is_none() && self.rows.lookup.is_none() {
            limit = limit.max(INEXACT_PAGE_ROWS_MIN);
        }
        if connection.holds_results() {
            let each = match table.document_bytes.get() {
                0 => UNKNOWN_DOCUMENT_BYTES,
                mean => mean as usize,
            };
            limit = limit.min(PAGE_BYTES / each).max(1);
        }
        loop {
            let joins = self.rows.joins(table, limit as u64);
            let written = self.plan.texts.as_deref();
            self.rows.queue(connection, table, written, self.progress.at.as_ref(), limit as u64);
            let page = self.page(connection, limit, joins).await?;
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

    async fn page(&mut self, connection: &mut Connection, limit: usize, joins: bool) -> Result<Page> {
        let mut rows = 0_usize;
        let mut began = Instant::now();
        while let Event::Row(range) = connection.next().await? {
            // The sink may take long with each row, while the socket always has more.
            if rows % ROWS_PER_CHECK == ROWS_PER_CHECK - 1 && began.elapsed() > YIELD_AFTER {
                tokio::task::yield_now().await;
                began = Instant::now();
            }
            rows += 1;
            self.joined += u64::from(joins);
            let flow = self.take(connection.row(range)?)?;
            if flow != Flow::Continue {
                let average = self.progress.bytes / self.progress.rows.max(1);
                let is_short = limit.saturating_sub(rows).saturating_mul(average) <= DRAIN_BYTES_MAX;
                // A transaction ends with its connection.
                if is_short || connection.is_in_client_transaction() {
                    connection.finish().await?;
                }
                return Ok(Page::Stopped);
            }
        }
        Ok(Page::Read { rows })
    }
}

/// Replaces the contents without allocating for each row.
fn replace(kept: &mut Vec<u8>, bytes: &[u8]) {
    kept.clear();
    kept.extend_from_slice(bytes);
}
