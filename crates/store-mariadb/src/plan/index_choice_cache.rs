//! The index choice cache: the best of several indexes per shape of query, by MariaDB's estimates.
//!
//! A shape is what the usable indexes can do for a query, whatever its values. If the same index is
//! best for all values estimated so far, or the others are not much better, the shape is settled
//! after a few estimates. If it depends on the values, it is cached per values. Both expire after
//! some time, after some queries, and on a misestimate: if a plan examined many more documents than
//! estimated. The cache belongs to a table's catalog entry, which is invalidated when indexes
//! change.

use crate::plan::pushdown::Condition;
use access::cost::{self, PathCost};
use ahash::{AHashMap, RandomState};
use mariadb_client::{Connection, Event, Result};
use mariadb_wire::Param;
use mariadb_wire::row::BinaryRow;
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long, and for how many queries, a choice is fresh.
const FRESH_FOR: Duration = Duration::from_secs(60);
const QUERIES_MAX: u32 = 1_000;

/// Estimates that must agree before a shape is settled; doubled each time it proves wrong, up to
/// the second number.
const AGREEING: u32 = 8;
const AGREEING_MAX: u32 = 1_024;

/// An index must save more than this factor, and this number of documents, to replace the settled
/// one.
const WORTH_PART: f64 = 1.3;
const WORTH_DOCUMENTS: f64 = 32.0;

/// More documents than this multiple of the estimate, plus this number, are a misestimate.
const MISESTIMATE_FACTOR: u64 = 2;
const MISESTIMATE_DOCUMENTS: u64 = 100;

/// A speculative plan must be estimated at this many times fewer documents than another index. It
/// gives up after this multiple of the estimate, plus this number of documents, since matches are
/// not evenly spread.
const SPECULATION_WORTH: f64 = 4.0;
const SPECULATION_FACTOR: u64 = 3;
const SPECULATION_DOCUMENTS: u64 = 1_000;

/// A document found through an index costs as much as this many documents of a full scan.
const SCATTERED_COST: f64 = 3.0;

/// How long a speculative plan that gave up is not tried again.
const GAVE_UP_FOR: Duration = Duration::from_secs(600);

/// Shapes cached of a table, and values of a shape; past these numbers all are evicted.
const SHAPES_MAX: usize = 256;
const VALUES_MAX: usize = 256;

/// The index choices of a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct IndexChoiceCache {
    shapes: Arc<Mutex<AHashMap<u64, ShapeEntry>>>,
    state: RandomState,
}

#[derive(Debug)]
struct ShapeEntry {
    /// The best choice for the last values.
    common: Choice,
    /// Consecutive estimates for which it was best, and how many settle it.
    agreeing: u32,
    needed: u32,
    /// The best choice for each of the values, where it depends on them.
    by_values: AHashMap<u64, Choice>,
}

#[derive(Clone, Copy, Debug)]
struct Choice {
    path: usize,
    /// Estimate of the documents examined.
    expected: u64,
    /// Documents examined the last time the estimate proved far too low.
    seen: u64,
    /// When the speculative plan gave up.
    gave_up: Option<Instant>,
    since: Instant,
    queries: u32,
}

impl Choice {
    fn of(path: usize) -> Choice {
        Choice { path, expected: 0, seen: 0, gave_up: None, since: Instant::now(), queries: 0 }
    }

    fn is_fresh(&self) -> bool {
        self.queries < QUERIES_MAX && self.since.elapsed() < FRESH_FOR
    }
}

/// The cached choice for a query.
pub(crate) enum CachedChoice {
    Unknown,
    Choice { path: usize, feedback: Option<ChoiceFeedback> },
}

/// The choice that a plan is based on, for feedback about its estimate.
#[derive(Debug)]
pub(crate) struct ChoiceFeedback {
    choices: IndexChoiceCache,
    shape: u64,
    values: u64,
    expected: u64,
}

impl ChoiceFeedback {
    /// Reports how many documents the plan has examined.
    pub fn note(&self, documents: u64) {
        if documents > MISESTIMATE_FACTOR * self.expected + MISESTIMATE_DOCUMENTS
            && let Some(shape) = self.choices.lock().get_mut(&self.shape)
        {
            shape.unsettle();
            let common = Choice::of(shape.common.path);
            let choice = shape.by_values.entry(self.values).or_insert(common);
            (choice.seen, choice.queries) = (documents, QUERIES_MAX);
        }
    }

    /// Reports that the speculative plan gave up. Returns whether the cache has noted it.
    pub fn report_gave_up(&self) -> bool {
        let mut shapes = self.choices.lock();
        let Some(shape) = shapes.get_mut(&self.shape) else { return false };
        shape.unsettle();
        let common = Choice::of(shape.common.path);
        let choice = shape.by_values.entry(self.values).or_insert(common);
        (choice.gave_up, choice.queries) = (Some(Instant::now()), QUERIES_MAX);
        true
    }

