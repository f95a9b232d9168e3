//! `min` and `max` of `find`: the range of an index that is read.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/method/cursor.min/>

use crate::arguments::options::planning_error;
use crate::call::Call;

use crate::read::ReadSpec;
use document::{Collation, Doc, Kind};
use error::{Code, Error, Result};
use query::sort::KeyRange;
use query::{Predicate, Sort};
use store::{Hint, IndexSpec, Namespace, catalog};

/// Fails with 51176 if `min` and `max` have different fields.
pub fn check_fields(min: Option<Doc<'_>>, max: Option<Doc<'_>>) -> Result<()> {
    match (min, max) {
        (Some(min), Some(max)) if !same_fields(min, max) => {
            Err(Error::new(Code(51176), "min and max must have the same field names"))
        }
        _ => Ok(()),
    }
}

/// Adds the bounds to a read, in the order of the index unless another one is requested.
///
/// Fails with 51173 without a hint, 291 for a hint that names no index, 2 for an unknown index,
/// 51174 for bounds that do not fit the index, and 51175 for an empty range.
pub async fn apply<'a>(
    call: &Call<'_>,
    namespace: &Namespace,
    (min, max): (Option<Doc<'a>>, Option<Doc<'a>>),
    collation: &Collation,
    mut request: ReadSpec<'a>,
) -> Result<ReadSpec<'a>> {
    if min.is_none() && max.is_none() {
        return Ok(request);
    }
    let Some(indexes) = call.worker.store.cached_indexes(namespace).await? else { return Ok(request) };
    let refuse = |code: i32, reason: &str| {
        planning_error(namespace, Code(code), &format!("planner returned error :: caused by :: {reason}"))
    };
    let Some(hint) = request.hint.filter(|hint| hint.as_array().is_none()) else {
        return Err(refuse(51173, "When using min()/max() a hint of which index to use must be provided"));
    };
    let hint = Hint::of(Some(hint));
    if hint.is_some_and(|hint| hint.natural().is_some()) {
        return Err(refuse(291, "min and max are incompatible with $natural"));
    }
    let names = |index: &&IndexSpec| hint.is_some_and(|hint| hint.names(&index.name, index.key.as_doc()));
    let index = indexes.iter().find(names);
    let index = index.ok_or_else(|| refuse(2, "hint provided does not correspond to an existing index"))?;
    let incompatible = || refuse(51174, "The index chosen is not compatible with min/max");
    let order = bounded_order(index, [min, max], collation)?.ok_or_else(incompatible)?;
    let range = KeyRange::new(order, min, max);
    if range.is_empty() {
        let reason =
            "The value provided for min() does not come before the value provided for max() in the hinted index";
        return Err(refuse(51175, reason));
    }
    request.sort = request.sort.or_else(|| Some(range.order().clone()));
    request.predicate = Some(request.predicate.unwrap_or_else(Predicate::everything).and(Predicate::within(range)));
    Ok(request)
}

/// Returns the order of the index, if the bounds are valid keys of it: they have its fields, and
/// its collation if they contain strings.
fn bounded_order(index: &IndexSpec, bounds: [Option<Doc<'_>>; 2], collation: &Collation) -> Result<Option<Sort>> {
    let pattern = index.key.as_doc();
    let own = catalog::default_collation(index.spec.as_doc())?;
    let fits = |bound: Doc<'_>| {
        let has_strings = bound
            .elements()
            .any(|element| matches!(element.kind, Kind::String | Kind::Symbol | Kind::Document | Kind::Array));
        same_fields(bound, pattern) && (own == *collation || !has_strings)
    };
    if !bounds.into_iter().flatten().all(fits) {
        return Ok(None);
    }
    Ok(Sort::of_index(pattern, own, true))
}

fn same_fields(one: Doc<'_>, other: Doc<'_>) -> bool {
    one.elements().map(|element| element.key_bytes()).eq(other.elements().map(|element| element.key_bytes()))
}
