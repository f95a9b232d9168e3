//! Which of several ways to take: the one that looks at the fewest documents.
//!
//! A way's keys are counted, up to a number that takes no time worth speaking of; past it they are reckoned from the shape of the
//! bounds. So equality on a field with few equals goes before equality on one with many, and a range of three keys before
//! either. Where there is one way there is nothing to count.

use super::candidate::Candidate;
use super::union::{self, Unions};
use super::wanted::Wanted;
use super::{Measure, special_scan, with_access};
use crate::catalog::Collection;
use crate::plan::{Access, IndexScan, SqlitePlan};
use document::Collation;
use std::sync::Arc;
use store::selectivity::{Measured, SORT_COST};

/// Keys counted of one way at the most.
const KEYS_COUNTED_MAX: u64 = 500;

/// Keys counted where it is to be seen whether sorting is cheaper than going along an order.
const KEYS_COUNTED_FOR_SORT_MAX: f64 = 1000.0;

/// A way to the documents, and what is known about it.
struct Way {
    access: Access,
    exact: bool,
    sorted: bool,
    /// Fields bound to points, and one more half for a range behind them.
    shape: f64,
    keys: f64,
}

/// The best plan by an index or several; `None` where no index is of use.
pub fn best(collection: &Arc<Collection>, wanted: &Wanted<'_>, measure: Measure<'_>) -> Option<SqlitePlan> {
    let candidates = of_use(collection, wanted);
    if let Some(one) = candidates.iter().find(|candidate| candidate.is_one_document()) {
        return Some(single(one, wanted).into_plan(collection));
    }
    let mut ways: Vec<Way> = candidates.iter().map(|candidate| single(candidate, wanted)).collect();
    let unions = Unions { collection, wanted, measure };
    ways.extend(unions.all().into_iter().map(|found| Way {
        exact: found.exact,
        sorted: found.sorted,
        shape: 1.0,
        keys: f64::NAN,
        access: found.access,
    }));
    let usable = collection.indexes.iter().filter(|index| index.partial.is_none() && !index.hidden);
    ways.extend(usable.filter_map(|index| special_scan(index, wanted)).map(|scan| Way {
        access: Access::Index(scan),
        exact: false,
        sorted: wanted.sort.is_none(),
        shape: 1.0,
        keys: f64::NAN,
    }));
    if ways.len() > 1 {
        measure_all(&mut ways, collection, wanted, measure);
    }
    let matches = ways.iter().map(|way| way.keys).fold(f64::INFINITY, f64::min);
    let cost = |way: &Way| way.cost(wanted, matches);
    let better = |a: &Way, b: &Way| cost(a).total_cmp(&cost(b)).then(b.shape.total_cmp(&a.shape));
    ways.into_iter().min_by(better).map(|way| way.into_plan(collection))
}

/// The indexes that may serve.
pub fn of_use<'c>(collection: &'c Collection, wanted: &Wanted<'_>) -> Vec<Candidate<'c>> {
    let id = Candidate::new(collection, None, wanted);
    let indexes = collection.indexes.iter().filter(|index| index.is_usable() && index.kind.is_ordered());
    let secondary = indexes.map(|index| Candidate::new(collection, Some(index), wanted));
    (!wanted.without_id).then_some(id).into_iter().chain(secondary).filter(Candidate::is_of_use).collect()
}

/// The plan by an index that a hint asks for.
pub fn forced(collection: &Arc<Collection>, candidate: Candidate<'_>, wanted: &Wanted<'_>) -> SqlitePlan {
    single(&candidate, wanted).into_plan(collection)
}

