//! Cursors: batches, owners, ends.

use super::support::Bench;
use super::{ANY, bench, check_replies, error, ten_documents};
use bson::{Binary, Document, doc, spec::BinarySubtype};

fn open(bench: &mut Bench, command: Document) -> i64 {
    bench.run(command).get_document("cursor").unwrap().get_i64("id").unwrap()
}

fn lsid(byte: u8) -> Document {
    doc! { "id": Binary { subtype: BinarySubtype::Uuid, bytes: vec![byte; 16] } }
}

#[test]
fn batches_follow_each_other() {
    let mut bench = bench();
    ten_documents(&mut bench);
    for first in [0, 1, 3, 7] {
        let id = open(&mut bench, doc! { "find": "a", "batchSize": first, "projection": { "_id": 1 } });
        assert!(id > 0);
        let reply = bench.run(doc! { "getMore": id, "collection": "a", "batchSize": 3 });
        let cursor = reply.get_document("cursor").unwrap();
        let batch = cursor.get_array("nextBatch").unwrap();
        assert_eq!(batch[0], doc! { "_id": first }.into());
        assert_eq!(cursor.get_i64("id").ok(), Some(id));
        let reply = bench.run(doc! { "getMore": id, "collection": "a" });
        let cursor = reply.get_document("cursor").unwrap();
        assert_eq!(cursor.get_i64("id").ok(), Some(0));
        assert_eq!(cursor.get_array("nextBatch").unwrap().len(), 7 - first as usize);
        check_replies(
            &mut bench,
            vec![(doc! { "getMore": id, "collection": "a" }, error(43, &format!("cursor id {id} not found")))],
        );
    }
    assert_eq!(bench.worker.server.cursors.open(), 0);
}

#[test]
fn a_reply_ends_before_sixteen_mebibytes() {
    let mut bench = bench();
    let filler = "x".repeat(6 * 1024 * 1024);
    for id in 0..4 {
        bench.run_with(doc! { "insert": "big" }, "documents", &[doc! { "_id": id, "filler": &filler }]);
    }
    let reply = bench.run(doc! { "find": "big" });
    let cursor = reply.get_document("cursor").unwrap();
    assert_eq!(cursor.get_array("firstBatch").unwrap().len(), 2);
    let id = cursor.get_i64("id").unwrap();
    let reply = bench.run(doc! { "getMore": id, "collection": "big" });
    let batch = reply.get_document("cursor").unwrap().get_array("nextBatch").unwrap();
    let ids: Vec<_> = batch.iter().map(|document| document.as_document().unwrap().get_i32("_id").unwrap()).collect();
    assert_eq!(ids, [2, 3]);
}

#[test]
fn a_cursor_is_its_owners() {
    let mut bench = bench();
    ten_documents(&mut bench);
    let id = open(&mut bench, doc! { "find": "a", "batchSize": 2, "lsid": lsid(1) });
    let other = open(&mut bench, doc! { "find": "a", "batchSize": 2 });
    check_replies(
        &mut bench,
        vec![
            (
                doc! { "getMore": id, "collection": "b", "lsid": lsid(1) },
                error(
                    13,
                    "Requested getMore on namespace 'test.b', but cursor belongs to a different namespace test.a",
                ),
            ),
            (doc! { "getMore": id, "collection": "a" }, error(50737, ANY)),
            (doc! { "getMore": id, "collection": "a", "lsid": lsid(2) }, error(50738, ANY)),
            (doc! { "getMore": other, "collection": "a", "lsid": lsid(2) }, error(50736, ANY)),
            (
                doc! { "getMore": 1, "collection": "a" },
                error(14, "BSON field 'getMore.getMore' is the wrong type 'int', expected type 'long'"),
            ),
            // As in MongoDB, cursors live on for a while when a client ends a session.
            (doc! { "endSessions": [lsid(1)] }, doc! {}),
            (
                doc! { "getMore": id, "collection": "a", "batchSize": 1, "lsid": lsid(1) },
                doc! { "cursor": { "nextBatch": [{ "_id": 2, "x": 2 }], "id": id, "ns": "test.a" } },
            ),
            (doc! { "killSessions": [lsid(1)] }, doc! {}),
            (
                doc! { "getMore": id, "collection": "a", "lsid": lsid(1) },
                error(43, &format!("cursor id {id} not found")),
            ),
            (
                doc! { "killCursors": "a", "cursors": [id, other] },
                doc! { "cursorsKilled": [other], "cursorsNotFound": [id], "cursorsAlive": [], "cursorsUnknown": [] },
            ),
        ],
    );
}

#[test]
fn idle_cursors_end() {
    let mut bench = bench();
    ten_documents(&mut bench);
    open(&mut bench, doc! { "find": "a", "batchSize": 2 });
    open(&mut bench, doc! { "find": "a", "batchSize": 2, "noCursorTimeout": true });
    let server = bench.worker.server.clone();
    assert_eq!(server.cursors.open(), 2);
    bench.worker.expire_idle(server::clock::steady_ms() + 601_000);
    assert_eq!(server.cursors.open(), 1);
}

#[test]
fn a_cursor_is_told_that_its_collection_has_gone() {
    let mut bench = bench();
    ten_documents(&mut bench);
    let id = open(&mut bench, doc! { "find": "a", "batchSize": 2 });
    bench.run(doc! { "drop": "a" });
    check_replies(
        &mut bench,
        vec![
            (doc! { "getMore": id, "collection": "a" }, error(175, ANY)),
            (doc! { "getMore": id, "collection": "a" }, error(43, &format!("cursor id {id} not found"))),
        ],
    );
    assert_eq!(bench.worker.server.cursors.open(), 0);
}
