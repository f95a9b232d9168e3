//! Areas on the sphere: an outline with holes, and single rings with strict winding.

use super::bounds::LatLngBounds;
use super::edge_distance::{angle_to_edge, closest_point};
use super::line::Line;
use super::predicates::{Crossing, EdgeCrosser, crosses_at_corner};
use super::ring::{PointCell, Ring, point_key};
use ahash::AHashMap;
use s2::point::Point;
use std::ops::ControlFlow;
use steps::Counted;

/// An area on the sphere. The first ring is the outline, the others are holes.
#[derive(Clone, Debug)]
pub struct Polygon {
    rings: Vec<Ring>,
}

/// The reason why rings are not a valid polygon.
pub enum PolygonDefect {
    Invalid(String),
    SharedCorners { hole: usize },
    NestedHoles,
}

impl Polygon {
    /// Builds a polygon from at least one ring. The inside of each ring must be its smaller side.
    pub fn new(rings: Vec<Ring>) -> Polygon {
        Polygon { rings }
    }

    /// Returns why rings are not a valid polygon: their edges cross or coincide, or holes are
    /// nested or share two corners with the outline.
    pub fn defect(&self) -> Option<PolygonDefect> {
        if self.rings.len() < 2 {
            return None;
        }
        if let Some(reason) = self.common_edge().or_else(|| self.crossing_rings()) {
            return Some(PolygonDefect::Invalid(reason));
        }
        let (outline, holes) = self.rings.split_first()?;
        let shared =
            |hole: &Ring| hole.corners().iter().counted().filter(|corner| outline.has_corner(**corner)).count();
        if let Some(index) = holes.iter().position(|hole| shared(hole) > 1) {
            return Some(PolygonDefect::SharedCorners { hole: index + 1 });
        }
        let is_nested = holes.iter().enumerate().any(|(number, hole)| {
            holes.iter().counted().enumerate().any(|(other, outer)| other != number && outer.contains_nested(hole))
        });
        is_nested.then_some(PolygonDefect::NestedHoles)
    }

    fn common_edge(&self) -> Option<String> {
        let mut edges = AHashMap::new();
        for (ring, corners) in self.rings.iter().enumerate() {
            for (number, (a, b)) in corners.edges().enumerate() {
                let (a, b) = (point_key(a), point_key(b));
                let undirected = if a <= b { (a, b) } else { (b, a) };
                if let Some((other, edge)) = edges.insert(undirected, (ring, number)) {
                    return Some(format!("Duplicate edge: loop {ring}, edge {number} and loop {other}, edge {edge}"));
                }
            }
        }
        None
    }

    fn crossing_rings(&self) -> Option<String> {
        for (number, ring) in self.rings.iter().enumerate() {
            for (other, second) in self.rings.iter().enumerate().skip(number + 1) {
                steps::step();
                if ring.contains_or_crosses(second).is_none() {
                    return Some(format!("Loop {number} crosses loop {other}"));
                }
            }
        }
        None
    }

    fn outline(&self) -> Option<&Ring> {
        self.rings.first()
    }

    fn holes(&self) -> &[Ring] {
        self.rings.get(1..).unwrap_or_default()
    }

    fn bounds(&self) -> &LatLngBounds {
        self.outline().map_or(&LatLngBounds::FULL, Ring::bounds)
    }

    /// Returns the only ring of a polygon without holes.
    fn only_ring(&self) -> Option<&Ring> {
        match &self.rings[..] {
            [ring] => Some(ring),
            _ => None,
        }
    }

    pub fn contains(&self, point: Point) -> bool {
        match self.only_ring() {
            Some(ring) => ring.contains(point),
            None => {
                self.bounds().contains_point(point)
                    && self.rings.iter().counted().filter(|ring| ring.contains(point)).count() % 2 == 1
            }
        }
    }

    pub fn meets_cell(&self, cell: &PointCell) -> bool {
        match self.only_ring() {
            Some(ring) => ring.meets_cell(cell),
            None => self.bounds().intersects(&cell.bounds) && self.meets_rings(std::slice::from_ref(cell.ring())),
        }
    }

