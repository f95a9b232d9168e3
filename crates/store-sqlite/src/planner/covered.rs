//! Queries whose answers lie in the keys of the index that finds them.

use crate::plan::{Access, Covered, SqlitePlan};
use document::Kind;
use index_keys::covered::requested_fields;
use std::sync::atomic::AtomicBool;
use store::{IndexKind, Query};

/// Has a plan give keys in the place of documents, where the only fields that are looked at are the index's, and its keys are of values as
/// they are.
pub fn cover(plan: &mut SqlitePlan, query: &Query<'_>) {
    let (Access::Index(scan), Some(collection)) = (&mut plan.access, &plan.collection) else { return };
    let fields = scan.fields(collection);
    let by_values = scan.index.as_ref().is_none_or(|index| index.kind == IndexKind::Ordered)
        && fields.iter().all(|field| field.collation.is_simple());
    if !by_values || scan.is_multikey() || scan.different.is_some() {
        return;
    }
    let plain = scan.plain();
    let tells = |kind: Kind| match kind {
        Kind::String => plain.texts,
        kind if kind.is_number() => plain.numbers,
        kind => document::key::tells(kind),
    };
    let asked = requested_fields(fields.iter().map(|field| field.path.as_str()), query, tells);
    scan.covered = asked.map(|asked| Covered { asked, in_vain: AtomicBool::new(false) });
}
