//! The cost of access paths, estimated from the number of their keys: how stores choose among
//! indexes.

/// A sort in memory is worth this many times more documents than reading in the order of an index.
pub const SORT_COST: f64 = 1.5;

/// Prefer a measured path over an estimated one unless it costs this many times more.
pub const MEASURED_PREFERENCE: f64 = 2.0;

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

/// Estimates how many of `documents` match all conditions. Each path contributes the fields that
/// bound its keys, and their number. Conditions on different fields are assumed to be independent.
pub fn estimated_matches<P: PartialEq>(paths: impl IntoIterator<Item = (Vec<P>, f64)>, documents: f64) -> f64 {
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
