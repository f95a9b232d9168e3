//! Documents by their distance: which index can tell, and what all stores say where there is none.

use crate::{IndexKind, IndexSpec, Namespace};
use document::Value;
use error::{Code, Error, Result};
use geo::{EARTH_RADIUS_METERS, Metric, Near};
use std::f64::consts::PI;
use std::ops::Range;
use values::text::general;

/// The first ring is this part of the greatest distance there is.
const FIRST_PART: f64 = 1e-6;

/// Rings with fewer documents are followed by wider ones, rings with more by narrower ones.
pub const RING_DOCUMENTS: Range<usize> = 100..1000;

/// Distances from one to another: documents are looked for ring after ring, each as wide as gives some of them.
#[derive(Clone, Copy, Debug)]
pub struct Ring {
    pub inner: f64,
    pub width: f64,
}

impl Ring {
    /// The one that begins at the least distance that is wanted.
    pub fn first(near: &Near, kind: &IndexKind) -> Ring {
        Ring { inner: near.min, width: farthest(near, kind) * FIRST_PART }
    }

    /// Where it ends: at the greatest distance that is wanted, at the latest. However narrow, a ring goes on from where it begins.
    pub fn outer(&self, near: &Near) -> f64 {
        (self.inner + self.width).min(near.max.next_up()).max(self.inner.next_up())
    }

    /// Whether anything that is wanted can be as far away.
    pub fn is_wanted(&self, near: &Near, kind: &IndexKind) -> bool {
        self.inner <= farthest(near, kind).min(near.max) && self.width > 0.0
    }

    /// The one behind it, which had so many documents.
    pub fn next(&self, near: &Near, documents: usize) -> Ring {
        let width = match documents {
            few if few < RING_DOCUMENTS.start => self.width * 4.0,
            many if many > RING_DOCUMENTS.end => self.width / 2.0,
            _ => self.width,
        };
        Ring { inner: self.outer(near), width }
    }
}

/// The greatest distance there is, and a little more.
fn farthest(near: &Near, kind: &IndexKind) -> f64 {
    match (near.metric, kind) {
        (Metric::Flat, IndexKind::Plane(options)) => {
            let reach = |at: f64| (at - options.min).abs().max((options.max - at).abs());
            reach(near.center.x).hypot(reach(near.center.y)) * 1.001
        }
        _ => PI * EARTH_RADIUS_METERS * 1.001,
    }
}

/// Whether an index of this kind keeps the places that a query asks the distance of. What stands in front of them in its keys has to
/// be bound by conditions of the query's own.
pub fn serves(index: &IndexSpec, kind: &IndexKind, near: &Near, is_bound: impl Fn(&str) -> bool) -> bool {
    let plugin = match kind {
        IndexKind::Sphere(_) if near.metric == Metric::Sphere => "2dsphere",
        IndexKind::Plane(_) if !near.is_geo_json => "2d",
        _ => return false,
    };
    let mut fields = index.key.as_doc().iter();
    let place = fields.find(|(path, value)| *value == Value::String(plugin) || !is_bound(path));
    place.is_some_and(|(path, value)| path == near.path.as_str() && value == Value::String(plugin))
}

/// Error 291: no index keeps the places.
pub fn no_index(namespace: &Namespace, near: &Near) -> Error {
    let message = format!(
        "error processing query: ns={namespace}Tree: {}\nSort: {{}}\nProj: {{}}\n planner returned error :: caused by :: unable \
         to find index for $geoNear query",
        near.describe()
    );
    Error::new(Code::NO_QUERY_EXECUTION_PLANS, message)
}

/// Error 16433 for a point that an index over the plane does not reach.
pub fn check_center(kind: &IndexKind, near: &Near) -> Result<()> {
    let IndexKind::Plane(options) = kind else { return Ok(()) };
    let inside = |coordinate: f64| options.min <= coordinate && coordinate <= options.max;
    let center = near.center;
    if inside(center.x) && inside(center.y) {
        return Ok(());
    }
    let (min, max) = (general(options.min, 6), general(options.max, 6));
    let center = document::doc! { "0": center.x, "1": center.y };
    let center = values::text::document(center.as_doc());
    let message = format!("point not in interval of [ {min}, {max} ] :: caused by :: {center}");
    Err(Error::new(Code(16433), message))
}

/// Error 2: natural order is no order of distances. `what` asks for it.
pub fn not_natural(what: &str) -> Error {
    Error::bad_value(format!("geoNear expression not allowed with $natural {what}"))
}
