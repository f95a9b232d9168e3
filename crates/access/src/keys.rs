//! The keys of an index that may have a query's documents, for each kind of index.

use crate::bounded_keys::BoundedKeys;
use crate::conditions::PlannerQuery;
use crate::index_bounds::CompoundBounds;
use crate::{geo_bounds, hashed, intervals, partial, search, wildcard};
use index_keys::IndexShape;
use store::IndexKind;

/// Returns the keys of an index for a query; `None` if no condition concerns this kind of index.
/// `arrays`: the components of the index's paths that have met arrays.
pub fn keys_of(index: &IndexShape, arrays: u64, wanted: &PlannerQuery<'_>) -> Option<BoundedKeys> {
    let keys = match &index.kind {
        IndexKind::Ordered => return Some(ordered(index, arrays, wanted)),
        IndexKind::Sphere(_) | IndexKind::Plane(_) => geo_bounds::region(index, wanted),
        IndexKind::Hashed => hashed::keys(index, wanted),
        IndexKind::Text(_) => search::keys(index, wanted),
        IndexKind::Wildcard(options) => wildcard::keys(index, options, wanted),
    };
    keys.map(|keys| BoundedKeys { complete: partial::covers_query(index, wanted), ..keys })
}

/// As [`keys_of`], if the index has all documents of the query and narrows the search.
pub fn usable_keys(index: &IndexShape, arrays: u64, wanted: &PlannerQuery<'_>) -> Option<BoundedKeys> {
    let narrows = |keys: &BoundedKeys| !index.kind.is_ordered() || keys.bound_fields() > 0.0;
    keys_of(index, arrays, wanted).filter(|keys| keys.complete && narrows(keys))
}

fn ordered(index: &IndexShape, arrays: u64, wanted: &PlannerQuery<'_>) -> BoundedKeys {
    let CompoundBounds { bounds, exact, complete, .. } =
        CompoundBounds::new(Some(index), &index.fields, arrays, wanted);
    let (intervals, filter) = intervals::build(&index.fields, &bounds);
    let paths = index.fields.iter().map(|field| field.path.clone());
    BoundedKeys { intervals, bounds: paths.zip(bounds).collect(), filter, exact, complete }
}
