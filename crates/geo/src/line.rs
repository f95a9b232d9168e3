//! Lines on the sphere: which edges they cross, and whether one runs along another.

use super::bounds::LatLngBounds;
use super::edge_distance::closest_point;
use super::edges::EdgeIndex;
use super::predicates::{Crossing, EdgeCrosser, compare, is_counterclockwise, orientation, robust_cross};
use super::ring::PointCell;
use ahash::AHashSet;
use s2::point::Point;
use std::cmp::Ordering;
use std::f64::consts::PI;
use std::ops::ControlFlow;
use std::sync::OnceLock;
use steps::Counted;

/// Lines with fewer edges are searched without an index.
const INDEXED_FROM: usize = 24;

/// Greatest distance between a line and one that runs along it.
const ALONG_RADIANS: f64 = 1e-10 * PI / 180.0;

/// A chain of edges.
#[derive(Clone, Debug)]
pub struct Line {
    points: Vec<Point>,
    bounds: LatLngBounds,
    index: OnceLock<EdgeIndex>,
}

impl Line {
    pub fn new(points: Vec<Point>) -> Line {
        let bounds = LatLngBounds::of_chain(points.iter().copied());
        Line { points, bounds, index: OnceLock::new() }
    }

    pub fn points(&self) -> &[Point] {
        &self.points
    }

    pub fn edges(&self) -> impl Iterator<Item = (Point, Point)> + '_ {
        self.points.windows(2).counted().map(|pair| (pair[0], pair[1]))
    }

    fn edge(&self, number: usize) -> Option<(Point, Point)> {
        Some((*self.points.get(number)?, *self.points.get(number + 1)?))
    }

    /// Returns whether an edge crosses the line or shares a corner with it.
    fn meets_edge(&self, a: Point, b: Point) -> bool {
        let crosser = EdgeCrosser::new(a, b);
        let meets = |(c, d): (Point, Point)| crosser.crossing(c, d) != Crossing::None;
        if self.points.len() < INDEXED_FROM {
            return self.edges().any(meets);
        }
        let found = self.index().visit_near(a, b, &mut |number| match self.edge(number).is_some_and(meets) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        found.is_break()
    }

    fn index(&self) -> &EdgeIndex {
        match self.index.get() {
            Some(index) => index,
            None => {
                let index = EdgeIndex::new(self.edges());
                self.index.get_or_init(|| index)
            }
        }
    }

    pub fn intersects(&self, other: &Line) -> bool {
        self.bounds.intersects(&other.bounds) && other.edges().any(|(a, b)| self.meets_edge(a, b))
    }

    /// Returns whether the line shares a point with a cell.
    pub fn meets_cell(&self, cell: &PointCell) -> bool {
        self.points.iter().counted().any(|point| cell.contains_point(*point))
            || cell.ring().edges().any(|(a, b)| self.meets_edge(a, b))
    }
}

/// Returns the point in which two crossing edges intersect.
pub fn intersection((a, b): (Point, Point), (c, d): (Point, Point)) -> Point {
    let normal = |a: Point, b: Point| Point(robust_cross(a, b).normalize());
    let (first, second) = (normal(a, b), normal(c, d));
    let mut point = normal(first, second);
    if point.0.dot(&((a.0 + b.0) + (c.0 + d.0))) < 0.0 {
        point = Point(point.0 * -1.0);
    }
    if is_counterclockwise(a, point, b, first) && is_counterclockwise(c, point, d, second) {
        return point;
    }
    // For two nearly parallel edges, the closest end that is on both.
    let mut closest: Option<(f64, Point)> = None;
    for (end, from, to, normal) in [(a, c, d, second), (b, c, d, second), (c, a, b, first), (d, a, b, first)] {
        let distance = (point.0 - end.0).norm2();
        let is_closer =
            |(least, best): (f64, Point)| distance < least || distance == least && compare(end, best) == Ordering::Less;
        if is_counterclockwise(from, end, to, normal) && closest.is_none_or(is_closer) {
            closest = Some((distance, end));
        }
    }
    closest.map_or(point, |(_, end)| end)
}

/// How far two lines have been followed side by side.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct CoverProgress {
    /// The current edges of the covering_edge and of the covered line.
    covering_edge: usize,
    covered_edge: usize,
    /// Whether the covered line's edge has been followed from its start.
    from_start: bool,
}

/// Returns whether one line runs along another from its start to its end, allowing for rounding.
pub fn nearly_covers(line: &[Point], covered: &[Point]) -> bool {
    let next = |line: &[Point], number: usize| {
        let rest = line.get(number + 1..).unwrap_or_default();
        rest.iter().counted().position(|point| *point != line[number]).map(|ahead| number + 1 + ahead)
    };
    let Some(first) = covered.first() else { return true };
    let mut pending = Vec::new();
    let mut number = 0;
    while number < line.len()
        && let Some(end) = next(line, number)
    {
        let closest = closest_point(*first, line[number], line[end]);
        if closest != line[end] && closest.distance(first).rad() <= ALONG_RADIANS {
            pending.push(CoverProgress { covering_edge: number, covered_edge: 0, from_start: true });
        }
        number = end;
    }
    let mut seen = AHashSet::new();
    while let Some(progress) = pending.pop() {
        steps::step();
        if !seen.insert(progress) {
            continue;
        }
        let CoverProgress { covering_edge, covered_edge, from_start } = progress;
        let Some(covered_end) = next(covered, covered_edge) else { return true };
        let Some(covering_end) = next(line, covering_edge) else { continue };
        let (over_from, under_from) = match from_start {
            true => {
                (closest_point(covered[covered_edge], line[covering_edge], line[covering_end]), covered[covered_edge])
            }
            false => {
                (line[covering_edge], closest_point(line[covering_edge], covered[covered_edge], covered[covered_end]))
            }
        };
        let (over_edge, under_edge) = ((over_from, line[covering_end]), (under_from, covered[covered_end]));
        if is_along(under_edge, over_edge) {
            pending.push(CoverProgress { covering_edge: covering_end, covered_edge, from_start: false });
        }
        if is_along(over_edge, under_edge) {
            pending.push(CoverProgress { covering_edge, covered_edge: covered_end, from_start: true });
        }
    }
    false
}

/// Returns whether every point of the edge `b` is close to the edge `a`.
fn is_along((a0, a1): (Point, Point), (b0, b1): (Point, Point)) -> bool {
    let mut across = Point(robust_cross(a0, a1).normalize());
    let near = |point: Point| super::edge_distance::closest_point_with(point, a0, a1, across.0);
    let (near_b0, near_b1) = (near(b0), near(b1));
    if orientation(across, near_b0, near_b1) < 0 {
        across = Point(across.0 * -1.0);
    }
    if b0.distance(&near_b0).rad() > ALONG_RADIANS || b1.distance(&near_b1).rad() > ALONG_RADIANS {
        return false;
    }
    let normal = Point(robust_cross(b0, b1).normalize());
    let angle = across.distance(&normal).rad();
    if angle <= ALONG_RADIANS {
        return true;
    }
    if angle >= PI - 0.01 {
        let is_nearer = |point: Point| point.distance(&a0).rad() < point.distance(&a1).rad();
        return is_nearer(b0) == is_nearer(b1);
    }
    let farthest = Point((across.0 - normal.0 * across.0.dot(&normal.0)).normalize());
    let lies_on = |point: Point| orientation(normal, b0, point) > 0 && orientation(point, b1, normal) > 0;
    !lies_on(farthest) && !lies_on(Point(farthest.0 * -1.0))
}
