//! Shapes on the sphere: what contains what, and what meets what.

use super::Shape;
use s2::edge_crossings::{Crossing, EdgeCrosser, angle_contains_vertex, crossing_sign};
use s2::edgeutil::distance_from_segment;
use s2::point::Point;
use s2::r3::vector::Vector;

/// As far as rounding moves a point off the edge that it was meant to lie on.
const EXACTLY_RADIANS: f64 = 1e-15;

/// A closed loop of which the smaller side is the inside. Its first corner is not repeated at the end.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    corners: Vec<Point>,
    /// Whether the fixed point that containment is counted from lies inside.
    origin_inside: bool,
}

/// Rings of which an odd number contains what the polygon contains: an outline with its holes.
#[derive(Clone, Debug)]
pub(crate) struct Polygon {
    pub rings: Vec<Ring>,
}

/// All points that are no farther from a center than this angle, in radians.
#[derive(Clone, Debug)]
pub struct Cap {
    pub(crate) center: Point,
    pub(crate) radians: f64,
}

/// Polygons that something may lie within.
#[derive(Clone, Debug)]
pub struct Area {
    pub(crate) polygons: Vec<Polygon>,
}

/// A shape that something may meet.
#[derive(Clone, Debug)]
pub struct Target {
    pub(crate) shape: Shape,
}

impl Ring {
    /// Takes three corners at the least. Given either way round, it is turned so that its smaller side is the inside; `as_is` leaves it:
    /// the inside is to the left of its edges.
    pub fn new(mut corners: Vec<Point>, as_is: bool) -> Ring {
        if !as_is && signed_area(&corners) < 0.0 {
            corners.reverse();
        }
        let mut ring = Ring { corners, origin_inside: false };
        // Containment is counted from a guess, which one corner shows to be right or wrong.
        if let [first, second, third, ..] = ring.corners[..] {
            ring.origin_inside = angle_contains_vertex(&first, &second, &third) != ring.contains(second);
        }
        ring
    }

    pub fn edges(&self) -> impl Iterator<Item = (Point, Point)> + '_ {
        let next = self.corners.iter().cycle().skip(1);
        self.corners.iter().copied().zip(next.copied())
    }

    pub fn contains(&self, point: Point) -> bool {
        let mut crosser = EdgeCrosser::new(&Point::origin(), &point);
        self.edges().fold(self.origin_inside, |inside, (a, b)| inside ^ crosser.edge_or_vertex_crossing(&a, &b))
    }
}

/// The area to the left of the edges, less than zero where they run clockwise; good for rings within a hemisphere.
fn signed_area(corners: &[Point]) -> f64 {
    let Some((first, rest)) = corners.split_first() else { return 0.0 };
    rest.windows(2)
        .map(|pair| {
            let area = s2::point::point_area(first, &pair[0], &pair[1]);
            let triple = first.0.dot(&pair[0].0.cross(&pair[1].0));
            if triple < 0.0 { -area } else { area }
        })
        .sum()
}

impl Polygon {
    fn edges(&self) -> impl Iterator<Item = (Point, Point)> + '_ {
        self.rings.iter().flat_map(Ring::edges)
    }

    pub fn contains(&self, point: Point) -> bool {
        self.rings.iter().filter(|ring| ring.contains(point)).count() % 2 == 1
    }

    fn crosses(&self, a: Point, b: Point) -> bool {
        self.edges().any(|(c, d)| crossing_sign(&a, &b, &c, &d) == Crossing::Cross)
    }

    /// How far away a point is, in radians; nothing where it is inside.
    pub fn distance(&self, point: Point) -> f64 {
        if self.contains(point) { 0.0 } else { distance_to_edges(point, self.edges()) }
    }

    /// How far inside a point is; nothing where it is outside.
    pub fn depth(&self, point: Point) -> f64 {
        if self.contains(point) { distance_to_edges(point, self.edges()) } else { 0.0 }
    }

    /// A point on the border is met, though it may not be contained.
    fn meets_point(&self, point: Point) -> bool {
        self.contains(point) || self.edges().any(|(a, b)| is_on(point, a, b))
    }

    fn has_on_edge(&self, point: Point) -> bool {
        self.edges().any(|(a, b)| distance_from_segment(&point, &a, &b).rad() <= EXACTLY_RADIANS)
    }

    fn has_corner(&self, point: Point) -> bool {
        self.rings.iter().any(|ring| ring.corners.contains(&point))
    }

    fn contains_line(&self, line: &[Point]) -> bool {
        line.iter().all(|point| self.meets_point(*point)) && !line.windows(2).any(|pair| self.crosses(pair[0], pair[1]))
    }

    fn contains_polygon(&self, other: &Polygon) -> bool {
        let corners = other.rings.iter().flat_map(|ring| &ring.corners);
        // A corner in the midst of an edge is out, even where the other polygon does not leave this one.
        corners.into_iter().all(|point| self.has_corner(*point) || self.contains(*point) && !self.has_on_edge(*point))
            && !other.edges().any(|(a, b)| self.crosses(a, b))
            // A hole of this one that the other does not share.
            && self.rings.iter().skip(1).all(|hole| !hole.corners.iter().all(|corner| other.contains(*corner)))
    }

    fn meets_line(&self, line: &[Point]) -> bool {
        line.iter().any(|point| self.meets_point(*point)) || line.windows(2).any(|pair| self.crosses(pair[0], pair[1]))
    }

    fn meets_polygon(&self, other: &Polygon) -> bool {
        let any_corner = |a: &Polygon, b: &Polygon| {
            a.rings.iter().flat_map(|ring| &ring.corners).any(|corner| b.meets_point(*corner))
        };
        any_corner(self, other) || any_corner(other, self) || self.edges().any(|(a, b)| other.crosses(a, b))
    }
}

