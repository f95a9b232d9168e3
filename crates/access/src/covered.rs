//! Covered queries: all fields that are read are in the index.

use crate::conditions::PlannerQuery;
use document::Kind;
use query::ReadFields;
use query::predicate::Test;
use steps::Counted;
use store::Query;

/// Returns whether all fields that are read are in the index.
pub fn covers_fields<'p>(paths: impl Iterator<Item = &'p str> + Clone, fields: Option<&ReadFields>) -> bool {
    let is_field = |name: &str| paths.clone().any(|path| path == name);
    fields.is_some_and(|fields| fields.count() > 0 && fields.names().counted().all(is_field))
}

/// Returns which of an index's fields are read, in its order; `None` if others are read too, or if
/// the filter accepts only keys that cannot be decoded. `decodes`: whether keys of a type can be
/// decoded.
pub fn requested_fields<'p>(
    paths: impl Iterator<Item = &'p str> + Clone,
    query: &Query<'_>,
    decodes: impl Fn(Kind) -> bool,
) -> Option<Vec<bool>> {
    let fields = query.fields.filter(|_| covers_fields(paths.clone(), query.fields))?;
    let undecodable = |condition: &crate::conditions::Condition<'_>| {
        fields.contains(condition.path.as_bytes()) && is_undecodable(condition.test, &decodes)
    };
    if PlannerQuery::of(query).conditions.iter().any(undecodable) {
        return None;
    }
    Some(paths.map(|path| fields.contains(path.as_bytes())).collect())
}

/// Returns whether a condition is met only by values whose keys cannot be decoded.
fn is_undecodable(test: &Test, decodes: &impl Fn(Kind) -> bool) -> bool {
    match test {
        Test::Equal(value)
        | Test::Less(value)
        | Test::LessOrEqual(value)
        | Test::Greater(value)
        | Test::GreaterOrEqual(value) => !decodes(value.kind()),
        Test::In(list) => {
            list.regexes().is_empty() && !list.values().iter().counted().any(|value| decodes(value.kind()))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{DocBuf, array, doc};
    use query::{Context, Predicate};

    fn requested(filter: &DocBuf, projection: &DocBuf) -> Option<Vec<bool>> {
        let predicate = Predicate::parse(filter.as_doc(), &Context::at(0)).expect("a filter");
        let fields = ReadFields::of_find(filter.as_doc(), document::Doc::EMPTY, projection.as_doc());
        let query = Query { fields: fields.as_ref(), ..Query::of(&predicate) };
        requested_fields(["a", "b"].into_iter(), &query, |kind| kind == Kind::String)
    }

    #[test]
    fn fields_of_the_index_are_requested() {
        let both = doc! { "_id": 0, "a": 1, "b": 1 };
        assert_eq!(requested(&doc! {}, &both), Some(vec![true, true]));
        assert_eq!(requested(&doc! {}, &doc! { "_id": 0, "b": 1 }), Some(vec![false, true]));
        assert_eq!(requested(&doc! { "a": "x" }, &doc! { "_id": 0, "b": 1 }), Some(vec![true, true]));
        assert_eq!(requested(&doc! { "a": &doc! { "$in": &array![1, "x"] } }, &both), Some(vec![true, true]));
    }

    #[test]
    fn other_fields_are_requested() {
        let both = doc! { "_id": 0, "a": 1, "b": 1 };
        for (filter, projection) in [
            (doc! {}, doc! { "a": 1 }),
            (doc! {}, doc! { "_id": 0 }),
            (doc! { "c": 1 }, both.clone()),
            (doc! { "a": 1 }, both.clone()),
            (doc! { "a": &doc! { "$gt": 1 } }, both.clone()),
            (doc! { "a": &doc! { "$in": &array![1, 2] } }, both.clone()),
        ] {
            assert_eq!(requested(&filter, &projection), None, "{filter:?} {projection:?}");
        }
    }
}
