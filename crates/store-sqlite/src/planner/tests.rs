use super::*;
use crate::catalog::Index;
use crate::catalog::index_spec;
use crate::catalog::multikey::Multikey;
use document::{DocBuf, array, doc};
use query::{Context, Predicate, Sort};
use store::{Namespace, Plan};

/// Returns a collection with an index for each key pattern; those named `multi…` are multikey.
fn collection() -> Arc<Collection> {
    let mut collection = Collection::new(1, Namespace::new("d", "c"), [0; 16], DocBuf::new()).unwrap();
    let indexes = [
        ("a", doc! { "a": 1 }, doc! {}),
        ("bc", doc! { "b": 1, "c": -1 }, doc! {}),
        ("sparse", doc! { "s": 1 }, doc! { "sparse": true }),
        ("unique", doc! { "u": 1 }, doc! { "unique": true }),
        ("multi", doc! { "m": 1 }, doc! {}),
        ("partial", doc! { "p": 1 }, doc! { "partialFilterExpression": &doc! { "x": 1 } }),
    ];
    let collated = ("collated", doc! { "k": 1 }, doc! { "collation": &doc! { "locale": "en", "strength": 2 } });
    for (id, (name, key, options)) in (1..).zip(indexes.into_iter().chain([collated])) {
        let mut spec = doc! { "v": 2, "key": &key, "name": name };
        options.as_doc().iter().for_each(|(option, value)| spec.append(option, value));
        let multikey = if name == "multi" { Multikey::from_stored(1) } else { Multikey::none() };
        let index = Index::new(id, 1, index_spec(spec), multikey).unwrap();
        collection.indexes.push(Arc::new(index));
    }
    Arc::new(collection)
}

/// Describes the plan in few words: the stage, the index and its direction; `exact`; `sorted`.
fn describe(filter: &DocBuf, sort: &DocBuf, hint: Option<Value<'_>>) -> Result<String> {
    describe_in(filter, sort, hint, &Context::at(0))
}

fn describe_in(filter: &DocBuf, sort: &DocBuf, hint: Option<Value<'_>>, context: &Context) -> Result<String> {
    let predicate = Predicate::parse(filter.as_doc(), context).unwrap();
    let sort = Sort::parse(sort.as_doc(), context).unwrap();
    let query = Query { predicate: &predicate, sort: Some(&sort), limit: None, hint, fields: None };
    let plan = plan(Some(&collection()), &query, &|_, _, enough| enough.min(5))?;
    let winning = plan.winning_plan();
    let stage = winning.as_doc().get("inputStage").and_then(Value::as_document).unwrap_or(winning.as_doc());
    let text = |key| stage.get(key).and_then(Value::as_str).unwrap_or_default();
    let mut words = vec![text("stage"), text("indexName"), text("direction")];
    words.push(if plan.facts.exact { "exact" } else { "" });
    words.push(if plan.facts.sorted { "sorted" } else { "" });
    words.retain(|word| !word.is_empty() && *word != "forward");
    Ok(words.join(" "))
}

#[track_caller]
fn check(filter: DocBuf, sort: DocBuf, expected: &str) {
    assert_eq!(describe(&filter, &sort, None).unwrap(), expected, "{filter:?} sorted by {sort:?}");
}

#[test]
fn strings_need_an_index_of_their_collation() {
    let in_strength = |strength: i32, filter: DocBuf, sort: DocBuf, expected: &str| {
        let collation = doc! { "locale": "en", "strength": strength };
        let collation = document::Collation::parse(collation.as_doc(), "").unwrap();
        let context = Context { collation, ..Context::at(0) };
        assert_eq!(describe_in(&filter, &sort, None, &context).unwrap(), expected, "{filter:?} sorted by {sort:?}");
    };
    let none = || doc! {};
    in_strength(2, doc! { "k": "x" }, none(), "IXSCAN collated exact sorted");
    in_strength(2, doc! { "k": &doc! { "$gte": "a", "$lt": "b" } }, none(), "IXSCAN collated exact sorted");
    in_strength(2, none(), doc! { "k": 1 }, "IXSCAN collated exact sorted");
    in_strength(1, doc! { "k": "x" }, none(), "COLLSCAN sorted");
    in_strength(1, none(), doc! { "k": 1 }, "COLLSCAN exact");
    in_strength(1, doc! { "k": 5 }, none(), "IXSCAN collated exact sorted");
    in_strength(2, doc! { "a": "x" }, none(), "COLLSCAN sorted");
    in_strength(2, doc! { "_id": "x" }, none(), "COLLSCAN sorted");
    check(doc! { "k": "x" }, none(), "COLLSCAN sorted");
    check(doc! { "k": &doc! { "$in": &array![1, "x"] } }, none(), "COLLSCAN sorted");
    check(doc! { "k": 5 }, none(), "IXSCAN collated exact sorted");
}

