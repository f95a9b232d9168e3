//! Conditions on geometries, by `2dsphere` and `2d` indexes.

use crate::catalog::Index;
use crate::plan::IndexScan;
use access::Interval;
use access::conditions::PlannerQuery;
use access::geo_bounds::region;
use access::wildcard::BoundedKeys;
use index_keys::keys::KEY_END;
use std::sync::Arc;

/// Returns the scan by this index, if it serves a condition on a region.
pub fn scan_of(index: &Arc<Index>, wanted: &PlannerQuery<'_>) -> Option<IndexScan> {
    let BoundedKeys { intervals, bounds, filter } = region(index, wanted)?;
    Some(IndexScan { bounds, filter, ..IndexScan::new(Some(index.clone()), intervals) })
}

/// Returns the scan of a whole index of any kind, for a hint.
pub fn everything_in(index: &Arc<Index>) -> IndexScan {
    IndexScan::new(Some(index.clone()), vec![Interval { low: Vec::new(), high: KEY_END.to_vec() }])
}
