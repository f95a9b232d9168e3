//! Orientation and crossings of edges on the sphere.
//!
//! The arithmetic is that of the S2 version in MongoDB 6.0, operation by operation. Three points on
//! one great circle get the orientation that rounding gives them, and that sign decides cases with
//! shared corners or points on edges. The predicates of the crate `s2` are newer and answer
//! otherwise there.

use s2::point::Point;
use s2::r3::vector::Vector;
use std::cmp::Ordering;

/// Determinants below this may have the wrong sign.
const DETERMINANT_ERROR: f64 = 0.8e-15;

/// Returns the reference point for containment. No edge is expected to go through it.
pub fn origin() -> Point {
    Point(Vector { x: 0.00457, y: 1.0, z: 0.0321 }.normalize())
}

/// Compares by coordinates, x first.
pub fn compare(a: Point, b: Point) -> Ordering {
    let order = |a: f64, b: f64| a.partial_cmp(&b).unwrap_or(Ordering::Equal);
    order(a.0.x, b.0.x).then(order(a.0.y, b.0.y)).then(order(a.0.z, b.0.z))
}

fn is_less(a: Point, b: Point) -> bool {
    compare(a, b) == Ordering::Less
}

/// Returns 1 if three points run counterclockwise, -1 if clockwise, and 0 if two of them are the
/// same.
pub fn orientation(a: Point, b: Point, c: Point) -> i8 {
    orientation_with(a, b, c, a.0.cross(&b.0))
}

/// Like [`orientation`], with the cross product of the first two points given.
fn orientation_with(a: Point, b: Point, c: Point, cross: Vector) -> i8 {
    let determinant = cross.dot(&c.0);
    if determinant > DETERMINANT_ERROR {
        1
    } else if determinant < -DETERMINANT_ERROR {
        -1
    } else {
        orientation_of_nearly_collinear(a, b, c)
    }
}

fn sign(number: f64) -> i8 {
    i8::from(number > 0.0) - i8::from(number < 0.0)
}

/// Returns the sum or the difference of two vectors, whichever is shorter, and the sign of the
/// second one in it.
fn shorter_combination(a: Vector, b: Vector) -> (Vector, f64) {
    let sign = if a.dot(&b) > 0.0 { -1.0 } else { 1.0 };
    (a + b * sign, sign)
}

/// Decides by the differences of the points, with the corner opposite to the longest edge as the
/// origin.
fn orientation_of_nearly_collinear(a: Point, b: Point, c: Point) -> i8 {
    if a == b || b == c || c == a {
        return 0;
    }
    let ((ab, ab_sign), (bc, bc_sign), (ca, ca_sign)) =
        (shorter_combination(a.0, b.0), shorter_combination(b.0, c.0), shorter_combination(c.0, a.0));
    let (ab_length, bc_length, ca_length) = (ab.norm2(), bc.norm2(), ca.norm2());
    let shorter_than = |a: f64, b: f64, tie: bool| a < b || a == b && tie;
    let opposite_ab = || ca.cross(&bc).dot(&c.0) * ca_sign;
    let determinant = if shorter_than(ca_length, bc_length, is_less(a, b)) {
        match shorter_than(ab_length, bc_length, is_less(a, c)) {
            true => ab.cross(&ca).dot(&a.0) * ab_sign,
            false => opposite_ab(),
        }
    } else {
        match shorter_than(ab_length, ca_length, is_less(b, c)) {
            true => bc.cross(&ab).dot(&b.0) * bc_sign,
            false => opposite_ab(),
        }
    };
    if sign(determinant) != 0 {
        return sign(determinant);
    }
    // All differences are zero: the planes of the axes decide, one after the other.
    let on_plane = |project: fn(Point) -> (f64, f64)| orientation_on_plane(project(a), project(b), project(c));
    let planes: [fn(Point) -> (f64, f64); 3] =
        [|point| (point.0.y, point.0.z), |point| (point.0.z, point.0.x), |point| (point.0.x, point.0.y)];
    planes.into_iter().map(on_plane).find(|turn| *turn != 0).unwrap_or(0)
}

/// Returns the orientation of three points of a plane around its origin.
fn orientation_on_plane(a: (f64, f64), b: (f64, f64), c: (f64, f64)) -> i8 {
    (edge_on_plane(a, b) + edge_on_plane(b, c) + edge_on_plane(c, a)).signum()
}

fn edge_on_plane(a: (f64, f64), b: (f64, f64)) -> i8 {
    let dot = |a: (f64, f64), b: (f64, f64)| a.0 * b.0 + a.1 * b.1;
    let cross = |a: (f64, f64), b: (f64, f64)| a.0 * b.1 - a.1 * b.0;
    let factor = if dot(a, b) > 0.0 { -1.0 } else { 1.0 };
    let between = (a.0 + b.0 * factor, a.1 + b.1 * factor);
    let (a_length, b_length) = (dot(a, a), dot(b, b));
    match a_length < b_length || a_length == b_length && a < b {
        true => sign(cross(a, between) * factor),
        false => sign(cross(between, b)),
    }
}

