//! Covering a region by cells of a quadtree, for scans of a geospatial index.
//!
//! Cells are S2's on the sphere ([`ranges_on_sphere`]) and the squares of a [`Grid`] on the plane.
//! A covering contains the whole region, and may contain more.

use super::flat;
use super::near::{Metric, Near};
use super::parse::stored_shape_or_reason;
use super::polygon::{OrientedPolygon, Polygon};
use super::position::{EARTH_RADIUS_METERS, Position};
use super::region::Region;
use super::shape::SphericalShape;
use super::sphere::SphericalArea;
use document::Value;
use error::Result;
use s2::cell::Cell;
use s2::cellid::CellID;
use s2::point::Point;
use std::collections::VecDeque;
use steps::Counted;

/// Maximal number of cells in a covering: more cells are more exact, and cost more lookups.
const CELLS_MAX: usize = 20;

/// Maximal number of cells in the covering of a thin ring. [`CELLS_MAX`] cells would contain most
/// of the area inside the ring.
const RING_CELLS_MAX: usize = 400;

/// Returns the number of cells to use for a ring: about as many as fit around it side by side.
fn ring_cells(inner: f64, outer: f64) -> usize {
    let fitting = std::f64::consts::TAU * outer / (outer - inner).max(f64::MIN_POSITIVE);
    CELLS_MAX.saturating_add(fitting as usize).min(RING_CELLS_MAX)
}

/// Margin in radians for rounding, and for points that count as being on an edge.
const MARGIN_RADIANS: f64 = 1e-9;

/// A range of cell numbers, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CellRange {
    pub first: u64,
    pub last: u64,
}

/// How far a region overlaps a cell.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Overlap {
    None,
    Part,
    Whole,
}

/// Returns the cells that cover a region: cuts the largest cells into four until there would be too
/// many.
fn cover<C: Copy>(
    cells_max: usize,
    roots: impl IntoIterator<Item = C>,
    children: impl Fn(C) -> Option<[C; 4]>,
    overlap: impl Fn(C) -> Overlap,
) -> Vec<C> {
    let mut covering = Vec::new();
    let mut queue: VecDeque<(C, Overlap)> = VecDeque::new();
    let look = |cell: C| {
        steps::step();
        Some((cell, overlap(cell))).filter(|(_, overlap)| *overlap != Overlap::None)
    };
    queue.extend(roots.into_iter().filter_map(look));
    while let Some((cell, overlap)) = queue.pop_front() {
        let parts = children(cell).filter(|_| overlap == Overlap::Part);
        let Some(parts) = parts else {
            covering.push(cell);
            continue;
        };
        let parts: Vec<_> = parts.into_iter().filter_map(look).collect();
        match parts.len() <= 1 || covering.len() + queue.len() + parts.len() <= cells_max {
            true => queue.extend(parts),
            false => covering.push(cell),
        }
    }
    covering
}

// --- the sphere

