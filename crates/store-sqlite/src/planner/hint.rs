//! Plans by hinted indexes.

use super::candidate::IndexCandidate;
use super::natural::natural;
use super::simple::{NATURAL, with_access};
use super::{choice, geo_scan, unordered};
use crate::catalog::{Collection, Index};
use crate::plan::{Access, SqlitePlan};
use access::conditions::PlannerQuery;
use access::wildcard;
use document::{Doc, Kind, Value};
use error::{Error, Result};
use query::sort::KeyRange;
use std::sync::Arc;
use store::Query;

/// Plans by a hint, even if the index lacks documents, as MongoDB does. Fails with 2 if the index
/// does not exist.
pub fn hinted(
    collection: &Arc<Collection>,
    query: &Query<'_>,
    wanted: &PlannerQuery<'_>,
) -> Result<Option<SqlitePlan>> {
    let pattern = match query.hint {
        None => return Ok(None),
        Some(Value::Document(pattern)) if pattern.is_empty() => return Ok(None),
        Some(hint) => hint,
    };
    if let Value::Document(pattern) = pattern
        && let Some(direction) = pattern.get(NATURAL)
    {
        let forward = !matches!(direction, Value::Int32(..0) | Value::Int64(..0))
            && !matches!(direction, Value::Double(number) if number < 0.0);
        return Ok(Some(natural(collection, wanted, forward)));
    }
    let names = |name: &str, key: Doc<'_>| match pattern {
        hint if hint.kind() == Kind::String => hint.as_name().is_some_and(|text| text == name),
        Value::Document(pattern) => store::index_rules::same_key(pattern, key),
        _ => false,
    };
    let index = if names("_id_", document::doc! { "_id": 1 }.as_doc()) {
        None
    } else {
        let mut indexes = collection.indexes.iter().filter(|index| index.is_usable());
        let index = indexes.find(|index| names(&index.spec.name, index.spec.key.as_doc()));
        let missing = "error processing query: planner returned error :: caused by :: \
             hint provided does not correspond to an existing index";
        Some(index.ok_or_else(|| Error::bad_value(missing))?)
    };
    if let Some(index) = index.filter(|index| !index.kind.is_ordered()) {
        wildcard::check_hint(&index.kind, query)?;
        let scan = unordered::unordered_scan(index, wanted).unwrap_or_else(|| geo_scan::everything_in(index));
        return Ok(Some(with_access(collection, false, wanted.sort.is_none(), Access::Index(scan))));
    }
    Ok(Some(match wanted.range {
        None => choice::hinted_plan(collection, IndexCandidate::new(collection, index, wanted), wanted),
        Some(range) => key_range_plan(collection, index, wanted, range),
    }))
}

/// Plans a scan from `min` to `max`; conditions are left to the evaluator.
fn key_range_plan(
    collection: &Arc<Collection>,
    index: Option<&Arc<Index>>,
    wanted: &PlannerQuery<'_>,
    range: &KeyRange,
) -> SqlitePlan {
    let mut whole = wanted.clone();
    whole.conditions.clear();
    whole.disjunctions.clear();
    let mut plan = choice::hinted_plan(collection, IndexCandidate::new(collection, index, &whole), &whole);
    if let Access::Index(scan) = &mut plan.access {
        for interval in &mut scan.intervals {
            (interval.low, interval.high) = (range.low().to_vec(), range.high().to_vec());
        }
        // `explain` shows no bounds here, as in MongoDB.
        scan.bounds.clear();
    }
    plan
}
