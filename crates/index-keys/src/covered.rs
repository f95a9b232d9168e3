//! Queries whose answers lie in an index's keys: all that is looked at of documents are fields of the index.

use crate::conditions::PlannerQuery;
use document::Kind;
use query::ReadFields;
use query::predicate::Test;
use steps::Counted;
use store::Query;

/// Whether all that is looked at of documents are fields of an index.
pub fn covers_fields<'p>(paths: impl Iterator<Item = &'p str> + Clone, fields: Option<&ReadFields>) -> bool {
    let is_field = |name: &str| paths.clone().any(|path| path == name);
    fields.is_some_and(|fields| fields.count() > 0 && fields.names().counted().all(is_field))
}

/// Which of an index's fields are asked for, in its order; `None` where others are as well, or where the filter leaves none of its keys that
/// would tell its value. `tells`: whether keys of values of a kind do.
pub fn requested_fields<'p>(
    paths: impl Iterator<Item = &'p str> + Clone,
    query: &Query<'_>,
    tells: impl Fn(Kind) -> bool,
) -> Option<Vec<bool>> {
    let fields = query.fields.filter(|_| covers_fields(paths.clone(), query.fields))?;
    let untold = |condition: &crate::conditions::Condition<'_>| {
        fields.contains(condition.path.as_bytes()) && is_untold(condition.test, &tells)
    };
    if PlannerQuery::of(query).conditions.iter().any(untold) {
        return None;
    }
    Some(paths.map(|path| fields.contains(path.as_bytes())).collect())
}

/// Whether what meets a condition is all of kinds that keys do not tell.
fn is_untold(test: &Test, tells: &impl Fn(Kind) -> bool) -> bool {
    match test {
        Test::Equal(value)
        | Test::Less(value)
        | Test::LessOrEqual(value)
        | Test::Greater(value)
        | Test::GreaterOrEqual(value) => !tells(value.kind()),
        Test::In(list) => list.regexes().is_empty() && !list.values().iter().counted().any(|value| tells(value.kind())),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{DocBuf, array, doc};
    use query::{Context, Predicate};

    fn asked_for(filter: &DocBuf, projection: &DocBuf) -> Option<Vec<bool>> {
        let predicate = Predicate::parse(filter.as_doc(), &Context::at(0)).expect("a filter");
        let fields = ReadFields::of_find(filter.as_doc(), document::Doc::EMPTY, projection.as_doc());
        let query = Query { fields: fields.as_ref(), ..Query::of(&predicate) };
        requested_fields(["a", "b"].into_iter(), &query, |kind| kind == Kind::String)
    }

    #[test]
    fn fields_of_the_index_are_asked_for() {
        let both = doc! { "_id": 0, "a": 1, "b": 1 };
        assert_eq!(asked_for(&doc! {}, &both), Some(vec![true, true]));
        assert_eq!(asked_for(&doc! {}, &doc! { "_id": 0, "b": 1 }), Some(vec![false, true]));
        assert_eq!(asked_for(&doc! { "a": "x" }, &doc! { "_id": 0, "b": 1 }), Some(vec![true, true]));
        assert_eq!(asked_for(&doc! { "a": &doc! { "$in": &array![1, "x"] } }, &both), Some(vec![true, true]));
    }

    #[test]
    fn others_are_asked_for() {
        let both = doc! { "_id": 0, "a": 1, "b": 1 };
        for (filter, projection) in [
            (doc! {}, doc! { "a": 1 }),
            (doc! {}, doc! { "_id": 0 }),
            (doc! { "c": 1 }, both.clone()),
            (doc! { "a": 1 }, both.clone()),
            (doc! { "a": &doc! { "$gt": 1 } }, both.clone()),
            (doc! { "a": &doc! { "$in": &array![1, 2] } }, both.clone()),
        ] {
            assert_eq!(asked_for(&filter, &projection), None, "{filter:?} {projection:?}");
        }
    }
}
