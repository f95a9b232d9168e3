//! Positions, as given in documents and queries.

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
