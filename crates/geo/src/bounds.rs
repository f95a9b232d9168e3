//! Rectangles of latitude and longitude around shapes.
//!
//! They are more than a shortcut. If the rectangles of two shapes do not contain or meet one
//! another, the shapes count as disjoint, whatever their corners say. So rectangles are computed as
//! in the S2 of MongoDB 6.0, without a margin for rounding.

use super::predicates::robust_cross;
use s2::cell::Cell;
use s2::latlng::LatLng;
use s2::point::Point;
use s2::r3::vector::Vector;
use s2::s1;
use std::f64::consts::{FRAC_PI_2, PI};

/// A rectangle of latitudes and longitudes, in radians.
#[derive(Clone, Debug)]
pub struct LatLngBounds {
    pub low: f64,
    pub high: f64,
    pub longitudes: s1::Interval,
}

impl LatLngBounds {
    pub const FULL: LatLngBounds = LatLngBounds { low: -FRAC_PI_2, high: FRAC_PI_2, longitudes: s1::interval::FULL };
    const EMPTY: LatLngBounds = LatLngBounds { low: 1.0, high: 0.0, longitudes: s1::interval::EMPTY };

    /// Returns the rectangle around a chain of edges.
    pub fn of_chain(mut points: impl Iterator<Item = Point>) -> LatLngBounds {
        let Some(first) = points.next() else { return LatLngBounds::EMPTY };
        let start = LatLng::from(first);
        let (latitude, longitude) = (start.lat.rad(), start.lng.rad());
        let longitude = if longitude == -PI { PI } else { longitude };
        let mut bounds =
            LatLngBounds { low: latitude, high: latitude, longitudes: s1::Interval { lo: longitude, hi: longitude } };
        let (mut last, mut last_position) = (first, start);
        for point in points {
            steps::step();
            let position = LatLng::from(point);
            bounds.add_edge((last, &last_position), (point, &position));
            (last, last_position) = (point, position);
        }
        bounds
    }

    fn add_edge(&mut self, (a, a_position): (Point, &LatLng), (b, b_position): (Point, &LatLng)) {
        let (a_latitude, b_latitude) = (a_position.lat.rad(), b_position.lat.rad());
        self.low = self.low.min(a_latitude.min(b_latitude));
        self.high = self.high.max(a_latitude.max(b_latitude));
        let longitudes = s1::Interval::from_point_pair(a_position.lng.rad(), b_position.lng.rad());
        self.longitudes = self.longitudes.union(&longitudes);
        // The edge may come closest to a pole between its ends.
        let cross = robust_cross(a, b);
        let towards = cross.cross(&Vector { x: 0.0, y: 0.0, z: 1.0 });
        let (from_a, from_b) = (towards.dot(&a.0), towards.dot(&b.0));
        if from_a * from_b < 0.0 {
            let latitude = (cross.z / cross.norm()).abs().acos();
            match from_a < 0.0 {
                true => self.high = self.high.max(latitude),
                false => self.low = self.low.min(-latitude),
            }
            // Because of rounding, the side of the pole on which the edge passes is unknown.
            if latitude >= FRAC_PI_2 - 1e-15 {
                self.longitudes = s1::interval::FULL;
            }
        }
    }

    /// Returns the rectangle around a cell below the six largest.
    pub fn of_cell(cell: &Cell) -> LatLngBounds {
        const ROUNDING: f64 = 1.0 / (1_u64 << 51) as f64;
        let uv = cell.bound_uv();
        let (u, v) = (uv.x.lo + uv.x.hi, uv.y.lo + uv.y.hi);
        let farther = |upright: bool, middle: f64| i32::from(if upright { middle > 0.0 } else { middle < 0.0 });
        let i = farther(matches!(cell.face(), 3 | 4), u);
        let j = farther(matches!(cell.face(), 0 | 1), v);
        let (one, other) = (cell.latitude(i, j).rad(), cell.latitude(1 - i, 1 - j).rad());
        let low = (one.min(other) - ROUNDING).max(-FRAC_PI_2);
        let high = (one.max(other) + ROUNDING).min(FRAC_PI_2);
        if low == -FRAC_PI_2 || high == FRAC_PI_2 {
            return LatLngBounds { low, high, longitudes: s1::interval::FULL };
        }
        let (one, other) = (cell.longitude(i, 1 - j).rad(), cell.longitude(1 - i, j).rad());
        LatLngBounds { low, high, longitudes: s1::Interval::from_point_pair(one, other).expanded(ROUNDING) }
    }

    pub fn is_empty(&self) -> bool {
        self.low > self.high
    }

    pub fn is_full(&self) -> bool {
        self.low == -FRAC_PI_2 && self.high == FRAC_PI_2 && self.longitudes.is_full()
    }

    pub fn contains_point(&self, point: Point) -> bool {
        let position = LatLng::from(point);
        let latitude = position.lat.rad();
        self.low <= latitude && latitude <= self.high && self.longitudes.contains(position.lng.rad())
    }

    pub fn contains(&self, other: &LatLngBounds) -> bool {
        let latitudes = other.is_empty() || other.low >= self.low && other.high <= self.high;
        latitudes && self.longitudes.contains_interval(&other.longitudes)
    }

    pub fn intersects(&self, other: &LatLngBounds) -> bool {
        let latitudes = match self.low <= other.low {
            true => other.low <= self.high && !other.is_empty(),
            false => self.low <= other.high && !self.is_empty(),
        };
        latitudes && self.longitudes.intersects(&other.longitudes)
    }

    pub fn union(&self, other: &LatLngBounds) -> LatLngBounds {
        let (low, high) = match (self.is_empty(), other.is_empty()) {
            (true, _) => (other.low, other.high),
            (_, true) => (self.low, self.high),
            _ => (self.low.min(other.low), self.high.max(other.high)),
        };
        LatLngBounds { low, high, longitudes: self.longitudes.union(&other.longitudes) }
    }
}