/// Returns whether three directions from a point follow one another counterclockwise. True if `b`
/// equals one of the others; false if only `a` and `c` are equal.
pub fn is_counterclockwise(a: Point, b: Point, c: Point, corner: Point) -> bool {
    let holding = u8::from(orientation(b, corner, a) >= 0)
        + u8::from(orientation(c, corner, b) >= 0)
        + u8::from(orientation(a, corner, c) > 0);
    holding >= 2
}

/// The way in which two edges meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossing {
    None,
    /// They share a corner.
    Corner,
    /// They cross between their corners.
    Proper,
}

/// An edge that is compared with many others.
pub struct EdgeCrosser {
    a: Point,
    b: Point,
    cross: Vector,
}

impl EdgeCrosser {
    pub fn new(a: Point, b: Point) -> EdgeCrosser {
        EdgeCrosser { a, b, cross: a.0.cross(&b.0) }
    }

    /// Returns how the edge from `c` to `d` meets this one.
    pub fn crossing(&self, c: Point, d: Point) -> Crossing {
        self.crossing_from(-self.side(c), c, d).0
    }

    /// Returns the side of this edge that a point is on.
    pub fn side(&self, point: Point) -> i8 {
        orientation_with(self.a, self.b, point, self.cross)
    }

    /// Like [`crossing`](EdgeCrosser::crossing), for a chain of edges: `acb` is the opposite of the
    /// side of `c`. Also returns that of `d`, for the next edge.
    pub fn crossing_from(&self, acb: i8, c: Point, d: Point) -> (Crossing, i8) {
        let bda = self.side(d);
        let crossing = if bda == -acb && bda != 0 {
            Crossing::None
        } else if bda & acb == 0 {
            Crossing::Corner
        } else {
            let cross = c.0.cross(&d.0);
            let cbd = -orientation_with(c, d, self.b, cross);
            match cbd == acb && orientation_with(c, d, self.a, cross) == acb {
                true => Crossing::Proper,
                false => Crossing::None,
            }
        };
        (crossing, -bda)
    }

    /// Returns whether the edge from `c` to `d` counts as crossed when containment is determined by
    /// counting crossings.
    pub fn counts_as_crossing(&self, crossing: Crossing, c: Point, d: Point) -> bool {
        match crossing {
            Crossing::None => false,
            Crossing::Proper => true,
            Crossing::Corner => crosses_at_corner(self.a, self.b, c, d),
        }
    }
}

/// Returns whether two edges with a shared corner cross there: the first one is met later when
/// turning around that corner from a fixed direction.
pub fn crosses_at_corner(a: Point, b: Point, c: Point, d: Point) -> bool {
    let from = |corner: Point| Point(corner.0.ortho());
    if a == b || c == d {
        false
    } else if a == d {
        is_counterclockwise(from(a), c, b, a)
    } else if b == c {
        is_counterclockwise(from(b), d, a, b)
    } else if a == c {
        is_counterclockwise(from(a), d, b, a)
    } else if b == d {
        is_counterclockwise(from(b), c, a, b)
    } else {
        // Three collinear points may get a wrong sign, so that no corner is shared after all.
        false
    }
}

/// The area to the left of two edges that meet in a corner.
#[derive(Clone, Copy, Debug)]
pub struct Wedge {
    pub from: Point,
    pub corner: Point,
    pub to: Point,
}

/// The relation of two wedges with the same corner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WedgeRelation {
    Equal,
    Contains,
    IsContained,
    Overlaps,
    Disjoint,
}

impl Wedge {
    pub fn contains(self, other: Wedge) -> bool {
        is_counterclockwise(self.to, other.to, other.from, self.corner)
            && is_counterclockwise(other.from, self.from, self.to, self.corner)
    }

    pub fn intersects(self, other: Wedge) -> bool {
        !(is_counterclockwise(self.from, other.to, other.from, self.corner)
            && is_counterclockwise(other.from, self.to, self.from, self.corner))
    }

    pub fn relation(self, other: Wedge) -> WedgeRelation {
        let Wedge { from, corner, to } = self;
        if from == other.from && to == other.to {
            return WedgeRelation::Equal;
        }
        if is_counterclockwise(from, to, other.to, corner) {
            return if is_counterclockwise(other.to, other.from, from, corner) {
                WedgeRelation::Contains
            } else if to == other.to {
                WedgeRelation::IsContained
            } else {
                WedgeRelation::Overlaps
            };
        }
        if is_counterclockwise(from, other.from, other.to, corner) {
            WedgeRelation::IsContained
        } else if is_counterclockwise(from, other.from, to, corner) {
            WedgeRelation::Disjoint
        } else {
            WedgeRelation::Overlaps
        }
    }
}

/// Returns a vector orthogonal to two points. It is exact also if they are close together or
/// opposite.
pub fn robust_cross(a: Point, b: Point) -> Vector {
    let cross = (b.0 + a.0).cross(&(b.0 - a.0));
    match cross.x == 0.0 && cross.y == 0.0 && cross.z == 0.0 {
        true => a.0.ortho(),
        false => cross,
    }
}

/// Returns whether three vectors run counterclockwise, within rounding.
pub fn turns_left(a: Vector, b: Vector, c: Vector) -> bool {
    c.cross(&a).dot(&b) > 0.0
}
