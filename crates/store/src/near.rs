//! Documents by their distance: which index can tell, and what all stores say where there is none.

use crate::{IndexKind, IndexSpec, Namespace};
use document::Value;
use error::{Code, Error};
use query::geo::{Metric, Near};

/// Whether an index of this kind keeps the places that a query asks the distance of.
pub fn serves(index: &IndexSpec, kind: &IndexKind, near: &Near) -> bool {
    let plugin = match kind {
        IndexKind::Sphere(_) if near.metric == Metric::Sphere => "2dsphere",
        IndexKind::Plane(_) if !near.is_geo_json => "2d",
        _ => return false,
    };
    index.key.as_doc().iter().any(|(path, value)| path == near.path.as_str() && value == Value::String(plugin))
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

/// Error 2: natural order is no order of distances. `what` asks for it.
pub fn not_natural(what: &str) -> Error {
    Error::bad_value(format!("geoNear expression not allowed with $natural {what}"))
}
