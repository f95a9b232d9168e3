//! The result-set cache: rows that a statement gave, by its SQL and its parameters.
//!
//! What is kept are the rows that a scan took, in their order, with the places to go on from. Where the statement says all there is to a
//! filter, a change matters to them only if it matters to the filter; where the gateway has to look at the rows again, filters that differ
//! may come to the same statement, and any change of the table matters.

use crate::catalog::table::Table;
use crate::plan::{MariaDbPlan, RowPosition, Rows};
use crate::read::scan::Take;
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

/// Rows that a scan took.
#[derive(Debug, Default)]
pub struct ResultSet {
    /// Per row: its key, its place in an index's order if that is another, its document if it has one; each behind its length.
    bytes: Vec<u8>,
    /// There are no more.
    all: bool,
}

/// The length that stands for "no document".
const NONE: u32 = u32::MAX;

/// One row that is kept.
struct Row<'s> {
    key: &'s [u8],
    place: &'s [u8],
    json: Option<&'s [u8]>,
}

impl ResultSet {
    fn push(&mut self, key: &[u8], place: &[u8], json: Option<&[u8]>) {
        let place = if place == key { &[] } else { place };
        for part in [Some(key), Some(place), json] {
            let length = part.map_or(NONE, |part| part.len() as u32);
            self.bytes.extend_from_slice(&length.to_le_bytes());
            self.bytes.extend_from_slice(part.unwrap_or_default());
        }
    }

    fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        let mut rest = self.bytes.as_slice();
        let mut part = move || {
            let (length, behind) = rest.split_first_chunk()?;
            let length = u32::from_le_bytes(*length);
            let (part, behind) = behind.split_at_checked(if length == NONE { 0 } else { length as usize })?;
            rest = behind;
            Some((length != NONE).then_some(part))
        };
        std::iter::from_fn(move || {
            let key = part()??;
            let place = part()??;
            let json = part()?;
            Some(Row { key, place: if place.is_empty() { key } else { place }, json })
        })
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_as_they_were() {
        let mut set = ResultSet::default();
        set.push(b"1", b"1", Some(b"{}"));
        set.push(b"2", b"place", None);
        set.push(b"3", b"", Some(b""));
        let text = |row: Row<'_>| format!("{:?} {:?} {:?}", row.key, row.place, row.json);
        let rows: Vec<_> = set.rows().map(text).collect();
        let expected = ["[49] [49] Some([123, 125])", "[50] [112, 108, 97, 99, 101] None", "[51] [51] Some([])"];
        assert_eq!(rows, expected);
    }
}
