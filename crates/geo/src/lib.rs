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
mod edge_distance;
mod edges;
pub mod flat;
mod line;
pub mod near;
mod operator;
pub mod parse;
mod polygon;
mod position;
mod predicates;
mod region;
mod ring;
mod shape;
pub mod sphere;

pub use cover::{CellRange, Grid};
pub use near::{Metric, Near, Nearest};
pub use operator::parse_operator;
pub use position::{EARTH_RADIUS_METERS, Position};
pub use region::Region;
pub use shape::SphericalShape;
