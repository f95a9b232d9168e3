//! Indexes built on a collection while other sessions write to it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use bytes::Bytes;
use document::{DocBuf, ObjectId, Value, doc};
use error::Code;
use query::{Context, Predicate};
use std::rc::Rc;
use store::{
    DeleteStatement, DocumentStore, IndexSpec, Namespace, Query, ReturnImage, Statements, UpdateStatement, WriteBatch,
};
use store_sqlite::{Options, open};
use update::Update;

const DOCUMENTS: i32 = 40_000;

fn namespace() -> Namespace {
    Namespace::new("d", "c")
}

fn index(name: &str, key: DocBuf, unique: bool) -> IndexSpec {
    let spec = doc! { "v": 2, "key": &key, "name": name, "unique": unique };
    IndexSpec { name: name.into(), key, unique, sparse: false, spec }
}

async fn write(store: &Rc<dyn DocumentStore>, statements: Statements) {
    let batch = WriteBatch::new(namespace(), statements);
    for statement in store.write(batch).await.unwrap().statements {
        statement.unwrap();
    }
}

async fn insert(store: &Rc<dyn DocumentStore>, ids: std::ops::Range<i32>) {
    let document = |id: i32| {
        Bytes::from(doc! { "_id": id, "n": id, "group": id % 7, "list": &document::array![id, -id] }.into_vec())
    };
    write(store, Statements::Insert(ids.map(document).collect())).await;
}

fn by_id(id: i32) -> Predicate {
    Predicate::parse(doc! { "_id": id }.as_doc(), &Context::at(0)).unwrap()
}

async fn change(store: &Rc<dyn DocumentStore>, id: i32) {
    let change = doc! { "$set": &doc! { "n": id + 1_000_000, "list": id } };
    let update = Update::parse(Value::Document(change.as_doc()), None, &Context::at(0)).unwrap();
    let statement = UpdateStatement {
        predicate: by_id(id),
        sort: None,
        update,
        multi: false,
        upsert: false,
        new_id: ObjectId([0; 12]),
        hint: None,
        image: ReturnImage::None,
    };
    write(store, Statements::Update(vec![statement])).await;
}

async fn delete(store: &Rc<dyn DocumentStore>, id: i32) {
    let statement =
        DeleteStatement { predicate: by_id(id), sort: None, one: true, hint: None, image: ReturnImage::None };
    write(store, Statements::Delete(vec![statement])).await;
}

/// Changes, deletes and inserts in the whole collection until `done`. Returns how many of each.
async fn write_meanwhile(store: &Rc<dyn DocumentStore>, done: &std::cell::Cell<bool>) -> i32 {
    let mut round = 0_i32;
    while !done.get() {
        let id = round.wrapping_mul(7919).rem_euclid(DOCUMENTS);
        change(store, id).await;
        delete(store, (id + 1) % DOCUMENTS).await;
        insert(store, DOCUMENTS + round..DOCUMENTS + round + 1).await;
        round += 1;
    }
    round
}

async fn counted(store: &Rc<dyn DocumentStore>, filter: DocBuf) -> (Option<u64>, String) {
    let predicate = Predicate::parse(filter.as_doc(), &Context::at(0)).unwrap();
    let query = Query::of(&predicate);
    let namespace = namespace();
    let plan = store.plan(&namespace, query).await.unwrap();
    (store.count(&*plan, None).await.unwrap(), format!("{:?}", plan.winning_plan()))
}

#[tokio::test(flavor = "current_thread")]
async fn writes_go_on_while_an_index_is_built() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path(), Options::default()).unwrap();
    let store = engine.clone().open().unwrap();
    for from in (0..DOCUMENTS).step_by(1000) {
        insert(&store, from..from + 1000).await;
    }
    let done = std::cell::Cell::new(false);
    let namespace = namespace();
    let build = async {
        let wanted = vec![index("n", doc! { "n": -1 }, true), index("list", doc! { "list": 1, "group": 1 }, false)];
        let outcome = store.create_indexes(&namespace, wanted).await;
        done.set(true);
        outcome.unwrap()
    };
    let (outcome, written) = tokio::join!(build, write_meanwhile(&store, &done));
    assert_eq!((outcome.indexes_before, outcome.indexes_after), (1, 3));
    assert!(written > 3, "{written} writes went in between");
    assert_eq!(store.validate(&namespace).await.unwrap().findings, Vec::<String>::new());
    let (count, plan) = counted(&store, doc! { "n": &doc! { "$gte": 1_000_000 } }).await;
    assert!(plan.contains("IXSCAN") && count.is_some(), "{plan} {count:?}");
}

