//! Shapes on the sphere.

use super::line::Line;
use super::polygon::{OrientedPolygon, Polygon};
use s2::point::Point;

/// A shape on the sphere; a collection is split into its members.
#[derive(Clone, Debug, Default)]
pub struct SphericalShape {
    pub points: Vec<Point>,
    pub lines: Vec<Line>,
    pub polygons: Vec<Polygon>,
    /// A polygon of a query whose winding order decides which side is inside.
    pub oriented: Option<Box<OrientedPolygon>>,
}