#[test]
fn conditions_choose_an_index() {
    let none = || doc! {};
    check(none(), none(), "COLLSCAN exact sorted");
    check(doc! { "_id": 1 }, none(), "IDHACK exact sorted");
    check(doc! { "_id": 1, "a": 1 }, none(), "IDHACK sorted");
    check(doc! { "_id": &doc! { "$in": &array![1, 2] } }, none(), "IDHACK exact sorted");
    check(doc! { "_id": Value::Null }, none(), "IDHACK exact sorted");
    check(doc! { "_id": &doc! { "$gt": 1 } }, none(), "IXSCAN _id_ exact sorted");
    check(doc! { "_id": Value::Regex { pattern: "a", options: "" } }, none(), "COLLSCAN sorted");
    check(doc! { "a": 1 }, none(), "IXSCAN a exact sorted");
    check(doc! { "a": 1, "z": 1 }, none(), "IXSCAN a sorted");
    check(doc! { "a": Value::Null }, none(), "IXSCAN a exact sorted");
    check(doc! { "a": &doc! { "$gt": 1, "$lt": 5 } }, none(), "IXSCAN a exact sorted");
    check(doc! { "a": &doc! { "$gt": f64::NAN } }, none(), "IXSCAN a exact sorted");
    check(doc! { "a": &doc! { "$ne": 1 } }, none(), "IXSCAN a exact sorted");
    check(doc! { "b": 1, "c": 2 }, none(), "IXSCAN bc exact sorted");
    check(doc! { "b": 1, "c": &doc! { "$lt": 2 } }, none(), "IXSCAN bc exact sorted");
    check(doc! { "b": &doc! { "$lt": 2 }, "c": 1 }, none(), "IXSCAN bc exact sorted");
    check(doc! { "c": 1 }, none(), "COLLSCAN sorted");
    check(doc! { "a": 1, "u": 1 }, none(), "IXSCAN unique sorted");
    check(doc! { "s": 1 }, none(), "IXSCAN sparse exact sorted");
    check(doc! { "s": Value::Null }, none(), "COLLSCAN sorted");
    check(doc! { "m": 1 }, none(), "IXSCAN multi exact sorted");
    check(doc! { "p": 1 }, none(), "COLLSCAN sorted");
    check(doc! { "p": 1, "x": 1 }, none(), "IXSCAN partial sorted");
    check(doc! { "$or": &array![&doc! { "a": 1 }, &doc! { "b": 1 }] }, none(), "OR exact sorted");
    check(
        doc! { "$or": &array![&doc! { "a": 1 }, &doc! { "a": &doc! { "$gt": 5 } }] },
        none(),
        "IXSCAN a exact sorted",
    );
    check(doc! { "$or": &array![&doc! { "a": 1 }, &doc! { "z": 1 }] }, none(), "COLLSCAN sorted");
    check(doc! { "a": Value::Regex { pattern: "^x", options: "" } }, none(), "IXSCAN a exact sorted");
    check(doc! { "a": Value::Regex { pattern: "^x.y", options: "" } }, none(), "IXSCAN a sorted");
    check(doc! { "a": Value::Regex { pattern: "x", options: "" } }, none(), "COLLSCAN sorted");
}

