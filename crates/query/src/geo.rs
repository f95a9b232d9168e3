//! Geometry: shapes in documents and in queries, on the plane and on the sphere.
//!
//! What comes in are GeoJSON objects and legacy pairs; what goes out is whether one shape lies within another or meets it, and
//! how far points are from one another. Shapes on the sphere have great circles for edges; orientation and crossings are S2's,
//! as on a MongoDB server. Shapes on the plane know points alone.
//!
//! In reading order: [`parse`] (from BSON), [`flat`] (the plane); for the sphere `predicates`, `ring`, `polygon`, `line` and
//! [`sphere`]; [`Region`] (what `$geoWithin` and `$geoIntersects` ask).
//!
//! Source: <https://www.mongodb.com/docs/manual/geospatial-queries/>; where it is silent, what a 6.0 server does.

mod bounds;
pub mod cover;
mod edges;
pub(crate) mod flat;
mod line;
pub mod near;
mod operator;
pub(crate) mod parse;
mod polygon;
mod predicates;
mod ring;
pub(crate) mod sphere;
#[cfg(test)]
mod tests;

pub use cover::{CellRange, Grid};
use document::Value;
pub use near::{Metric, Near, Nearest};
pub(crate) use operator::parse_operator;
use s2::point::Point;
use s2::r3::vector::Vector;

/// Mean radius of the Earth as MongoDB has it.
pub const EARTH_RADIUS_METERS: f64 = 6_378_100.0;

/// A position as written: longitude and latitude in degrees, or coordinates on the plane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Position {
    pub x: f64,
    pub y: f64,
}

impl Position {
    pub fn is_on_sphere(self) -> bool {
        self.x.abs() <= 180.0 && self.y.abs() <= 90.0
    }

    /// Returns the point on the sphere. A degree is a rounded number of radians here, as in MongoDB: with another rounding,
    /// what lies on an edge would be beside it.
    pub fn to_point(self) -> Point {
        const DEGREE: f64 = std::f64::consts::PI / 180.0;
        let (latitude, longitude) = (self.y * DEGREE, self.x * DEGREE);
        let around = latitude.cos();
        Point(Vector { x: longitude.cos() * around, y: longitude.sin() * around, z: latitude.sin() })
    }
}

/// A shape on the sphere, collections taken apart.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    pub(crate) points: Vec<Point>,
    pub(crate) lines: Vec<line::Line>,
    pub(crate) polygons: Vec<polygon::Polygon>,
    /// A polygon of a query that is taken as it is wound.
    pub(crate) wound: Option<Box<polygon::WoundPolygon>>,
}

/// What a document's value is compared with.
#[derive(Clone, Debug)]
pub enum Region {
    /// `$geoWithin` on the plane, which points alone can lie within.
    Flat(flat::Area),
    /// `$centerSphere`.
    Cap(sphere::Cap),
    /// `$geoWithin: {$geometry: …}`
    Within(Box<sphere::Area>),
    /// `$geoIntersects`
    Intersects(Box<sphere::Target>),
}

impl Region {
    /// Whether the condition holds for a value; it does not for what is no shape.
    pub(crate) fn holds_for(&self, value: Value<'_>) -> bool {
        match self {
            Region::Flat(area) => parse::stored_position(value).is_some_and(|position| area.contains(position)),
            Region::Cap(cap) => parse::stored_shape(value).is_some_and(|shape| cap.contains(&shape)),
            Region::Within(area) => parse::stored_shape(value).is_some_and(|shape| area.contains(&shape)),
            Region::Intersects(target) => parse::stored_shape(value).is_some_and(|shape| target.meets(&shape)),
        }
    }
}
