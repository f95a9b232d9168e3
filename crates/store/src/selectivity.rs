//! What a way to the documents costs, by what is known of its keys: how stores choose among indexes.

/// How many more documents than by the order of an index a sort in memory is worth.
pub const SORT_COST: f64 = 1.5;

/// A way, measured.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// How many keys it reads, as far as that has been counted or reckoned.
    pub keys: f64,
    /// It gives the order that is asked for, or none is.
    pub sorted: bool,
    /// Every document that it gives matches.
    pub exact: bool,
}

impl Measured {
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
}