#[tokio::test(flavor = "current_thread")]
async fn a_build_that_fails_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path(), Options::default()).unwrap();
    let store = engine.clone().open().unwrap();
    for from in (0..DOCUMENTS).step_by(1000) {
        insert(&store, from..from + 1000).await;
    }
    let done = std::cell::Cell::new(false);
    let namespace = namespace();
    let build = async {
        let wanted = vec![index("n", doc! { "n": 1 }, false), index("group", doc! { "group": 1 }, true)];
        let outcome = store.create_indexes(&namespace, wanted).await;
        done.set(true);
        outcome.unwrap_err()
    };
    let (error, _) = tokio::join!(build, write_meanwhile_elsewhere(&store, &done));
    assert_eq!(error.code(), Code::DUPLICATE_KEY, "{error:?}");
    assert_eq!(store.indexes(&namespace).await.unwrap().unwrap().len(), 1);
    assert_eq!(store.validate(&namespace).await.unwrap().findings, Vec::<String>::new());
    insert(&store, DOCUMENTS + 10..DOCUMENTS + 20).await;
    let outcome = store.create_indexes(&namespace, vec![index("n", doc! { "n": 1 }, true)]).await.unwrap();
    assert_eq!(outcome.indexes_after, 2);
    assert_eq!(store.validate(&namespace).await.unwrap().findings, Vec::<String>::new());
}

/// Changes that do not affect the index being built.
async fn write_meanwhile_elsewhere(store: &Rc<dyn DocumentStore>, done: &std::cell::Cell<bool>) {
    let mut id = 0;
    while !done.get() {
        change(store, id).await;
        id += 1;
    }
}

#[tokio::test(flavor = "current_thread")]
async fn other_collections_are_defined_while_an_index_is_built() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path(), Options::default()).unwrap();
    let store = engine.clone().open().unwrap();
    for from in (0..DOCUMENTS).step_by(1000) {
        insert(&store, from..from + 1000).await;
    }
    let done = std::cell::Cell::new(false);
    let namespace = namespace();
    let build = async {
        let wanted = vec![index("n", doc! { "n": -1 }, true), index("list", doc! { "list": 1, "group": 1 }, false)];
        let outcome = store.create_indexes(&namespace, wanted).await;
        done.set(true);
        outcome.unwrap()
    };
    let define = async {
        let mut rounds = 0;
        while !done.get() {
            let (first, second) = (Namespace::new("d", "first"), Namespace::new("other", "second"));
            store.create_collection(&first, doc! {}.as_doc()).await.unwrap();
            let document = Bytes::from(doc! { "_id": 1, "n": 1, "list": 1 }.into_vec());
            store.write(WriteBatch::new(first.clone(), Statements::Insert(vec![document]))).await.unwrap();
            let wanted = vec![index("n", doc! { "n": 1 }, true), index("list", doc! { "list": 1 }, false)];
            let outcome = store.create_indexes(&first, wanted).await.unwrap();
            assert_eq!(outcome.indexes_after, 3);
            store.rename_collection(&first, &second, false).await.unwrap();
            assert_eq!(store.validate(&second).await.unwrap().findings, Vec::<String>::new());
            assert!(store.drop_database("other").await.unwrap());
            change(&store, rounds).await;
            rounds += 1;
        }
        rounds
    };
    let (outcome, rounds) = tokio::join!(build, define);
    assert_eq!((outcome.indexes_before, outcome.indexes_after), (1, 3));
    assert!(rounds > 3, "{rounds} times others were defined in between");
    assert_eq!(store.validate(&namespace).await.unwrap().findings, Vec::<String>::new());
    assert_eq!(store.collections("d").await.unwrap().len(), 1);
}
