//! Conditions on the sphere: containment in a circle or in polygons, intersection with a shape; and
//! distances.

use super::SphericalShape;
use super::line::Line;
use super::polygon::{OrientedPolygon, Polygon};
use super::predicates::{robust_cross, turns_left};
use super::ring::PointCell;
use s2::point::Point;
use s2::r3::vector::Vector;
use std::f64::consts::PI;
use steps::Counted;

/// All points within an angle of a center.
#[derive(Clone, Debug)]
pub struct Cap {
    pub center: Point,
    pub radians: f64,
}

/// The polygons of a `$geoWithin`.
#[derive(Clone, Debug)]
pub struct SphericalArea {
    pub polygons: Vec<Polygon>,
    pub oriented: Option<Box<OrientedPolygon>>,
}

/// The shape of a `$geoIntersects`.
#[derive(Clone, Debug)]
pub struct IntersectionTarget {
    pub shape: SphericalShape,
    cells: Vec<PointCell>,
}

impl Cap {
    /// Returns the height of the cap, in radii of the sphere.
    fn height(&self) -> f64 {
        let half = (0.5 * self.radians).sin();
        if self.radians >= PI { 2.0 } else { 2.0 * half * half }
    }

    pub fn contains(&self, shape: &SphericalShape) -> bool {
        let height = self.height();
        // Lines and polygons must not reach the center of the cap's complement.
        let opposite = Point(self.center.0 * -1.0);
        let reach = if height >= 2.0 { -1.0 } else { 2.0 * (0.5 * (2.0 - height)).sqrt().asin() };
        shape.points.iter().counted().all(|point| (self.center.0 - point.0).norm2() <= 2.0 * height)
            && shape.lines.iter().counted().all(|line| distance_to_edges(opposite, line.edges()) >= reach)
            && shape.polygons.iter().counted().all(|polygon| polygon.distance(opposite) >= reach)
    }
}

impl SphericalArea {
    pub fn contains(&self, shape: &SphericalShape) -> bool {
        shape.points.iter().counted().all(|point| self.contains_point(*point))
            && shape.lines.iter().counted().all(|line| {
                self.polygons.iter().counted().any(|polygon| polygon.contains_line(line))
                    || self.oriented.as_ref().is_some_and(|wound| wound.contains_line(line))
            })
            && shape.polygons.iter().counted().all(|other| {
                self.polygons.iter().counted().any(|polygon| polygon.contains_polygon(other))
                    || self.oriented.as_ref().is_some_and(|wound| wound.contains_polygon(other))
            })
    }

    fn contains_point(&self, point: Point) -> bool {
        if self.polygons.iter().counted().any(|polygon| polygon.contains(point)) {
            return true;
        }
        let cell = PointCell::new(point);
        self.polygons.iter().counted().any(|polygon| polygon.meets_cell(&cell))
            || self.oriented.as_ref().is_some_and(|wound| wound.contains_point(&cell, point))
    }
}

impl IntersectionTarget {
    pub fn new(shape: SphericalShape) -> IntersectionTarget {
        let cells = shape.points.iter().counted().map(|point| PointCell::new(*point)).collect();
        IntersectionTarget { shape, cells }
    }

    pub fn meets_shape(&self, other: &SphericalShape) -> bool {
        other.points.iter().counted().any(|point| self.meets_point(*point))
            || other.lines.iter().counted().any(|line| self.meets_line(line))
            || other.polygons.iter().counted().any(|polygon| self.meets_polygon(polygon))
    }

    fn meets_point(&self, point: Point) -> bool {
        let cell = PointCell::new(point);
        let shape = &self.shape;
        self.cells.iter().counted().any(|own| own.is_same(&cell))
            || shape.lines.iter().counted().any(|line| line.meets_cell(&cell))
            || shape.polygons.iter().counted().any(|polygon| polygon.meets_cell(&cell))
            || shape.oriented.as_ref().is_some_and(|wound| wound.meets_cell(&cell))
    }

    fn meets_line(&self, line: &Line) -> bool {
        let shape = &self.shape;
        self.cells.iter().counted().any(|cell| line.meets_cell(cell))
            || shape.lines.iter().counted().any(|own| own.intersects(line))
            || shape.polygons.iter().counted().any(|polygon| polygon.meets_line(line))
            || shape.oriented.as_ref().is_some_and(|wound| wound.meets_line(line))
    }

    fn meets_polygon(&self, other: &Polygon) -> bool {
        let shape = &self.shape;
        self.cells.iter().counted().any(|cell| other.meets_cell(cell))
            || shape.lines.iter().counted().any(|line| other.meets_line(line))
            || shape.polygons.iter().counted().any(|polygon| polygon.meets_polygon(other))
            || shape.oriented.as_ref().is_some_and(|wound| wound.meets_polygon(other))
    }
}

/// Returns the angle between a point and the closest point of some edges, in radians. The closest
/// edge is found by a measure that is cheaper than the angle, as in S2, so that the last bit is the
/// same.
pub fn distance_to_edges(point: Point, edges: impl Iterator<Item = (Point, Point)>) -> f64 {
    let mut closest: Option<(f64, Point, Point)> = None;
    for (a, b) in edges {
        steps::step();
        let distance = angle_to_edge(point, a, b);
        if closest.is_none_or(|(least, ..)| distance < least) {
            closest = Some((distance, a, b));
        }
    }
    closest.map_or(f64::INFINITY, |(_, a, b)| point.distance(&closest_point(point, a, b)).rad())
}

/// Returns the angle between a point and an edge in radians; exact for small angles.
pub fn angle_to_edge(point: Point, a: Point, b: Point) -> f64 {
    let normal = robust_cross(a, b);
    if turns_left(normal, a.0, point.0) && turns_left(point.0, b.0, normal) {
        return (point.0.dot(&normal).abs() / normal.norm()).min(1.0).asin();
    }
    let squared = (point.0 - a.0).norm2().min((point.0 - b.0).norm2());
    2.0 * (0.5 * squared.sqrt()).min(1.0).asin()
}

/// Returns the point of an edge that is closest to a point.
pub fn closest_point(point: Point, a: Point, b: Point) -> Point {
    closest_point_with(point, a, b, robust_cross(a, b))
}

/// Like [`closest_point`], with a vector orthogonal to the edge given.
pub fn closest_point_with(point: Point, a: Point, b: Point, normal: Vector) -> Point {
    let along = point.0.dot(&normal) / normal.norm2();
    let projected = point.0 - normal * along;
    if turns_left(normal, a.0, projected) && turns_left(projected, b.0, normal) {
        return Point(projected.normalize());
    }
    if (point.0 - a.0).norm2() <= (point.0 - b.0).norm2() { a } else { b }
}
