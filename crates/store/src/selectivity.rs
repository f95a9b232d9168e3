//! What a way to the documents costs, by what is known of its keys: how stores choose among indexes.

/// How many more documents than by the order of an index a sort in memory is worth.
pub const SORT_COST: f64 = 1.5;

/// So many times more than a guess may a way cost of which that is known, and go before it.
pub const MEASURED_PREFERENCE: f64 = 2.0;

/// A way, measured.
#[derive(Clone, Copy, Debug)]
pub struct PathCost {
    /// How many keys it reads, as far as that has been counted or reckoned.
    pub keys: f64,
    /// It gives the order that is asked for, or none is.
    pub sorted: bool,
    /// Every document that it gives matches.
    pub exact: bool,
}

impl PathCost {
    /// Documents to look at. `matches`: about how many documents match all conditions, or one, where no more is known.
    pub fn cost(&self, limit: Option<u64>, matches: f64) -> f64 {
        match limit {
            _ if !self.sorted => self.keys * SORT_COST,
            None => self.keys,
            Some(limit) if self.exact => self.keys.min(limit as f64),
            // Matches lie here and there among the keys.
            Some(limit) => self.keys.min(limit as f64 * self.keys / matches.max(1.0)),
        }
    }

    /// Whether its cost is reckoned from how many documents match, and may be any number up to that of its keys.
    pub fn is_estimated(&self, limit: Option<u64>) -> bool {
        limit.is_some() && self.sorted && !self.exact
    }
}

/// About how many of so many documents match all conditions, by the fields that the keys of each way are told by, and how many they are.
/// Conditions on different fields are taken to have nothing to do with one another.
pub fn estimated_matches<P: PartialEq>(ways: impl IntoIterator<Item = (Vec<P>, f64)>, documents: f64) -> f64 {
    let mut by_keys: Vec<(Vec<P>, f64)> = ways.into_iter().collect();
    by_keys.sort_by(|left, right| left.1.total_cmp(&right.1));
    let narrowest = by_keys.first().map_or(f64::INFINITY, |(_, keys)| *keys);
    let mut told: Vec<P> = Vec::new();
    let mut matches = documents;
    for (paths, keys) in by_keys {
        if !paths.iter().any(|path| told.contains(path)) {
            matches *= (keys / documents).min(1.0);
            told.extend(paths);
        }
    }
    // Without knowing how many documents there are, as many as by the narrowest.
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
