//! Pipelines that read and write other collections.

use super::{Bench, bench, check_replies, error};
use bson::{Bson, Document, doc};

/// `a`: `{_id: 0…3, x: _id % 3}`; `b`: `{_id: 10…12, k: 0…2}`.
fn two_collections() -> Bench {
    let mut bench = bench();
    let a: Vec<Document> = (0..4).map(|id| doc! { "_id": id, "x": id % 3 }).collect();
    let b: Vec<Document> = (0..3).map(|k| doc! { "_id": 10 + k, "k": k }).collect();
    bench.run_with(doc! { "insert": "a" }, "documents", &a);
    bench.run_with(doc! { "insert": "b" }, "documents", &b);
    bench
}

fn aggregate(stages: Vec<Document>) -> Document {
    doc! { "aggregate": "a", "pipeline": stages, "cursor": {} }
}

fn gives(documents: Vec<Document>) -> Document {
    let documents: Vec<Bson> = documents.into_iter().map(Bson::Document).collect();
    doc! { "cursor": { "firstBatch": documents, "id": 0_i64, "ns": "test.a" } }
}

fn holds(collection: &str, documents: Vec<Document>) -> (Document, Document) {
    let documents: Vec<Bson> = documents.into_iter().map(Bson::Document).collect();
    let ns = format!("test.{collection}");
    (
        doc! { "find": collection, "sort": { "_id": 1 } },
        doc! { "cursor": { "firstBatch": documents, "id": 0_i64, "ns": ns } },
    )
}

#[test]
fn lookups() {
    let fields = doc! { "$lookup": { "from": "b", "localField": "x", "foreignField": "k", "as": "f" } };
    let greater = doc! { "$lookup": {
        "from": "b", "let": { "v": "$x" }, "as": "f",
        "pipeline": [{ "$match": { "$expr": { "$gt": ["$k", "$$v"] } } }, { "$project": { "_id": 0 } }],
    } };
    check_replies(
        &mut two_collections(),
        vec![
            (
                aggregate(vec![doc! { "$match": { "_id": { "$lt": 2 } } }, fields.clone()]),
                gives(vec![
                    doc! { "_id": 0, "x": 0, "f": [{ "_id": 10, "k": 0 }] },
                    doc! { "_id": 1, "x": 1, "f": [{ "_id": 11, "k": 1 }] },
                ]),
            ),
            (
                aggregate(vec![
                    fields.clone(),
                    doc! { "$unwind": "$f" },
                    doc! { "$group": { "_id": "$f.k", "n": { "$sum": 1 } } },
                ]),
                gives(vec![doc! { "_id": 0, "n": 2 }, doc! { "_id": 1, "n": 1 }, doc! { "_id": 2, "n": 1 }]),
            ),
            (
                aggregate(vec![greater, doc! { "$limit": 2 }]),
                gives(vec![
                    doc! { "_id": 0, "x": 0, "f": [{ "k": 1 }, { "k": 2 }] },
                    doc! { "_id": 1, "x": 1, "f": [{ "k": 2 }] },
                ]),
            ),
            (
                aggregate(vec![doc! { "$lookup": { "from": "b", "as": "f" } }]),
                error(9, "$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified"),
            ),
        ],
    );
}

