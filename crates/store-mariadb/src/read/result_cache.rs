//! The result-set cache: rows that a statement gave, by its SQL and its parameters.
//!
//! What is kept are the rows that a scan took, in their order, with the places to go on from. Where the statement says all there is to a
//! filter, a change matters to them only if it matters to the filter; where the gateway has to look at the rows again, filters that differ
//! may come to the same statement, and any change of the table matters.

use crate::catalog::table::Table;
use crate::plan::MariaDbPlan;
use crate::plan::access::Rows;
use crate::plan::row_position::RowPosition;
use crate::read::result_set::ResultSet;
use crate::read::row_sink::Take;
use crate::store::MariaDbStore;
use ::store::{Flow, Position, ScanEnd};
use cache::dependencies::Aspect;
use cache::{Cache, CacheLookup, ComputePermit, Dependencies};
use mariadb_client::Result;
use mariadb_wire::{Param, com_stmt_execute};
use query::Predicate;
use query::predicate::{Node, Test};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Rows that are kept are given for so long before others of the worker are let in; and rows between two looks at the clock.
const SLICE: Duration = Duration::from_millis(2);
const ROWS_PER_LOOK: usize = 64;

/// Rows that are being read, to be kept.
pub(crate) struct Recording {
    fill: ComputePermit<ResultSet>,
    scope: Dependencies,
    set: ResultSet,
    /// More than may be kept has come.
    overflown: bool,
    bytes_max: usize,
}

/// What is kept for a scan.
pub(crate) enum Kept {
    Rows(Arc<ResultSet>),
    Nothing(Option<Box<Recording>>),
}

/// What is kept of a plan's rows behind a place; leave to keep them, if nothing is.
pub(crate) async fn of_rows(
    store: &MariaDbStore,
    plan: &MariaDbPlan,
    table: &Table,
    rows: &Rows,
    at: Option<&RowPosition>,
    wanted: usize,
) -> Kept {
    let Some((cache, predicate)) = cache_for(store, plan) else { return Kept::Nothing(None) };
    let exact = ::store::Plan::facts(plan).exact;
    let scope = scope(plan, exact.then(|| predicate.clone()));
    // Whether the rows are read by a join or not, they are the same.
    let sql = rows.statement(table, at.is_some(), 0);
    look_up(cache, scope, plan, &sql, &rows.params(table, at, wanted as u64)).await
}

/// The same for the row with an id.
pub(crate) async fn of_id(store: &MariaDbStore, plan: &MariaDbPlan, table: &Table, id: &[u8]) -> Kept {
    let Some((cache, predicate)) = cache_for(store, plan) else { return Kept::Nothing(None) };
    let scope = scope(plan, by_id(predicate));
    look_up(cache, scope, plan, &table.statements.by_id, &[Param::Text(id)]).await
}

/// What rows depend on that are all there are of a condition; of all rows, where that is not known.
fn scope(plan: &MariaDbPlan, condition: Option<Predicate>) -> Dependencies {
    match condition {
        Some(condition) => Dependencies::matching(plan.namespace.clone(), condition, Aspect::Documents),
        None => Dependencies::all_documents(plan.namespace.clone(), Vec::new()),
    }
}

/// The condition on the `_id`, without the others.
fn by_id(predicate: &Predicate) -> Option<Predicate> {
    let is_id = |node: &&Node| matches!(node, Node::Path { path, test: Test::Equal(_) } if *path == *"_id");
    let found = match predicate.root() {
        Node::And(all) => all.iter().find(is_id),
        node => Some(node).filter(is_id),
    };
    found.cloned().map(Predicate::of)
}

fn cache_for<'s>(store: &'s MariaDbStore, plan: &'s MariaDbPlan) -> Option<(&'s Arc<Cache<ResultSet>>, &'s Predicate)> {
    let (cache, predicate) = (store.results.as_ref()?, plan.reads.as_deref()?);
    (!plan.tailable && !plan.reads_afresh.load(Ordering::Relaxed)).then_some((cache, predicate))
}

async fn look_up(
    cache: &Arc<Cache<ResultSet>>,
    scope: Dependencies,
    plan: &MariaDbPlan,
    sql: &str,
    params: &[Param<'_>],
) -> Kept {
    let mut key = Vec::with_capacity(sql.len() + 64);
    // The database is part of the table's name; which collection is meant may not be.
    key.extend_from_slice(plan.namespace.database.as_bytes());
    key.push(0);
    key.extend_from_slice(sql.as_bytes());
    key.push(0);
    com_stmt_execute::encode(0, params, &mut key);
    let mut alone = false;
    loop {
        match cache.look_up(&key, now_ms(), alone) {
            CacheLookup::Hit(set) => return Kept::Rows(set),
            CacheLookup::Wait(mut flight) => {
                let _ = flight.changed().await;
                alone = true;
            }
            CacheLookup::Compute(fill) => {
                let settings = cache.settings();
                let bytes_max = settings.bytes / settings.shards;
                return Kept::Nothing(Some(Box::new(Recording {
                    fill,
                    scope,
                    set: ResultSet::default(),
                    overflown: false,
                    bytes_max,
                })));
            }
            CacheLookup::Bypass => return Kept::Nothing(None),
        }
    }
}

impl Recording {
    /// Notes a row that was taken.
    pub fn note(&mut self, key: &[u8], place: impl FnOnce() -> Position, json: Option<&[u8]>) {
        if self.overflown {
            return;
        }
        if self.set.bytes.len() + json.map_or(0, <[u8]>::len) > self.bytes_max {
            self.overflown = true;
            self.set.bytes = Vec::new();
            return;
        }
        self.set.push(key, &place().0, json);
    }

    /// Keeps the rows. `all`: there are no more behind them.
    pub fn finish(mut self, all: bool) {
        if self.overflown {
            return self.fill.discard(cache::NotCached::TooLarge);
        }
        self.set.all = all;
        self.set.bytes.shrink_to_fit();
        let bytes = self.set.bytes.len() + 96;
        // Why they are not kept is counted there.
        let _ = self.fill.store(Arc::new(self.set), bytes, self.scope, now_ms());
    }
}

/// How far rows that are kept have brought a scan.
pub(crate) enum Delivered {
    End(ScanEnd),
    /// Nothing kept is left, and the scan goes on from there.
    GoesOn(Option<Position>),
}

/// Gives rows that are kept to a scan.
pub(crate) async fn deliver(set: &ResultSet, after: Option<&[u8]>, take: &mut Take<'_>) -> Result<Delivered> {
    let position = |place: Option<&[u8]>| Position(place.or(after).unwrap_or_default().to_vec());
    let (mut last, mut began) = (None, Instant::now());
    for (number, row) in set.rows().enumerate() {
        if number % ROWS_PER_LOOK == ROWS_PER_LOOK - 1 && began.elapsed() > SLICE {
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
        false => Delivered::GoesOn(last.map(|place| Position(place.to_vec()))),
    })
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as i64)
}