    /// Returns the row limit of the speculative plan.
    pub fn row_limit(&self) -> u64 {
        // Rounded, so that few statements need preparing.
        (SPECULATION_FACTOR * self.expected + SPECULATION_DOCUMENTS).next_power_of_two()
    }
}

/// A request for estimates from MariaDB.
pub(crate) struct EstimateRequest {
    pub shape: u64,
    pub values: u64,
    pub limit: Option<u64>,
    /// The quoted table.
    pub table: String,
    /// The best by shape first.
    pub paths: Vec<AccessPath>,
}

/// An access path whose cost is to be estimated.
#[cfg_attr(test, derive(Clone))]
pub(crate) struct AccessPath {
    /// The tables and conditions of its key ranges; none for a full scan.
    pub key_ranges: Vec<(String, Condition)>,
    /// The fields that bound them.
    pub leading: Vec<String>,
    pub sorted: bool,
    pub exact: bool,
    pub kind: AccessPathKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessPathKind {
    /// Key ranges of an index.
    IndexScan,
    /// The order of an index, without bounds: it may examine every document.
    SpeculativeOrder,
    /// A full scan.
    FullScan,
}

impl AccessPath {
    /// Returns the full scan. `ordered`: the query has a sort, which it does not support.
    pub fn full_scan(ordered: bool) -> AccessPath {
        AccessPath {
            key_ranges: Vec::new(),
            leading: Vec::new(),
            sorted: !ordered,
            exact: false,
            kind: AccessPathKind::FullScan,
        }
    }
}

/// An access path with MariaDB's estimate of its keys.
struct MeasuredPath<'p> {
    path: &'p AccessPath,
    keys: f64,
}

impl cost::AccessPath for MeasuredPath<'_> {
    fn measured(&self) -> PathCost {
        PathCost { keys: self.keys, sorted: self.path.sorted, exact: self.path.exact }
    }

    fn leading(&self) -> Vec<&str> {
        self.path.leading.iter().map(String::as_str).collect()
    }
}

/// All decisions of a plan.
pub(crate) type Decisions = SmallVec<[Decision; 1]>;

/// The chosen path among its alternatives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decision {
    pub shape: u64,
    pub values: u64,
    pub path: usize,
}

impl ShapeEntry {
    /// Unsettles the shape: the best choice depends on the values.
    fn unsettle(&mut self) {
        self.agreeing = 0;
        self.needed = (self.needed * 2).min(AGREEING_MAX);
    }

    /// Notes the costs for some values. `speculative`: the number of the speculative path.
    fn note(&mut self, values: u64, costs: &[f64], speculative: Option<usize>) {
        let gave_up = self.by_values.get(&values).and_then(|known| known.gave_up);
        let gave_up = gave_up.filter(|since| since.elapsed() < GAVE_UP_FOR);
        let mut costs: SmallVec<[f64; 8]> = costs.into();
        if gave_up.is_some() {
            speculative.and_then(|path| costs.get_mut(path)).into_iter().for_each(|cost| *cost = f64::INFINITY);
        }
        let costs = costs.as_slice();
        let best = least(costs, self.common.path);
        // A path that is best despite an earlier misestimate is expected to examine as many again.
        let seen = self.by_values.get(&values).filter(|known| known.path == best).map_or(0, |known| known.seen);
        let cost = costs.get(best).map_or(0, |cost| *cost as u64);
        let choice = Choice { expected: cost.max(seen), seen, gave_up, ..Choice::of(best) };
        if best == self.common.path {
            self.agreeing += 1;
            self.common = Choice { expected: self.common.expected.max(choice.expected), ..choice };
        } else {
            self.unsettle();
            self.common = choice;
        }
        if self.by_values.len() >= VALUES_MAX {
            self.by_values.clear();
        }
        self.by_values.insert(values, choice);
    }
}

impl IndexChoiceCache {
    pub fn hasher(&self) -> &RandomState {
        &self.state
    }

    fn lock(&self) -> MutexGuard<'_, AHashMap<u64, ShapeEntry>> {
        self.shapes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn known(&self, shape: u64, values: u64) -> CachedChoice {
        let mut shapes = self.lock();
        let Some(known) = shapes.get_mut(&shape) else { return CachedChoice::Unknown };
        let choice = match known.agreeing >= known.needed {
            true => Some(&mut known.common),
            false => known.by_values.get_mut(&values),
        };
        let Some(choice) = choice.filter(|choice| choice.is_fresh()) else { return CachedChoice::Unknown };
        choice.queries += 1;
        let (path, expected) = (choice.path, choice.expected);
        CachedChoice::Choice { path, feedback: Some(ChoiceFeedback { choices: self.clone(), shape, values, expected }) }
    }

