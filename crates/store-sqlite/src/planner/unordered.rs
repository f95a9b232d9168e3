//! Scans of indexes that are not ordered by values.

use crate::catalog::{Collection, Index};
use crate::plan::IndexScan;
use access::bounded_keys::BoundedKeys;
use access::conditions::PlannerQuery;
use access::keys::{keys_of, usable_keys};
use std::sync::Arc;

/// Returns the scan of a hinted index: of all its keys, if its kind serves none of the conditions.
pub fn hinted_scan(index: &Arc<Index>, wanted: &PlannerQuery<'_>) -> IndexScan {
    scan_of(index, keys_of(index, 0, wanted).unwrap_or_else(BoundedKeys::everything))
}

/// Returns the scans by indexes that are not ordered by values.
pub fn unordered_scans<'c>(
    collection: &'c Collection,
    wanted: &'c PlannerQuery<'_>,
) -> impl Iterator<Item = IndexScan> + 'c {
    let usable = collection.indexes.iter().filter(|index| index.is_usable() && !index.kind.is_ordered());
    usable.filter_map(|index| Some(scan_of(index, usable_keys(index, 0, wanted)?)))
}

/// Returns the scan of an index's keys.
pub fn scan_of(index: &Arc<Index>, keys: BoundedKeys) -> IndexScan {
    let BoundedKeys { intervals, bounds, filter, .. } = keys;
    IndexScan { bounds, filter, ..IndexScan::new(Some(index.clone()), intervals) }
}