/// The region to cover on the sphere.
enum CoveredRegion<'s> {
    Ring { center: Point, inner: f64, outer: f64 },
    Shape(&'s SphericalShape),
    Area(&'s SphericalArea),
}

impl CoveredRegion<'_> {
    /// Returns the distance from the region to a point outside it, and from the border to a point
    /// inside it, in radians.
    fn distance_outside_and_inside(&self, point: Point) -> (f64, f64) {
        match self {
            CoveredRegion::Ring { center, inner, outer } => {
                let distance = center.distance(&point).rad();
                let outside = (distance - outer).max(inner - distance);
                (outside.max(0.0), (-outside).max(0.0))
            }
            CoveredRegion::Shape(shape) => {
                (super::near::angle_to_shape(point, shape), depth(&shape.polygons, shape.oriented.as_deref(), point))
            }
            CoveredRegion::Area(SphericalArea { polygons, oriented: wound }) => {
                let distances = polygons.iter().map(|polygon| polygon.distance(point));
                let outside = distances.chain(wound.iter().map(|wound| wound.distance(point)));
                (outside.fold(f64::INFINITY, f64::min), depth(polygons, wound.as_deref(), point))
            }
        }
    }

    fn overlap(&self, cell: CellID) -> Overlap {
        let center = Point::from(cell);
        let corners = Cell::from(cell).vertices();
        let radius = corners.iter().map(|corner| center.distance(corner).rad()).fold(0.0, f64::max) + MARGIN_RADIANS;
        match self.distance_outside_and_inside(center) {
            (outside, _) if outside > radius => Overlap::None,
            (_, inside) if inside > radius => Overlap::Whole,
            _ => Overlap::Part,
        }
    }

    fn cells(&self, cells_max: usize, finest: u8) -> Vec<CellID> {
        let roots = (0..6).map(CellID::from_face);
        let children = |cell: CellID| (cell.level() < u64::from(finest)).then(|| cell.children());
        cover(cells_max, roots, children, |cell| self.overlap(cell))
    }
}

fn depth(polygons: &[Polygon], wound: Option<&OrientedPolygon>, point: Point) -> f64 {
    let depths = polygons.iter().map(|polygon| polygon.depth(point));
    depths.chain(wound.map(|wound| wound.depth(point))).fold(0.0, f64::max)
}

/// Returns the cells that an index stores for a value in a document: the finest cells for points, a
/// covering for larger shapes.
///
/// Fails with the reason if the value is no shape.
pub fn index_cells(value: Value<'_>, finest: u8) -> Result<Vec<u64>> {
    let shape = stored_shape_or_reason(value)?;
    let mut cells: Vec<u64> = shape.points.iter().counted().map(|point| CellID::from(*point).0).collect();
    if !shape.lines.is_empty() || !shape.polygons.is_empty() {
        let larger = SphericalShape { points: Vec::new(), ..shape };
        cells.extend(CoveredRegion::Shape(&larger).cells(CELLS_MAX, finest).iter().map(|cell| cell.0));
    }
    cells.sort_unstable_by(|a, b| {
        steps::step();
        a.cmp(b)
    });
    cells.dedup();
    Ok(cells)
}

/// Returns the ranges in which an index may store shapes that meet a covering: its cells, and the
/// cells that contain them.
fn sphere_ranges(covering: &[CellID]) -> Vec<CellRange> {
    let mut ranges: Vec<CellRange> = covering
        .iter()
        .map(|cell| CellRange { first: cell.range_min().0, last: cell.range_max().0 })
        .chain(covering.iter().flat_map(|cell| {
            (0..cell.level()).map(|level| cell.parent(level).0).map(|above| CellRange { first: above, last: above })
        }))
        .collect();
    ranges.sort_unstable();
    ranges.dedup();
    // A containing cell may be inside the range of another cell of the covering.
    let mut disjoint: Vec<CellRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match disjoint.last_mut() {
            Some(last) if range.first <= last.last => last.last = last.last.max(range.last),
            _ => disjoint.push(range),
        }
    }
    disjoint
}

/// Returns the ranges of an index over the sphere that contain all shapes that meet a region;
/// `None` for a region on the plane.
pub fn ranges_on_sphere(region: &Region) -> Option<Vec<CellRange>> {
    let sought = match region {
        Region::Flat(_) => return None,
        Region::Cap(cap) => CoveredRegion::Ring { center: cap.center, inner: 0.0, outer: cap.radians },
        Region::Within(area) => CoveredRegion::Area(area),
        Region::Intersects(target) => CoveredRegion::Shape(&target.shape),
    };
    Some(sphere_ranges(&sought.cells(CELLS_MAX, 30)))
}

