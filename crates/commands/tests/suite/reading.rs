//! find, count, distinct, explain.

use super::{bench, check_replies, error, ten_documents};
use bson::{Bson, doc};

fn first_batch(documents: Vec<Bson>) -> bson::Document {
    doc! { "cursor": { "firstBatch": documents, "id": 0_i64, "ns": "test.a" } }
}

#[test]
fn find_answers() {
    let mut bench = bench();
    ten_documents(&mut bench);
    let all: Vec<Bson> = (0..10).map(|id| doc! { "_id": id, "x": id % 3 }.into()).collect();
    check_replies(
        &mut bench,
        vec![
            (doc! { "find": "a" }, first_batch(all.clone())),
            (doc! { "find": "a", "filter": { "_id": 3 } }, first_batch(all[3..4].to_vec())),
            (doc! { "find": "a", "filter": { "_id": 33 } }, first_batch(vec![])),
            (
                doc! { "find": "a", "filter": { "_id": { "$eq": 3.0 } }, "limit": 1, "singleBatch": true },
                first_batch(all[3..4].to_vec()),
            ),
            (
                doc! { "find": "a", "filter": { "_id": 3 }, "batchSize": 1, "projection": {}, "skip": 0 },
                first_batch(all[3..4].to_vec()),
            ),
            (doc! { "find": "a", "filter": { "_id": 3 }, "skip": 1 }, first_batch(vec![])),
            (doc! { "find": "a", "filter": { "_id": 3 }, "projection": { "x": 1 } }, first_batch(all[3..4].to_vec())),
            (doc! { "find": "a", "filter": { "_id": { "$in": [3] } } }, first_batch(all[3..4].to_vec())),
            (doc! { "find": "a", "filter": { "_id": 3, "x": 1 } }, first_batch(vec![])),
            (doc! { "find": "a", "filter": { "_id": null } }, first_batch(vec![])),
            (doc! { "find": "a", "skip": 2, "limit": 3 }, first_batch(all[2..5].to_vec())),
            (doc! { "find": "a", "filter": { "x": 1 }, "skip": 1 }, first_batch(vec![all[4].clone(), all[7].clone()])),
            (doc! { "find": "a", "limit": 0, "skip": 9 }, first_batch(all[9..].to_vec())),
            (doc! { "find": "a", "skip": 99 }, first_batch(vec![])),
            (doc! { "find": "a", "batchSize": 2, "singleBatch": true }, first_batch(all[..2].to_vec())),
            (doc! { "find": "a", "limit": 2.9 }, first_batch(all[..2].to_vec())),
            (
                doc! { "find": "nothing", "batchSize": 0 },
                doc! { "cursor": { "firstBatch": [], "id": 0_i64, "ns": "test.nothing" } },
            ),
        ],
    );
}

#[test]
fn find_refuses() {
    check_replies(
        &mut bench(),
        vec![
            (doc! { "find": "a", "foo": 1 }, error(40415, "BSON field 'FindCommandRequest.foo' is an unknown field.")),
            (
                doc! { "find": "a", "filter": { "_id": 1 }, "foo": 1 },
                error(40415, "BSON field 'FindCommandRequest.foo' is an unknown field."),
            ),
            (
                doc! { "find": "a", "filter": { "_id": 1 }, "limit": -1 },
                error(51024, "BSON field 'limit' value must be >= 0, actual value '-1'"),
            ),
            (doc! { "find": "a$b", "filter": { "_id": 1 } }, error(73, "Invalid collection name specified 'test.a$b")),
            (doc! { "find": 1 }, error(2, "collection name has invalid type int")),
            (doc! { "find": "" }, error(73, "Invalid namespace specified 'test.'")),
            (doc! { "find": "a$b" }, error(73, "Invalid collection name specified 'test.a$b")),
            (doc! { "find": "a", "filter": 1 }, error(14, "Expected field filterto be of type object")),
            (
                doc! { "find": "a", "limit": "x" },
                error(
                    14,
                    "BSON field 'FindCommandRequest.limit' is the wrong type 'string', expected types '[long, int, decimal, double']",
                ),
            ),
            (doc! { "find": "a", "skip": -1 }, error(51024, "BSON field 'skip' value must be >= 0, actual value '-1'")),
            (
                doc! { "find": "a", "singleBatch": 1 },
                error(14, "Field 'singleBatch' should be a boolean value, but found: int"),
            ),
            (
                doc! { "find": "a", "tailable": true, "sort": { "x": 1 } },
                error(2, "cannot use tailable option with a sort other than {$natural: 1}"),
            ),
            (
                doc! { "find": "a", "awaitData": true },
                error(9, "Cannot set 'awaitData' without also setting 'tailable'"),
            ),
            (doc! { "find": "a", "hint": 1 }, error(9, "Hint must be a string or an object")),
            (
                doc! { "find": "a", "collation": { "locale": "xx_nope" } },
                error(2, "Field 'locale' is invalid in: { locale: \"xx_nope\" }"),
            ),
        ],
    );
}

