//! Scans and plans.

use crate::random;
use crate::suite::{Check, Suite, index, inserts, predicate};
use document::{DocBuf, ObjectId, Value, ValueBuf, array, doc};
use store::IndexSelection;

pub fn checks() -> Vec<Check> {
    vec![
        ("nothing", reading_from_nothing_finds_nothing),
        ("batches", a_scan_goes_on_where_it_stopped),
        ("types", every_type_comes_back_as_it_was),
        ("natural", natural_order_is_the_order_of_insertion),
        ("ids", lookups_by_id_are_exact),
        ("hints", a_hint_needs_an_index),
        ("supersets", whatever_the_plan_all_matches_are_found),
        ("multikey", a_document_with_many_keys_is_given_once),
        ("large", large_documents_come_back_whole),
    ]
}

fn reading_from_nothing_finds_nothing(suite: &Suite) {
    assert_eq!(suite.all(), Vec::<DocBuf>::new());
    assert_eq!(suite.find(&doc! { "_id": 1 }), Vec::<DocBuf>::new());
    assert_eq!(suite.run(suite.store.collection(&suite.namespace)).unwrap().map(|info| info.name), None);
}

fn a_scan_goes_on_where_it_stopped(suite: &Suite) {
    let documents: Vec<DocBuf> = (0..250).map(|number| doc! { "_id": number, "a": number % 10, "b": "x" }).collect();
    suite.insert(&documents);
    suite.create_index(index(doc! { "a": 1 }, doc! {})).unwrap();
    for batch in [1, 7, 100, 249, 250, 251] {
        assert_eq!(suite.find_in_batches(&doc! {}, None, batch).unwrap(), documents, "batches of {batch}");
        let range = doc! { "_id": &doc! { "$gte": 20, "$lt": 220 } };
        assert_eq!(suite.find_in_batches(&range, None, batch).unwrap(), documents[20..220], "batches of {batch}");
        let by_index = doc! { "a": &doc! { "$in": &array![3, 5] } };
        let found = suite.find_in_batches(&by_index, None, batch).unwrap();
        assert_eq!(found.len(), 50, "batches of {batch}");
        let points = doc! { "_id": &doc! { "$in": &array![5, 3, 999, 4, 3] } };
        assert_eq!(suite.find_in_batches(&points, None, batch).unwrap(), documents[3..6], "batches of {batch}");
    }
}

fn every_type_comes_back_as_it_was(suite: &Suite) {
    let nested = doc! { "a": &array![1, &doc! { "b": &array![] }], "a": 2 };
    let values = [
        Value::Double(-0.0),
        Value::Double(f64::NAN),
        Value::Double(1.0),
        Value::String("ä\0ö"),
        Value::Document(nested.as_doc()),
        Value::Binary { subtype: 3, bytes: &[1, 2, 3] },
        Value::Undefined,
        Value::ObjectId(ObjectId([9; 12])),
        Value::Boolean(true),
        Value::DateTime(-1),
        Value::Null,
        Value::Regex { pattern: "a.b", options: "ix" },
        Value::Code("f()"),
        Value::Symbol("s"),
        Value::CodeWithScope { code: "g()", scope: nested.as_doc() },
        Value::Int32(-5),
        Value::Timestamp { time: 5, increment: 6 },
        Value::Int64(5),
        Value::Decimal128(document::Decimal128([0x30; 16])),
        Value::MaxKey,
        Value::MinKey,
    ];
    let documents: Vec<DocBuf> = (0..).zip(values).map(|(id, value)| doc! { "_id": id, "v": value }).collect();
    suite.insert(&documents);
    assert_eq!(suite.all(), documents);
}

fn natural_order_is_the_order_of_insertion(suite: &Suite) {
    suite.insert(&[doc! { "_id": 2 }, doc! { "_id": 3 }, doc! { "_id": 1 }]);
    let hint = |direction: i32| Value::Document(doc! { "$natural": direction }.as_doc()).to_owned();
    let ids = |hint: &ValueBuf, batch| -> Vec<DocBuf> { suite.find_in_batches(&doc! {}, Some(hint), batch).unwrap() };
    for batch in [1, 2, 10] {
        assert_eq!(ids(&hint(1), batch), [doc! { "_id": 2 }, doc! { "_id": 3 }, doc! { "_id": 1 }]);
        assert_eq!(ids(&hint(-1), batch), [doc! { "_id": 1 }, doc! { "_id": 3 }, doc! { "_id": 2 }]);
    }
    // A hinted index need not be ordered in every store.
    let mut by_id = ids(&Value::String("_id_").to_owned(), 2);
    by_id.sort_by_key(|document| document.as_bytes().to_vec());
    assert_eq!(by_id, [doc! { "_id": 1 }, doc! { "_id": 2 }, doc! { "_id": 3 }]);
}

