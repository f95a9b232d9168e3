//! Closed chains of edges, and the relations between two of them.
//!
//! Containment and intersection of rings with shared corners or edges are determined as in the S2
//! version of MongoDB 6.0: no edge may cross another, and the wedges inside are compared at each
//! shared corner.

use super::bounds::LatLngBounds;
use super::edges::EdgeIndex;
use super::predicates::{
    Crossing, EdgeCrosser, Wedge, WedgeRelation, compare, is_counterclockwise, orientation, origin, robust_cross,
};
use ahash::AHashMap;
use s2::cell::Cell;
use s2::latlng::LatLng;
use s2::point::Point;
use s2::r3::vector::Vector;
use std::cmp::Ordering;
use std::f64::consts::{FRAC_PI_2, PI};
use std::ops::ControlFlow;
use std::sync::OnceLock;
use steps::Counted;

/// Rings with fewer corners are searched without an index.
const INDEXED_FROM: usize = 24;

/// The coordinates of a point as a hashable key.
type PointKey = [u64; 3];

pub fn point_key(point: Point) -> PointKey {
    // Adding zero makes negative zero positive.
    [point.0.x, point.0.y, point.0.z].map(|coordinate| (coordinate + 0.0).to_bits())
}

/// A closed loop of three corners or more, the first of which is not repeated at the end. Its
/// inside is to the left.
#[derive(Clone, Debug)]
pub struct Ring {
    corners: Vec<Point>,
    /// Whether the reference point for containment is inside.
    origin_inside: bool,
    bounds: LatLngBounds,
    index: OnceLock<EdgeIndex>,
    corner_numbers: OnceLock<AHashMap<PointKey, usize>>,
}

impl Ring {
    pub fn new(corners: Vec<Point>) -> Ring {
        let mut ring = Ring {
            corners,
            origin_inside: false,
            bounds: LatLngBounds::FULL,
            index: OnceLock::new(),
            corner_numbers: OnceLock::new(),
        };
        // Start with a guess; one corner shows whether it is right.
        let inside =
            is_counterclockwise(Point(ring.corner(1).0.ortho()), ring.corner(0), ring.corner(2), ring.corner(1));
        ring.origin_inside = inside != ring.contains(ring.corner(1));
        ring.find_bounds();
        ring
    }

    fn find_bounds(&mut self) {
        let mut bounds = LatLngBounds::of_chain((0..=self.len()).map(|number| self.corner(number)));
        self.bounds = LatLngBounds::FULL;
        let pole = |z: f64| Point::from_coords(0.0, 0.0, z);
        if self.contains(pole(1.0)) {
            bounds = LatLngBounds { low: bounds.low, high: FRAC_PI_2, longitudes: LatLngBounds::FULL.longitudes };
        }
        if bounds.longitudes.is_full() && self.contains(pole(-1.0)) {
            bounds.low = -FRAC_PI_2;
        }
        self.bounds = bounds;
    }

    pub fn len(&self) -> usize {
        self.corners.len()
    }

    pub fn corners(&self) -> &[Point] {
        &self.corners
    }

    /// Returns a corner; numbers wrap around after the last.
    pub fn corner(&self, number: usize) -> Point {
        self.corners[number % self.corners.len()]
    }

    pub fn bounds(&self) -> &LatLngBounds {
        &self.bounds
    }

    pub fn edge(&self, number: usize) -> (Point, Point) {
        (self.corner(number), self.corner(number + 1))
    }

