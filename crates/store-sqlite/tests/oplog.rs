//! The log of changes: complete, ordered, bounded, and honest about what it has deleted.

#![allow(clippy::unwrap_used)]

use bytes::Bytes;
use document::{Doc, DocBuf, ObjectId, Value, doc};
use error::Code;
use query::{Context, Predicate};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use store::{
    DeleteStatement, DocumentStore, Engine, FeedEntry, FeedPosition, Namespace, Operation, ReturnImage, Statements,
    UpdateStatement, WriteBatch,
};
use store_sqlite::{OplogOptions, Options, open};
use update::Update;

fn engine(directory: &Path, bytes_max: u64) -> Arc<dyn Engine> {
    open(directory, Options { oplog: Some(OplogOptions { bytes_max, age_max: None }), ..Options::default() }).unwrap()
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn namespace() -> Namespace {
    Namespace::new("test", "things")
}

fn write(store: &Rc<dyn DocumentStore>, statements: Statements) {
    let outcome = run(store.write(WriteBatch::new(namespace(), statements))).unwrap();
    outcome.statements.into_iter().for_each(|outcome| drop(outcome.unwrap()));
}

fn insert(store: &Rc<dyn DocumentStore>, documents: &[DocBuf]) {
    let documents = documents.iter().map(|document| Bytes::copy_from_slice(document.as_bytes())).collect();
    write(store, Statements::Insert(documents));
}

fn matching(filter: &DocBuf) -> Predicate {
    Predicate::parse(filter.as_doc(), &Context::at(0)).unwrap()
}

fn update(store: &Rc<dyn DocumentStore>, id: i32, update: &DocBuf) {
    let update = Update::parse(Value::Document(update.as_doc()), None, &Context::at(0)).unwrap();
    let statement = UpdateStatement {
        predicate: matching(&doc! { "_id": id }),
        sort: None,
        update,
        multi: false,
        upsert: false,
        new_id: ObjectId([0; 12]),
        hint: None,
        image: ReturnImage::None,
    };
    write(store, Statements::Update(vec![statement]));
}

fn deleting(filter: &DocBuf) -> Statements {
    let (predicate, image) = (matching(filter), ReturnImage::None);
    Statements::Delete(vec![DeleteStatement { predicate, sort: None, one: false, hint: None, image }])
}

fn delete(store: &Rc<dyn DocumentStore>, filter: &DocBuf) {
    write(store, deleting(filter));
}

/// Returns all entries behind a position.
fn entries(store: &Rc<dyn DocumentStore>, mut position: FeedPosition) -> Vec<Arc<FeedEntry>> {
    let feed = store.change_feed().unwrap();
    let mut all: Vec<Arc<FeedEntry>> = Vec::new();
    loop {
        let some = run(feed.read(position)).unwrap();
        let Some(last) = some.last() else { return all };
        assert!(some.is_sorted_by(|a, b| a.position < b.position) && some[0].position > position);
        position = last.position;
        all.extend(some);
    }
}

/// Names entries by operation: `insert 1`, `create` …
fn names(entries: &[Arc<FeedEntry>]) -> Vec<String> {
    let id = |document: Doc<'_>| document.get("_id").and_then(Value::to_i64).unwrap();
    let name = |entry: &Arc<FeedEntry>| match entry.change().unwrap().operation {
        Operation::Insert { document } => format!("insert {}", id(document)),
        Operation::Update { id, difference } => format!("update {} {difference:?}", id.to_i64().unwrap()),
        Operation::Replace { document, .. } => format!("replace {}", id(document)),
        Operation::Delete { id } => format!("delete {}", id.to_i64().unwrap()),
        Operation::Command { command, .. } => command.first().unwrap().key().to_owned(),
        Operation::Note { .. } => "note".to_owned(),
    };
    entries.iter().map(name).collect()
}

#[test]
fn every_change_has_an_entry_that_survives() {
    let directory = tempfile::tempdir().unwrap();
    let start = FeedPosition::default();
    let expected = [
        "note",
        "create",
        "insert 1",
        "insert 2",
        "update 1 {\"i\": Document({\"a\": Int32(2)})}",
        "replace 2",
        "delete 1",
        "delete 2",
        "drop",
    ];
    let before = {
        let engine = engine(directory.path(), 1 << 20);
        let store = engine.clone().open().unwrap();
        insert(&store, &[doc! { "_id": 1 }, doc! { "_id": 2 }]);
        update(&store, 1, &doc! { "$set": &doc! { "a": 2 } });
        update(&store, 2, &doc! { "b": 2 });
        delete(&store, &doc! {});
        run(store.drop_collection(&namespace())).unwrap();
        let found = entries(&store, start);
        assert_eq!(names(&found), expected);
        engine.close();
        found
    };
    let engine = engine(directory.path(), 1 << 20);
    let store = engine.clone().open().unwrap();
    assert_eq!(entries(&store, start), before);
    assert_eq!(store.change_feed().unwrap().latest(), before.last().unwrap().position);
    insert(&store, &[doc! { "_id": 3 }]);
    assert_eq!(names(&entries(&store, before.last().unwrap().position)), ["create", "insert 3"]);
    assert!(run(store.validate(&Namespace::new("local", "oplog.rs"))).unwrap().findings.is_empty());
}

#[test]
fn documents_before_a_change_are_kept_on_request() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path(), 1 << 20);
    let store = engine.clone().open().unwrap();
    let options = doc! { "changeStreamPreAndPostImages": &doc! { "enabled": true } };
    run(store.create_collection(&namespace(), options.as_doc())).unwrap();
    insert(&store, &[doc! { "_id": 1 }]);
    update(&store, 1, &doc! { "a": 2 });
    delete(&store, &doc! {});
    let images: Vec<_> = entries(&store, FeedPosition::default()).iter().map(|entry| entry.before.clone()).collect();
    assert_eq!(images, [None, None, None, Some(doc! { "_id": 1 }), Some(doc! { "_id": 1, "a": 2 })]);
}

#[test]
fn deleted_history_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path(), 16 << 10);
    let store = engine.clone().open().unwrap();
    let start = store.change_feed().unwrap().latest();
    let lost = |result: error::Result<()>| result.is_err_and(|error| error.code() == Code::CHANGE_STREAM_HISTORY_LOST);
    run(store.change_feed().unwrap().check_history(FeedPosition::default())).unwrap();
    for number in 0..400 {
        insert(&store, &[doc! { "_id": number }]);
    }
    let feed = store.change_feed().unwrap();
    assert!(lost(run(feed.check_history(start))));
    run(feed.check_history(feed.latest())).unwrap();
    engine.close();
    drop(store);
    drop(engine);

    let engine = open(directory.path(), Options::default()).unwrap();
    assert!(engine.clone().open().unwrap().change_feed().is_none());
    engine.close();
    drop(engine);

    let engine = self::engine(directory.path(), 16 << 10);
    let store = engine.clone().open().unwrap();
    assert!(lost(run(store.change_feed().unwrap().read(start)).map(drop)));
    assert!(entries(&store, store.change_feed().unwrap().latest()).is_empty());
}

#[test]
fn only_the_server_writes_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path(), 1 << 20);
    let store = engine.clone().open().unwrap();
    let log = Namespace::new("local", "oplog.rs");
    let refused = run(store.write(WriteBatch::new(log.clone(), deleting(&doc! {})))).unwrap_err();
    assert_eq!(refused.code(), Code::INVALID_NAMESPACE);
    assert!(run(store.drop_collection(&log)).is_err());
    assert!(run(store.rename_collection(&log, &namespace(), false)).is_err());
}