fn lookups_by_id_are_exact(suite: &Suite) {
    let long = "x".repeat(500);
    let sub = doc! { "x": 1, "y": "z" };
    let ids: Vec<Value<'_>> = vec![
        Value::Int32(1),
        Value::String("a"),
        Value::String("A"),
        Value::String("a "),
        Value::String(""),
        Value::String(&long),
        Value::Document(sub.as_doc()),
        Value::ObjectId(ObjectId([1; 12])),
        Value::Null,
        Value::Boolean(false),
        Value::Double(1.5),
        Value::DateTime(0),
        Value::Binary { subtype: 4, bytes: &[5; 16] },
    ];
    let documents: Vec<DocBuf> = ids.iter().map(|id| doc! { "_id": *id }).collect();
    suite.insert(&documents);
    for (id, document) in ids.iter().zip(&documents) {
        assert_eq!(suite.find(&doc! { "_id": *id }), std::slice::from_ref(document), "{id:?}");
    }
    for same in [Value::Double(1.0), Value::Int64(1)] {
        assert_eq!(suite.find(&doc! { "_id": same }), [documents[0].clone()]);
        let outcome = suite.write(inserts(&[doc! { "_id": same }]), true).remove(0);
        assert_eq!(outcome.unwrap_err().code(), error::Code::DUPLICATE_KEY);
    }
    assert_eq!(suite.find(&doc! { "_id": "b" }), Vec::<DocBuf>::new());
}

fn a_hint_needs_an_index(suite: &Suite) {
    suite.insert(&[doc! { "_id": 1, "a": 1 }]);
    suite.create_index(index(doc! { "a": 1 }, doc! {})).unwrap();
    for good in [Value::String("a"), Value::Document(doc! { "a": 1.0 }.as_doc()), Value::String("_id_")] {
        let found = suite.find_in_batches(&doc! { "b": Value::Null }, Some(&good.to_owned()), 5).unwrap();
        assert_eq!(found.len(), 1, "{good:?}");
    }
    for bad in [Value::String("b"), Value::Document(doc! { "a": -1 }.as_doc())] {
        let error = suite.find_in_batches(&doc! {}, Some(&bad.to_owned()), 5).unwrap_err();
        assert_eq!(error.code(), error::Code::BAD_VALUE);
        assert!(error.message().contains("hint provided does not correspond to an existing index"), "{error}");
    }
}

/// The same filters find the same documents without an index and with each of several.
fn whatever_the_plan_all_matches_are_found(suite: &Suite) {
    let documents = random::documents(300);
    suite.insert(&documents);
    let filters = random::filters();
    let sorted = |mut found: Vec<DocBuf>| {
        found.sort_by(|left, right| left.as_bytes().cmp(right.as_bytes()));
        found
    };
    let expected: Vec<Vec<DocBuf>> = filters
        .iter()
        .map(|filter| {
            let predicate = predicate(filter);
            let matches = |document: &&DocBuf| predicate.matches(document.as_doc()).unwrap();
            sorted(documents.iter().filter(matches).cloned().collect())
        })
        .collect();
    for key in [
        None,
        Some((doc! { "a": 1 }, doc! {})),
        Some((doc! { "a": -1 }, doc! { "sparse": true })),
        Some((doc! { "a": 1, "b": -1 }, doc! {})),
        Some((doc! { "b": 1, "a": 1 }, doc! { "sparse": true })),
        Some((doc! { "c.d": 1 }, doc! {})),
        Some((doc! { "n": -1 }, doc! {})),
    ] {
        let name = key.map(|(key, options)| {
            let index = index(key, options);
            let name = index.name.clone();
            suite.create_index(index).unwrap();
            name
        });
        for (filter, expected) in filters.iter().zip(&expected) {
            for batch in [3, usize::MAX] {
                let found = sorted(suite.find_in_batches(filter, None, batch).unwrap());
                assert_eq!(found, *expected, "{filter:?} with index {name:?} in batches of {batch}");
            }
        }
        if let Some(name) = name {
            suite.assert_valid();
            suite.run(suite.store.drop_indexes(&suite.namespace, IndexSelection::Names(vec![name]))).unwrap();
        }
    }
}

fn a_document_with_many_keys_is_given_once(suite: &Suite) {
    suite.create_index(index(doc! { "a": 1 }, doc! {})).unwrap();
    suite.insert(&[
        doc! { "_id": 1, "a": &array![1, 2, 3] },
        doc! { "_id": 2, "a": &array![2, 2] },
        doc! { "_id": 3, "a": 9 },
    ]);
    for batch in [1, 2, 10] {
        let find = |filter: DocBuf| suite.find_in_batches(&filter, None, batch).unwrap().len();
        assert_eq!(find(doc! { "a": &doc! { "$gte": 1 } }), 3);
        assert_eq!(find(doc! { "a": &doc! { "$in": &array![1, 3, 9] } }), 2);
        // One element is above, another below.
        assert_eq!(find(doc! { "a": &doc! { "$gt": 2, "$lt": 2 } }), 1);
        let hint = Value::String("a").to_owned();
        assert_eq!(suite.find_in_batches(&doc! {}, Some(&hint), batch).unwrap().len(), 3);
    }
}

fn large_documents_come_back_whole(suite: &Suite) {
    let text = "large ".repeat(200_000);
    let documents: Vec<DocBuf> = (0..5).map(|id| doc! { "_id": id, "t": &text, "n": id }).collect();
    suite.insert(&documents);
    assert!(suite.find_in_batches(&doc! {}, None, 2).unwrap() == documents);
    assert!(suite.find(&doc! { "n": 3 }) == documents[3..4]);
}
