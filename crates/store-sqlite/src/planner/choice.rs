//! The choice among access paths: the one that examines the fewest documents.
//!
//! The keys of a path are counted up to a limit that costs little time; past it, they are estimated
//! from the shape of the bounds. So equality on a selective field is preferred over equality on one
//! of low selectivity, and a range of three keys over either. With one path, nothing is counted.
//!
//! [`access::cost`] compares the paths.

use super::candidate::{IndexCandidate, useful_candidates};
use super::simple::{KEYS_COUNTED_MAX, Measure, with_access};
use super::union::UnionPlanner;
use super::unordered::unordered_scans;
use crate::catalog::Collection;
use crate::plan::{Access, IndexScan, SqlitePlan};
use access::bounded_keys::bound_fields;
use access::conditions::PlannerQuery;
use access::cost::{self, AccessPath as _, MEASURED_PREFERENCE, PathCost, SORT_COST};
use access::{FieldBounds, covered};
use document::Collation;
use std::sync::Arc;

/// The limit for counting keys to decide whether sorting is cheaper than reading in order.
const KEYS_COUNTED_FOR_SORT_MAX: f64 = 1000.0;

/// An access path, with the facts that its cost depends on.
struct AccessPath<'c> {
    collection: &'c Collection,
    access: Access,
    exact: bool,
    sorted: bool,
    /// The number of leading fields bound to points, plus one half for a range behind them.
    shape: f64,
    keys: f64,
}

/// Returns the best plan by one or several indexes; `None` if no index is useful.
pub fn best(collection: &Arc<Collection>, wanted: &PlannerQuery<'_>, measure: Measure<'_>) -> Option<SqlitePlan> {
    let candidates = useful_candidates(collection, wanted);
    if let Some(one) = candidates.iter().find(|candidate| candidate.is_unique_lookup()) {
        return Some(single(collection, one, wanted).into_plan(collection));
    }
    let mut paths: Vec<AccessPath<'_>> =
        candidates.iter().map(|candidate| single(collection, candidate, wanted)).collect();
    let unions = UnionPlanner { collection, wanted, measure };
    paths.extend(unions.all().into_iter().map(|found| AccessPath {
        collection,
        exact: found.exact,
        sorted: found.sorted,
        shape: 1.0,
        keys: f64::NAN,
        access: found.access,
    }));
    paths.extend(unordered_scans(collection, wanted).map(|scan| AccessPath {
        collection,
        exact: false,
        sorted: wanted.sort.is_none(),
        shape: bound_fields(&scan.bounds),
        access: Access::Index(scan),
        keys: f64::NAN,
    }));
    if paths.len() > 1 {
        count_all_keys(&mut paths, collection, wanted, measure);
    }
    let prefers = |one: &AccessPath<'_>, other: &AccessPath<'_>| {
        let by_shape = other.shape.total_cmp(&one.shape);
        by_shape.then_with(|| other.covers(wanted).cmp(&one.covers(wanted)))
    };
    let best = cost::cheapest(&paths, wanted.limit, collection.documents() as f64, prefers)?;
    Some(paths.swap_remove(best).into_plan(collection))
}

/// Returns the plan by a hinted index.
pub fn hinted_plan(
    collection: &Arc<Collection>,
    candidate: IndexCandidate<'_>,
    wanted: &PlannerQuery<'_>,
) -> SqlitePlan {
    single(collection, &candidate, wanted).into_plan(collection)
}

/// Returns the plan that gives one document for each value of a field, by an index on it, for a
/// query that the index decides alone.
pub fn distinct_values(
    collection: &Arc<Collection>,
    wanted: &PlannerQuery<'_>,
    path: &str,
    collation: &Collation,
) -> Option<SqlitePlan> {
    let id = IndexCandidate::new(collection, None, wanted);
    let indexes = collection.indexes.iter().filter(|index| index.is_usable() && index.kind.is_ordered());
    let secondary = indexes.map(|index| IndexCandidate::new(collection, Some(index), wanted));
    let found = std::iter::once(id).chain(secondary).filter_map(|candidate| {
        let at = candidate.single_valued_field(path)?;
        let fixed = candidate.bounds[..at].iter().all(|ranges| ranges.len() == 1 && ranges[0].is_point());
        (fixed && candidate.fields[at].collation == *collation).then_some((at, candidate))
    });
    let (at, candidate) = found.min_by_key(|(at, candidate)| (usize::MAX - at, candidate.fields.len()))?;
    let scan = IndexScan { distinct_field: Some(at), ..candidate.scan() };
    Some(with_access(collection, true, wanted.sort.is_none(), Access::Index(scan)))
}