    pub fn edges(&self) -> impl Iterator<Item = (Point, Point)> + '_ {
        (0..self.len()).counted().map(|number| self.edge(number))
    }

    pub fn index(&self) -> &EdgeIndex {
        // Built outside `get_or_init`, because other threads wait inside and the build may be
        // suspended.
        match self.index.get() {
            Some(index) => index,
            None => {
                let index = EdgeIndex::new(self.edges());
                self.index.get_or_init(|| index)
            }
        }
    }

    /// Visits the edges that may meet the one from `a` to `b`, in order.
    pub fn visit_near<B>(
        &self,
        (a, b): (Point, Point),
        visit: &mut impl FnMut(usize) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        match self.len() < INDEXED_FROM {
            true => (0..self.len()).try_for_each(visit),
            false => self.index().visit_near(a, b, visit),
        }
    }

    /// Returns whether the area to the left is not the larger part of the sphere.
    pub fn is_smaller_side(&self) -> bool {
        self.bounds.longitudes.len() < PI || self.turning_angle() >= -1e-14
    }

    /// Turns the ring so that the smaller part of the sphere is inside.
    pub fn normalize(&mut self) {
        if self.is_smaller_side() {
            return;
        }
        self.corners.reverse();
        self.origin_inside ^= true;
        (self.index, self.corner_numbers) = (OnceLock::new(), OnceLock::new());
        match self.bounds.low > -FRAC_PI_2 && self.bounds.high < FRAC_PI_2 {
            true => self.bounds = LatLngBounds::FULL,
            false => self.find_bounds(),
        }
    }

    /// Returns the sum of the angles by which the edges turn left. The order of additions does not
    /// depend on the corner that the ring starts with.
    fn turning_angle(&self) -> f64 {
        let count = self.len();
        let first = (1..count).counted().fold(0, |first, number| {
            let is_less = compare(self.corner(number), self.corner(first)) == Ordering::Less;
            if is_less { number } else { first }
        });
        let forward = compare(self.corner(first + 1), self.corner(first + count - 1)) == Ordering::Less;
        let at = |step: usize| match forward {
            true => self.corner(first + step),
            false => self.corner(first + 2 * count - step),
        };
        let turn = |step: usize| turn_angle(at(step + count - 1), at(step), at(step + 1));
        let sum = (1..count).counted().fold(turn(0), |sum, step| sum + turn(step));
        if forward { sum } else { -sum }
    }

    pub fn contains(&self, point: Point) -> bool {
        if !self.bounds.contains_point(point) {
            return false;
        }
        let start = origin();
        let crosser = EdgeCrosser::new(start, point);
        let mut inside = self.origin_inside;
        if self.len() < INDEXED_FROM || self.index.get().is_none() {
            let mut acb = -crosser.side(self.corner(0));
            for (c, d) in self.edges() {
                let (crossing, next) = crosser.crossing_from(acb, c, d);
                inside ^= crosser.counts_as_crossing(crossing, c, d);
                acb = next;
            }
            return inside;
        }
        let _ = self.visit_near((start, point), &mut |number| {
            let (c, d) = self.edge(number);
            inside ^= crosser.counts_as_crossing(crosser.crossing(c, d), c, d);
            ControlFlow::<()>::Continue(())
        });
        inside
    }

    /// Returns the number of a corner, from 1 to the number of corners.
    fn corner_number(&self, point: Point) -> Option<usize> {
        if self.len() < INDEXED_FROM {
            return (1..=self.len()).find(|number| self.corner(*number) == point);
        }
        self.corner_numbers().get(&point_key(point)).copied()
    }

    fn corner_numbers(&self) -> &AHashMap<PointKey, usize> {
        match self.corner_numbers.get() {
            Some(numbers) => numbers,
            None => {
                let numbers = (1..=self.len()).rev().counted();
                let numbers = numbers.map(|number| (point_key(self.corner(number)), number)).collect();
                self.corner_numbers.get_or_init(|| numbers)
            }
        }
    }

    pub fn has_corner(&self, point: Point) -> bool {
        self.corner_number(point).is_some()
    }

    /// Returns whether a corner of another ring is inside, or is a corner of both.
    fn contains_or_has_corner(&self, point: Point) -> bool {
        self.contains(point) || self.has_corner(point)
    }

    /// Returns whether a point is inside and is no corner.
    fn contains_strictly(&self, point: Point) -> bool {
        self.contains(point) && !self.has_corner(point)
    }

    fn wedge(&self, before: usize) -> Wedge {
        Wedge { from: self.corner(before), corner: self.corner(before + 1), to: self.corner(before + 2) }
    }

    /// Returns whether the edges of two rings cross. Passes a pair of wedges at each shared corner
    /// to `done`, until it returns true.
    fn crosses(&self, other: &Ring, done: &mut impl FnMut(Wedge, Wedge) -> bool) -> bool {
        let found = (0..other.len()).counted().try_for_each(|number| {
            let (a, b) = other.edge(number);
            let crosser = EdgeCrosser::new(a, b);
            self.visit_near((a, b), &mut |own| {
                let (c, d) = self.edge(own);
                match crosser.crossing(c, d) {
                    Crossing::None => ControlFlow::Continue(()),
                    Crossing::Proper => ControlFlow::Break(true),
                    Crossing::Corner if d == b && done(self.wedge(own), other.wedge(number)) => {
                        ControlFlow::Break(false)
                    }
                    Crossing::Corner => ControlFlow::Continue(()),
                }
            })
        });
        matches!(found, ControlFlow::Break(true))
    }

    pub fn contains_ring(&self, other: &Ring) -> bool {
        if !self.bounds.contains(&other.bounds) || !self.contains_or_has_corner(other.corner(0)) {
            return false;
        }
        let mut leaves = false;
        let crosses = self.crosses(other, &mut |own, others| {
            leaves = !own.contains(others);
            leaves
        });
        if crosses || leaves {
            return false;
        }
        // Together they may cover the sphere, without one containing the other.
        !self.bounds.union(&other.bounds).is_full() || !other.contains_strictly(self.corner(0))
    }

    pub fn intersects_ring(&self, other: &Ring) -> bool {
        if other.len() > self.len() {
            return other.intersects_ring(self);
        }
        if !self.bounds.intersects(&other.bounds) {
            return false;
        }
        if self.contains_strictly(other.corner(0)) {
            return true;
        }
        let mut meets = false;
        let crosses = self.crosses(other, &mut |own, others| {
            meets = own.intersects(others);
            meets
        });
        crosses || meets || other.bounds.contains(&self.bounds) && other.contains_strictly(self.corner(0))
    }

    /// Returns whether a ring is inside, given that neither covers the other's outside; `None` if
    /// their edges cross.
    pub fn contains_or_crosses(&self, other: &Ring) -> Option<bool> {
        if !self.bounds.intersects(&other.bounds) {
            return Some(false);
        }
        let (mut overlaps, mut larger, mut smaller, mut apart) = (false, false, false, false);
        let crosses = self.crosses(other, &mut |own, others| {
            match own.relation(others) {
                WedgeRelation::Overlaps => overlaps = true,
                WedgeRelation::Contains => larger = true,
                WedgeRelation::IsContained => smaller = true,
                WedgeRelation::Disjoint => apart = true,
                WedgeRelation::Equal => {}
            }
            overlaps |= larger && smaller;
            overlaps
        });
        if crosses || overlaps {
            return None;
        }
        Some(!apart && !smaller && self.bounds.contains(&other.bounds) && self.contains_or_has_corner(other.corner(0)))
    }

    /// Returns whether a ring is inside, given that the two do not cross and share no edge.
    pub fn contains_nested(&self, other: &Ring) -> bool {
        if !self.bounds.contains(&other.bounds) {
            return false;
        }
        match self.corner_number(other.corner(1)) {
            None => self.contains(other.corner(1)),
            Some(number) => self.wedge(number + self.len() - 1).contains(other.wedge(0)),
        }
    }

    /// Returns whether a ring shares a point with a cell.
    pub fn meets_cell(&self, cell: &PointCell) -> bool {
        self.bounds.intersects(&cell.bounds) && cell.ring().intersects_ring(self)
    }

    /// Describes the defect of the corners, if any: a duplicate, or edges that cross.
    pub fn defect(&self) -> Option<String> {
        let mut numbers = AHashMap::with_capacity(self.len());
        for (number, corner) in self.corners.iter().counted().enumerate() {
            if let Some(first) = numbers.insert(point_key(*corner), number) {
                return Some(format!("Duplicate vertices: {first} and {number}"));
            }
        }
        let crossed = (0..self.len()).counted().try_for_each(|number| {
            let (a, b) = self.edge(number);
            let crosser = EdgeCrosser::new(a, b);
            self.visit_near((a, b), &mut |other| {
                let (c, d) = self.edge(other);
                match other > number + 1 && crosser.crossing(c, d) == Crossing::Proper {
                    true => ControlFlow::Break((number, other)),
                    false => ControlFlow::Continue(()),
                }
            })
        });
        let ControlFlow::Break((one, other)) = crossed else { return None };
        let edge =
            |number: usize| format!("{}-{}", in_degrees(self.corner(number)), in_degrees(self.corner(number + 1)));
        let (first, second) = (edge(one), edge(other));
        Some(format!("Edges {one} and {other} cross. Edge locations in degrees: {first} and {second}"))
    }
}

