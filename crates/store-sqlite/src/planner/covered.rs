//! Covered queries: all requested fields are in the keys of the scanned index.

use crate::plan::{Access, CoveredFields, SqlitePlan};
use access::covered::requested_fields;
use document::Kind;
use std::sync::atomic::AtomicBool;
use store::{IndexKind, Query};

/// Makes a plan build documents from keys, if all requested fields are in the index and its keys
/// can be decoded.
pub fn cover(plan: &mut SqlitePlan, query: &Query<'_>) {
    let (Access::Index(scan), Some(collection)) = (&mut plan.access, &plan.collection) else { return };
    let fields = scan.fields(collection);
    let by_values = scan.index.as_ref().is_none_or(|index| index.kind == IndexKind::Ordered)
        && fields.iter().all(|field| field.collation.is_simple());
    if !by_values || scan.is_multikey() || scan.distinct_field.is_some() {
        return;
    }
    let exact = scan.exact_key_types();
    let tells = |kind: Kind| match kind {
        Kind::String => exact.texts,
        kind if kind.is_number() => exact.numbers,
        kind => document::key::is_decodable(kind),
    };
    let requested = requested_fields(fields.iter().map(|field| field.path.as_str()), query, tells);
    scan.covered = requested.map(|requested| CoveredFields { requested, gave_up: AtomicBool::new(false) });
}