    /// Caches the choice that follows from the costs of a request's paths.
    fn note(&self, request: &EstimateRequest, costs: &[f64]) {
        let speculative = request.paths.iter().position(|path| path.kind == AccessPathKind::SpeculativeOrder);
        let mut shapes = self.lock();
        if shapes.len() >= SHAPES_MAX && !shapes.contains_key(&request.shape) {
            shapes.clear();
        }
        // The best by shape, unless another one is much cheaper.
        let unknown = || {
            let common = Choice::of(least(costs, 0));
            ShapeEntry { common, agreeing: 0, needed: AGREEING, by_values: AHashMap::new() }
        };
        shapes.entry(request.shape).or_insert_with(unknown).note(request.values, costs, speculative);
    }

    /// Requests estimates, and caches the choices.
    pub async fn request(&self, connection: &mut Connection, requests: &[EstimateRequest]) -> Result<()> {
        for request in requests {
            let rows = estimated_rows(connection, request).await?;
            let mut rows = rows.into_iter();
            let of_path = |path: &AccessPath| rows.by_ref().take(path.key_ranges.len()).sum::<f64>();
            let mut keys: Vec<f64> = request.paths.iter().map(of_path).collect();
            let documents = rows.next().unwrap_or(f64::INFINITY);
            let is_all = |path: &AccessPath| path.kind == AccessPathKind::FullScan;
            for (keys, _) in keys.iter_mut().zip(&request.paths).filter(|(_, path)| is_all(path)) {
                *keys = documents;
            }
            let scattered = if request.paths.iter().any(is_all) { SCATTERED_COST } else { 1.0 };
            let measured: Vec<MeasuredPath<'_>> =
                request.paths.iter().zip(keys).map(|(path, keys)| MeasuredPath { path, keys }).collect();
            let weight = |path: &MeasuredPath<'_>| match path.path.kind {
                AccessPathKind::IndexScan => scattered,
                AccessPathKind::SpeculativeOrder => SPECULATION_WORTH,
                AccessPathKind::FullScan => 1.0,
            };
            let costs = cost::costs(&measured, request.limit, documents);
            let costs: Vec<f64> = costs.iter().zip(&measured).map(|(cost, path)| cost * weight(path)).collect();
            self.note(request, &costs);
        }
        Ok(())
    }
}

/// Returns the cheapest path; `usual` unless another one is much cheaper.
fn least(costs: &[f64], usual: usize) -> usize {
    let least = costs.iter().copied().enumerate().min_by(|left, right| left.1.total_cmp(&right.1));
    let Some((best, cost)) = least else { return usual };
    let is_good = |usual: &f64| *usual <= cost * WORTH_PART + WORTH_DOCUMENTS;
    if costs.get(usual).is_some_and(is_good) { usual } else { best }
}

/// Returns MariaDB's estimates of the rows in each key range of each path, and in the table.
async fn estimated_rows(connection: &mut Connection, request: &EstimateRequest) -> Result<Vec<f64>> {
    let key_ranges = || request.paths.iter().flat_map(|path| &path.key_ranges);
    let selects = key_ranges().map(|(source, condition)| format!("SELECT 1 FROM {source} WHERE {}", condition.sql));
    let selects: Vec<String> = selects.chain([format!("SELECT 1 FROM {}", request.table)]).collect();
    let params: Vec<Param<'_>> = key_ranges().flat_map(|(_, condition)| condition.params()).collect();
    connection.queue_execute(&format!("EXPLAIN {}", selects.join(" UNION ALL ")).into(), &params);
    let mut rows = vec![0.0; selects.len()];
    while let Event::Row(range) = connection.next().await? {
        let (payload, types) = connection.raw_row(range);
        let number = |bytes: Option<&[u8]>, column: usize| match types.get(column).and_then(|it| it.fixed_bytes()) {
            Some(_) => {
                bytes.map(|bytes| bytes.iter().rev().fold(0.0, |number, byte| number * 256.0 + f64::from(*byte)))
            }
            None => std::str::from_utf8(bytes?).ok()?.trim().parse().ok(),
        };
        let mut row = BinaryRow::new(payload, types)?;
        let select = number(row.next_bytes()?, 0);
        for _ in 1..ROWS_COLUMN {
            row.next_bytes()?;
        }
        // A select that MariaDB knows to be empty has no estimate.
        if let (Some(select), Some(expected)) = (select, number(row.next_bytes()?, ROWS_COLUMN))
            && let Some(rows) = (select as usize).checked_sub(1).and_then(|at| rows.get_mut(at))
        {
            *rows += expected;
        }
    }
    Ok(rows)
}

