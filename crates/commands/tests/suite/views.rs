//! Views: defined, read, and refused where a collection is needed.

use super::{ANY, bench, check_replies, error, ten_documents};
use bson::{Bson, doc};

fn batch(ns: &str, documents: Vec<bson::Document>) -> bson::Document {
    doc! { "cursor": { "firstBatch": documents, "id": 0_i64, "ns": ns } }
}

#[test]
fn a_view_is_read_through_its_pipeline() {
    let mut bench = bench();
    ten_documents(&mut bench);
    let ones = || vec![doc! { "_id": 1, "x": 1 }, doc! { "_id": 4, "x": 1 }, doc! { "_id": 7, "x": 1 }];
    check_replies(
        &mut bench,
        vec![
            (doc! { "create": "v", "viewOn": "a", "pipeline": [{ "$match": { "x": 1 } }] }, doc! {}),
            (doc! { "create": "w", "viewOn": "v", "pipeline": [{ "$project": { "y": "$x" } }] }, doc! {}),
            (doc! { "find": "v" }, batch("test.v", ones())),
            (doc! { "find": "v", "filter": { "_id": 4 } }, batch("test.v", vec![doc! { "_id": 4, "x": 1 }])),
            (
                doc! { "find": "v", "sort": { "_id": -1 }, "skip": 1, "limit": 1, "projection": { "x": 0 } },
                batch("test.v", vec![doc! { "_id": 4 }]),
            ),
            (doc! { "find": "w", "filter": { "y": 1, "_id": 7 } }, batch("test.w", vec![doc! { "_id": 7, "y": 1 }])),
            (doc! { "aggregate": "v", "pipeline": [], "cursor": {} }, batch("test.v", ones())),
            (doc! { "count": "w", "query": { "_id": { "$gt": 1 } } }, doc! { "n": 2, "ok": 1 }),
            (doc! { "distinct": "w", "key": "y" }, doc! { "values": [1], "ok": 1 }),
            (
                doc! { "aggregate": "a", "cursor": {}, "pipeline": [
                    { "$match": { "_id": 1 } },
                    { "$lookup": { "from": "w", "localField": "x", "foreignField": "y", "as": "j" } },
                    { "$project": { "n": { "$size": "$j" } } },
                ] },
                batch("test.a", vec![doc! { "_id": 1, "n": 3 }]),
            ),
            (
                doc! { "aggregate": "a", "cursor": {}, "pipeline": [
                    { "$match": { "_id": 0 } }, { "$unionWith": { "coll": "v", "pipeline": [{ "$sort": { "_id": -1 } }, { "$limit": 1 }] } },
                ] },
                batch("test.a", vec![doc! { "_id": 0, "x": 0 }, doc! { "_id": 7, "x": 1 }]),
            ),
            (doc! { "find": "v", "tailable": true }, error(168, "Tailable cursors are not supported in aggregation.")),
            (
                doc! { "find": "v", "noCursorTimeout": true },
                error(168, "Option noCursorTimeout not supported in aggregation."),
            ),
            (doc! { "drop": "v" }, doc! { "ns": "test.v" }),
            (doc! { "find": "v" }, batch("test.v", vec![])),
            (doc! { "find": "w" }, batch("test.w", vec![])),
        ],
    );
}

