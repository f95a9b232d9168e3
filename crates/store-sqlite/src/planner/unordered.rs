//! Scans of indexes that are not ordered by values.

use super::{geo_scan, hashed};
use crate::catalog::{Collection, Index};
use crate::plan::IndexScan;
use access::conditions::PlannerQuery;
use access::wildcard::BoundedKeys;
use access::{partial, wildcard};
use std::sync::Arc;

/// Returns the scan of an index that is not ordered by values, if its kind serves one of the
/// conditions.
pub fn unordered_scan(index: &Arc<Index>, wanted: &PlannerQuery<'_>) -> Option<IndexScan> {
    geo_scan::scan_of(index, wanted).or_else(|| hashed::scan_of(index, wanted)).or_else(|| wildcard_scan(index, wanted))
}

/// Returns the scan of a wildcard index.
fn wildcard_scan(index: &Arc<Index>, wanted: &PlannerQuery<'_>) -> Option<IndexScan> {
    let BoundedKeys { intervals, bounds, filter } = wildcard::bounded_keys(index, wanted)?;
    Some(IndexScan { bounds, filter, ..IndexScan::new(Some(index.clone()), intervals) })
}

/// Returns the scans by indexes of other kinds.
pub fn unordered_scans<'c>(
    collection: &'c Collection,
    wanted: &'c PlannerQuery<'_>,
) -> impl Iterator<Item = IndexScan> + 'c {
    let usable = collection.indexes.iter().filter(|index| index.is_usable() && partial::covers_query(index, wanted));
    usable.filter_map(|index| unordered_scan(index, wanted))
}
