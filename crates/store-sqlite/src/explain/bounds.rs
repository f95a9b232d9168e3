//! `indexBounds`: the stretches of an index that a scan reads, field by field, in the direction of the scan.

use crate::plan::{IndexScan, NearScan};
use crate::planner;
use document::{Collation, DocWriter, Value};
use index_keys::{FieldBounds, Interval, Range};
use query::predicate::Test;
use store::explain::range_text;
use store::{FieldKind, IndexSpec};

/// What covers places is a list of cells, of which no more are shown than MongoDB would have.
const CELLS_MAX: usize = 100;

pub fn write(scan: &IndexScan, spec: &IndexSpec, writer: &mut DocWriter<'_>) {
    let kind = scan.index.as_ref().and_then(|index| index.fields.first()).map(|field| field.kind);
    if let Some(kind @ (FieldKind::Sphere | FieldKind::Plane)) = kind {
        return write_places(kind, &scan.intervals, spec, writer);
    }
    let directions = spec.key.as_doc().values().chain(std::iter::repeat(Value::Int32(1)));
    for ((path, ranges), direction) in scan.bounds.iter().zip(directions) {
        let mut array = writer.array(path);
        range_texts(ranges, scan.forward == ascends(direction)).iter().for_each(|text| array.push(text.as_str()));
    }
}

/// The values that an `_id` is looked up by.
pub fn write_points(test: &Test, writer: &mut DocWriter<'_>) {
    let test = if let Test::Collated(inner, _) = test { inner } else { test };
    let values = match test {
        Test::Equal(value) => std::slice::from_ref(value),
        Test::In(list) => list.values(),
        _ => &[],
    };
    let ranges: FieldBounds = values.iter().map(|value| Range::point(value.clone(), &Collation::SIMPLE)).collect();
    let mut array = writer.array("_id");
    range_texts(&ranges, true).iter().for_each(|text| array.push(text.as_str()));
}

/// The rings around a point that may be read, as one.
pub fn write_rings(scan: &NearScan, writer: &mut DocWriter<'_>) {
    let kind = scan.index.fields.first().map_or(FieldKind::Sphere, |field| field.kind);
    let intervals = planner::ring(&scan.index, &scan.near, scan.near.min, scan.near.max);
    write_places(kind, &intervals, &scan.index.spec, writer);
}

/// Whether keys from one to another are read, and nothing in between left out.
pub fn one_range(scan: &IndexScan) -> bool {
    let points = scan.bounds.iter().take_while(|(_, ranges)| is_one(ranges) && ranges[0].is_point()).count();
    let behind = &scan.bounds[points.min(scan.bounds.len())..];
    let mut behind = behind.iter().map(|(_, ranges)| ranges);
    scan.filter.is_none()
        && behind.next().is_none_or(is_one)
        && behind.all(|ranges| is_one(ranges) && ranges[0].is_everything())
        && scan.index.as_ref().is_none_or(|index| index.kind.is_ordered())
}

/// The first key that is counted, and the last.
pub fn write_start_and_end(scan: &IndexScan, writer: &mut DocWriter<'_>) {
    let fields: Vec<(&str, &Range)> =
        scan.bounds.iter().filter_map(|(path, ranges)| Some((path.as_str(), ranges.first()?))).collect();
    for (key, inclusive, high) in [("startKey", "startKeyInclusive", false), ("endKey", "endKeyInclusive", true)] {
        let mut all = true;
        {
            let mut values = writer.document(key);
            for (path, range) in &fields {
                let cut = if high { &range.high } else { &range.low };
                all &= cut.behind == high;
                values.append(path, &cut.value);
            }
        }
        writer.append(inclusive, all);
    }
}

fn is_one(ranges: &FieldBounds) -> bool {
    ranges.len() == 1
}

fn ascends(direction: Value<'_>) -> bool {
    !matches!(direction, Value::Int32(..0) | Value::Int64(..0))
        && !matches!(direction, Value::Double(number) if number < 0.0)
}

fn write_places(kind: FieldKind, intervals: &[Interval], spec: &IndexSpec, writer: &mut DocWriter<'_>) {
    let mut fields = spec.key.as_doc().iter().map(|(path, _)| path);
    let mut array = writer.array(fields.next().unwrap_or_default());
    let cell = |key: &[u8], skipped: usize| {
        let bytes = key.get(skipped..skipped + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(u64::MAX, u64::from_be_bytes)
    };
    for Interval { low, high } in intervals.iter().take(CELLS_MAX) {
        array.push(&*match kind {
            FieldKind::Plane => {
                let (first, last) = (cell(low, 0), cell(high, 0).wrapping_sub(1));
                format!("[BinData(128, {first:016X}), BinData(128, {last:016X})]")
            }
            _ => {
                // Behind the byte that marks a cell.
                let (first, last) = (cell(low, 1), cell(high, 1).wrapping_sub(1));
                format!("[{}, {}]", first as i64, last as i64)
            }
        });
    }
    drop(array);
    fields.for_each(|path| writer.array(path).push("[MinKey, MaxKey]"));
}

/// `[1, 5)`, in the direction of the scan.
fn range_texts(ranges: &FieldBounds, forward: bool) -> Vec<String> {
    let text = |range: &Range| {
        let low = (range.low.value.as_value(), !range.low.behind);
        let high = (range.high.value.as_value(), range.high.behind);
        if forward { range_text(low, high) } else { range_text(high, low) }
    };
    let mut texts: Vec<String> = ranges.iter().map(text).collect();
    if !forward {
        texts.reverse();
    }
    texts
}