/// The plan that gives one document for each value of a field, by an index on it; for a query that the index answers alone.
pub fn different_values(
    collection: &Arc<Collection>,
    wanted: &Wanted<'_>,
    path: &str,
    collation: &Collation,
) -> Option<SqlitePlan> {
    let id = Candidate::new(collection, None, wanted);
    let indexes = collection.indexes.iter().filter(|index| index.is_usable() && index.kind.is_ordered());
    let secondary = indexes.map(|index| Candidate::new(collection, Some(index), wanted));
    let found = std::iter::once(id).chain(secondary).filter_map(|candidate| {
        let at = candidate.field_of_values(path)?;
        let fixed = candidate.bounds[..at].iter().all(|ranges| ranges.len() == 1 && ranges[0].is_point());
        (fixed && candidate.fields[at].collation == *collation).then_some((at, candidate))
    });
    let (at, candidate) = found.min_by_key(|(at, candidate)| (usize::MAX - at, candidate.fields.len()))?;
    let scan = IndexScan { different: Some(at), ..candidate.scan() };
    Some(with_access(collection, true, wanted.sort.is_none(), Access::Index(scan)))
}

fn single(candidate: &Candidate<'_>, wanted: &Wanted<'_>) -> Way {
    let access = match candidate.exploded() {
        Some(union) => Access::Union(union),
        None => Access::Index(candidate.scan()),
    };
    let shape = candidate.points as f64 + if candidate.ranged { 0.5 } else { 0.0 };
    Way { access, exact: candidate.exact, sorted: candidate.is_sorted(wanted), shape, keys: f64::NAN }
}

fn measure_all(ways: &mut [Way], collection: &Collection, wanted: &Wanted<'_>, measure: Measure<'_>) {
    let documents = collection.documents() as f64;
    let limit = match wanted.limit {
        // Among so many matches, those asked for come up in order before the matches would be sorted.
        Some(limit) if wanted.sort.is_some() => {
            (limit as f64 * documents / SORT_COST).sqrt().clamp(20.0, KEYS_COUNTED_FOR_SORT_MAX) as u64
        }
        limit => limit.map_or(KEYS_COUNTED_MAX, |limit| limit.saturating_mul(10).clamp(20, KEYS_COUNTED_MAX)),
    };
    for way in ways {
        let counted = if way.shape > 0.0 { count(&way.access, collection, limit, measure) } else { limit };
        way.keys = match counted < limit {
            true => counted as f64,
            false => (documents / 10_f64.powf(way.shape)).max(limit as f64),
        };
    }
}

fn count(access: &Access, collection: &Collection, limit: u64, measure: Measure<'_>) -> u64 {
    let scans: &[IndexScan] = match access {
        Access::Index(scan) => std::slice::from_ref(scan),
        Access::Union(union) => &union.branches,
        Access::Natural { .. } | Access::Points(_) | Access::Near(_) => &[],
    };
    let mut counted = 0;
    for scan in scans {
        if counted >= limit {
            break;
        }
        counted += measure(collection, scan, limit - counted);
    }
    counted
}

impl Way {
    fn cost(&self, wanted: &Wanted<'_>, matches: f64) -> f64 {
        Measured { keys: self.keys, sorted: self.sorted, exact: self.exact }.cost(wanted.limit, matches)
    }

    fn into_plan(self, collection: &Arc<Collection>) -> SqlitePlan {
        with_access(collection, self.exact, self.sorted, self.access)
    }
}

/// The best of the indexes that narrow the search, for a branch of a disjunction.
pub fn best_branch<'c>(
    collection: &'c Collection,
    wanted: &Wanted<'_>,
    measure: Measure<'_>,
) -> Option<union::Branch<'c>> {
    let mut candidates = of_use(collection, wanted);
    candidates.retain(|candidate| candidate.narrows());
    // One that gives the order lets the branches be merged.
    let sorted = |candidate: &Candidate<'_>| candidate.order.as_ref().is_some_and(|order| order.leading == 0);
    if wanted.sort.is_some() && candidates.iter().any(sorted) {
        candidates.retain(sorted);
    }
    let counted = candidates.len() > 1;
    let keys = |candidate: &Candidate<'_>| match counted {
        true => measure(collection, &candidate.scan(), KEYS_COUNTED_MAX),
        false => 0,
    };
    let branches = candidates.into_iter().map(|candidate| (keys(&candidate), candidate));
    branches
        .min_by_key(|(keys, candidate)| (*keys, usize::MAX - candidate.points))
        .map(|(_, candidate)| union::Branch { scan: candidate.scan(), candidate })
}