/// Returns the ranges of an index over the plane that contain all points within a region; `None`
/// for a region that can contain other shapes than points.
pub fn ranges_on_plane(region: &Region, grid: &Grid) -> Option<Vec<CellRange>> {
    match region {
        Region::Flat(area) => Some(grid.ranges_of_area(area)),
        Region::Cap(cap) => {
            let center = s2::latlng::LatLng::from(cap.center);
            Some(grid.ranges_of_cap(Position { x: center.lng.deg(), y: center.lat.deg() }, cap.radians))
        }
        Region::Within(_) | Region::Intersects(_) => None,
    }
}

impl Near {
    /// Returns the ranges of an index over the sphere that contain all locations between two
    /// distances.
    pub fn ring_on_sphere(&self, inner: f64, outer: f64) -> Vec<CellRange> {
        let (inner, outer) = (inner / EARTH_RADIUS_METERS, outer / EARTH_RADIUS_METERS);
        let cells = ring_cells(inner, outer);
        sphere_ranges(&CoveredRegion::Ring { center: self.center.to_point(), inner, outer }.cells(cells, 30))
    }

    /// Returns the ranges of an index over the plane that contain all locations between two
    /// distances.
    pub fn ring_on_plane(&self, grid: &Grid, inner: f64, outer: f64) -> Vec<CellRange> {
        let center = self.center;
        match self.metric {
            Metric::Flat => grid.ranges(ring_cells(inner, outer), &|square: Square| {
                let (nearest, farthest) = square.distances(center);
                if nearest > outer || farthest < inner { Overlap::None } else { Overlap::Part }
            }),
            Metric::Sphere => grid.ranges_of_cap(center, outer / EARTH_RADIUS_METERS),
        }
    }
}

// --- the plane

/// A square of the plane, cut into cells by halving its sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    pub bits: u8,
    pub min: f64,
    pub max: f64,
}

/// A cell of a grid: the positions whose leading bits are `prefix`.
#[derive(Clone, Copy)]
struct Square {
    low: Position,
    high: Position,
    /// The leading bits of both coordinates, interleaved.
    prefix: u64,
    level: u8,
}

impl Square {
    /// Returns the distances from a position to the nearest and to the farthest point of the
    /// square.
    fn distances(&self, from: Position) -> (f64, f64) {
        let gap = |low: f64, high: f64, at: f64| (low - at).max(at - high).max(0.0);
        let reach = |low: f64, high: f64, at: f64| (at - low).abs().max((high - at).abs());
        let (x, y) = (gap(self.low.x, self.high.x, from.x), gap(self.low.y, self.high.y, from.y));
        let (far_x, far_y) = (reach(self.low.x, self.high.x, from.x), reach(self.low.y, self.high.y, from.y));
        (x.hypot(y), far_x.hypot(far_y))
    }

    fn meets(&self, low: Position, high: Position) -> bool {
        self.low.x <= high.x && low.x <= self.high.x && self.low.y <= high.y && low.y <= self.high.y
    }

    fn is_within(&self, low: Position, high: Position) -> bool {
        low.x <= self.low.x && self.high.x <= high.x && low.y <= self.low.y && self.high.y <= high.y
    }
}

impl Grid {
    /// Returns the cell of a position; `None` outside the grid.
    pub fn cell(&self, at: Position) -> Option<u64> {
        let inside = |coordinate: f64| self.min <= coordinate && coordinate <= self.max;
        if !inside(at.x) || !inside(at.y) {
            return None;
        }
        let steps = (u64::from(u32::MAX) + 1) as f64;
        // (The upper border belongs to the last cell.)
        let scaled =
            |coordinate: f64| ((coordinate - self.min) / (self.max - self.min) * steps).min(steps - 1.0) as u32;
        let mask = u32::MAX << (32 - u32::from(self.bits));
        Some(interleave_with_zeros(scaled(at.x) & mask) << 1 | interleave_with_zeros(scaled(at.y) & mask))
    }

