//! Lists of parameters, in a few lengths so that few statements need preparing.

use mariadb_wire::Param;

/// Returns the padded length of a list of parameters.
pub(crate) fn padded(length: usize) -> usize {
    length.max(1).next_power_of_two()
}

/// Returns an `IN` list of row keys, padded.
pub(crate) fn in_list(rows: &[u64]) -> (String, Vec<Param<'static>>) {
    let length = padded(rows.len());
    let last = rows.last().copied().unwrap_or_default();
    let params = rows.iter().copied().chain(std::iter::repeat(last)).take(length).map(Param::Unsigned);
    (format!("IN (?{})", ",?".repeat(length - 1)), params.collect())
}