/// The result is the same whether the index is queried for many documents at a time or the
/// collection is read first.
#[test]
fn lookups_with_an_index_find_the_same() {
    let mut bench = bench();
    let pattern = Bson::RegularExpression(bson::Regex {
        pattern: "^a".to_owned().try_into().unwrap(),
        options: String::new().try_into().unwrap(),
    });
    let value = |number: i32| match number % 10 {
        0 => Bson::Null,
        1 => Bson::Array(vec![Bson::Int32(number % 7), Bson::Double(3.0), Bson::Array(vec![Bson::Int32(4)])]),
        2 => Bson::Document(doc! { "in": number % 3 }),
        3 if number % 4 == 3 => pattern.clone(),
        _ => Bson::Int32(number % 50),
    };
    let document = |number: i32, name: &str| match number % 11 {
        5 => doc! { "_id": number },
        _ => doc! { "_id": number, name: value(number) },
    };
    let (a, b): (Vec<_>, Vec<_>) =
        (0..330).map(|number| (document(number, "x"), document(number * 3 + 1, "k"))).unzip();
    bench.run_with(doc! { "insert": "a" }, "documents", &a);
    bench.run_with(doc! { "insert": "b" }, "documents", &b);
    let plain = doc! { "from": "b", "localField": "x", "foreignField": "k", "as": "f" };
    let mut piped = plain.clone();
    piped.insert("pipeline", vec![doc! { "$match": { "_id": { "$gt": 200 } } }]);
    let found = |bench: &mut Bench, lookup: &Document, limit: i32| {
        let lookup = vec![doc! { "$lookup": lookup }, doc! { "$limit": limit }];
        let reply = bench.run(doc! { "aggregate": "a", "pipeline": lookup, "cursor": { "batchSize": 1000 } });
        reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap().clone()
    };
    let limits = [1, 7, 99, 100, 101, 330];
    let all = |bench: &mut Bench| -> Vec<_> {
        limits.iter().flat_map(|&limit| [found(bench, &plain, limit), found(bench, &piped, limit)]).collect()
    };
    let unindexed = all(&mut bench);
    assert!(unindexed.last().unwrap().iter().any(|one| one.as_document().unwrap().get_array("f").unwrap().len() > 20));
    bench.run(doc! { "createIndexes": "b", "indexes": [{ "key": { "k": 1 }, "name": "k" }] });
    assert_eq!(all(&mut bench), unindexed);
}

#[test]
fn unions() {
    let union = doc! { "$unionWith": { "coll": "b", "pipeline": [{ "$limit": 1 }] } };
    check_replies(
        &mut two_collections(),
        vec![
            (
                aggregate(vec![doc! { "$match": { "_id": 3 } }, union.clone()]),
                gives(vec![doc! { "_id": 3, "x": 0 }, doc! { "_id": 10, "k": 0 }]),
            ),
            (aggregate(vec![union, doc! { "$count": "n" }]), gives(vec![doc! { "n": 5 }])),
        ],
    );
}

#[test]
fn out_replaces_a_collection() {
    check_replies(
        &mut two_collections(),
        vec![
            (aggregate(vec![doc! { "$match": { "x": 0 } }, doc! { "$out": "b" }]), gives(vec![])),
            holds("b", vec![doc! { "_id": 0, "x": 0 }, doc! { "_id": 3, "x": 0 }]),
            (aggregate(vec![doc! { "$match": { "x": 9 } }, doc! { "$out": "b" }]), gives(vec![])),
            holds("b", vec![]),
        ],
    );
}

#[test]
fn merge_puts_documents_beside_others() {
    let merge = |id: i32, options: Document| {
        let mut spec = doc! { "into": "b" };
        spec.extend(options);
        let from =
            vec![doc! { "$match": { "_id": id } }, doc! { "$set": { "_id": 10, "new": id } }, doc! { "$merge": spec }];
        (aggregate(from), gives(vec![]))
    };
    let mut bench = two_collections();
    check_replies(
        &mut bench,
        vec![
            (doc! { "delete": "b", "deletes": [{ "q": { "_id": { "$gt": 10 } }, "limit": 0 }] }, doc! { "n": 2 }),
            merge(1, doc! {}),
            holds("b", vec![doc! { "_id": 10, "k": 0, "x": 1, "new": 1 }]),
            merge(2, doc! { "whenMatched": "keepExisting" }),
            holds("b", vec![doc! { "_id": 10, "k": 0, "x": 1, "new": 1 }]),
            merge(2, doc! { "whenMatched": [{ "$set": { "k": "$$new.new" } }] }),
            holds("b", vec![doc! { "_id": 10, "k": 2, "x": 1, "new": 1 }]),
            merge(3, doc! { "whenMatched": "replace" }),
            holds("b", vec![doc! { "_id": 10, "x": 0, "new": 3 }]),
            (aggregate(vec![doc! { "$match": { "_id": 0 } }, doc! { "$merge": { "into": "b" } }]), gives(vec![])),
            holds("b", vec![doc! { "_id": 0, "x": 0 }, doc! { "_id": 10, "x": 0, "new": 3 }]),
            (
                aggregate(vec![doc! { "$merge": { "into": "b", "on": "x" } }]),
                error(51183, "Cannot find index to verify that join fields will be unique"),
            ),
        ],
    );
}
