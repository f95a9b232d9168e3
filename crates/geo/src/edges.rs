//! An index over a chain of edges: finds the edges near another edge, and the edge closest to a
//! point.
//!
//! Neighbors in a chain are neighbors on the sphere. So boxes around four edges each, around four
//! boxes each, and so on, form a tree without sorting, and a search visits few of them. Comparing
//! all edges with one another took 23 s for a polygon of 20,000 corners.

use s2::point::Point;
use s2::r3::vector::Vector;
use std::ops::ControlFlow;
use steps::Counted;

/// Number of edges in a box, and of boxes in a larger one.
const FANOUT: usize = 4;

/// Upper bound of the distance by which rounding moves a point.
const MARGIN: f64 = 1e-14;

/// A box in space around a part of the chain.
#[derive(Clone, Copy, Debug)]
struct BoundingBox {
    low: [f64; 3],
    high: [f64; 3],
}

fn axes(vector: Vector) -> [f64; 3] {
    [vector.x, vector.y, vector.z]
}

impl BoundingBox {
    const EMPTY: BoundingBox = BoundingBox { low: [f64::INFINITY; 3], high: [f64::NEG_INFINITY; 3] };

    /// Returns the box around an edge, which rises above the straight line between its ends.
    fn of_edge(a: Point, b: Point) -> BoundingBox {
        let rise = 1.0 - (a.0 + b.0).norm() / 2.0 + MARGIN;
        let (a, b) = (axes(a.0), axes(b.0));
        let mut extent = BoundingBox::EMPTY;
        for axis in 0..3 {
            extent.low[axis] = a[axis].min(b[axis]) - rise;
            extent.high[axis] = a[axis].max(b[axis]) + rise;
        }
        extent
    }

    fn union(mut self, other: BoundingBox) -> BoundingBox {
        for axis in 0..3 {
            self.low[axis] = self.low[axis].min(other.low[axis]);
            self.high[axis] = self.high[axis].max(other.high[axis]);
        }
        self
    }

    fn meets(&self, other: &BoundingBox) -> bool {
        (0..3).all(|axis| self.low[axis] <= other.high[axis] && other.low[axis] <= self.high[axis])
    }

    /// Returns whether a plane through the center of the sphere cuts the box.
    fn is_cut_by(&self, normal: [f64; 3]) -> bool {
        let (mut middle, mut reach) = (0.0, MARGIN);
        for (part, (low, high)) in normal.into_iter().zip(self.low.into_iter().zip(self.high)) {
            middle += part * (low + high) / 2.0;
            reach += part.abs() * (high - low) / 2.0;
        }
        middle.abs() <= reach
    }

    /// Returns the straight-line distance to a point.
    fn distance(&self, point: [f64; 3]) -> f64 {
        let gap = |axis: usize| (self.low[axis] - point[axis]).max(point[axis] - self.high[axis]).max(0.0);
        (gap(0).powi(2) + gap(1).powi(2) + gap(2).powi(2)).sqrt()
    }
}

/// A tree of boxes around the edges of a chain.
#[derive(Clone, Debug)]
pub struct EdgeIndex {
    edges: usize,
    /// The levels of the tree: the first one has boxes around edges, the last one a single box.
    levels: Vec<Vec<BoundingBox>>,
}

/// The edge whose neighborhood is searched.
struct Probe {
    bounding_box: BoundingBox,
    normal: Option<[f64; 3]>,
}

impl EdgeIndex {
    pub fn new(edges: impl Iterator<Item = (Point, Point)>) -> EdgeIndex {
        let extents: Vec<BoundingBox> = edges.counted().map(|(a, b)| BoundingBox::of_edge(a, b)).collect();
        let join = |extents: &[BoundingBox]| -> Vec<BoundingBox> {
            extents
                .chunks(FANOUT)
                .map(|part| part.iter().copied().fold(BoundingBox::EMPTY, BoundingBox::union))
                .collect()
        };
        let mut levels = vec![join(&extents)];
        while let Some(last) = levels.last().filter(|last| last.len() > 1) {
            levels.push(join(last));
        }
        EdgeIndex { edges: extents.len(), levels }
    }

    /// Visits the edges that may meet the one from `a` to `b`, in order.
    pub fn visit_near<B>(&self, a: Point, b: Point, visit: &mut impl FnMut(usize) -> ControlFlow<B>) -> ControlFlow<B> {
        let cross = a.0.cross(&b.0);
        let length = cross.norm();
        let normal = (length > 1e-6).then(|| axes(cross * (1.0 / length)));
        let probe = Probe { bounding_box: BoundingBox::of_edge(a, b), normal };
        self.visit_box(self.levels.len() - 1, 0, &probe, visit)
    }