fn in_degrees(point: Point) -> String {
    let position = LatLng::from(point);
    format!("[{:.7}, {:.7}]", position.lat.deg(), position.lng.deg())
}

fn turn_angle(a: Point, b: Point, c: Point) -> f64 {
    let angle = robust_cross(b, a).angle(&robust_cross(c, b)).rad();
    if orientation(a, b, c) > 0 { angle } else { -angle }
}

/// The smallest cell around a point. It represents the point in tests that include edges and
/// corners.
#[derive(Clone, Debug)]
pub struct PointCell {
    cell: Cell,
    pub bounds: LatLngBounds,
    ring: OnceLock<Ring>,
}

impl PointCell {
    pub fn new(point: Point) -> PointCell {
        let cell = Cell::from(point);
        PointCell { bounds: LatLngBounds::of_cell(&cell), ring: OnceLock::new(), cell }
    }

    pub fn ring(&self) -> &Ring {
        match self.ring.get() {
            Some(ring) => ring,
            None => {
                let ring = Ring::new(self.cell.vertices().to_vec());
                self.ring.get_or_init(|| ring)
            }
        }
    }

    /// Returns whether both points have the same cell.
    pub fn is_same(&self, other: &PointCell) -> bool {
        self.cell.id == other.cell.id
    }

    /// Returns whether a point is in the cell or on its edges.
    pub fn contains_point(&self, point: Point) -> bool {
        let Vector { x, y, z } = point.0;
        let (in_front, u, v) = match self.cell.face() {
            0 => (x > 0.0, y / x, z / x),
            1 => (y > 0.0, -x / y, z / y),
            2 => (z > 0.0, -x / z, -y / z),
            3 => (x < 0.0, z / x, y / x),
            4 => (y < 0.0, z / y, -x / y),
            _ => (z < 0.0, -y / z, -x / z),
        };
        let uv = self.cell.bound_uv();
        in_front && uv.x.lo <= u && u <= uv.x.hi && uv.y.lo <= v && v <= uv.y.hi
    }
}
