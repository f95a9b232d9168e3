//! The cost of access paths, estimated from the number of their keys, and the choice among them.
//!
//! A store measures the keys of its paths: SQLite counts them, MariaDB estimates them.

use std::cmp::Ordering;

/// A sort in memory is worth this many times more documents than reading in the order of an index.
pub const SORT_COST: f64 = 1.5;

/// Prefer a measured path over an estimated one unless it costs this many times more.
pub const MEASURED_PREFERENCE: f64 = 2.0;

/// An access path of a store, as far as its cost depends on it.
pub trait AccessPath {
    fn measured(&self) -> PathCost;

    /// Returns the fields that bound its keys.
    fn leading(&self) -> Vec<&str>;
}

/// An access path, with what its cost depends on.
#[derive(Clone, Copy, Debug)]
pub struct PathCost {
    /// The number of keys it reads, as counted or estimated.
    pub keys: f64,
    /// It gives the requested order, or none is requested.
    pub sorted: bool,
    /// Every document it gives matches.
    pub exact: bool,
}

impl PathCost {
    /// Returns the number of documents to examine. `matches`: the estimated number of documents
    /// that match all conditions, or one if nothing more is known.
    pub fn cost(&self, limit: Option<u64>, matches: f64) -> f64 {
        match limit {
            _ if !self.sorted => self.keys * SORT_COST,
            None => self.keys,
            Some(limit) if self.exact => self.keys.min(limit as f64),
            // Matches are spread evenly among the keys.
            Some(limit) => self.keys.min(limit as f64 * self.keys / matches.max(1.0)),
        }
    }

    /// Returns whether the cost is estimated from the number of matching documents, and may be any
    /// number up to that of the keys.
    pub fn is_estimated(&self, limit: Option<u64>) -> bool {
        limit.is_some() && self.sorted && !self.exact
    }
}

/// Returns the cost of each path, for a collection of `documents`.
///
/// How far a limit leads along an order is estimated from all paths together.
pub fn costs(paths: &[impl AccessPath], limit: Option<u64>, documents: f64) -> Vec<f64> {
    let any_estimated = paths.iter().any(|path| path.measured().is_estimated(limit));
    let bounded = || paths.iter().map(|path| (path.leading(), path.measured().keys));
    let matches = if any_estimated { estimated_matches(bounded(), documents) } else { 1.0 };
    paths.iter().map(|path| path.measured().cost(limit, matches)).collect()
}

/// Returns the number of the path that examines the fewest documents. `prefers`: which of two paths
/// of equal cost comes first.
///
/// The matches of an estimated path may be at its very end. So a measured path is preferred over an
/// estimated one, unless it costs much more.
pub fn cheapest<P: AccessPath>(
    paths: &[P],
    limit: Option<u64>,
    documents: f64,
    prefers: impl Fn(&P, &P) -> Ordering,
) -> Option<usize> {
    let costs = costs(paths, limit, documents);
    let better = |a: &usize, b: &usize| costs[*a].total_cmp(&costs[*b]).then_with(|| prefers(&paths[*a], &paths[*b]));
    let best = (0..paths.len()).min_by(better)?;
    let is_estimated = |path: usize| paths[path].measured().is_estimated(limit);
    if !is_estimated(best) {
        return Some(best);
    }
    let known = (0..paths.len()).filter(|path| !is_estimated(*path)).min_by(better);
    Some(known.filter(|known| costs[*known] <= costs[best] * MEASURED_PREFERENCE).unwrap_or(best))
}

/// Estimates how many of `documents` match all conditions. Each path contributes the fields that
/// bound its keys, and their number. Conditions on different fields are assumed to be independent.
fn estimated_matches<P: PartialEq>(paths: impl IntoIterator<Item = (Vec<P>, f64)>, documents: f64) -> f64 {
    let mut by_selectivity: Vec<(Vec<P>, f64)> = paths.into_iter().collect();
    by_selectivity.sort_by(|left, right| left.1.total_cmp(&right.1));
    let narrowest = by_selectivity.first().map_or(f64::INFINITY, |(_, keys)| *keys);
    let mut seen: Vec<P> = Vec::new();
    let mut matches = documents;
    for (paths, keys) in by_selectivity {
        if !paths.iter().any(|path| seen.contains(path)) {
            matches *= (keys / documents).min(1.0);
            seen.extend(paths);
        }
    }
    // If the number of documents is unknown, as many as by the most selective path.
    if matches.is_nan() { narrowest } else { matches.max(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_on_different_fields_narrow_one_another() {
        let of = |keys: [f64; 3], documents: f64| {
            estimated_matches([vec!["a"], vec!["b"], vec!["a", "c"]].into_iter().zip(keys), documents)
        };
        assert_eq!(of([500.0, 200.0, 100.0], 10_000.0), 2.0);
        assert_eq!(of([500.0, 200.0, 100.0], f64::INFINITY), 100.0);
        assert_eq!(of([0.0, 0.0, 0.0], 0.0), 1.0);
    }
}