/// The column of EXPLAIN with the estimate.
const ROWS_COLUMN: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn request(values: u64) -> EstimateRequest {
        EstimateRequest { shape: 7, values, limit: None, table: String::new(), paths: Vec::new() }
    }

    fn path(choices: &IndexChoiceCache, values: u64) -> Option<usize> {
        match choices.known(7, values) {
            CachedChoice::Unknown => None,
            CachedChoice::Choice { path, .. } => Some(path),
        }
    }

    #[test]
    fn a_shape_with_one_best_index_is_settled() {
        let choices = IndexChoiceCache::default();
        for values in 0..u64::from(2 * AGREEING) {
            if path(&choices, values).is_none() {
                choices.note(&request(values), &[1_000.0, 5.0]);
            }
        }
        assert_eq!(path(&choices, 99), Some(1));
        let CachedChoice::Choice { feedback: Some(feedback), .. } = choices.known(7, 99) else {
            panic!("the shape is settled")
        };
        feedback.note(feedback.expected + MISESTIMATE_DOCUMENTS);
        assert_eq!(path(&choices, 99), Some(1));
        feedback.note(feedback.expected * MISESTIMATE_FACTOR + MISESTIMATE_DOCUMENTS + 1);
        assert_eq!(path(&choices, 99), None, "a misestimate");
    }

    #[test]
    fn choices_that_depend_on_values_are_cached_per_values() {
        let choices = IndexChoiceCache::default();
        for values in 0..100 {
            if path(&choices, values).is_none() {
                let rare = (values % 2) as usize;
                let costs = if rare == 0 { [5.0, 1_000.0] } else { [1_000.0, 5.0] };
                choices.note(&request(values), &costs);
            }
            assert_eq!(path(&choices, values), Some((values % 2) as usize));
        }
        assert_eq!(path(&choices, 100), None);
    }

    #[test]
    fn the_shape_decides_where_the_difference_is_small() {
        let choices = IndexChoiceCache::default();
        choices.note(&request(1), &[30.0, 5.0]);
        assert_eq!(path(&choices, 1), Some(0));
    }

    #[test]
    fn one_that_is_the_best_all_the_same_surprises_once() {
        let choices = IndexChoiceCache::default();
        choices.note(&request(1), &[10.0, 500.0]);
        for asked in [true, false] {
            if let CachedChoice::Choice { feedback: Some(feedback), .. } = choices.known(7, 1) {
                feedback.note(3_000);
            }
            assert_eq!(path(&choices, 1).is_none(), asked);
            choices.note(&request(1), &[10.0, 500.0]);
        }
    }

    #[test]
    fn what_was_hoped_in_vain_is_not_hoped_again_for_these_values() {
        let choices = IndexChoiceCache::default();
        let paths = [AccessPathKind::IndexScan, AccessPathKind::SpeculativeOrder].map(|kind| AccessPath {
            key_ranges: Vec::new(),
            leading: Vec::new(),
            sorted: kind == AccessPathKind::SpeculativeOrder,
            exact: false,
            kind,
        });
        let request = |values| EstimateRequest { paths: paths.clone().into(), ..request(values) };
        choices.note(&request(1), &[5_000.0, 100.0]);
        let CachedChoice::Choice { path: 1, feedback: Some(feedback) } = choices.known(7, 1) else {
            panic!("it is hoped for")
        };
        assert!(feedback.row_limit() >= 1_300);
        assert!(feedback.report_gave_up());
        assert_eq!(path(&choices, 1), None);
        for _ in 0..2 {
            choices.note(&request(1), &[5_000.0, 100.0]);
            assert_eq!(path(&choices, 1), Some(0));
        }
        choices.note(&request(2), &[5_000.0, 100.0]);
        assert_eq!(path(&choices, 2), Some(1));
    }

    #[test]
    fn an_answer_does_not_last() {
        let choices = IndexChoiceCache::default();
        choices.note(&request(1), &[1.0, 500.0]);
        (0..QUERIES_MAX).for_each(|_| assert_eq!(path(&choices, 1), Some(0)));
        assert_eq!(path(&choices, 1), None);
    }

    #[test]
    fn memory_is_bounded() {
        let choices = IndexChoiceCache::default();
        for shape in 0..2 * SHAPES_MAX as u64 {
            choices.note(&EstimateRequest { shape, ..request(shape) }, &[5.0, 1.0]);
        }
        assert!(choices.lock().len() <= SHAPES_MAX);
        for values in 0..2 * VALUES_MAX as u64 {
            choices.note(&request(values), &[500.0 * (values % 2) as f64, 100.0]);
        }
        assert!(choices.lock()[&7].by_values.len() <= VALUES_MAX);
    }
}
