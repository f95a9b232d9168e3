//! Bounds of conditions on geometries, for `2dsphere` and `2d` indexes.

use crate::bounded_keys::BoundedKeys;
use crate::bounds::{self, FieldContext, IndexBounds};
use crate::conditions::{PlannerQuery, Scope};
use crate::index_bounds::has_position;
use crate::key_filter::KeyFilter;
use crate::{FieldBounds, Interval, ValueRange};
use geo::{CellRange, Near, Region, cover};
use index_keys::keys::{KEY_END, plane, sphere};
use index_keys::{IndexField, IndexShape};
use query::predicate::Test;
use store::geo_keys::grid;
use store::{FieldKind, IndexKind};

/// The limit of combinations of values in front of the geometry, each of which is combined with all
/// cells.
const PREFIXES_MAX: usize = 64;

/// The bounds of the fields around an index's first geometry field. Empty if the geometry is the
/// first field.
#[derive(Clone, Debug)]
pub struct GeoPrefix {
    bounds: Vec<FieldBounds>,
    /// The prefixes of keys, one for each combination of values, if all of the fields in front must
    /// equal some values.
    prefixes: Option<Vec<Vec<u8>>>,
    /// The bounds of the fields behind the geometry.
    behind: Vec<FieldBounds>,
}

impl GeoPrefix {
    /// Returns `None` if the index has another geometry field first, or none.
    pub fn new(shape: &IndexShape, path: &str, wanted: &PlannerQuery<'_>) -> Option<GeoPrefix> {
        let is_place = |field: &IndexField| matches!(field.kind, FieldKind::Sphere | FieldKind::Plane);
        let (before, places) = shape.fields.split_at(shape.fields.iter().position(is_place)?);
        if shape.fields[before.len()].path != path {
            return None;
        }
        let bounds: Vec<FieldBounds> = before.iter().map(|field| bounds_of(field, wanted)).collect();
        let combinations = bounds.iter().map(Vec::len).fold(1, usize::saturating_mul);
        let are_points = bounds.iter().flatten().all(ValueRange::is_point) && combinations <= PREFIXES_MAX;
        let prefixes = || crate::intervals::build(before, &bounds).0.into_iter().map(|keys| keys.low).collect();
        let behind = places.iter().skip(1).map(|field| match is_place(field) {
            true => vec![ValueRange::everything()],
            false => bounds_of(field, wanted),
        });
        Some(GeoPrefix { prefixes: are_points.then(prefixes), behind: behind.collect(), bounds })
    }

    /// Returns whether the query requires single values of all the fields in front.
    pub fn is_known(&self) -> bool {
        self.prefixes.is_some()
    }

    fn is_bound(&self) -> bool {
        self.bounds.first().is_some_and(|ranges| !crate::is_everything(ranges))
    }

    /// Returns the keys of geometries within these cells, behind each prefix.
    fn with(&self, cells: &[Interval]) -> Vec<Interval> {
        let behind = |prefix: &Vec<u8>, cell: &Interval| Interval {
            low: [prefix.as_slice(), &cell.low].concat(),
            high: [prefix.as_slice(), &cell.high].concat(),
        };
        let prefixes = self.prefixes.iter().flatten();
        prefixes.flat_map(|prefix| cells.iter().map(move |cell| behind(prefix, cell))).collect()
    }

    /// Returns the conditions on fields behind the geometry, which the intervals do not express. A
    /// `2d` index has arrays as a whole there, so that its keys decide nothing.
    pub fn filter(&self, shape: &IndexShape) -> Option<KeyFilter> {
        if !matches!(shape.kind, IndexKind::Sphere(_)) {
            return None;
        }
        let is_bound = |ranges: &FieldBounds| !crate::is_everything(ranges);
        let places = std::iter::once(vec![ValueRange::everything()]);
        let bounds =
            || self.bounds.iter().cloned().chain(places).chain(self.behind.iter().cloned()).collect::<Vec<_>>();
        self.behind.iter().any(is_bound).then(|| KeyFilter::new(&shape.fields, &bounds()))
    }

    /// Returns the ranges per field of the index. The geometry field has none if cells are looked
    /// up.
    pub fn all_bounds(&self, shape: &IndexShape) -> Vec<(String, FieldBounds)> {
        let places = if self.is_known() { Vec::new() } else { vec![ValueRange::everything()] };
        let rest = std::iter::once(places).chain(self.behind.iter().cloned());
        let paths = shape.fields.iter().map(|field| field.path.clone());
        paths.zip(self.bounds.iter().cloned().chain(rest)).collect()
    }
}

/// Returns the ranges of the most selective condition on a field. An array has a key for each of
/// its elements, so several conditions may be met by different ones.
fn bounds_of(field: &IndexField, wanted: &PlannerQuery<'_>) -> FieldBounds {
    let context = FieldContext { collation: &field.collation, single: false };
    let here = wanted.conditions.iter().filter(|it| it.path == field.path && it.scope == Scope::DOCUMENT);
    let found = here.filter_map(|condition| bounds::of(condition.test, context)).filter(|bounds| !bounds.universal);
    let narrowest = found.min_by_key(|bounds| (!bounds.is_points(), bounds.ranges.len()));
    match narrowest {
        Some(IndexBounds { ranges, .. }) if !has_position(field) => ranges,
        _ => vec![ValueRange::everything()],
    }
}

/// Returns the keys of all documents that meet a condition on a region, if the index serves it: the
/// fields in front of the geometry must be bound, if there are any.
pub fn region(shape: &IndexShape, wanted: &PlannerQuery<'_>) -> Option<BoundedKeys> {
    wanted.conditions.iter().find_map(|condition| {
        let Test::Geometry(region) = condition.test else { return None };
        let front = GeoPrefix::new(shape, &condition.path, wanted)?;
        let intervals = match front.is_known() {
            true => front.with(&region_intervals(shape, region)?),
            false if front.is_bound() => crate::intervals::build(&shape.fields, &front.bounds).0,
            false => return None,
        };
        let (bounds, filter) = (front.all_bounds(shape), front.filter(shape));
        Some(BoundedKeys { bounds, filter, ..BoundedKeys::new(intervals) })
    })
}

fn region_intervals(shape: &IndexShape, region: &Region) -> Option<Vec<Interval>> {
    match &shape.kind {
        IndexKind::Sphere(_) => Some(sphere_intervals(&cover::ranges_on_sphere(region)?)),
        IndexKind::Plane(options) => Some(plane_intervals(&cover::ranges_on_plane(region, &grid(options))?)),
        _ => None,
    }
}

/// Returns the keys of geometries between two distances, behind each prefix.
pub fn ring(shape: &IndexShape, near: &Near, front: &GeoPrefix, inner: f64, outer: f64) -> Vec<Interval> {
    front.with(&match &shape.kind {
        IndexKind::Plane(options) => plane_intervals(&near.ring_on_plane(&grid(options), inner, outer)),
        _ => sphere_intervals(&near.ring_on_sphere(inner, outer)),
    })
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
