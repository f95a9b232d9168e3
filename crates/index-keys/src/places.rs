//! Conditions on places, by indexes over the sphere and over the plane.

use crate::keys::{KEY_END, plane, sphere};
use crate::wanted::Wanted;
use crate::{IndexShape, Interval};
use query::geo::{CellRange, Near, Region, cover};
use query::predicate::Test;
use store::places::grid;
use store::{FieldKind, IndexKind};

/// Whether keys begin with the places at a path.
pub fn leads(shape: &IndexShape, path: &str) -> bool {
    shape
        .fields
        .first()
        .is_some_and(|field| field.path == path && matches!(field.kind, FieldKind::Sphere | FieldKind::Plane))
}

/// The keys of all documents that meet a condition on a region, if the index leads with its path and can tell it.
pub fn region(shape: &IndexShape, wanted: &Wanted<'_>) -> Option<Vec<Interval>> {
    wanted.conditions.iter().find_map(|condition| match condition.test {
        Test::Geometry(region) if leads(shape, &condition.path) => region_intervals(shape, region),
        _ => None,
    })
}

fn region_intervals(shape: &IndexShape, region: &Region) -> Option<Vec<Interval>> {
    match &shape.kind {
        IndexKind::Sphere(_) => Some(sphere_intervals(&cover::on_sphere(region)?)),
        IndexKind::Plane(options) => Some(plane_intervals(&cover::on_plane(region, &grid(options))?)),
        _ => None,
    }
}

/// Where an index that leads with places keeps those from one distance to another.
pub fn ring(shape: &IndexShape, near: &Near, inner: f64, outer: f64) -> Vec<Interval> {
    match &shape.kind {
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