    /// Returns the ranges that contain all positions within an area.
    pub fn ranges_of_area(&self, area: &flat::PlanarArea) -> Vec<CellRange> {
        let (low, high) = match area {
            flat::PlanarArea::Box { low, high } => (*low, *high),
            flat::PlanarArea::Circle { center, radius } => {
                let center = *center;
                return self.ranges(CELLS_MAX, &|square: Square| match square.distances(center) {
                    (nearest, _) if nearest > *radius => Overlap::None,
                    (_, farthest) if farthest < *radius => Overlap::Whole,
                    _ => Overlap::Part,
                });
            }
            flat::PlanarArea::Polygon(corners) => corners.iter().counted().fold(
                (
                    Position { x: f64::INFINITY, y: f64::INFINITY },
                    Position { x: f64::NEG_INFINITY, y: f64::NEG_INFINITY },
                ),
                |(low, high), at| {
                    (
                        Position { x: low.x.min(at.x), y: low.y.min(at.y) },
                        Position { x: high.x.max(at.x), y: high.y.max(at.y) },
                    )
                },
            ),
        };
        self.rectangle(low, high)
    }

    /// Returns the ranges that contain all positions, taken as longitude and latitude, within an
    /// angle of a point.
    pub fn ranges_of_cap(&self, center: Position, radians: f64) -> Vec<CellRange> {
        let degrees = radians.to_degrees() + 1e-6;
        let (low, high) = (center.y - degrees, center.y + degrees);
        let width = (radians.sin() / center.y.to_radians().cos()).asin().to_degrees() + 1e-6;
        let everywhere = low <= -90.0 || high >= 90.0 || width.is_nan();
        let (west, east) = (center.x - width, center.x + width);
        if everywhere || west < -180.0 || east > 180.0 {
            return self.rectangle(Position { x: f64::NEG_INFINITY, y: low }, Position { x: f64::INFINITY, y: high });
        }
        self.rectangle(Position { x: west, y: low }, Position { x: east, y: high })
    }

    fn rectangle(&self, low: Position, high: Position) -> Vec<CellRange> {
        self.ranges(CELLS_MAX, &|square: Square| match square.meets(low, high) {
            false => Overlap::None,
            true if square.is_within(low, high) => Overlap::Whole,
            true => Overlap::Part,
        })
    }

    fn ranges(&self, cells_max: usize, overlap: &dyn Fn(Square) -> Overlap) -> Vec<CellRange> {
        let (low, high) = (Position { x: self.min, y: self.min }, Position { x: self.max, y: self.max });
        let root = Square { low, high, prefix: 0, level: 0 };
        // Rounding may move a position to the neighboring cell.
        let margin = (self.max - self.min) * 1e-9;
        let wider = |square: Square| Square {
            low: Position { x: square.low.x - margin, y: square.low.y - margin },
            high: Position { x: square.high.x + margin, y: square.high.y + margin },
            ..square
        };
        let cells = cover(cells_max, [root], |square| self.quarters(square), |square| overlap(wider(square)));
        let range = |square: &Square| {
            let rest = u64::MAX.checked_shr(2 * u32::from(square.level)).unwrap_or(0);
            CellRange { first: square.prefix, last: square.prefix | rest }
        };
        let mut ranges: Vec<CellRange> = cells.iter().map(range).collect();
        ranges.sort_unstable();
        ranges
    }

    fn quarters(&self, square: Square) -> Option<[Square; 4]> {
        if square.level >= self.bits {
            return None;
        }
        let (low, high) = (square.low, square.high);
        let middle = Position { x: low.x + (high.x - low.x) / 2.0, y: low.y + (high.y - low.y) / 2.0 };
        let shift = 62 - 2 * u32::from(square.level);
        Some([0u64, 1, 2, 3].map(|quarter| {
            let (right, upper) = (quarter & 2 != 0, quarter & 1 != 0);
            Square {
                low: Position { x: if right { middle.x } else { low.x }, y: if upper { middle.y } else { low.y } },
                high: Position { x: if right { high.x } else { middle.x }, y: if upper { high.y } else { middle.y } },
                prefix: square.prefix | quarter << shift,
                level: square.level + 1,
            }
        }))
    }
}

