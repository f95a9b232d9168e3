//! Documents by distance: which index serves the query, and the errors that all stores share.

use crate::{IndexKind, IndexSpec, Namespace};
use document::Value;
use error::{Code, Error, Result};
use geo::{EARTH_RADIUS_METERS, Metric, Near};
use std::f64::consts::PI;
use std::ops::Range;
use values::text::general;

/// The width of the first ring, as a part of the greatest possible distance.
const FIRST_PART: f64 = 1e-6;

/// Rings with fewer documents are followed by wider ones, rings with more by narrower ones.
pub const RING_DOCUMENTS: Range<usize> = 100..1000;

/// A range of distances. Documents are searched ring after ring, each wide enough to hold some of
/// them.
#[derive(Clone, Copy, Debug)]
pub struct Ring {
    pub inner: f64,
    pub width: f64,
}

impl Ring {
    /// Returns the ring that begins at the query's least distance.
    pub fn first(near: &Near, kind: &IndexKind) -> Ring {
        Ring { inner: near.min, width: greatest_distance(near, kind) * FIRST_PART }
    }

    /// Returns the outer distance: at most the query's greatest distance, but always beyond the
    /// inner one, however narrow the ring.
    pub fn outer(&self, near: &Near) -> f64 {
        (self.inner + self.width).min(near.max.next_up()).max(self.inner.next_up())
    }

    /// Returns whether documents that match the query can be this far away.
    pub fn is_wanted(&self, near: &Near, kind: &IndexKind) -> bool {
        self.inner <= greatest_distance(near, kind).min(near.max) && self.width > 0.0
    }

    /// Returns the next ring, after this one held `documents`.
    pub fn next(&self, near: &Near, documents: usize) -> Ring {
        let width = match documents {
            few if few < RING_DOCUMENTS.start => self.width * 4.0,
            many if many > RING_DOCUMENTS.end => self.width / 2.0,
            _ => self.width,
        };
        Ring { inner: self.outer(near), width }
    }
}

/// Returns the greatest possible distance, with a small margin.
fn greatest_distance(near: &Near, kind: &IndexKind) -> f64 {
    match (near.metric, kind) {
        (Metric::Flat, IndexKind::Plane(options)) => {
            let reach = |at: f64| (at - options.min).abs().max((options.max - at).abs());
            reach(near.center.x).hypot(reach(near.center.y)) * 1.001
        }
        _ => PI * EARTH_RADIUS_METERS * 1.001,
    }
}

/// Returns whether an index of this kind indexes the field whose distance the query asks for.
/// Fields in front of it in the key must be bound by conditions of the query.
pub fn serves(index: &IndexSpec, kind: &IndexKind, near: &Near, is_bound: impl Fn(&str) -> bool) -> bool {
    let plugin = match kind {
        IndexKind::Sphere(_) if near.metric == Metric::Sphere => kind.name(),
        IndexKind::Plane(_) if !near.is_geo_json => kind.name(),
        _ => return false,
    };
    let mut fields = index.key.as_doc().iter();
    let geo_field = fields.find(|(path, value)| *value == Value::String(plugin) || !is_bound(path));
    geo_field.is_some_and(|(path, value)| path == near.path.as_str() && value == Value::String(plugin))
}

/// Returns the stage of a search by distance, for `explain`.
pub fn stage(kind: &IndexKind) -> &'static str {
    if let IndexKind::Plane(_) = kind { "GEO_NEAR_2D" } else { "GEO_NEAR_2DSPHERE" }
}

/// Returns error 291: no index serves the query.
pub fn no_index(namespace: &Namespace, near: &Near) -> Error {
    let message = format!(
        "error processing query: ns={namespace}Tree: {}\nSort: {{}}\nProj: {{}}\n planner returned error :: caused by :: unable \
         to find index for $geoNear query",
        near.describe()
    );
    Error::new(Code::NO_QUERY_EXECUTION_PLANS, message)
}

/// Fails with 16433 for a center outside the range of a `2d` index.
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

/// Returns error 2: natural order contradicts the order of distances. `what` requests it.
pub fn not_natural(what: &str) -> Error {
    Error::bad_value(format!("geoNear expression not allowed with $natural {what}"))
}
