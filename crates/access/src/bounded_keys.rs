//! Keys of an index that may have a query's documents.

use crate::key_filter::KeyFilter;
use crate::{FieldBounds, Interval, ValueRange};
use index_keys::keys::KEY_END;

/// The name under which `explain` shows the path of a wildcard index.
pub const WILDCARD_PATH: &str = "$_path";

/// Keys of an index, with the bounds from which they follow.
#[derive(Debug)]
pub struct BoundedKeys {
    /// Ascending.
    pub intervals: Vec<Interval>,
    /// The bounds per field, for `explain`. The path of a wildcard index is a field of its own.
    pub bounds: Vec<(String, FieldBounds)>,
    /// Conditions on keys within the intervals.
    pub filter: Option<KeyFilter>,
    /// Every document with a key in them matches.
    pub exact: bool,
    /// The index has all documents that may match.
    pub complete: bool,
}

impl BoundedKeys {
    /// Returns keys without bounds.
    pub fn new(intervals: Vec<Interval>) -> BoundedKeys {
        BoundedKeys { intervals, bounds: Vec::new(), filter: None, exact: false, complete: true }
    }

    /// Returns all keys of an index.
    pub fn everything() -> BoundedKeys {
        BoundedKeys::new(vec![Interval { low: Vec::new(), high: KEY_END.to_vec() }])
    }

    /// Returns how many fields bound the keys: see [`bound_fields`].
    pub fn bound_fields(&self) -> f64 {
        bound_fields(&self.bounds)
    }
}

/// Returns the number of leading fields bound to single values, plus one half for a range behind
/// them. A geometry has no ranges of values, and counts as a single one. The path field of a
/// wildcard index does not count.
pub fn bound_fields(bounds: &[(String, FieldBounds)]) -> f64 {
    let named = bounds.first().is_some_and(|(path, _)| path == WILDCARD_PATH);
    let mut bounds = bounds.iter().map(|(_, ranges)| ranges).skip(usize::from(named)).peekable();
    let mut points = 0.0;
    while bounds.next_if(|ranges| ranges.iter().all(ValueRange::is_point)).is_some() {
        points += 1.0;
    }
    let ranged = bounds.next().is_some_and(|ranges| !crate::is_everything(ranges));
    points + if ranged { 0.5 } else { 0.0 }
}
