//! Collections, databases, indexes, statistics.

use super::{ANY, bench, check_replies, error, ten_documents};
use bson::doc;

#[test]
fn collections_come_and_go() {
    let info = doc! { "readOnly": false, "uuid": ANY };
    let id_index = doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" };
    let listed = |entry: bson::Document| doc! { "cursor": { "id": 0_i64, "ns": "test.$cmd.listCollections", "firstBatch": [entry] } };
    check_replies(
        &mut bench(),
        vec![
            (doc! { "create": "n" }, doc! {}),
            (doc! { "create": "n" }, error(48, "Collection test.n already exists.")),
            (doc! { "create": "m", "foo": 1 }, error(40415, "BSON field 'create.foo' is an unknown field.")),
            (
                doc! { "listCollections": 1 },
                listed(doc! { "name": "n", "type": "collection", "options": {}, "info": info, "idIndex": id_index }),
            ),
            (
                doc! { "listCollections": 1, "nameOnly": true, "filter": { "name": "n" } },
                listed(doc! { "name": "n", "type": "collection" }),
            ),
            (
                doc! { "renameCollection": "test.n", "to": "test.n", "$db": "admin" },
                error(20, "Can't rename a collection to itself"),
            ),
            (doc! { "renameCollection": "test.n", "to": "test.o", "$db": "admin" }, doc! {}),
            (
                doc! { "renameCollection": "test.n", "to": "test.p", "$db": "admin" },
                error(26, "Source collection test.n does not exist"),
            ),
            (doc! { "drop": "o" }, doc! { "nIndexesWas": 1, "ns": "test.o" }),
            (doc! { "drop": "o" }, error(26, "ns not found")),
            (doc! { "dropDatabase": 1 }, doc! {}),
        ],
    );
}

#[test]
fn indexes_come_and_go() {
    let spec = doc! { "v": 2, "key": { "x": 1 }, "name": "x_1", "unique": true };
    let id_index = doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" };
    let create = doc! { "createIndexes": "a", "indexes": [{ "key": { "x": 1 }, "name": "x_1", "unique": true }] };
    check_replies(
        &mut bench(),
        vec![
            (
                create.clone(),
                doc! { "numIndexesBefore": 1, "numIndexesAfter": 2, "createdCollectionAutomatically": true },
            ),
            (create, doc! { "numIndexesBefore": 2, "numIndexesAfter": 2, "note": "all indexes already exist" }),
            (
                doc! { "listIndexes": "a" },
                doc! { "cursor": { "id": 0_i64, "ns": "test.a", "firstBatch": [id_index, spec] } },
            ),
            (doc! { "listIndexes": "nothing" }, error(26, "ns does not exist: test.nothing")),
            (doc! { "createIndexes": "a", "indexes": [] }, error(2, "Must specify at least one index to create")),
            (
                doc! { "createIndexes": "a", "indexes": [{ "key": { "x": 1 } }] },
                error(
                    9,
                    "Error in specification { key: { x: 1 } } :: caused by :: The 'name' field is a required property of an index specification",
                ),
            ),
            (
                doc! { "createIndexes": "a", "indexes": [{ "key": { "w": 1 }, "name": "w", "v": 3 }] },
                error(
                    67,
                    "Error in specification { key: { w: 1 }, name: \"w\", v: 3 } :: caused by :: Invalid index specification { key: { w: 1 }, name: \"w\", v: 3 }; cannot create an index with v=3",
                ),
            ),
            (doc! { "dropIndexes": "a", "index": "_id_" }, error(72, "cannot drop _id index")),
            (
                doc! { "dropIndexes": "a", "index": "*" },
                doc! { "nIndexesWas": 2, "msg": "non-_id indexes dropped for collection" },
            ),
            (
                doc! { "deleteIndexes": "a", "index": 1 },
                error(14, "BSON field 'dropIndexes.index' is the wrong type 'int', expected types '[string, object']"),
            ),
        ],
    );
}