    /// Returns whether an odd number of rings contains one; `None` if edges cross.
    fn contains_or_crosses(&self, other: &Ring) -> Option<bool> {
        self.rings.iter().counted().try_fold(false, |inside, ring| Some(inside ^ ring.contains_or_crosses(other)?))
    }

    pub fn contains_polygon(&self, other: &Polygon) -> bool {
        if let (Some(own), Some(other)) = (self.only_ring(), other.only_ring()) {
            return own.contains_ring(other);
        }
        let is_within = self.bounds().contains(other.bounds());
        if !is_within && !self.bounds().longitudes.union(&other.bounds().longitudes).is_full() {
            return false;
        }
        other.outline().is_some_and(|outline| self.contains_or_crosses(outline) == Some(true))
            && self.holes().iter().counted().all(|hole| other.contains_or_crosses(hole) == Some(false))
    }

    pub fn meets_polygon(&self, other: &Polygon) -> bool {
        if let (Some(own), Some(other)) = (self.only_ring(), other.only_ring()) {
            return own.intersects_ring(other);
        }
        self.bounds().intersects(other.bounds()) && self.meets_rings(&other.rings)
    }

    fn meets_rings(&self, other: &[Ring]) -> bool {
        let meets =
            |rings: &[Ring], outline: Option<&Ring>| outline.is_some_and(|outline| rings_meet_outline(rings, outline));
        meets(&self.rings, other.first()) || meets(other, self.outline())
    }

    /// Returns the parts of a line that are inside, or outside if `outside` is set.
    pub fn clip_line(&self, line: &Line, outside: bool) -> Vec<Vec<Point>> {
        let Some(first) = line.points().first() else { return Vec::new() };
        let mut parts = LineParts::default();
        let mut inside = self.contains(*first) ^ outside;
        for (a, b) in line.edges() {
            let mut cuts = self.crossing_points(a, b);
            if inside {
                cuts.push((0.0, a));
            }
            inside = cuts.len() % 2 == 1;
            if inside {
                cuts.push((1.0, b));
            }
            cuts.sort_by(|one, other| {
                steps::step();
                one.0.total_cmp(&other.0).then(super::predicates::compare(one.1, other.1))
            });
            for pair in cuts.chunks_exact(2) {
                if pair[0] != pair[1] {
                    parts.add(pair[0].1, pair[1].1);
                }
            }
        }
        parts.finish()
    }

    /// Returns the points at which an edge enters or leaves, each with its position along the edge.
    fn crossing_points(&self, a: Point, b: Point) -> Vec<(f64, Point)> {
        let mut cuts = Vec::new();
        let crosser = EdgeCrosser::new(a, b);
        for ring in &self.rings {
            steps::step();
            let _ = ring.visit_near((a, b), &mut |number| {
                let (c, d) = ring.edge(number);
                match crosser.crossing(c, d) {
                    Crossing::None => {}
                    Crossing::Proper => {
                        let point = super::line::intersection((a, b), (c, d));
                        let (from_a, from_b) = (point.distance(&a).rad(), point.distance(&b).rad());
                        cuts.push((from_a / (from_a + from_b), point));
                    }
                    Crossing::Corner if crosses_at_corner(a, b, c, d) => match a == c || a == d {
                        true => cuts.push((0.0, a)),
                        false => cuts.push((1.0, b)),
                    },
                    Crossing::Corner => {}
                }
                ControlFlow::<()>::Continue(())
            });
        }
        cuts
    }

    pub fn contains_line(&self, line: &Line) -> bool {
        match &self.clip_line(line, false)[..] {
            // Clipping returns most contained lines unchanged.
            [part] => part == line.points() || super::line::nearly_covers(part, line.points()),
            _ => false,
        }
    }

    pub fn meets_line(&self, line: &Line) -> bool {
        !self.clip_line(line, false).is_empty()
    }

    /// Returns the distance to a point in radians, 0 for a point inside.
    pub fn distance(&self, point: Point) -> f64 {
        if self.contains(point) { 0.0 } else { self.distance_to_edges(point) }
    }

    /// Returns the depth of a point inside in radians, 0 for a point outside.
    pub fn depth(&self, point: Point) -> f64 {
        if self.contains(point) { self.distance_to_edges(point) } else { 0.0 }
    }

