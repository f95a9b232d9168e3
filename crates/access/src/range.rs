//! Ranges of values, and of keys.

use document::{Collation, Value, ValueBuf};
use index_keys::keys::{self, Key};
use std::ops::Deref;
use std::sync::Arc;

/// Keys from `low` (included) to `high` (excluded).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interval {
    pub low: Vec<u8>,
    pub high: Vec<u8>,
}

impl Interval {
    pub fn contains(&self, key: &[u8]) -> bool {
        *self.low <= *key && *key < *self.high
    }
}

/// The ranges of one field's values: disjoint, ascending.
pub type FieldBounds = Vec<ValueRange>;

/// Returns whether a field's bounds are all values: that is one range, as no two overlap.
pub fn is_everything(bounds: &[ValueRange]) -> bool {
    matches!(bounds, [only] if only.is_everything())
}

/// A range of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueRange {
    pub low: Cut,
    pub high: Cut,
}

/// A position between two values: directly before one, or directly behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Shared by both ends of a point, and by copies: lists may have a million values.
    cut_value: Arc<CutValue>,
    pub behind: bool,
}

/// A value with its key.
#[derive(Debug, PartialEq, Eq)]
pub struct CutValue {
    pub value: ValueBuf,
    /// The value's key, ascending.
    pub key: Key,
}

impl Deref for Cut {
    type Target = CutValue;

    fn deref(&self) -> &CutValue {
        &self.cut_value
    }
}

impl Cut {
    pub fn new(value: ValueBuf, behind: bool, collation: &Collation) -> Cut {
        steps::step();
        let mut key = Vec::with_capacity(24);
        collation.encode_key(value.as_value(), &mut key);
        Cut { cut_value: Arc::new(CutValue { value, key: Key::from_slice(&key) }), behind }
    }

    /// Returns the first key behind this position, in the direction of a field.
    pub fn start(&self, ascending: bool) -> Vec<u8> {
        let mut key = self.key.to_vec();
        if !ascending {
            key.iter_mut().for_each(|byte| *byte = !*byte);
        }
        if self.behind == ascending { keys::end_of_prefix(key) } else { key }
    }
}

impl Ord for Cut {
    fn cmp(&self, other: &Cut) -> std::cmp::Ordering {
        self.key.cmp(&other.key).then(self.behind.cmp(&other.behind))
    }
}

impl PartialOrd for Cut {
    fn partial_cmp(&self, other: &Cut) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl ValueRange {
    pub fn point(value: ValueBuf, collation: &Collation) -> ValueRange {
        let low = Cut::new(value, false, collation);
        ValueRange { high: Cut { behind: true, cut_value: low.cut_value.clone() }, low }
    }

    pub fn is_point(&self) -> bool {
        !self.low.behind
            && self.high.behind
            && (Arc::ptr_eq(&self.low.cut_value, &self.high.cut_value) || self.low.key == self.high.key)
    }

    pub fn everything() -> ValueRange {
        let cut = |value: Value<'_>, behind| Cut::new(value.to_owned(), behind, &Collation::SIMPLE);
        ValueRange { low: cut(Value::MinKey, false), high: cut(Value::MaxKey, true) }
    }

    pub fn is_everything(&self) -> bool {
        self.low.value.as_value() == Value::MinKey
            && self.high.value.as_value() == Value::MaxKey
            && !self.low.behind
            && self.high.behind
    }

    /// Returns the keys of the range, in the direction of a field.
    pub fn interval(&self, ascending: bool) -> Interval {
        match ascending {
            true => Interval { low: self.low.start(true), high: self.high.start(true) },
            false => Interval { low: self.high.start(false), high: self.low.start(false) },
        }
    }
}
