//! Ranges of keys as a condition in SQL.

use crate::plan::index_bounds::KeyRange;
use crate::plan::parameters::padded;
use crate::plan::pushdown::{Condition, Operand};

/// Returns the condition that a column's key is in one of the ranges.
pub(crate) fn in_ranges(column: &str, ranges: &[KeyRange]) -> Condition {
    let (mut parts, mut params) = (Vec::new(), Vec::new());
    let points: Vec<&KeyRange> = ranges.iter().filter(|range| range.is_point()).collect();
    if let Some(last) = points.last() {
        // Lists have a few lengths, so that few statements need preparing.
        let length = padded(points.len());
        parts.push(format!("{column} IN (?{})", ",?".repeat(length - 1)));
        let repeated = std::iter::repeat_n(last, length - points.len());
        params.extend(points.iter().chain(repeated).map(|range| Operand::Bytes(range.low.clone())));
    }
    for range in ranges.iter().filter(|range| !range.is_point()) {
        parts.push(format!("{column} >= ? AND {column} < ?"));
        params.extend([Operand::Bytes(range.low.clone()), Operand::Bytes(range.high.clone())]);
    }
    if parts.is_empty() {
        parts.push("FALSE".into());
    }
    Condition::new(format!("({})", parts.join(" OR ")), params)
}
