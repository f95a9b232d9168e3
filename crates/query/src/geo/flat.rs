//! Areas on the plane: boxes, polygons, circles. Their borders belong to them.

use super::Position;

#[derive(Clone, Debug)]
pub enum Area {
    Box { low: Position, high: Position },
    Polygon(Vec<Position>),
    Circle { center: Position, radius: f64 },
}

impl Area {
    pub(crate) fn contains(&self, at: Position) -> bool {
        match self {
            Area::Box { low, high } => low.x <= at.x && at.x <= high.x && low.y <= at.y && at.y <= high.y,
            Area::Circle { center, radius } => (at.x - center.x).hypot(at.y - center.y) <= *radius,
            Area::Polygon(corners) => is_inside(corners, at),
        }
    }
}

/// By the number of edges that a ray to the right crosses.
fn is_inside(corners: &[Position], at: Position) -> bool {
    let mut inside = false;
    let next = corners.iter().cycle().skip(1);
    for (a, b) in corners.iter().zip(next) {
        if is_between(*a, *b, at) {
            return true;
        }
        if (a.y > at.y) != (b.y > at.y) && at.x < (b.x - a.x) * (at.y - a.y) / (b.y - a.y) + a.x {
            inside = !inside;
        }
    }
    inside
}

/// Whether a position lies on an edge.
fn is_between(a: Position, b: Position, at: Position) -> bool {
    let cross = (b.x - a.x) * (at.y - a.y) - (b.y - a.y) * (at.x - a.x);
    cross == 0.0 && at.x >= a.x.min(b.x) && at.x <= a.x.max(b.x) && at.y >= a.y.min(b.y) && at.y <= a.y.max(b.y)
}
