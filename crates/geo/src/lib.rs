//! Geometry: shapes in documents and in queries, on the plane and on the sphere.
//!
//! Input is GeoJSON objects and legacy pairs. The results are whether one shape contains or
//! intersects another, and the distances between points. Edges of shapes on the sphere are great
//! circles; orientation and crossings are computed as by S2 in a MongoDB server. The only shapes on
//! the plane are points.
//!
//! In reading order: [`parse`] (from BSON), [`flat`] (the plane); for the sphere `predicates`,
//! `ring`, `polygon`, `line` and [`sphere`]; [`Region`] (the operand of `$geoWithin` and
//! `$geoIntersects`).
//!
//! Source: <https://www.mongodb.com/docs/manual/geospatial-queries/>; where it is silent, the
//! behavior of a 6.0 server.

mod bounds;
pub mod cover;
mod edges;
pub mod flat;
mod line;
pub mod near;
mod operator;
pub mod parse;
mod polygon;
mod predicates;
mod ring;
pub mod sphere;

pub use cover::{CellRange, Grid};
use document::Value;
pub use near::{Metric, Near, Nearest};
pub use operator::parse_operator;
use s2::point::Point;
use s2::r3::vector::Vector;

/// Mean radius of the Earth, with MongoDB's value.
pub const EARTH_RADIUS_METERS: f64 = 6_378_100.0;

/// A position as given: longitude and latitude in degrees, or coordinates on the plane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Position {
    pub x: f64,
    pub y: f64,
}

impl Position {
    pub fn is_on_sphere(self) -> bool {
        self.x.abs() <= 180.0 && self.y.abs() <= 90.0
    }

    /// Returns the point on the sphere. As in MongoDB, degrees are converted with a rounded factor:
    /// with another rounding, a point on an edge would be beside it.
    pub fn to_point(self) -> Point {
        const DEGREE: f64 = std::f64::consts::PI / 180.0;
        let (latitude, longitude) = (self.y * DEGREE, self.x * DEGREE);
        let cosine = latitude.cos();
        Point(Vector { x: longitude.cos() * cosine, y: longitude.sin() * cosine, z: latitude.sin() })
    }
}

/// A shape on the sphere; a collection is split into its members.
#[derive(Clone, Debug, Default)]
pub struct SphericalShape {
    pub points: Vec<Point>,
    pub lines: Vec<line::Line>,
    pub polygons: Vec<polygon::Polygon>,
    /// A polygon of a query whose winding order decides which side is inside.
    pub oriented: Option<Box<polygon::OrientedPolygon>>,
}

/// The operand that a document's value is compared with.
#[derive(Clone, Debug)]
pub enum Region {
    /// `$geoWithin` on the plane, which matches points only.
    Flat(flat::PlanarArea),
    /// `$centerSphere`.
    Cap(sphere::Cap),
    /// `$geoWithin: {$geometry: …}`
    Within(Box<sphere::SphericalArea>),
    /// `$geoIntersects`
    Intersects(Box<sphere::IntersectionTarget>),
}

impl Region {
    /// Returns whether the condition holds for a value. It does not hold for values that are no
    /// shape.
    pub fn holds_for(&self, value: Value<'_>) -> bool {
        match self {
            Region::Flat(area) => parse::stored_position(value).is_some_and(|position| area.contains(position)),
            Region::Cap(cap) => parse::stored_shape(value).is_some_and(|shape| cap.contains(&shape)),
            Region::Within(area) => parse::stored_shape(value).is_some_and(|shape| area.contains(&shape)),
            Region::Intersects(target) => parse::stored_shape(value).is_some_and(|shape| target.meets_shape(&shape)),
        }
    }
}
