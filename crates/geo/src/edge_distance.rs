//! Distances between points and edges on the sphere.

use super::predicates::{robust_cross, turns_left};
use s2::point::Point;
use s2::r3::vector::Vector;

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
