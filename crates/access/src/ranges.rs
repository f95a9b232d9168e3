//! Sets of values as lists of ranges, disjoint and ascending.

use crate::{FieldBounds, ValueRange};

/// Returns the ranges in order, with adjacent and overlapping ones joined.
pub fn union(mut ranges: Vec<ValueRange>) -> FieldBounds {
    ranges.retain(|range| {
        steps::step();
        range.low < range.high
    });
    ranges.sort_by(|a, b| {
        steps::step();
        a.low.cmp(&b.low)
    });
    let mut joined: FieldBounds = Vec::with_capacity(ranges.len());
    for range in ranges {
        steps::step();
        match joined.last_mut() {
            Some(last) if range.low <= last.high => {
                if last.high < range.high {
                    last.high = range.high;
                }
            }
            _ => joined.push(range),
        }
    }
    joined
}

pub fn intersection(left: &[ValueRange], right: &[ValueRange]) -> FieldBounds {
    let mut common = Vec::new();
    let (mut lefts, mut rights) = (left.iter().peekable(), right.iter().peekable());
    while let (Some(one), Some(other)) = (lefts.peek(), rights.peek()) {
        steps::step();
        let low = (&one.low).max(&other.low);
        let high = (&one.high).min(&other.high);
        if low < high {
            common.push(ValueRange { low: low.clone(), high: high.clone() });
        }
        if one.high <= other.high {
            lefts.next()
        } else {
            rights.next()
        };
    }
    common
}

pub fn complement(ranges: &[ValueRange]) -> FieldBounds {
    let ValueRange { mut low, high } = ValueRange::everything();
    let mut gaps = Vec::with_capacity(ranges.len() + 1);
    for range in ranges {
        steps::step();
        if low < range.low {
            gaps.push(ValueRange { low, high: range.low.clone() });
        }
        low = range.high.clone();
    }
    if low < high {
        gaps.push(ValueRange { low, high });
    }
    gaps
}

/// Returns whether each value of one set is in the other.
pub fn is_subset(inner: &[ValueRange], outer: &[ValueRange]) -> bool {
    inner.iter().all(|one| {
        let behind = outer.partition_point(|other| {
            steps::step();
            other.low <= one.low
        });
        // The ranges are disjoint, so no other one can contain its beginning.
        let holder = behind.checked_sub(1).and_then(|at| outer.get(at));
        holder.is_some_and(|holder| one.high <= holder.high)
    })
}