    fn visit_box<B>(
        &self,
        level: usize,
        part: usize,
        probe: &Probe,
        visit: &mut impl FnMut(usize) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        steps::step();
        let Some(extent) = self.levels[level].get(part) else { return ControlFlow::Continue(()) };
        if !extent.meets(&probe.bounding_box) || probe.normal.is_some_and(|normal| !extent.is_cut_by(normal)) {
            return ControlFlow::Continue(());
        }
        let parts = part * FANOUT..(part + 1) * FANOUT;
        match level.checked_sub(1) {
            None => (parts.start..parts.end.min(self.edges)).try_for_each(visit),
            Some(below) => parts.into_iter().try_for_each(|part| self.visit_box(below, part, probe, visit)),
        }
    }

    /// Returns the edge with the least angle to a point, and that angle; the first one of several.
    pub fn closest(&self, point: Point, angle: &impl Fn(usize) -> f64) -> Option<(usize, f64)> {
        let mut best = None;
        self.closest_in_box(self.levels.len() - 1, 0, axes(point.0), angle, &mut best);
        best
    }

    fn closest_in_box(
        &self,
        level: usize,
        part: usize,
        point: [f64; 3],
        angle: &impl Fn(usize) -> f64,
        best: &mut Option<(usize, f64)>,
    ) {
        steps::step();
        let parts = part * FANOUT..(part + 1) * FANOUT;
        let Some(below) = level.checked_sub(1) else {
            for edge in parts.start..parts.end.min(self.edges) {
                let angle = angle(edge);
                if best.is_none_or(|(first, least)| angle < least || angle == least && edge < first) {
                    *best = Some((edge, angle));
                }
            }
            return;
        };
        let extents = &self.levels[below];
        let mut near = [(f64::INFINITY, 0); FANOUT];
        for (slot, part) in near.iter_mut().zip(parts) {
            if let Some(extent) = extents.get(part) {
                *slot = (extent.distance(point), part);
            }
        }
        near.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (distance, part) in near {
            let reach = best.map_or(f64::MAX, |(_, angle)| 2.0 * (angle / 2.0).sin() + 1e-9);
            if distance <= reach {
                self.closest_in_box(below, part, point, angle, best);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Position;
    use crate::edge_distance::angle_to_edge;
    use crate::predicates::{Crossing, EdgeCrosser};

    /// Returns a star with many points around a position.
    fn star(x: f64, y: f64, radius: f64, corners: u32) -> Vec<(Point, Point)> {
        let corner = |number: u32| {
            let angle = f64::from(number % corners) * std::f64::consts::TAU / f64::from(corners);
            let reach = radius * (0.7 + 0.3 * (9.0 * angle).sin());
            Position { x: x + reach * angle.cos(), y: y + reach * angle.sin() }.to_point()
        };
        (0..corners).map(|number| (corner(number), corner(number + 1))).collect()
    }

    #[test]
    fn visits_all_edges_that_meet_another_and_few_more() {
        let edges = star(0.0, 0.0, 30.0, 3000);
        let index = EdgeIndex::new(edges.iter().copied());
        let mut visited = 0;
        let others =
            star(20.0, 10.0, 25.0, 200).into_iter().chain(star(0.0, 0.0, 80.0, 5)).chain(star(0.0, 0.0, 30.0, 3000));
        for (a, b) in others {
            let crosser = EdgeCrosser::new(a, b);
            let meets = |number: &usize| crosser.crossing(edges[*number].0, edges[*number].1) != Crossing::None;
            let mut found = Vec::new();
            let _ = index.visit_near(a, b, &mut |number| {
                found.push(number);
                ControlFlow::<()>::Continue(())
            });
            visited += found.len();
            let expected: Vec<usize> = (0..edges.len()).filter(meets).collect();
            assert!(found.is_sorted() && expected.iter().all(|number| found.contains(number)), "{a:?} {b:?}");
        }
        assert!(visited < 3205 * 30, "{visited}");
    }

    #[test]
    fn closest_agrees_with_a_linear_search() {
        let edges = star(10.0, 40.0, 20.0, 500);
        let index = EdgeIndex::new(edges.iter().copied());
        for number in 0..400 {
            let position =
                Position { x: f64::from(number % 20) * 17.0 - 170.0, y: f64::from(number / 20) * 8.0 - 80.0 };
            let angle = |number: usize| angle_to_edge(position.to_point(), edges[number].0, edges[number].1);
            let first = (0..edges.len()).min_by(|a, b| angle(*a).total_cmp(&angle(*b)).then(a.cmp(b)));
            let found = index.closest(position.to_point(), &angle);
            assert_eq!(found.map(|(number, _)| number), first, "{position:?}");
        }
    }
}
