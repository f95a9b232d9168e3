//! Bounds on fields of an index behind the one that a scan's intervals end with. Keys that do not meet them are passed over
//! without a look at their documents; where many follow, the scan leaps over them.

use crate::IndexField;
use crate::keys::{self, sphere};
use crate::{FieldBounds, Interval};
use steps::Counted;
use store::FieldKind;

/// What keys have to meet, field by field.
#[derive(Debug)]
pub struct KeyFilter(Vec<Part>);

#[derive(Debug)]
struct Part {
    ascending: bool,
    /// The field has cells around places.
    place: bool,
    /// Keys of this field that will do: disjoint, ascending. `None`: all.
    intervals: Option<Vec<Interval>>,
}

/// What a filter says to a key.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    Meets,
    /// No key between this one and that place does. (Forward: the first that may; backward: all that may lie before.)
    SkipTo(Vec<u8>),
}

impl KeyFilter {
    pub fn new(fields: &[IndexField], bounds: &[FieldBounds]) -> KeyFilter {
        let mut parts: Vec<Part> = fields
            .iter()
            .zip(bounds)
            .map(|(field, ranges)| Part {
                ascending: field.ascending,
                place: field.kind == FieldKind::Sphere,
                intervals: (!crate::is_everything(ranges)).then(|| {
                    let mut intervals: Vec<_> =
                        ranges.iter().counted().map(|range| range.interval(field.ascending)).collect();
                    intervals.sort_unstable_by(|a, b| {
                        steps::step();
                        a.cmp(b)
                    });
                    intervals
                }),
            })
            .collect();
        while parts.last().is_some_and(|part| part.intervals.is_none()) {
            parts.pop();
        }
        KeyFilter(parts)
    }

    pub fn accepts(&self, key: &[u8]) -> bool {
        self.judge(key, true) == Verdict::Meets
    }

    /// Takes a key apart field by field, up to the first that will not do.
    pub fn judge(&self, key: &[u8], forward: bool) -> Verdict {
        let mut rest = key;
        for part in &self.0 {
            // A key that is none cannot be in an index; it is left to the evaluator.
            let Some((value, behind)) = part.split(rest) else { return Verdict::Meets };
            if let Some(intervals) = &part.intervals {
                let at = intervals.partition_point(|interval| *interval.high <= *value);
                if !intervals.get(at).is_some_and(|interval| interval.contains(value)) {
                    let prefix = &key[..key.len() - rest.len()];
                    return Verdict::SkipTo(skip_target(prefix, intervals, at, forward));
                }
            }
            rest = behind;
        }
        Verdict::Meets
    }
}

impl Part {
    /// Returns the field's part of a key and the rest.
    fn split<'k>(&self, key: &'k [u8]) -> Option<(&'k [u8], &'k [u8])> {
        match self.place && sphere::is_cell(key) {
            true => key.split_at_checked(sphere::CELL_BYTES),
            false => document::key::split(key, !self.ascending),
        }
    }
}

/// Where to go on from a field that lies in front of the interval `at`, and behind the one before it.
fn skip_target(prefix: &[u8], intervals: &[Interval], at: usize, forward: bool) -> Vec<u8> {
    let there = |edge: &[u8]| [prefix, edge].concat();
    match forward {
        true => match intervals.get(at) {
            Some(next) => there(&next.low),
            None => keys::end_of_prefix(prefix.to_vec()),
        },
        false => match at.checked_sub(1).and_then(|before| intervals.get(before)) {
            Some(before) => there(&before.high),
            None => prefix.to_vec(),
        },
    }
}
