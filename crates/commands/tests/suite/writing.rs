//! insert, update, delete, findAndModify.

use super::{ANY, bench, check_replies, error, ten_documents};
use bson::{Binary, doc, spec::BinarySubtype};

fn duplicate(index: i32, id: i32) -> bson::Document {
    doc! {
        "index": index, "code": 11000, "keyPattern": { "_id": 1 }, "keyValue": { "_id": id },
        "errmsg": format!("E11000 duplicate key error collection: test.a index: _id_ dup key: {{ _id: {id} }}"),
    }
}

#[test]
fn insert_answers() {
    let mut bench = bench();
    ten_documents(&mut bench);
    let refused =
        |code: i32, message: &str| doc! { "n": 0, "writeErrors": [{ "index": 0, "code": code, "errmsg": message }] };
    check_replies(
        &mut bench,
        vec![
            (
                doc! { "insert": "a", "documents": [{ "_id": 1 }, { "_id": 11 }] },
                doc! { "n": 0, "writeErrors": [duplicate(0, 1)] },
            ),
            (
                doc! { "insert": "a", "documents": [{ "_id": 1 }, { "_id": 11 }, { "_id": [] }], "ordered": false },
                doc! { "n": 1, "writeErrors": [duplicate(0, 1), { "index": 2, "code": 53, "errmsg": "The '_id' value cannot be of type array" }] },
            ),
            (
                doc! { "insert": "a", "documents": [{ "_id": 12 }, { "_id": [] }, { "_id": 13 }] },
                doc! { "n": 1, "writeErrors": [{ "index": 1, "code": 53, "errmsg": "The '_id' value cannot be of type array" }] },
            ),
            (
                doc! { "insert": "a", "documents": [{ "_id": { "a": { "$b": 1 } } }] },
                refused(52, "_id fields may not contain '$'-prefixed fields: $b is not valid for storage."),
            ),
            (doc! { "insert": "a", "documents": [{ "$a": 1, "b.c": 2 }] }, doc! { "n": 1 }),
            (
                doc! { "insert": "a", "documents": [] },
                error(16, "Write batch sizes must be between 1 and 100000. Got 0 operations."),
            ),
            (doc! { "insert": "a" }, error(40414, "BSON field 'insert.documents' is missing but a required field")),
            (
                doc! { "insert": "a", "documents": [{}], "foo": 1 },
                error(40415, "BSON field 'insert.foo' is an unknown field."),
            ),
            (doc! { "insert": "a$", "documents": [{}] }, error(73, "Invalid collection name: a$")),
            (
                doc! { "insert": "system.foo", "documents": [{}] },
                error(73, "Invalid system namespace: test.system.foo"),
            ),
        ],
    );
}

#[test]
fn inserted_documents_get_an_id_in_front_and_the_time() {
    let mut bench = bench();
    let empty = bson::Timestamp { time: 0, increment: 0 };
    bench.run_with(doc! { "insert": "b" }, "documents", &[doc! { "x": 1, "t": empty }, doc! { "x": 2, "_id": 7 }]);
    let reply = bench.run(doc! { "find": "b" });
    let documents = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
    let first = documents[0].as_document().unwrap();
    assert_eq!(first.keys().collect::<Vec<_>>(), ["_id", "x", "t"]);
    assert!(first.get_object_id("_id").is_ok() && first.get_timestamp("t").unwrap().time > 0);
    assert_eq!(documents[1], doc! { "_id": 7, "x": 2 }.into());
}

#[test]
fn update_answers() {
    let mut bench = bench();
    ten_documents(&mut bench);
    let set = |value: i32| doc! { "$set": { "z": value } };
    check_replies(
        &mut bench,
        vec![
            (doc! { "update": "a", "updates": [{ "q": { "_id": 1 }, "u": set(1) }] }, doc! { "n": 1, "nModified": 1 }),
            (doc! { "update": "a", "updates": [{ "q": { "_id": 1 }, "u": set(1) }] }, doc! { "n": 1, "nModified": 0 }),
            (
                doc! { "update": "a", "updates": [{ "q": {}, "u": set(2), "multi": true }] },
                doc! { "n": 10, "nModified": 10 },
            ),
            (
                doc! { "update": "a", "updates": [{ "q": { "_id": 50 }, "u": set(1), "upsert": true }, { "q": { "_id": 2 }, "u": set(3) }] },
                doc! { "n": 2, "nModified": 1, "upserted": [{ "index": 0, "_id": 50 }] },
            ),
            (
                doc! { "update": "a", "updates": [{ "q": {}, "u": { "z": 1 }, "multi": true }] },
                doc! { "n": 0, "nModified": 0, "writeErrors": [{ "index": 0, "code": 9, "errmsg": "multi update is not supported for replacement-style update" }] },
            ),
            (
                doc! { "update": "a", "updates": [{ "q": { "_id": 1 }, "u": set(9) }, { "q": {}, "u": { "$foo": { "a": 1 } } }, { "q": { "_id": 1 }, "u": set(8) }] },
                doc! { "n": 1, "nModified": 1, "writeErrors": [{ "index": 1, "code": 9, "errmsg": ANY }] },
            ),
            (
                doc! { "update": "a", "updates": [{ "q": {}, "u": { "$foo": { "a": 1 } } }, { "q": { "_id": 1 }, "u": set(7) }], "ordered": false },
                doc! { "n": 1, "nModified": 1, "writeErrors": [{ "index": 0, "code": 9, "errmsg": ANY }] },
            ),
            (
                doc! { "update": "a", "updates": [{ "q": {}, "u": 1 }] },
                error(9, "Update argument must be either an object or an array"),
            ),
            (
                doc! { "update": "a", "updates": [{ "u": {} }] },
                error(40414, "BSON field 'update.updates.q' is missing but a required field"),
            ),
            (
                doc! { "update": "a", "updates": [{ "q": {}, "u": {}, "foo": 1 }] },
                error(40415, "BSON field 'update.updates.foo' is an unknown field."),
            ),
            (
                doc! { "update": "a", "updates": [{ "q": {}, "u": {}, "upsert": 1 }] },
                error(14, "BSON field 'update.updates.upsert' is the wrong type 'int', expected type 'bool'"),
            ),
        ],
    );
}