#[test]
fn count_and_distinct_answer() {
    let mut bench = bench();
    ten_documents(&mut bench);
    bench.run(doc! { "insert": "a", "documents": [{ "_id": 10, "x": [1, 1.0, "s", [2]] }] });
    check_replies(
        &mut bench,
        vec![
            (doc! { "count": "a" }, doc! { "n": 11 }),
            (doc! { "count": "a", "query": { "x": 0 } }, doc! { "n": 4 }),
            (doc! { "count": "a", "query": { "x": 0 }, "limit": 2 }, doc! { "n": 2 }),
            (doc! { "count": "a", "limit": -2 }, doc! { "n": 2 }),
            (doc! { "count": "a", "skip": 2, "query": {} }, doc! { "n": 9 }),
            (doc! { "count": "a", "skip": 99 }, doc! { "n": 0 }),
            (doc! { "count": "nothing" }, doc! { "n": 0 }),
            (doc! { "count": 1 }, error(73, "collection name has invalid type int")),
            (doc! { "count": "a", "limit": "x" }, error(2, "limit value is not a valid number")),
            (doc! { "distinct": "a", "key": "x" }, doc! { "values": [0, 1, 2, "s", [2]] }),
            (doc! { "distinct": "a", "key": "x", "query": { "_id": { "$lt": 2 } } }, doc! { "values": [0, 1] }),
            (doc! { "distinct": "nothing", "key": "x" }, doc! { "values": [] }),
            (doc! { "distinct": "a" }, error(40414, "BSON field 'distinct.key' is missing but a required field")),
            (doc! { "distinct": "a", "key": "" }, error(40352, "FieldPath cannot be constructed with empty string")),
        ],
    );
}

#[test]
fn explain_tells_and_does_not_change() {
    let mut bench = bench();
    ten_documents(&mut bench);
    let command = doc! { "find": "a", "filter": { "x": 1 }, "limit": 2 };
    let reply = bench.run(doc! { "explain": command, "verbosity": "executionStats" });
    let planner = reply.get_document("queryPlanner").unwrap();
    assert_eq!(planner.get_document("winningPlan").unwrap().get_str("stage").ok(), Some("LIMIT"));
    assert_eq!(reply.get_document("executionStats").unwrap().get_i32("nReturned").ok(), Some(2));
    let delete = doc! { "delete": "a", "deletes": [{ "q": {}, "limit": 0 }] };
    let reply = bench.run(doc! { "explain": delete, "verbosity": "executionStats" });
    let stages = reply.get_document("executionStats").unwrap().get_document("executionStages").unwrap();
    assert_eq!((stages.get_str("stage").ok(), stages.get_i32("nWouldDelete").ok()), (Some("DELETE"), Some(10)));
    check_replies(&mut bench, vec![(doc! { "count": "a" }, doc! { "n": 10 })]);
}