fn single<'c>(collection: &'c Collection, candidate: &IndexCandidate<'_>, wanted: &PlannerQuery<'_>) -> AccessPath<'c> {
    let access = match candidate.exploded() {
        Some(union) => Access::Union(union),
        None => Access::Index(candidate.scan()),
    };
    let shape = candidate.points as f64 + if candidate.ranged { 0.5 } else { 0.0 };
    let sorted = candidate.is_sorted(wanted);
    AccessPath { collection, access, exact: candidate.exact, sorted, shape, keys: f64::NAN }
}

fn count_all_keys(
    paths: &mut [AccessPath<'_>],
    collection: &Collection,
    wanted: &PlannerQuery<'_>,
    measure: Measure<'_>,
) {
    let documents = collection.documents() as f64;
    let limit = match wanted.limit {
        Some(limit) if wanted.sort.is_some() => keys_worth_sorting(limit as f64, documents) as u64,
        limit => limit.map_or(KEYS_COUNTED_MAX, |limit| limit.saturating_mul(10).clamp(20, KEYS_COUNTED_MAX)),
    };
    // The most promising path first: of the others, only need be known that they are no better.
    let mut order: Vec<usize> = (0..paths.len()).collect();
    let promise = |path: &AccessPath<'_>| (path.measured().is_estimated(wanted.limit), !path.sorted, -path.shape);
    order.sort_by(|a, b| promise(&paths[*a]).partial_cmp(&promise(&paths[*b])).unwrap_or(std::cmp::Ordering::Equal));
    let mut least = f64::INFINITY;
    for at in order {
        let path = &mut paths[at];
        let limit = limit.min((least as u64).saturating_add(1));
        let counted = if path.shape > 0.0 { count(&path.access, collection, limit, measure) } else { limit };
        path.keys = match counted < limit {
            true => counted as f64,
            false => (documents / 10_f64.powf(path.shape)).max(limit as f64),
        };
        let measured = path.measured();
        if !measured.is_estimated(wanted.limit) {
            least = least.min(measured.cost(wanted.limit, 1.0));
        }
    }
}

/// With this many matches, the limit is reached in order before the matches would be sorted.
fn keys_worth_sorting(limit: f64, documents: f64) -> f64 {
    let keys = (MEASURED_PREFERENCE * limit * documents / SORT_COST).sqrt();
    keys.clamp(20.0, KEYS_COUNTED_FOR_SORT_MAX)
}

fn count(access: &Access, collection: &Collection, limit: u64, measure: Measure<'_>) -> u64 {
    let mut counted = 0;
    for scan in scans(access) {
        if counted >= limit {
            break;
        }
        counted += measure(collection, scan, limit - counted);
    }
    counted
}

fn scans(access: &Access) -> &[IndexScan] {
    match access {
        Access::Index(scan) => std::slice::from_ref(scan),
        Access::Union(union) => &union.branches,
        Access::Natural { .. } | Access::Points(_) | Access::Near(_) => &[],
    }
}

impl cost::AccessPath for AccessPath<'_> {
    fn measured(&self) -> PathCost {
        PathCost { keys: self.keys, sorted: self.sorted, exact: self.exact }
    }

    fn leading(&self) -> Vec<&str> {
        let mut paths = Vec::new();
        for scan in scans(&self.access) {
            let bound = |ranges: &FieldBounds| !access::is_everything(ranges);
            let leading = scan.bounds.iter().take_while(|(_, ranges)| bound(ranges)).map(|(path, _)| path.as_str());
            // For other kinds of index, all of its fields.
            let others = scan.bounds.is_empty().then(|| scan.fields(self.collection));
            paths.extend(leading.chain(others.into_iter().flatten().map(|field| field.path.as_str())));
        }
        paths
    }
}

impl AccessPath<'_> {
    /// Returns whether the path's keys have all requested fields.
    fn covers(&self, wanted: &PlannerQuery<'_>) -> bool {
        let Access::Index(scan) = &self.access else { return false };
        let paths = scan.fields(self.collection).iter().map(|field| field.path.as_str());
        !scan.is_multikey() && covered::covers_fields(paths, wanted.fields)
    }

    fn into_plan(self, collection: &Arc<Collection>) -> SqlitePlan {
        with_access(collection, self.exact, self.sorted, self.access)
    }
}