#[test]
fn figures_are_told() {
    let mut bench = bench();
    ten_documents(&mut bench);
    let stats = bench.run(doc! { "collStats": "a" });
    assert_eq!((stats.get_i32("count").ok(), stats.get_i32("nindexes").ok()), (Some(10), Some(1)));
    assert_eq!(bench.run(doc! { "validate": "a" }).get_bool("valid").ok(), Some(true));
    let sizes = bench.run(doc! { "dataSize": "test.a" });
    assert_eq!(sizes.get_i32("numObjects").ok(), Some(10));
    let databases = bench.run(doc! { "listDatabases": 1, "nameOnly": true, "$db": "admin" });
    let all = ["admin", "config", "local", "test"].map(|name| doc! { "name": name }).to_vec();
    assert_eq!(databases, doc! { "databases": all, "ok": 1.0 });
}

#[test]
fn options_of_indexes_change() {
    let mut bench = bench();
    let index = |change: bson::Document| doc! { "collMod": "a", "index": change };
    let invalid = |message: &str| error(72, message);
    check_replies(
        &mut bench,
        vec![
            (
                doc! { "createIndexes": "a", "indexes": [
                    { "key": { "t": 1 }, "name": "t", "expireAfterSeconds": 5 }, { "key": { "u": 1 }, "name": "u", "hidden": false },
                ] },
                doc! { "numIndexesBefore": 1, "numIndexesAfter": 3, "createdCollectionAutomatically": true },
            ),
            (
                index(doc! { "name": "t", "expireAfterSeconds": 7 }),
                doc! { "expireAfterSeconds_old": 5_i64, "expireAfterSeconds_new": 7_i64 },
            ),
            (
                index(doc! { "keyPattern": { "u": 1 }, "hidden": true }),
                doc! { "hidden_old": false, "hidden_new": true },
            ),
            (index(doc! { "name": "u", "hidden": true }), doc! {}),
            (index(doc! { "name": "u", "expireAfterSeconds": -1 }), invalid(ANY)),
            (index(doc! { "name": "u" }), invalid("no expireAfterSeconds, hidden, unique, or prepareUnique field")),
            (index(doc! { "hidden": true }), invalid("Must specify either index name or key pattern.")),
            (index(doc! { "name": "x", "hidden": true }), error(27, "cannot find index x for ns test.a")),
            (index(doc! { "name": "_id_", "hidden": true }), error(2, "can't hide _id index")),
            (index(doc! { "name": "u", "unique": true }), invalid(ANY)),
            (
                doc! { "listIndexes": "a" },
                doc! { "cursor": { "id": 0_i64, "ns": "test.a", "firstBatch": [
                    { "v": 2, "key": { "_id": 1 }, "name": "_id_" },
                    { "v": 2, "key": { "t": 1 }, "name": "t", "expireAfterSeconds": 7 },
                    { "v": 2, "key": { "u": 1 }, "name": "u", "hidden": true },
                ] } },
            ),
        ],
    );
}

#[test]
fn documents_past_their_time_are_deleted() {
    let mut bench = bench();
    let date = |ms| bson::DateTime::from_millis(ms);
    bench.run(
        doc! { "createIndexes": "t", "indexes": [{ "key": { "at": 1 }, "name": "at_1", "expireAfterSeconds": 10 }] },
    );
    bench.run(doc! { "insert": "t", "documents": [
        { "_id": 1, "at": date(0) }, { "_id": 2, "at": date(5_000) }, { "_id": 3, "at": 0 }, { "_id": 4 },
        { "_id": 5, "at": [date(1), date(100_000)] },
    ] });
    assert_eq!(bench.expire(14_000), 2);
    let left = bench.run(doc! { "distinct": "t", "key": "_id" });
    assert_eq!(left.get_array("values").unwrap(), &vec![2.into(), 3.into(), 4.into()]);
}
