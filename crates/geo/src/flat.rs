//! Areas on the plane: boxes, polygons, circles. They include their borders.

use super::position::Position;

#[derive(Clone, Debug)]
pub enum PlanarArea {
    Box { low: Position, high: Position },
    Polygon(Vec<Position>),
    Circle { center: Position, radius: f64 },
}

impl PlanarArea {
    pub fn contains(&self, at: Position) -> bool {
        match self {
            PlanarArea::Box { low, high } => low.x <= at.x && at.x <= high.x && low.y <= at.y && at.y <= high.y,
            PlanarArea::Circle { center, radius } => is_within(*center, at, *radius),
            PlanarArea::Polygon(corners) => is_inside(corners, at),
        }
    }
}

/// Returns whether two positions are no farther apart than a radius. Along an axis the radius is
/// added to the lower coordinate, so that rounding does not exclude a point exactly at the radius.
fn is_within(center: Position, at: Position, radius: f64) -> bool {
    let reaches = |a: f64, b: f64| a.max(b) <= a.min(b) + radius;
    let (x, y) = (at.x - center.x, at.y - center.y);
    if x == 0.0 {
        reaches(at.y, center.y)
    } else if y == 0.0 {
        reaches(at.x, center.x)
    } else {
        (x * x + y * y).sqrt() <= radius
    }
}

/// Returns whether a position is inside, by counting the edges that a ray to the right crosses.
/// Corners and points of horizontal and vertical edges are inside; a point on a slanted edge counts
/// as being to its left.
fn is_inside(corners: &[Position], at: Position) -> bool {
    let mut inside = false;
    let next = corners.iter().cycle().skip(1);
    for (a, b) in corners.iter().zip(next) {
        steps::step();
        let (left, right) = (a.x.min(b.x), a.x.max(b.x));
        let is_level = a.y == b.y;
        if at == *a || at == *b || is_level && at.y == a.y && left <= at.x && at.x <= right {
            return true;
        }
        if is_level || at.y <= a.y.min(b.y) || at.y > a.y.max(b.y) || at.x > right {
            continue;
        }
        let is_upright = a.x == b.x;
        if is_upright && at.x == a.x {
            return true;
        }
        if is_upright || at.x <= (at.y - a.y) * (b.x - a.x) / (b.y - a.y) + a.x {
            inside = !inside;
        }
    }
    inside
}
