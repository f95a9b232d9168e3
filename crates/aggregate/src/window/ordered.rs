//! Values of a moving window, in order.

use crate::accumulate::{SelectN, Selection, Top};
use document::{ArrayWriter, Collation, Kind, Value, ValueBuf};
use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use steps::Counted;

/// Values in the order of arrival; `None` for missing ones.
#[derive(Debug, Default)]
pub(super) struct ArrivalList {
    values: VecDeque<Option<ValueBuf>>,
    pub memory_bytes: usize,
}

impl ArrivalList {
    pub fn push(&mut self, value: Option<ValueBuf>) {
        self.memory_bytes += Self::bytes_of(&value);
        self.values.push_back(value);
    }

    /// Removes the first to arrive.
    pub fn pop(&mut self) {
        if let Some(value) = self.values.pop_front() {
            self.memory_bytes = self.memory_bytes.saturating_sub(Self::bytes_of(&value));
        }
    }

    fn bytes_of(value: &Option<ValueBuf>) -> usize {
        size_of::<Option<ValueBuf>>() + value.as_ref().map_or(0, |value| value.raw_value().len())
    }

    /// Returns this many of the first values.
    pub fn first(&self, count: usize) -> ValueBuf {
        array(self.values.iter().flatten().take(count))
    }

    /// Returns this many of the last values.
    pub fn last(&self, count: usize) -> ValueBuf {
        array(self.values.range(self.values.len().saturating_sub(count)..).flatten())
    }
}

/// Values by sort key; equal keys in the order of arrival.
#[derive(Debug, Default)]
pub(super) struct OrderedValues {
    values: BTreeMap<(Vec<u8>, u64), ValueBuf>,
    /// The keys in the order of arrival; `None` for values that do not count.
    arrivals: VecDeque<Option<(Vec<u8>, u64)>>,
    count: u64,
    pub memory_bytes: usize,
}

impl OrderedValues {
    /// Adds a value by its own order; `None` occupies a position in the window only.
    pub fn push_value(&mut self, value: Option<Value<'_>>, collation: &Collation) {
        match value {
            None => self.arrivals.push_back(None),
            Some(value) => {
                let mut key = Vec::new();
                collation.encode_key(value, &mut key);
                self.push(key, value.to_owned());
            }
        }
    }

    pub fn push(&mut self, key: Vec<u8>, value: ValueBuf) {
        steps::step();
        self.count += 1;
        self.memory_bytes += 2 * key.len() + value.raw_value().len() + size_of::<ValueBuf>();
        let key = (key, self.count);
        self.arrivals.push_back(Some(key.clone()));
        self.values.insert(key, value);
    }

    /// Removes the first to arrive.
    pub fn pop(&mut self) {
        let Some(Some(key)) = self.arrivals.pop_front() else { return };
        if let Some(value) = self.values.remove(&key) {
            let bytes = 2 * key.0.len() + value.raw_value().len() + size_of::<ValueBuf>();
            self.memory_bytes = self.memory_bytes.saturating_sub(bytes);
        }
    }

    pub fn first(&self) -> ValueBuf {
        self.values.values().next().cloned().unwrap_or_else(|| Value::Null.to_owned())
    }

    pub fn last(&self) -> ValueBuf {
        self.values.values().next_back().cloned().unwrap_or_else(|| Value::Null.to_owned())
    }

    /// Returns the distinct values.
    pub fn distinct(&self) -> ValueBuf {
        let mut next = self.values.iter().next();
        array(std::iter::from_fn(|| {
            let ((key, _), value) = next?;
            // One search per distinct value, however often it occurs.
            next = self.values.range((Bound::Excluded((key.clone(), u64::MAX)), Bound::Unbounded)).next();
            Some(value)
        }))
    }

    /// Returns the result of `$minN` or `$maxN`.
    pub fn extremes(&self, several: &SelectN, limit: usize) -> ValueBuf {
        match several.selection() {
            Selection::Extreme(Ordering::Greater) => array(self.values.values().rev().take(limit)),
            _ => array(self.values.values().take(limit)),
        }
    }

    /// Returns the result of `$top` and its relatives.
    pub fn top(&self, top: &Top, limit: usize) -> ValueBuf {
        match (top.returns_array(), top.is_bottom()) {
            (false, false) => self.first(),
            (false, true) => self.last(),
            (true, false) => array(self.values.values().take(limit)),
            (true, true) => {
                let mut last: Vec<&ValueBuf> = self.values.values().rev().take(limit).counted().collect();
                last.reverse();
                array(last.into_iter())
            }
        }
    }
}

fn array<'v>(values: impl Iterator<Item = &'v ValueBuf>) -> ValueBuf {
    let mut bytes = Vec::new();
    let mut writer = ArrayWriter::begin(&mut bytes);
    for value in values {
        steps::step();
        steps::bytes(value.raw_value().len());
        writer.push(value);
    }
    drop(writer);
    ValueBuf::from_raw(Kind::Array, bytes)
}
