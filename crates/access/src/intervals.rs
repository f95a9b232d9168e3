//! From the ranges of an index's fields to ranges of its keys.

use crate::key_filter::KeyFilter;
use crate::{FieldBounds, Interval, ValueRange};
use index_keys::IndexField;
use index_keys::keys::{self, KEY_END};
use steps::Counted;

/// The limit of combinations of points that are looked up one by one; past it, the remaining fields
/// are left to the filter.
const POINTS_MAX: usize = 4096;

/// Returns disjoint, ascending intervals with every key in the bounds, and a filter for these keys.
/// Together they express the bounds exactly.
pub fn build(fields: &[IndexField], bounds: &[FieldBounds]) -> (Vec<Interval>, Option<KeyFilter>) {
    let mut prefixes: Vec<Vec<u8>> = vec![Vec::new()];
    for (at, (field, ranges)) in fields.iter().zip(bounds).enumerate() {
        if crate::is_everything(ranges) || prefixes.len() * ranges.len() > POINTS_MAX {
            return (finish(prefixes.into_iter().map(whole).collect()), filter(fields, bounds, at));
        }
        if !ranges.iter().all(ValueRange::is_point) {
            let intervals = prefixes.iter().flat_map(|prefix| under(prefix, field, ranges)).collect();
            return (finish(intervals), filter(fields, bounds, at + 1));
        }
        prefixes = prefixes.iter().flat_map(|prefix| points(prefix, field, ranges)).collect();
    }
    (finish(prefixes.into_iter().map(whole).collect()), None)
}

/// Splits the bounds into those of each combination of points of the first `leading` fields.
pub fn explode(bounds: &[FieldBounds], leading: usize) -> Vec<Vec<FieldBounds>> {
    let mut combinations: Vec<Vec<FieldBounds>> = vec![Vec::new()];
    for ranges in &bounds[..leading] {
        let with = |combination: &Vec<FieldBounds>, range: &ValueRange| {
            let mut combination = combination.clone();
            combination.push(vec![range.clone()]);
            combination
        };
        combinations = combinations
            .iter()
            .counted()
            .flat_map(|before| ranges.iter().counted().map(move |range| with(before, range)))
            .collect();
    }
    for combination in &mut combinations {
        combination.extend_from_slice(&bounds[leading..]);
    }
    combinations
}

/// Returns a filter if one of the fields from `at` on is bound.
fn filter(fields: &[IndexField], bounds: &[FieldBounds], at: usize) -> Option<KeyFilter> {
    let bound = bounds[at..].iter().any(|ranges| !crate::is_everything(ranges));
    bound.then(|| KeyFilter::new(fields, bounds))
}

/// Returns all keys that begin with a prefix.
fn whole(prefix: Vec<u8>) -> Interval {
    let high = if prefix.is_empty() { KEY_END.to_vec() } else { keys::end_of_prefix(prefix.clone()) };
    Interval { low: prefix, high }
}

fn points(prefix: &[u8], field: &IndexField, ranges: &FieldBounds) -> Vec<Vec<u8>> {
    ranges.iter().counted().map(|range| [prefix, &range.interval(field.ascending).low].concat()).collect()
}

fn under(prefix: &[u8], field: &IndexField, ranges: &FieldBounds) -> Vec<Interval> {
    let behind = |part: &[u8]| [prefix, part].concat();
    let interval = |range: &ValueRange| {
        let Interval { low, high } = range.interval(field.ascending);
        Interval { low: behind(&low), high: behind(&high) }
    };
    ranges.iter().counted().map(interval).collect()
}

fn finish(mut intervals: Vec<Interval>) -> Vec<Interval> {
    intervals.retain(|interval| {
        steps::step();
        interval.low < interval.high
    });
    intervals.sort_unstable_by(|a, b| {
        steps::step();
        a.cmp(b)
    });
    intervals.dedup();
    intervals
}
