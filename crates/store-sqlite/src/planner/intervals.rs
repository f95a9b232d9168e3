//! From the ranges of an index's fields to ranges of its keys.

use super::bounds::edges;
use crate::catalog::IndexField;
use crate::keys::{self, KEY_END};
use crate::plan::{FieldBounds, Interval, Range};

/// Combinations of points that are looked up one by one; past it, the remaining fields do not narrow the scan.
const POINTS_MAX: usize = 4096;

/// The intervals that hold every key whose fields lie in the bounds: disjoint, ascending. And whether they hold no others.
pub fn build(fields: &[IndexField], bounds: &[FieldBounds]) -> (Vec<Interval>, bool) {
    let mut narrowed = true;
    let mut prefixes: Vec<Vec<u8>> = vec![Vec::new()];
    for (field, ranges) in fields.iter().zip(bounds) {
        if *ranges == [Range::everything()] {
            break;
        }
        if prefixes.len() * ranges.len() > POINTS_MAX {
            narrowed = false;
            break;
        }
        if !ranges.iter().all(Range::is_point) {
            let intervals = prefixes.iter().flat_map(|prefix| under(prefix, field, ranges)).collect();
            return (finish(intervals), narrowed);
        }
        prefixes = prefixes.iter().flat_map(|prefix| points(prefix, field, ranges)).collect();
    }
    (finish(prefixes.into_iter().map(whole).collect()), narrowed)
}

/// All keys that begin with a prefix.
fn whole(prefix: Vec<u8>) -> Interval {
    let high = if prefix.is_empty() { KEY_END.to_vec() } else { keys::end_of_prefix(prefix.clone()) };
    Interval { low: prefix, high }
}

fn points(prefix: &[u8], field: &IndexField, ranges: &FieldBounds) -> Vec<Vec<u8>> {
    let point = |range: &Range| {
        let mut key = prefix.to_vec();
        keys::encode_field(range.low.as_value(), field, &mut key);
        key
    };
    ranges.iter().map(point).collect()
}

fn under(prefix: &[u8], field: &IndexField, ranges: &FieldBounds) -> Vec<Interval> {
    let behind = |part: Vec<u8>| [prefix, &part].concat();
    let interval = |range: &Range| match field.ascending {
        true => {
            let (low, high) = edges(range, &field.collation);
            Interval { low: behind(low), high: behind(high) }
        }
        false => {
            let inverted = |value: &document::ValueBuf| {
                let mut key = Vec::new();
                keys::encode_field(value.as_value(), field, &mut key);
                key
            };
            let (low, high) = (inverted(&range.high), inverted(&range.low));
            Interval {
                low: behind(if range.high_included { low } else { keys::end_of_prefix(low) }),
                high: behind(if range.low_included { keys::end_of_prefix(high) } else { high }),
            }
        }
    };
    ranges.iter().map(interval).collect()
}

fn finish(mut intervals: Vec<Interval>) -> Vec<Interval> {
    intervals.retain(|interval| interval.low < interval.high);
    intervals.sort_unstable();
    intervals.dedup();
    intervals
}