/// The angle between a point and the closest point of some edges, in radians. (Which edge is the closest is found by a measure that is
/// cheaper than the angle, as in S2, so that the last bit is the same.)
pub(crate) fn distance_to_edges(point: Point, edges: impl Iterator<Item = (Point, Point)>) -> f64 {
    let mut closest: Option<(f64, Point, Point)> = None;
    for (a, b) in edges {
        let distance = rough_distance(point, a, b);
        if closest.is_none_or(|(least, ..)| distance < least) {
            closest = Some((distance, a, b));
        }
    }
    closest.map_or(f64::INFINITY, |(_, a, b)| point.distance(&closest_point(point, a, b)).rad())
}

/// Whether the closest point lies between the ends of an edge, `normal` being that of its great circle.
fn projects_inside(point: Point, a: Point, b: Point, normal: Vector) -> bool {
    let turns_left = |a: Vector, b: Vector, c: Vector| c.cross(&a).dot(&b) > 0.0;
    turns_left(normal, a.0, point.0) && turns_left(point.0, b.0, normal)
}

fn rough_distance(point: Point, a: Point, b: Point) -> f64 {
    let normal = robust_cross(a, b);
    if projects_inside(point, a, b, normal) {
        return (point.0.dot(&normal).abs() / normal.norm()).min(1.0).asin();
    }
    let squared = (point.0 - a.0).norm2().min((point.0 - b.0).norm2());
    2.0 * (0.5 * squared.sqrt()).min(1.0).asin()
}

fn closest_point(point: Point, a: Point, b: Point) -> Point {
    let normal = robust_cross(a, b);
    if projects_inside(point, a, b, normal) {
        let along = point.0.dot(&normal) / normal.norm2();
        return Point((point.0 - normal * along).normalize());
    }
    if (point.0 - a.0).norm2() <= (point.0 - b.0).norm2() { a } else { b }
}

fn robust_cross(a: Point, b: Point) -> Vector {
    (b.0 + a.0).cross(&(b.0 - a.0))
}

/// Whether a point lies on an edge, up to about the size of S2's smallest cells, which MongoDB goes by.
fn is_on(point: Point, a: Point, b: Point) -> bool {
    const NEAR_RADIANS: f64 = 5e-10;
    distance_from_segment(&point, &a, &b).rad() <= NEAR_RADIANS
}

impl Cap {
    pub(crate) fn contains(&self, shape: &Shape) -> bool {
        let near = |point: &Point| self.center.distance(point).rad() <= self.radians;
        shape.points.iter().all(near)
            && shape.lines.iter().all(|line| line.iter().all(near))
            && shape.polygons.iter().all(|polygon| {
                let outline = polygon.rings.first();
                outline.is_none_or(|ring| ring.corners.iter().all(near))
            })
    }
}

impl Area {
    pub(crate) fn contains(&self, shape: &Shape) -> bool {
        let any = |test: &dyn Fn(&Polygon) -> bool| self.polygons.iter().any(test);
        shape.points.iter().all(|point| any(&|polygon| polygon.meets_point(*point)))
            && shape.lines.iter().all(|line| any(&|polygon| polygon.contains_line(line)))
            && shape.polygons.iter().all(|other| any(&|polygon| polygon.contains_polygon(other)))
    }
}

impl Target {
    pub(crate) fn meets(&self, other: &Shape) -> bool {
        meet_points(&self.shape, other)
            || meet_points(other, &self.shape)
            || self.shape.lines.iter().any(|line| {
                other.lines.iter().any(|other| lines_meet(line, other))
                    || other.polygons.iter().any(|polygon| polygon.meets_line(line))
            })
            || self.shape.polygons.iter().any(|polygon| {
                other.lines.iter().any(|line| polygon.meets_line(line))
                    || other.polygons.iter().any(|other| polygon.meets_polygon(other))
            })
    }
}

/// Whether the other shape has one of the points.
fn meet_points(points: &Shape, other: &Shape) -> bool {
    points.points.iter().any(|point| {
        other.points.contains(point)
            || other.lines.iter().any(|line| line.windows(2).any(|pair| is_on(*point, pair[0], pair[1])))
            || other.polygons.iter().any(|polygon| polygon.meets_point(*point))
    })
}

fn lines_meet(a: &[Point], b: &[Point]) -> bool {
    a.windows(2).any(|a| b.windows(2).any(|b| crossing_sign(&a[0], &a[1], &b[0], &b[1]) != Crossing::DoNotCross))
        || a.iter().any(|point| b.windows(2).any(|b| is_on(*point, b[0], b[1])))
        || b.iter().any(|point| a.windows(2).any(|a| is_on(*point, a[0], a[1])))
}
