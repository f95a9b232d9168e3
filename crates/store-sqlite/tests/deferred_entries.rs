//! Deferred index entries are never visible as missing.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use bytes::Bytes;
use document::{DocBuf, ObjectId, Value, doc};
use query::{Context, Predicate};
use std::rc::Rc;
use store::{
    BatchOutcome, DeleteStatement, DocumentStore, Engine, Flow, IndexSpec, Namespace, Query, ReturnImage, Sink,
    Statements, StoredDoc, UpdateStatement, WriteBatch,
};
use store_sqlite::{Options, open};
use update::Update;

fn namespace() -> Namespace {
    Namespace::new("test", "things")
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn write(store: &Rc<dyn DocumentStore>, statements: Statements) -> BatchOutcome {
    let batch = WriteBatch { ordered: false, ..WriteBatch::new(namespace(), statements) };
    wait(store.write(batch)).unwrap()
}

fn insert(store: &Rc<dyn DocumentStore>, ids: std::ops::Range<i32>) -> BatchOutcome {
    let document = |id: i32| Bytes::from(doc! { "_id": id, "a": id % 7, "b": id % 5, "u": id / 2 * 2 }.into_vec());
    write(store, Statements::Insert(ids.map(document).collect()))
}

fn predicate(filter: DocBuf) -> Predicate {
    Predicate::parse(filter.as_doc(), &Context::at(0)).unwrap()
}

#[derive(Default)]
struct Ids(Vec<i32>);

impl Sink for Ids {
    fn accept(&mut self, document: StoredDoc<'_>) -> error::Result<Flow> {
        if let StoredDoc::Bson(document) = document
            && let Some(Value::Int32(id)) = document.get("_id")
        {
            self.0.push(id);
        }
        Ok(Flow::Continue)
    }
}

/// Returns the documents that an index finds.
fn found(store: &Rc<dyn DocumentStore>, filter: DocBuf) -> Vec<i32> {
    let (namespace, predicate) = (namespace(), predicate(filter));
    let mut ids = Ids::default();
    wait(async {
        let query = Query::of(&predicate);
        let plan = store.plan(&namespace, query).await.unwrap();
        assert!(format!("{:?}", plan.winning_plan()).contains("IXSCAN"), "{:?}", plan.winning_plan());
        store.scan(&*plan, None, usize::MAX, &mut ids).await.unwrap();
    });
    ids.0.sort_unstable();
    ids.0
}

fn with_indexes(directory: &std::path::Path) -> (std::sync::Arc<dyn Engine>, Rc<dyn DocumentStore>) {
    let engine = open(directory, Options::default()).unwrap();
    let store = engine.clone().open().unwrap();
    let index = |field: &str, unique: bool| {
        let mut key = DocBuf::new();
        key.append(field, 1);
        let spec = doc! { "v": 2, "key": &key, "name": field, "unique": unique };
        IndexSpec { name: field.into(), key, unique, sparse: false, spec }
    };
    wait(store.create_indexes(&namespace(), vec![index("a", false), index("u", true), index("b", false)])).unwrap();
    (engine, store)
}

fn check(store: &Rc<dyn DocumentStore>) {
    assert_eq!(wait(store.validate(&namespace())).unwrap().findings, Vec::<String>::new());
}

#[test]
fn whoever_looks_finds_everything() {
    let directory = tempfile::tempdir().unwrap();
    let (engine, store) = with_indexes(directory.path());
    for batch in 0..20 {
        // Every second document has the same key as the one before it.
        let outcome = insert(&store, batch * 100..batch * 100 + 100);
        assert_eq!(outcome.statements.iter().filter(|one| one.is_ok()).count(), 50);
        check(&store);
        if batch % 3 == 0 {
            let expected: Vec<i32> = (0..batch * 100 + 100).filter(|id| id % 2 == 0 && id % 7 == 3).collect();
            assert_eq!(found(&store, doc! { "a": 3 }), expected);
            check(&store);
        }
        // A read by one index applies its entries; another still lacks them.
        if batch % 4 == 1 {
            let expected: Vec<i32> = (0..batch * 100 + 100).filter(|id| id % 2 == 0 && id % 5 == 2).collect();
            assert_eq!(found(&store, doc! { "b": 2 }), expected);
        }
        if batch % 7 == 0 {
            std::thread::sleep(std::time::Duration::from_millis(120));
        }
    }
    drop(store);
    engine.close();
}

#[test]
fn what_was_just_inserted_can_be_changed() {
    let directory = tempfile::tempdir().unwrap();
    let (engine, store) = with_indexes(directory.path());
    insert(&store, 0..200);
    let update = |filter: DocBuf, change: DocBuf| UpdateStatement {
        predicate: predicate(filter),
        update: Update::parse(Value::Document(change.as_doc()), None, &Context::at(0)).unwrap(),
        sort: None,
        multi: false,
        upsert: false,
        new_id: ObjectId([0; 12]),
        hint: None,
        image: ReturnImage::None,
    };
    let change = doc! { "$set": &doc! { "a": 100 } };
    let outcome = write(&store, Statements::Update(vec![update(doc! { "_id": 10 }, change)]));
    assert_eq!(outcome.statements[0].as_ref().unwrap().modified, 1);
    insert(&store, 200..400);
    let delete = DeleteStatement {
        predicate: predicate(doc! { "a": 4 }),
        one: false,
        hint: None,
        sort: None,
        image: ReturnImage::None,
    };
    let outcome = write(&store, Statements::Delete(vec![delete]));
    assert_eq!(outcome.statements[0].as_ref().unwrap().matched, (0..400).filter(|id| id % 14 == 4).count() as u64);
    assert_eq!(found(&store, doc! { "a": 100 }), [10]);
    assert_eq!(found(&store, doc! { "a": 4 }), Vec::<i32>::new());
    check(&store);
    drop(store);
    engine.close();
}

#[test]
fn the_end_and_the_next_start_leave_nothing_late() {
    let directory = tempfile::tempdir().unwrap();
    let (engine, store) = with_indexes(directory.path());
    insert(&store, 0..30_000);
    insert(&store, 30_000..30_100);
    drop(store);
    engine.close();
    // By the VFS that writes checksums.
    let (path, flags) = (directory.path().join("selkie.sqlite"), rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE);
    let file = rusqlite::Connection::open_with_flags_and_vfs(path, flags, "selkie").unwrap();
    assert_eq!(file.query_row("SELECT count(*) FROM late", [], |row| row.get::<_, i64>(0)).unwrap(), 0);
    // As if the process had died in between.
    file.execute_batch("DELETE FROM i1 WHERE seq % 3 = 0 AND seq >= 500; INSERT INTO late VALUES(1, 500)").unwrap();
    drop(file);
    let (engine, store) = with_indexes(directory.path());
    check(&store);
    assert_eq!(found(&store, doc! { "a": 5 }).len(), (0..30_100).filter(|id| id % 2 == 0 && id % 7 == 5).count());
    drop(store);
    engine.close();
}
