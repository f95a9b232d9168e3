//! Cursors over collections and indexes that are dropped meanwhile.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use bytes::Bytes;
use document::{DocBuf, doc};
use query::{Context, Predicate};
use store::{Flow, IndexSelection, IndexSpec, Namespace, Query, ScanEnd, Sink, Statements, StoredDoc, WriteBatch};
use store_sqlite::{Options, open};

/// Takes one document.
struct One;

impl Sink for One {
    fn accept(&mut self, _: StoredDoc<'_>) -> error::Result<Flow> {
        Ok(Flow::StopAfter)
    }
}

/// Reads one document, drops, and returns the error of continuing, and that of starting again with
/// the old plan.
async fn check(filter: DocBuf, drop_index: bool) -> (String, String) {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path(), Options::default()).unwrap();
    let store = engine.clone().open().unwrap();
    let namespace = Namespace::new("d", "c");
    let key = doc! { "a": 1 };
    let spec = doc! { "v": 2, "key": &key, "name": "a_1" };
    let index = IndexSpec { name: "a_1".into(), key, unique: false, sparse: false, spec };
    store.create_indexes(&namespace, vec![index]).await.unwrap();
    let documents = (0..10).map(|id| Bytes::from(doc! { "_id": id, "a": 1 }.into_vec())).collect();
    let statements = Statements::Insert(documents);
    let batch = WriteBatch::new(namespace.clone(), statements);
    store.write(batch).await.unwrap();
    let predicate = Predicate::parse(filter.as_doc(), &Context::at(0)).unwrap();
    let query = Query::of(&predicate);
    let plan = store.plan(&namespace, query).await.unwrap();
    let end = store.scan(&*plan, None, 1, &mut One).await.unwrap();
    let ScanEnd::Stopped(position) = end else { panic!("{end:?}") };
    if drop_index {
        store.drop_indexes(&namespace, IndexSelection::All).await.unwrap();
    } else {
        store.drop_collection(&namespace).await.unwrap();
    }
    let going_on = store.scan(&*plan, Some(&position), 1, &mut One).await;
    let anew = store.scan(&*plan, None, 1, &mut One).await;
    (format!("{going_on:?}"), format!("{anew:?}"))
}

#[tokio::test]
async fn a_cursor_ends_with_its_collection() {
    let (going_on, anew) = check(doc! {}, false).await;
    assert!(going_on.starts_with("Err(QueryPlanKilled (175): collection dropped. UUID "), "{going_on}");
    assert_eq!(anew, "Ok(Exhausted)");
}

#[tokio::test]
async fn a_cursor_ends_with_its_index() {
    let (going_on, anew) = check(doc! { "a": 1 }, true).await;
    assert_eq!(going_on, "Err(QueryPlanKilled (175): index 'a_1' dropped)");
    assert_eq!(anew, going_on);
}
