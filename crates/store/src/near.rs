//! Documents by their distance: which index can tell, and what all stores say where there is none.

use crate::{IndexKind, IndexSpec, Namespace};
use document::Value;
use error::{Code, Error, Result};
use query::geo::{Metric, Near};
use query::text::general;

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
        near.spelled()
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
    let center = query::text::document(center.as_doc());
    let message = format!("point not in interval of [ {min}, {max} ] :: caused by :: {center}");
    Err(Error::new(Code(16433), message))
}

/// Error 2: natural order is no order of distances. `what` asks for it.
pub fn not_natural(what: &str) -> Error {
    Error::bad_value(format!("geoNear expression not allowed with $natural {what}"))
}