/// Inserts a zero in front of every bit.
fn interleave_with_zeros(bits: u32) -> u64 {
    (0..32).fold(0, |spread, bit| spread | u64::from(bits >> bit & 1) << (2 * bit))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRID: Grid = Grid { bits: 26, min: -180.0, max: 180.0 };

    fn contains_cell(ranges: &[CellRange], cell: u64) -> bool {
        ranges.iter().any(|range| range.first <= cell && cell <= range.last)
    }

    /// Returns positions on a spiral around a center, from near to far.
    fn around(center: Position, step: f64) -> impl Iterator<Item = Position> {
        (0..400).map(move |turn| {
            let (angle, radius) = (f64::from(turn), step * f64::from(turn));
            Position { x: center.x + radius * angle.cos(), y: center.y + radius * angle.sin() }
        })
    }

    #[test]
    fn a_ring_covering_contains_the_ring_and_little_else() {
        for (x, y) in [(0.0, 0.0), (13.4, 52.5), (179.99, -0.01), (-70.0, 89.0)] {
            let near = Near::new(
                document::path::Path::new("a"),
                super::super::near::QueryPoint { position: Position { x, y }, is_geo_json: true },
                false,
                (0.0, f64::MAX),
            );
            let near = near.unwrap();
            let ranges = near.ring_on_sphere(5_000.0, 20_000.0);
            let (mut inside, mut spared) = (0, 0);
            for position in around(near.center, 0.001).filter(|position| position.is_on_sphere()) {
                let point = position.to_point();
                let distance = near.center.to_point().distance(&point).rad() * EARTH_RADIUS_METERS;
                let is_covered = contains_cell(&ranges, CellID::from(point).0);
                match (5_000.0..=20_000.0).contains(&distance) {
                    true => {
                        inside += 1;
                        assert!(is_covered, "{position:?} at {distance}");
                    }
                    false => spared += usize::from(!is_covered),
                }
            }
            assert!(inside > 30 && spared > 50, "{x} {y}: {inside} {spared}");
        }
    }

    #[test]
    fn coverings_on_the_plane_contain_the_area() {
        let at = |x: f64, y: f64| Position { x, y };
        let areas = [
            flat::PlanarArea::Box { low: at(1.0, 1.0), high: at(3.0, 2.5) },
            flat::PlanarArea::Circle { center: at(2.0, 2.0), radius: 0.75 },
            flat::PlanarArea::Polygon(vec![at(0.0, 0.0), at(4.0, 0.0), at(2.0, 3.0)]),
            flat::PlanarArea::Box { low: at(-180.0, -180.0), high: at(180.0, 180.0) },
            flat::PlanarArea::Box { low: at(2.0, 2.0), high: at(2.0, 2.0) },
        ];
        for area in areas {
            let ranges = GRID.ranges_of_area(&area);
            for position in around(at(2.0, 2.0), 0.01) {
                assert!(
                    !area.contains(position) || contains_cell(&ranges, GRID.cell(position).unwrap()),
                    "{area:?} {position:?}"
                );
            }
        }
    }

    #[test]
    fn cells_have_the_leading_bits_of_their_positions() {
        let grid = Grid { bits: 2, min: 0.0, max: 4.0 };
        assert_eq!(grid.cell(Position { x: 0.0, y: 0.0 }), Some(0));
        assert_eq!(grid.cell(Position { x: 4.0, y: 4.0 }), Some(0b1111 << 60));
        assert_eq!(grid.cell(Position { x: 1.5, y: 2.5 }), Some(0b0110 << 60));
        assert_eq!(grid.cell(Position { x: 4.1, y: 0.0 }), None);
    }
}
