//! The result-set cache: the rows of a statement, by its SQL and its parameters.
//!
//! An entry has the rows that a scan delivered, in order, with the positions to continue from. If
//! the statement represents the whole filter, a change invalidates an entry only if it affects the
//! filter. If the gateway must re-check the rows, different filters may have the same statement,
//! and any change of the table invalidates the entry.

use crate::catalog::table::Table;
use crate::plan::MariaDbPlan;
use crate::plan::access::RowSource;
use crate::plan::row_position::RowPosition;
use crate::read::result_set::ResultSet;
use crate::read::row_sink::RowSink;
use crate::store::MariaDbStore;
use ::store::{Flow, Position, ScanEnd, read_preference};
use cache::dependencies::Aspect;
use cache::{Cache, CacheLookup, ComputePermit, Dependencies};
use mariadb_client::Result;
use mariadb_wire::{Param, com_stmt_execute};
use query::Predicate;
use query::predicate::{Node, Test};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use steps::clock::steady_ms;

/// How long cached rows are delivered before the worker's other tasks may run, and rows between two
/// checks of the clock.
const YIELD_AFTER: Duration = Duration::from_millis(2);
const ROWS_PER_CHECK: usize = 64;

/// Records the rows of a scan for the cache.
pub(crate) struct Recording {
    fill: ComputePermit<ResultSet>,
    scope: Dependencies,
    set: ResultSet,
    /// The rows exceed the size of an entry.
    is_too_large: bool,
    bytes_max: usize,
}

/// The result of looking up a scan.
pub(crate) enum CachedRows {
    Hit(Arc<ResultSet>),
    /// With a recording, if the rows may be cached.
    Miss(Option<Box<Recording>>),
}

/// Looks up a plan's rows after a position.
pub(crate) async fn rows_of_plan(
    store: &MariaDbStore,
    plan: &MariaDbPlan,
    table: &Table,
    rows: &RowSource,
    at: Option<&RowPosition>,
    wanted: usize,
) -> CachedRows {
    let Some((cache, predicate)) = cache_for(store, plan) else { return CachedRows::Miss(None) };
    let exact = ::store::Plan::facts(plan).exact;
    let scope = scope(plan, exact.then(|| predicate.clone()));
    // The rows are the same whether they are read by a join or not.
    let sql = rows.statement(table, at.is_some(), 0);
    look_up(cache, scope, plan, &sql, &rows.params(table, at, wanted as u64)).await
}

/// As [`rows_of_plan`], for the row of one id.
pub(crate) async fn row_of_id(store: &MariaDbStore, plan: &MariaDbPlan, table: &Table, id: &[u8]) -> CachedRows {
    let Some((cache, predicate)) = cache_for(store, plan) else { return CachedRows::Miss(None) };
    let scope = scope(plan, by_id(predicate));
    look_up(cache, scope, plan, &table.statements.by_id, &[Param::Text(id)]).await
}

/// Returns the dependencies of the rows that meet a condition; of all rows, if it is unknown.
fn scope(plan: &MariaDbPlan, condition: Option<Predicate>) -> Dependencies {
    match condition {
        Some(condition) => Dependencies::matching(plan.namespace.clone(), condition, Aspect::Documents),
        None => Dependencies::all_documents(plan.namespace.clone(), Vec::new()),
    }
}

/// Returns the condition on `_id`, without the others.
fn by_id(predicate: &Predicate) -> Option<Predicate> {
    let is_id = |node: &&Node| matches!(node, Node::Path { path, test: Test::Equal(_) } if *path == *"_id");
    let found = match predicate.root() {
        Node::And(all) => all.iter().find(is_id),
        node => Some(node).filter(is_id),
    };
    found.cloned().map(Predicate::of)
}

