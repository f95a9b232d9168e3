//! Conditions on places, by indexes over the sphere and over the plane.

use super::{NATURAL, Wanted};
use crate::catalog::{Collection, Index};
use crate::keys::{KEY_END, plane, sphere};
use crate::plan::{Access, IndexScan, Interval, NearScan, SqlitePlan};
use document::Value;
use error::Result;
use query::geo::{CellRange, Near, Region, cover};
use query::predicate::Test;
use std::sync::Arc;
use store::places::grid;
use store::{FieldKind, IndexKind, PlanFacts, Query, Tally, near};

/// The plan for documents by their distance. Errors 291 and 2 where no index tells it, or another order is asked for.
pub fn by_distance(collection: &Arc<Collection>, query: &Query<'_>, wanted: &Wanted<'_>) -> Result<Option<SqlitePlan>> {
    let Some(near) = query.predicate.near() else { return Ok(None) };
    if wanted.natural.is_some() {
        return Err(near::not_natural("sort order"));
    }
    if query.hint.and_then(Value::as_document).is_some_and(|hint| hint.get(NATURAL).is_some()) {
        return Err(near::not_natural("hint"));
    }
    let hinted = |index: &Index| match query.hint {
        Some(Value::String(name)) => name == index.spec.name,
        Some(Value::Document(key)) if !key.is_empty() => store::index_rules::same_key(key, index.spec.key.as_doc()),
        _ => index.partial.is_none(),
    };
    let is_bound = |path: &str| wanted.conditions.iter().any(|condition| condition.path == path);
    let serves =
        |index: &&Arc<Index>| !index.hidden && near::serves(&index.spec, &index.kind, near, is_bound) && hinted(index);
    let Some(any) = collection.indexes.iter().find(serves) else {
        super::hinted(collection, query, wanted)?;
        return Err(near::no_index(&collection.namespace, near));
    };
    near::check_center(&any.kind, near)?;
    let access = match collection.indexes.iter().filter(serves).find(|index| leads(index, near.path.as_str())) {
        Some(index) => Access::Near(NearScan { index: index.clone(), near: near.clone() }),
        // The places stand behind other fields: everything is read, and sorted by who asked.
        None => Access::Natural { forward: true },
    };
    let sorted = match query.sort {
        Some(sort) if sort.is_by_distance() => matches!(access, Access::Near(_)),
        _ => wanted.sort.is_none(),
    };
    let facts = PlanFacts { exact: false, sorted, view: false };
    Ok(Some(SqlitePlan {
        facts,
        collection: Some(collection.clone()),
        access,
        tailable: false,
        tally: Tally::default(),
    }))
}

/// Whether keys begin with the places at a path.
fn leads(index: &Index, path: &str) -> bool {
    index
        .fields
        .first()
        .is_some_and(|field| field.path == path && matches!(field.kind, FieldKind::Sphere | FieldKind::Plane))
}

/// The scan by this index, if it leads with the path of a condition on a region that it can tell.
pub fn scan_of(index: &Arc<Index>, wanted: &Wanted<'_>) -> Option<IndexScan> {
    wanted.conditions.iter().find_map(|condition| match condition.test {
        Test::Geometry(region) if leads(index, &condition.path) => region_scan(index, region),
        _ => None,
    })
}

/// All that an index holds, whatever its kind, as a hint may ask for.
pub fn everything_in(index: &Arc<Index>) -> IndexScan {
    IndexScan::new(Some(index.clone()), vec![Interval { low: Vec::new(), high: KEY_END.to_vec() }])
}

fn region_scan(index: &Arc<Index>, region: &Region) -> Option<IndexScan> {
    let intervals = match &index.kind {
        IndexKind::Sphere(_) => sphere_intervals(&cover::on_sphere(region)?),
        IndexKind::Plane(options) => plane_intervals(&cover::on_plane(region, &grid(options))?),
        _ => return None,
    };
    Some(IndexScan::new(Some(index.clone()), intervals))
}

/// Where an index that leads with places keeps those from one distance to another.
pub fn ring(index: &Index, near: &Near, inner: f64, outer: f64) -> Vec<Interval> {
    match &index.kind {
        IndexKind::Plane(options) => plane_intervals(&near.ring_on_plane(&grid(options), inner, outer)),
        _ => sphere_intervals(&near.ring_on_sphere(inner, outer)),
    }
}

fn sphere_intervals(ranges: &[CellRange]) -> Vec<Interval> {
    intervals(ranges, sphere::encode_cell)
}

fn plane_intervals(ranges: &[CellRange]) -> Vec<Interval> {
    intervals(ranges, plane::encode_cell)
}

fn intervals(ranges: &[CellRange], encode: fn(u64, &mut Vec<u8>)) -> Vec<Interval> {
    let interval = |range: &CellRange| {
        let (mut low, mut high) = (Vec::with_capacity(9), Vec::with_capacity(9));
        encode(range.first, &mut low);
        match range.last.checked_add(1) {
            Some(behind) => encode(behind, &mut high),
            None => high.extend_from_slice(KEY_END),
        }
        Interval { low, high }
    };
    ranges.iter().map(interval).collect()
}
