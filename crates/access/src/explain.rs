//! Bounds of an index in `explain`, as MongoDB shows them.

use crate::ValueRange;
use document::{ArrayWriter, DocWriter};
use store::explain::{append_ranges, range_text};

/// Writes the ranges of a field as `[1, 5)`, in the direction of a scan.
pub fn write_ranges(ranges: &[ValueRange], forward: bool, array: &mut ArrayWriter<'_>) {
    let text = |range: &ValueRange| {
        let low = (range.low.value.as_value(), !range.low.behind);
        let high = (range.high.value.as_value(), range.high.behind);
        if forward { range_text(low, high) } else { range_text(high, low) }
    };
    match forward {
        true => append_ranges(ranges.iter().map(text), array),
        false => append_ranges(ranges.iter().rev().map(text), array),
    }
}

/// Writes the first counted key, and the last, of one range of keys: a range for each field.
pub fn write_start_and_end(fields: &[(&str, &ValueRange)], writer: &mut DocWriter<'_>) {
    for (key, inclusive, high) in [("startKey", "startKeyInclusive", false), ("endKey", "endKeyInclusive", true)] {
        let mut all = true;
        {
            let mut values = writer.document(key);
            for (path, range) in fields {
                let cut = if high { &range.high } else { &range.low };
                all &= cut.behind == high;
                values.append(path, &cut.value);
            }
        }
        writer.append(inclusive, all);
    }
}
