//! `indexBounds`: the ranges of an index that a scan reads, field by field, in the direction of the
//! scan.

use crate::plan::{IndexScan, NearScan};
use access::explain::write_ranges;
use access::{FieldBounds, Interval, ValueRange, geo_bounds};
use document::{Collation, DocWriter, Value};
use index_keys::{IndexField, IndexShape};
use query::predicate::Test;
use store::index_kind::descends;
use store::{FieldKind, IndexSpec};

/// A geometry's covering is a list of cells, of which at most as many are shown as MongoDB would
/// have.
const CELLS_MAX: usize = 100;

pub fn write(scan: &IndexScan, spec: &IndexSpec, writer: &mut DocWriter<'_>) {
    if let Some(index) = scan.index.as_ref().filter(|index| has_geometry(index)) {
        return write_with_geometry(index, &scan.bounds, &scan.intervals, writer);
    }
    let directions = spec.key.as_doc().values().chain(std::iter::repeat(Value::Int32(1)));
    for ((path, ranges), direction) in scan.bounds.iter().zip(directions) {
        let mut array = writer.array(path);
        write_ranges(ranges, scan.forward != descends(direction), &mut array);
    }
}

/// Writes the values by which `_id` is looked up.
pub fn write_points(test: &Test, writer: &mut DocWriter<'_>) {
    let test = if let Test::Collated(inner, _) = test { inner } else { test };
    let values = match test {
        Test::Equal(value) => std::slice::from_ref(value),
        Test::In(list) => list.values(),
        _ => &[],
    };
    let ranges: FieldBounds = values.iter().map(|value| ValueRange::point(value.clone(), &Collation::SIMPLE)).collect();
    write_ranges(&ranges, true, &mut writer.array("_id"));
}

/// Writes the rings around a point that may be read, as one.
pub fn write_rings(scan: &NearScan, writer: &mut DocWriter<'_>) {
    let intervals = geo_bounds::ring(&scan.index, &scan.near, &scan.front, scan.near.min, scan.near.max);
    write_with_geometry(&scan.index, &scan.front.all_bounds(&scan.index), &intervals, writer);
}

/// Returns whether the scan reads one range of keys and skips none of them.
pub fn one_range(scan: &IndexScan) -> bool {
    let points = scan.bounds.iter().take_while(|(_, ranges)| is_one(ranges) && ranges[0].is_point()).count();
    let behind = &scan.bounds[points.min(scan.bounds.len())..];
    let mut behind = behind.iter().map(|(_, ranges)| ranges);
    scan.filter.is_none()
        && behind.next().is_none_or(is_one)
        && behind.all(|ranges| is_one(ranges) && ranges[0].is_everything())
        && scan.index.as_ref().is_none_or(|index| index.kind.is_ordered())
}

/// Writes the first counted key, and the last.
pub fn write_start_and_end(scan: &IndexScan, writer: &mut DocWriter<'_>) {
    let fields: Vec<(&str, &ValueRange)> =
        scan.bounds.iter().filter_map(|(path, ranges)| Some((path.as_str(), ranges.first()?))).collect();
    access::explain::write_start_and_end(&fields, writer);
}

fn is_one(ranges: &FieldBounds) -> bool {
    ranges.len() == 1
}

fn has_geometry(index: &IndexShape) -> bool {
    index.fields.iter().any(is_geometry)
}

fn is_geometry(field: &IndexField) -> bool {
    matches!(field.kind, FieldKind::Sphere | FieldKind::Plane)
}

/// Writes the cells of the first geometry field, which are the same for each combination of values
/// in front of it, and the ranges of the other fields.
fn write_with_geometry(
    index: &IndexShape,
    bounds: &[(String, FieldBounds)],
    intervals: &[Interval],
    writer: &mut DocWriter<'_>,
) {
    let first = intervals.first().map_or(&[][..], |first| &first.low);
    for (at, field) in index.fields.iter().enumerate() {
        let mut array = writer.array(&field.path);
        match bounds.get(at).map(|(_, ranges)| ranges) {
            Some(ranges) if ranges.is_empty() && is_geometry(field) => {
                let front = prefix_before(index, at, first);
                let cells = intervals.iter().take_while(|interval| interval.low.starts_with(front)).take(CELLS_MAX);
                cells.for_each(|cell| array.push(&*cells_text(field.kind, cell, front.len())));
            }
            None => array.push("[MinKey, MaxKey]"),
            Some(ranges) => write_ranges(ranges, field.ascending, &mut array),
        }
    }
}

/// Returns the part of a key in front of a field.
fn prefix_before<'k>(index: &IndexShape, at: usize, key: &'k [u8]) -> &'k [u8] {
    let behind = index.fields[..at]
        .iter()
        .try_fold(key, |rest, field| document::key::split(rest, !field.ascending).map(|(_, behind)| behind));
    &key[..key.len() - behind.unwrap_or(key).len()]
}

fn cells_text(kind: FieldKind, Interval { low, high }: &Interval, skipped: usize) -> String {
    let cell = |key: &[u8], skipped: usize| {
        let bytes = key.get(skipped..skipped + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(u64::MAX, u64::from_be_bytes)
    };
    match kind {
        FieldKind::Plane => {
            let (first, last) = (cell(low, skipped), cell(high, skipped).wrapping_sub(1));
            format!("[BinData(128, {first:016X}), BinData(128, {last:016X})]")
        }
        _ => {
            // Skips the byte that marks a cell.
            let (first, last) = (cell(low, skipped + 1), cell(high, skipped + 1).wrapping_sub(1));
            format!("[{}, {}]", first as i64, last as i64)
        }
    }
}