    fn distance_to_edges(&self, point: Point) -> f64 {
        let mut closest: Option<(f64, (Point, Point))> = None;
        for ring in &self.rings {
            steps::step();
            let angle = |number: usize| {
                let (a, b) = ring.edge(number);
                angle_to_edge(point, a, b)
            };
            if let Some((number, angle)) = ring.index().closest(point, &angle)
                && closest.is_none_or(|(least, _)| angle < least)
            {
                closest = Some((angle, ring.edge(number)));
            }
        }
        closest.map_or(f64::INFINITY, |(_, (a, b))| point.distance(&closest_point(point, a, b)).rad())
    }
}

/// Returns whether an odd number of rings contains an outline, or one of them intersects it without
/// either containing the other.
fn rings_meet_outline(rings: &[Ring], outline: &Ring) -> bool {
    let mut inside = false;
    for ring in rings {
        steps::step();
        if ring.contains_ring(outline) {
            inside = !inside;
        } else if !outline.contains_ring(ring) && ring.intersects_ring(outline) {
            return true;
        }
    }
    inside
}

/// Parts of a line; adjoining parts are joined.
#[derive(Default)]
struct LineParts {
    finished: Vec<Vec<Point>>,
    last: Vec<Point>,
}

impl LineParts {
    /// Points closer together than this count as one.
    const MERGED_RADIANS: f64 = 1.5e-15;

    fn add(&mut self, from: Point, to: Point) {
        let is_apart = |last: &[Point], point: Point| {
            last.last().is_some_and(|last| last.distance(&point).rad() > LineParts::MERGED_RADIANS)
        };
        if is_apart(&self.last, from) {
            self.finished.push(std::mem::take(&mut self.last));
        }
        if self.last.is_empty() {
            self.last.push(from);
        }
        if is_apart(&self.last, to) {
            self.last.push(to);
        }
    }

    fn finish(mut self) -> Vec<Vec<Point>> {
        if !self.last.is_empty() {
            self.finished.push(self.last);
        }
        self.finished
    }
}

/// A single ring whose inside is to its left, even if that is the larger part of the sphere.
#[derive(Clone, Debug)]
pub struct OrientedPolygon {
    ring: Ring,
    /// The smaller of the two parts that the ring divides the sphere into.
    smaller: Polygon,
    is_smaller: bool,
    border: Line,
}

impl OrientedPolygon {
    pub fn new(ring: Ring) -> OrientedPolygon {
        let mut turned = ring.clone();
        turned.normalize();
        let border = Line::new((0..=ring.len()).map(|number| ring.corner(number)).collect());
        OrientedPolygon { is_smaller: ring.is_smaller_side(), smaller: Polygon::new(vec![turned]), ring, border }
    }

    pub fn contains_point(&self, cell: &PointCell, point: Point) -> bool {
        self.ring.contains(point) || self.meets_cell(cell)
    }

    pub fn meets_cell(&self, cell: &PointCell) -> bool {
        self.ring.meets_cell(cell)
    }

    pub fn contains_line(&self, line: &Line) -> bool {
        self.smaller.clip_line(line, self.is_smaller).is_empty()
    }

    pub fn meets_line(&self, line: &Line) -> bool {
        self.border.intersects(line) || line.points().first().is_some_and(|point| self.ring.contains(*point))
    }

    pub fn contains_polygon(&self, other: &Polygon) -> bool {
        match self.is_smaller {
            true => self.smaller.contains_polygon(other),
            false => !self.smaller.meets_polygon(other),
        }
    }

    pub fn meets_polygon(&self, other: &Polygon) -> bool {
        match self.is_smaller {
            true => self.smaller.meets_polygon(other),
            false => !self.smaller.contains_polygon(other),
        }
    }

    /// Returns the distance to a point in radians, 0 for a point inside.
    pub fn distance(&self, point: Point) -> f64 {
        if self.ring.contains(point) { 0.0 } else { self.smaller.distance_to_edges(point) }
    }

    /// Returns the depth of a point inside in radians, 0 for a point outside.
    pub fn depth(&self, point: Point) -> f64 {
        if self.ring.contains(point) { self.smaller.distance_to_edges(point) } else { 0.0 }
    }
}
