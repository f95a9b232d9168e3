//! Conditions on the sphere: containment in a circle or in polygons, intersection with a shape; and
//! distances.

use super::edge_distance::distance_to_edges;
use super::line::Line;
use super::polygon::{OrientedPolygon, Polygon};
use super::ring::PointCell;
use super::shape::SphericalShape;
use s2::point::Point;
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