fn cache_for<'s>(store: &'s MariaDbStore, plan: &'s MariaDbPlan) -> Option<(&'s Arc<Cache<ResultSet>>, &'s Predicate)> {
    // A transaction reads its snapshot and its own writes.
    let cache = store.results.as_ref().filter(|_| store.inside.is_none())?;
    let predicate = plan.reads.as_deref()?;
    (!plan.tailable && !read_preference::is_elsewhere() && !plan.bypasses_caches.load(Ordering::Relaxed))
        .then_some((cache, predicate))
}

async fn look_up(
    cache: &Arc<Cache<ResultSet>>,
    scope: Dependencies,
    plan: &MariaDbPlan,
    sql: &str,
    params: &[Param<'_>],
) -> CachedRows {
    let mut key = Vec::with_capacity(sql.len() + 64);
    // The database is part of the table's name; the collection's name may not be.
    key.extend_from_slice(plan.namespace.database.as_bytes());
    key.push(0);
    key.extend_from_slice(sql.as_bytes());
    key.push(0);
    com_stmt_execute::encode(0, params, &mut key);
    let mut alone = false;
    loop {
        match cache.look_up(&key, steady_ms(), alone) {
            CacheLookup::Hit(set) => return CachedRows::Hit(set),
            CacheLookup::Wait(mut flight) => {
                let _ = flight.changed().await;
                alone = true;
            }
            CacheLookup::Compute(fill) => {
                let settings = cache.settings();
                let bytes_max = settings.bytes / settings.shards;
                return CachedRows::Miss(Some(Box::new(Recording {
                    fill,
                    scope,
                    set: ResultSet::default(),
                    is_too_large: false,
                    bytes_max,
                })));
            }
            CacheLookup::Bypass => return CachedRows::Miss(None),
        }
    }
}

impl Recording {
    /// Adds a row that was delivered.
    pub fn add(&mut self, key: &[u8], place: impl FnOnce() -> Position, json: Option<&[u8]>) {
        if self.is_too_large {
            return;
        }
        if self.set.bytes.len() + json.map_or(0, <[u8]>::len) > self.bytes_max {
            self.is_too_large = true;
            self.set.bytes = Vec::new();
            return;
        }
        self.set.push(key, &place().0, json);
    }

    /// Caches the rows. `all`: the scan has no further rows.
    pub fn finish(mut self, all: bool) {
        if self.is_too_large {
            return self.fill.discard(cache::NotCached::TooLarge);
        }
        self.set.all = all;
        self.set.bytes.shrink_to_fit();
        let bytes = self.set.bytes.len() + 96;
        // The cache counts why rows are not cached.
        let _ = self.fill.store(Arc::new(self.set), bytes, self.scope, steady_ms());
    }
}

/// How far cached rows have brought a scan.
pub(crate) enum Delivered {
    End(ScanEnd),
    /// The scan continues from there, after the cached rows.
    Continues(Option<Position>),
}

/// Delivers cached rows to a scan.
pub(crate) async fn deliver(set: &ResultSet, after: Option<&[u8]>, take: &mut RowSink<'_>) -> Result<Delivered> {
    let position = |place: Option<&[u8]>| Position(place.or(after).unwrap_or_default().to_vec());
    let (mut last, mut began) = (None, Instant::now());
    for (number, row) in set.rows().enumerate() {
        if number % ROWS_PER_CHECK == ROWS_PER_CHECK - 1 && began.elapsed() > YIELD_AFTER {
            tokio::task::yield_now().await;
            began = Instant::now();
        }
        let flow = match row.json {
            Some(json) => take(row.key, json)?,
            None => Flow::Continue,
        };
        match flow {
            Flow::StopBefore => return Ok(Delivered::End(ScanEnd::Stopped(position(last)))),
            Flow::StopAfter => return Ok(Delivered::End(ScanEnd::Stopped(position(Some(row.place))))),
            Flow::Continue => last = Some(row.place),
        }
    }
    Ok(match set.all {
        true => Delivered::End(ScanEnd::Exhausted),
        false => Delivered::Continues(last.map(|place| Position(place.to_vec()))),
    })
}
