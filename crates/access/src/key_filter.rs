//! Bounds on fields of an index behind those that a scan's intervals express. Keys outside of them
//! are skipped without reading their documents; many in a row are skipped by a new search.

use crate::{FieldBounds, Interval};
use index_keys::IndexField;
use index_keys::keys::{self, sphere};
use steps::Counted;
use store::FieldKind;

/// The conditions on keys, field by field.
#[derive(Debug)]
pub struct KeyFilter(Vec<Part>);

#[derive(Debug)]
struct Part {
    ascending: bool,
    /// The field has cells of geometries.
    is_geo: bool,
    /// The accepted keys of this field: disjoint, ascending. `None`: all.
    intervals: Option<Vec<Interval>>,
}

/// The filter's verdict on a key.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    Meets,
    /// No key up to this one is accepted. (Forward: the first that may be; backward: all that may
    /// be are less.)
    SkipTo(Vec<u8>),
}

impl KeyFilter {
    pub fn new(fields: &[IndexField], bounds: &[FieldBounds]) -> KeyFilter {
        let mut parts: Vec<Part> = fields
            .iter()
            .zip(bounds)
            .map(|(field, ranges)| Part {
                ascending: field.ascending,
                is_geo: field.kind == FieldKind::Sphere,
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

    /// Checks a key field by field, up to the first that is not accepted.
    pub fn judge(&self, key: &[u8], forward: bool) -> Verdict {
        let mut rest = key;
        for part in &self.0 {
            // A malformed key cannot be in an index; it is left to the evaluator.
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
    /// Splits a key into the field's part and the rest.
    fn split<'k>(&self, key: &'k [u8]) -> Option<(&'k [u8], &'k [u8])> {
        match self.is_geo && sphere::is_cell(key) {
            true => key.split_at_checked(sphere::CELL_BYTES),
            false => document::key::split(key, !self.ascending),
        }
    }
}

/// Returns the key to continue at, for a field between the interval `at` and the one before it.
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
