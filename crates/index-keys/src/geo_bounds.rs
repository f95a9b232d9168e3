//! Conditions on places, by indexes over the sphere and over the plane.

use crate::bounds::{self, Bounds, FieldContext};
use crate::conditions::{PlannerQuery, Scope};
use crate::index_bounds::has_position;
use crate::key_filter::KeyFilter;
use crate::keys::{KEY_END, plane, sphere};
use crate::wildcard::BoundedKeys;
use crate::{FieldBounds, IndexField, IndexShape, Interval, ValueRange};
use geo::{CellRange, Near, Region, cover};
use query::predicate::Test;
use store::geo_keys::grid;
use store::{FieldKind, IndexKind};

/// Combinations of values in front of places that are looked up one by one, each with all of the cells.
const FRONTS_MAX: usize = 64;

/// What a query says of the fields that an index has in front of its first places. Nothing where the places lead.
#[derive(Clone, Debug)]
pub struct GeoPrefix {
    bounds: Vec<FieldBounds>,
    /// What keys begin with, where all of the fields have to equal some values: once for each combination.
    prefixes: Option<Vec<Vec<u8>>>,
    /// What a query says of the fields behind the places.
    behind: Vec<FieldBounds>,
}

impl GeoPrefix {
    /// `None` where other places stand first in the index, or none do.
    pub fn new(shape: &IndexShape, path: &str, wanted: &PlannerQuery<'_>) -> Option<GeoPrefix> {
        let is_place = |field: &IndexField| matches!(field.kind, FieldKind::Sphere | FieldKind::Plane);
        let (before, places) = shape.fields.split_at(shape.fields.iter().position(is_place)?);
        if shape.fields[before.len()].path != path {
            return None;
        }
        let bounds: Vec<FieldBounds> = before.iter().map(|field| bounds_of(field, wanted)).collect();
        let combinations = bounds.iter().map(Vec::len).fold(1, usize::saturating_mul);
        let are_points = bounds.iter().flatten().all(ValueRange::is_point) && combinations <= FRONTS_MAX;
        let prefixes = || crate::intervals::build(before, &bounds).0.into_iter().map(|keys| keys.low).collect();
        let behind = places.iter().skip(1).map(|field| match is_place(field) {
            true => vec![ValueRange::everything()],
            false => bounds_of(field, wanted),
        });
        Some(GeoPrefix { prefixes: are_points.then(prefixes), behind: behind.collect(), bounds })
    }

    /// Whether the query demands single values of all the fields.
    pub fn is_known(&self) -> bool {
        self.prefixes.is_some()
    }

    fn is_bound(&self) -> bool {
        self.bounds.first().is_some_and(|ranges| !crate::is_everything(ranges))
    }

    /// The keys of places within these cells, behind any of the values in front.
    fn with(&self, cells: &[Interval]) -> Vec<Interval> {
        let behind = |prefix: &Vec<u8>, cell: &Interval| Interval {
            low: [prefix.as_slice(), &cell.low].concat(),
            high: [prefix.as_slice(), &cell.high].concat(),
        };
        let prefixes = self.prefixes.iter().flatten();
        prefixes.flat_map(|prefix| cells.iter().map(move |cell| behind(prefix, cell))).collect()
    }

    /// What keys have to meet besides lying in intervals: the conditions on fields behind the places. An index over the
    /// plane has arrays as they are there, so that its keys do not tell.
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

    /// Per field of the index: the ranges of those in front; of the places none, if cells are looked up; those of the fields behind.
    pub fn all_bounds(&self, shape: &IndexShape) -> Vec<(String, FieldBounds)> {
        let places = if self.is_known() { Vec::new() } else { vec![ValueRange::everything()] };
        let rest = std::iter::once(places).chain(self.behind.iter().cloned());
        let paths = shape.fields.iter().map(|field| field.path.clone());
        paths.zip(self.bounds.iter().cloned().chain(rest)).collect()
    }
}

/// The ranges that the narrowest of a query's conditions on a field leaves. Of an array there is a key for each of its elements, so that
/// several conditions may be met by different ones.
fn bounds_of(field: &IndexField, wanted: &PlannerQuery<'_>) -> FieldBounds {
    let ground = FieldContext { collation: &field.collation, single: false };
    let here = wanted.conditions.iter().filter(|it| it.path == field.path && it.scope == Scope::DOCUMENT);
    let found = here.filter_map(|condition| bounds::of(condition.test, ground)).filter(|bounds| !bounds.universal);
    let narrowest = found.min_by_key(|bounds| (!bounds.is_points(), bounds.ranges.len()));
    match narrowest {
        Some(Bounds { ranges, .. }) if !has_position(field) => ranges,
        _ => vec![ValueRange::everything()],
    }
}

/// The keys of all documents that meet a condition on a region, if the index tells it: where nothing stands in front of its places, or what
/// does is bound as well.
pub fn region(shape: &IndexShape, wanted: &PlannerQuery<'_>) -> Option<BoundedKeys> {
    wanted.conditions.iter().find_map(|condition| {
        let Test::Geometry(region) = condition.test else { return None };
        let front = GeoPrefix::new(shape, &condition.path, wanted)?;
        let intervals = match front.is_known() {
            true => front.with(&region_intervals(shape, region)?),
            false if front.is_bound() => crate::intervals::build(&shape.fields, &front.bounds).0,
            false => return None,
        };
        Some(BoundedKeys { intervals, bounds: front.all_bounds(shape), filter: front.filter(shape) })
    })
}

fn region_intervals(shape: &IndexShape, region: &Region) -> Option<Vec<Interval>> {
    match &shape.kind {
        IndexKind::Sphere(_) => Some(sphere_intervals(&cover::ranges_on_sphere(region)?)),
        IndexKind::Plane(options) => Some(plane_intervals(&cover::ranges_on_plane(region, &grid(options))?)),
        _ => None,
    }
}

/// Where an index keeps places from one distance to another, behind what a query says of the fields in front of them.
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