#[test]
fn definitions_are_checked() {
    let mut bench = bench();
    ten_documents(&mut bench);
    let view = |name: &str, on: &str, pipeline: Vec<bson::Document>| doc! { "create": name, "viewOn": on, "pipeline": pipeline };
    let any = |code: i32| error(code, ANY);
    check_replies(
        &mut bench,
        vec![
            (view("v", "a", vec![]), doc! {}),
            (view("v", "a", vec![]), error(48, "Namespace already exists")),
            (view("a", "b", vec![]), error(48, "Cannot create collection test.a - collection already exists.")),
            (view("w", "", vec![]), error(2, "'viewOn' cannot be empty")),
            (view("w", "a$b", vec![]), any(73)),
            (view("w", "a", vec![doc! { "$foo": 1 }]), any(40324)),
            (view("w", "a", vec![doc! { "$out": "x" }]), any(167)),
            (view("w", "a", vec![doc! { "$sort": 1 }]), any(15973)),
            (view("w", "w", vec![]), error(5, "View cycle detected: test.w => test.w => test.w")),
            (view("p", "q", vec![]), doc! {}),
            (
                view("q", "a", vec![doc! { "$unionWith": "p" }]),
                error(5, "View cycle detected: test.q => test.q => test.p => test.q"),
            ),
            (doc! { "create": "w", "pipeline": [] }, any(72)),
            (
                doc! { "listCollections": 1, "filter": { "type": "view", "name": "v" } },
                doc! { "cursor": { "id": 0_i64, "ns": "test.$cmd.listCollections", "firstBatch": [
                    { "name": "v", "type": "view", "options": { "viewOn": "a", "pipeline": [] }, "info": { "readOnly": true } },
                ] } },
            ),
            (
                doc! { "find": "system.views", "filter": { "_id": "test.v" } },
                batch("test.system.views", vec![doc! { "_id": "test.v", "viewOn": "a", "pipeline": [] }]),
            ),
            (doc! { "insert": "system.views", "documents": [{}] }, error(73, "cannot write to test.system.views")),
        ],
    );
}

#[test]
fn a_definition_changes() {
    let mut bench = bench();
    ten_documents(&mut bench);
    check_replies(
        &mut bench,
        vec![
            (doc! { "create": "v", "viewOn": "a", "pipeline": [{ "$match": { "x": 1 } }] }, doc! {}),
            (doc! { "create": "w", "viewOn": "v", "pipeline": [] }, doc! {}),
            (doc! { "collMod": "v", "pipeline": [{ "$match": { "_id": 3 } }] }, doc! {}),
            (doc! { "find": "w" }, batch("test.w", vec![doc! { "_id": 3, "x": 0 }])),
            (doc! { "collMod": "v", "viewOn": "w", "pipeline": [] }, error(5, ANY)),
            (doc! { "collMod": "v", "viewOn": "" }, error(2, "'viewOn' cannot be empty")),
            (doc! { "collMod": "v", "validator": {} }, error(72, "option not supported on a view: validator")),
            (doc! { "collMod": "a", "viewOn": "b" }, error(72, "option only supported on a view: viewOn")),
            (doc! { "collMod": "nope" }, error(26, "ns does not exist")),
        ],
    );
}

#[test]
fn views_stand_twenty_high() {
    let mut bench = bench();
    let view = |on: i32| doc! { "create": format!("v{on}"), "viewOn": format!("v{}", on + 1), "pipeline": [] };
    for height in 0..20 {
        check_replies(&mut bench, vec![(view(height), doc! {})]);
    }
    let too_high = error(165, "View depth limit exceeded; maximum depth is 20");
    check_replies(&mut bench, vec![(view(20), too_high), (doc! { "find": "v1" }, batch("test.v1", vec![]))]);
    check_replies(&mut bench, vec![(doc! { "find": "v0" }, error(165, ANY))]);
}

#[test]
fn a_view_takes_no_writes_and_has_no_indexes() {
    let mut bench = bench();
    let refused = || error(166, "Namespace test.v is a view, not a collection");
    check_replies(
        &mut bench,
        vec![
            (doc! { "create": "v", "viewOn": "a", "pipeline": [] }, doc! {}),
            (doc! { "listIndexes": "v" }, refused()),
            (doc! { "dropIndexes": "v", "index": "*" }, refused()),
            (doc! { "collStats": "v" }, refused()),
            (doc! { "validate": "v" }, error(166, "Cannot validate a view")),
            (
                doc! { "renameCollection": "test.v", "to": "test.w", "$db": "admin" },
                error(166, "cannot rename view: test.v"),
            ),
            (
                doc! { "aggregate": "a", "pipeline": [{ "$out": "v" }], "cursor": {} },
                error(
                    166,
                    "PlanExecutor error during aggregation :: caused by :: Namespace test.v is a view, not a collection",
                ),
            ),
        ],
    );
    let plan = bench.run(doc! { "explain": { "find": "v", "filter": { "x": 1 } }, "verbosity": "queryPlanner" });
    assert_eq!(plan.get_document("queryPlanner").unwrap().get("namespace"), Some(&Bson::from("test.a")));
}