#[test]
fn delete_answers() {
    let mut bench = bench();
    ten_documents(&mut bench);
    check_replies(
        &mut bench,
        vec![
            (
                doc! { "delete": "a", "deletes": [{ "q": { "x": 0 }, "limit": 1 }, { "q": { "x": 0 }, "limit": 0 }] },
                doc! { "n": 4 },
            ),
            (doc! { "delete": "nothing", "deletes": [{ "q": {}, "limit": 0 }] }, doc! { "n": 0 }),
            (
                doc! { "delete": "a", "deletes": [{ "q": {} }] },
                error(40414, "BSON field 'delete.deletes.limit' is missing but a required field"),
            ),
            (
                doc! { "delete": "a", "deletes": [{ "q": {}, "limit": 2 }] },
                error(9, "The limit field in delete objects must be 0 or 1. Got 2"),
            ),
        ],
    );
}

#[test]
fn find_and_modify_answers() {
    let mut bench = bench();
    ten_documents(&mut bench);
    let set = || doc! { "$set": { "z": 1 } };
    check_replies(
        &mut bench,
        vec![
            (
                doc! { "findAndModify": "a", "query": { "_id": 1 }, "update": set() },
                doc! { "lastErrorObject": { "n": 1, "updatedExisting": true }, "value": { "_id": 1, "x": 1 } },
            ),
            (
                doc! { "findandmodify": "a", "query": { "_id": 1 }, "update": set(), "new": true },
                doc! { "lastErrorObject": { "n": 1, "updatedExisting": true }, "value": { "_id": 1, "x": 1, "z": 1 } },
            ),
            (
                doc! { "findAndModify": "a", "query": { "_id": 77 }, "update": set(), "upsert": true },
                doc! { "lastErrorObject": { "n": 1, "updatedExisting": false, "upserted": 77 }, "value": bson::Bson::Null },
            ),
            (
                doc! { "findAndModify": "a", "query": { "_id": 77 }, "remove": true },
                doc! { "lastErrorObject": { "n": 1 }, "value": { "_id": 77, "z": 1 } },
            ),
            (
                doc! { "findAndModify": "a", "query": { "_id": 77 }, "remove": true },
                doc! { "lastErrorObject": { "n": 0 }, "value": bson::Bson::Null },
            ),
            (doc! { "findAndModify": "a" }, error(9, "Either an update or remove=true must be specified")),
            (
                doc! { "findAndModify": "a", "remove": true, "upsert": true },
                error(9, "Cannot specify both upsert=true and remove=true "),
            ),
            (
                doc! { "findAndModify": "a", "update": {}, "remove": true },
                error(9, "Cannot specify both an update and remove=true"),
            ),
        ],
    );
}

#[test]
fn a_write_that_comes_again_is_answered_as_before() {
    let mut bench = bench();
    let lsid = doc! { "id": Binary { subtype: BinarySubtype::Uuid, bytes: vec![5; 16] } };
    let insert =
        doc! { "insert": "r", "documents": [{ "_id": 1 }, { "_id": 2 }], "lsid": lsid.clone(), "txnNumber": 1_i64 };
    let many =
        doc! { "update": "r", "updates": [{ "q": {}, "u": {}, "multi": true }], "lsid": lsid, "txnNumber": 2_i64 };
    check_replies(
        &mut bench,
        vec![
            (insert.clone(), doc! { "n": 2 }),
            (insert, doc! { "n": 2, "retriedStmtIds": [0, 1] }),
            (many, error(72, "Cannot use retryable writes with multi=true")),
            (doc! { "count": "r" }, doc! { "n": 2 }),
        ],
    );
}
