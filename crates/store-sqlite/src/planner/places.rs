//! Conditions on places, by indexes over the sphere and over the plane.

use super::{NATURAL, Wanted};
use crate::catalog::{Collection, Index};
use crate::plan::{Access, IndexScan, NearScan, SqlitePlan};
use document::Value;
use error::Result;
use index_keys::Interval;
use index_keys::keys::KEY_END;
use index_keys::places::{leads, region};
use std::sync::Arc;
use store::{PlanFacts, Query, Tally, near};

/// The plan for documents by their distance. Errors 291 and 2 where no index tells it, or another order is asked for.
pub fn by_distance(collection: &Arc<Collection>, query: &Query<'_>, wanted: &Wanted<'_>) -> Result<Option<SqlitePlan>> {
    let Some(near) = query.predicate.near() else { return Ok(None) };
    if wanted.natural.is_some() {
        return Err(near::not_natural("sort order"));
    }
    if query.hint.and_then(Value::as_document).is_some_and(|hint| hint.get(NATURAL).is_some()) {
        return Err(near::not_natural("hint"));
    }
    let hinted = |index: &Index| match query.hint {
        Some(Value::String(name)) => name == index.spec.name,
        Some(Value::Document(key)) if !key.is_empty() => store::index_rules::same_key(key, index.spec.key.as_doc()),
        _ => index.partial.is_none(),
    };
    let is_bound = |path: &str| wanted.conditions.iter().any(|condition| condition.path == path);
    let serves =
        |index: &&Arc<Index>| !index.hidden && near::serves(&index.spec, &index.kind, near, is_bound) && hinted(index);
    let Some(any) = collection.indexes.iter().find(serves) else {
        super::hinted(collection, query, wanted)?;
        return Err(near::no_index(&collection.namespace, near));
    };
    near::check_center(&any.kind, near)?;
    let access = match collection.indexes.iter().filter(serves).find(|index| leads(index, near.path.as_str())) {
        Some(index) => Access::Near(NearScan { index: index.clone(), near: near.clone() }),
        // The places stand behind other fields: everything is read, and sorted by who asked.
        None => Access::Natural { forward: true },
    };
    let sorted = match query.sort {
        Some(sort) if sort.is_by_distance() => matches!(access, Access::Near(_)),
        _ => wanted.sort.is_none(),
    };
    let facts = PlanFacts { exact: false, sorted, view: false };
    Ok(Some(SqlitePlan {
        facts,
        collection: Some(collection.clone()),
        access,
        tailable: false,
        tally: Tally::default(),
    }))
}

/// The scan by this index, if it leads with the path of a condition on a region that it can tell.
pub fn scan_of(index: &Arc<Index>, wanted: &Wanted<'_>) -> Option<IndexScan> {
    Some(IndexScan::new(Some(index.clone()), region(index, wanted)?))
}

/// All that an index holds, whatever its kind, as a hint may ask for.
pub fn everything_in(index: &Arc<Index>) -> IndexScan {
    IndexScan::new(Some(index.clone()), vec![Interval { low: Vec::new(), high: KEY_END.to_vec() }])
}