#[test]
fn an_index_can_give_the_order() {
    check(doc! {}, doc! { "_id": 1 }, "IXSCAN _id_ exact sorted");
    check(doc! {}, doc! { "_id": -1, "z": 1 }, "IXSCAN _id_ backward exact sorted");
    check(doc! {}, doc! { "a": -1 }, "IXSCAN a backward exact sorted");
    check(doc! {}, doc! { "b": 1, "c": -1 }, "IXSCAN bc exact sorted");
    check(doc! {}, doc! { "b": -1, "c": 1 }, "IXSCAN bc backward exact sorted");
    check(doc! {}, doc! { "b": 1, "c": 1 }, "COLLSCAN exact");
    check(doc! { "b": 5 }, doc! { "c": 1 }, "IXSCAN bc backward exact sorted");
    check(doc! { "b": &doc! { "$in": &array![5, 6] } }, doc! { "c": 1 }, "SORT_MERGE exact sorted");
    check(doc! { "b": &doc! { "$gt": 5 } }, doc! { "c": 1 }, "IXSCAN bc exact");
    check(doc! { "a": 1 }, doc! { "b": 1 }, "IXSCAN a exact");
    check(doc! { "a": &doc! { "$gt": 1 } }, doc! { "a": 1 }, "IXSCAN a exact sorted");
    check(doc! {}, doc! { "s": 1 }, "COLLSCAN exact");
    check(doc! {}, doc! { "m": 1 }, "IXSCAN multi exact sorted");
    check(doc! { "m": 1 }, doc! { "m": 1 }, "IXSCAN multi exact");
    check(doc! { "_id": 1 }, doc! { "z": 1 }, "IDHACK exact sorted");
    check(doc! { "_id": &doc! { "$in": &array![1, 2] } }, doc! { "z": 1 }, "IDHACK exact");
    check(doc! { "a": 1 }, doc! { "$natural": -1 }, "COLLSCAN backward sorted");
}

#[test]
fn few_matches_are_sorted_and_many_come_in_order() {
    let predicate = Predicate::parse(doc! { "a": 1 }.as_doc(), &Context::at(0)).unwrap();
    let sort = Sort::parse(doc! { "b": 1, "c": -1 }.as_doc(), &Context::at(0)).unwrap();
    let query = Query { predicate: &predicate, sort: Some(&sort), limit: Some(20), hint: None, fields: None };
    let collection = collection();
    collection.counters.documents.store(53_000, std::sync::atomic::Ordering::Relaxed);
    let sorted =
        |matches: u64| plan(Some(&collection), &query, &|_, _, enough| enough.min(matches)).unwrap().facts.sorted;
    assert!(!sorted(369), "20 of 369 among 53,000 are behind some 2,900 others");
    assert!(sorted(5_000), "20 of 5,000 are behind some 200 others");
}

#[test]
fn a_hint_decides() {
    let check = |filter: DocBuf, hint: Value<'_>, expected: &str| {
        assert_eq!(describe(&filter, &doc! {}, Some(hint)).unwrap(), expected, "{filter:?} with {hint:?}");
    };
    check(doc! { "a": 1 }, Value::String("_id_"), "IXSCAN _id_ sorted");
    check(doc! {}, Value::String("partial"), "IXSCAN partial sorted");
    check(doc! {}, Value::Document(doc! { "b": 1, "c": -1 }.as_doc()), "IXSCAN bc exact sorted");
    check(doc! { "a": 1 }, Value::Document(doc! { "$natural": -1 }.as_doc()), "COLLSCAN backward sorted");
    let error = describe(&doc! {}, &doc! {}, Some(Value::String("nope"))).unwrap_err();
    assert_eq!(error.code(), error::Code::BAD_VALUE);
}

#[test]
fn bounds_are_shown_as_in_mongodb() {
    let bounds = |filter: DocBuf| {
        let predicate = Predicate::parse(filter.as_doc(), &Context::at(0)).unwrap();
        let query = Query::of(&predicate);
        let winning = plan(Some(&collection()), &query, &|_, _, enough| enough.min(5)).unwrap().winning_plan();
        let stage = winning.as_doc().get("inputStage").and_then(Value::as_document).unwrap();
        let bounds = stage.get("indexBounds").and_then(Value::as_document).unwrap();
        bounds.iter().map(|(path, ranges)| format!("{path}: {ranges:?}")).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(bounds(doc! { "a": &doc! { "$gt": 5 } }), r#"a: Array({"0": String("(5, inf.0]")})"#);
    assert_eq!(bounds(doc! { "a": &doc! { "$lt": "x" } }), r#"a: Array({"0": String("[\"\", \"x\")")})"#);
    assert_eq!(
        bounds(doc! { "b": 1 }),
        r#"b: Array({"0": String("[1, 1]")}), c: Array({"0": String("[MaxKey, MinKey]")})"#
    );
}
