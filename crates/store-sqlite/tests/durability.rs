//! Acknowledged writes survive `kill -9`; a directory has one owner; the log stays short.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use bytes::Bytes;
use document::{DocBuf, Value, doc};
use query::{Context, Predicate};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use store::{
    DocumentStore, Engine, Flow, IndexSpec, Namespace, Query, RetryKey, Sink, Statements, StoredDoc, WriteBatch,
};
use store_sqlite::{Options, open};

/// Set for the child process: the directory it writes in.
const CHILD: &str = "SELKIE_TEST_WRITER_DIRECTORY";

const WRITERS: i32 = 3;

/// Small limits, so that checkpoints and restarts of the log happen under the tests' few writes.
fn options() -> Options {
    Options { checkpoint_bytes: 64 << 10, log_bytes_max: 256 << 10, ..Options::default() }
}

fn namespace() -> Namespace {
    Namespace::new("test", "things")
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn insert(store: &Rc<dyn DocumentStore>, documents: Vec<DocBuf>, retry: Option<RetryKey>) -> store::BatchOutcome {
    let statements = documents.into_iter().map(|document| Bytes::from(document.into_vec())).collect();
    let journal = retry.is_none();
    let statements = Statements::Insert(statements);
    let batch = WriteBatch { journal, retry, ..WriteBatch::new(namespace(), statements) };
    runtime().block_on(store.write(batch)).unwrap()
}

struct Ids(BTreeSet<i32>);

impl Sink for Ids {
    fn accept(&mut self, document: StoredDoc<'_>) -> error::Result<Flow> {
        if let StoredDoc::Bson(document) = document
            && let Some(Value::Int32(id)) = document.get("_id")
        {
            self.0.insert(id);
        }
        Ok(Flow::Continue)
    }
}

fn ids(store: &Rc<dyn DocumentStore>) -> BTreeSet<i32> {
    let predicate = Predicate::parse(doc! {}.as_doc(), &Context::at(0)).unwrap();
    let namespace = namespace();
    let mut sink = Ids(BTreeSet::new());
    runtime().block_on(async {
        let query = Query::of(&predicate);
        let plan = store.plan(&namespace, query).await.unwrap();
        store.scan(&*plan, None, usize::MAX, &mut sink).await.unwrap();
    });
    sink.0
}

/// Not a test of its own: the process that the next one kills. Writes without end and prints
/// acknowledged writes.
#[test]
fn child_that_is_killed() {
    let Ok(directory) = std::env::var(CHILD) else { return };
    let engine = open(Path::new(&directory), options()).unwrap();
    let store = engine.clone().open().unwrap();
    let first = ids(&store).last().map_or(0, |last| last / 1_000_000 + 1) * 1_000_000;
    let key = doc! { "text": 1 };
    let spec = doc! { "v": 2, "key": &key, "name": "text" };
    let index = IndexSpec { name: "text".into(), key, unique: false, sparse: false, spec };
    runtime().block_on(store.create_indexes(&namespace(), vec![index])).unwrap();
    let threads: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let engine = engine.clone();
            std::thread::spawn(move || write_without_end(engine, first + writer * 100_000, writer))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

fn write_without_end(engine: Arc<dyn Engine>, first: i32, writer: i32) {
    let store = engine.open().unwrap();
    // The entries of large batches are deferred.
    let size = if writer == 2 { 48 } else { 3 };
    for at in (first..).step_by(size) {
        let text = format!("{at} ").repeat(at as usize % 40);
        let documents = (at..at + size as i32).map(|id| doc! { "_id": id, "text": &text }).collect();
        // One of the writers waits for the disk, the others only for the operating system.
        let retry = (writer > 0).then(|| RetryKey { session: [writer as u8; 16], txn_number: i64::from(at) });
        let outcome = insert(&store, documents, retry);
        assert!(outcome.statements.iter().all(Result::is_ok));
        let mut out = std::io::stdout().lock();
        writeln!(out, "acknowledged {at}").and_then(|()| out.flush()).unwrap();
    }
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let mut acknowledged: Vec<i32> = Vec::new();
    for round in 1..=4 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["child_that_is_killed", "--exact", "--nocapture"])
            .env(CHILD, directory.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let numbers = lines.map_while(Result::ok).filter_map(|line| {
            // The test harness prints its own line in front of the first.
            line.split_once("acknowledged ").and_then(|(_, number)| number.parse::<i32>().ok())
        });
        let mut locked = None;
        for (count, number) in numbers.enumerate() {
            acknowledged.push(number);
            if count == 20 {
                locked = open(directory.path(), options()).err();
            }
            if count == 150 * round {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        let refusal = locked.expect("a second owner is refused");
        assert!(refusal.message().contains("in use by another Selkie (process "), "{refusal}");
        assert!(acknowledged.len() > 150);
        let engine = open(directory.path(), options()).unwrap();
        let store = engine.clone().open().unwrap();
        let found = ids(&store);
        for first in &acknowledged {
            for id in *first..*first + 3 {
                assert!(found.contains(&id), "round {round}: {id} was acknowledged and is lost");
            }
        }
        assert!(found.len().is_multiple_of(3), "a batch is there whole or not at all");
        let findings = runtime().block_on(store.validate(&namespace())).unwrap().findings;
        assert_eq!(findings, Vec::<String>::new());
        // Sent again after the crash, the last write of a session is not carried out again.
        let last = acknowledged.iter().rev().find(|id| *id % 1_000_000 / 100_000 == 1).unwrap();
        let retry = RetryKey { session: [1; 16], txn_number: i64::from(*last) };
        let documents = (*last..*last + 3).map(|id| doc! { "_id": id }).collect();
        let statements = Statements::Insert(
            Vec::into_iter(documents).map(|document: DocBuf| Bytes::from(document.into_vec())).collect(),
        );
        let batch = WriteBatch { retry: Some(retry), ..WriteBatch::new(namespace(), statements) };
        match runtime().block_on(store.write(batch)) {
            Ok(outcome) => assert!(outcome.retried && outcome.statements.iter().all(Result::is_ok)),
            // A later write of the session was carried out and not yet acknowledged.
            Err(error) => assert_eq!(error.code(), error::Code::TRANSACTION_TOO_OLD),
        }
        drop(store);
        engine.close();
    }
}

#[test]
fn the_log_stays_short_while_everyone_reads() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path(), options()).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let store = engine.clone().open().unwrap();
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                ids(&store);
            }
        });
        let store = engine.clone().open().unwrap();
        let text = "x".repeat(1000);
        for batch in 0..150 {
            let documents = (0..50).map(|at| doc! { "_id": batch * 50 + at, "text": &text }).collect();
            insert(&store, documents, Some(RetryKey { session: [1; 16], txn_number: i64::from(batch) }));
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let log = directory.path().join("selkie.sqlite-wal").metadata().unwrap().len();
    assert!(log < 3 << 20, "7.5 MB were written and the log has {log} bytes");
}

#[test]
fn a_foreign_file_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("selkie.sqlite"), "this is not a database, whatever its name says").unwrap();
    let error = open(directory.path(), Options::default()).err().unwrap();
    assert!(error.message().contains("cannot open the database in"), "{error}");
}

#[test]
fn everything_is_there_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    for round in 0..3 {
        let engine = open(directory.path(), Options::default()).unwrap();
        let store = engine.clone().open().unwrap();
        assert_eq!(ids(&store).len(), round as usize * 10);
        insert(&store, (0..10).map(|at| doc! { "_id": round * 10 + at }).collect(), None);
        let stats = runtime().block_on(store.collection_stats(&namespace())).unwrap().unwrap();
        assert_eq!(stats.documents, round as u64 * 10 + 10);
        drop(store);
        engine.close();
        assert!(!directory.path().join("selkie.sqlite-wal").exists(), "a clean end leaves one file");
    }
}

#[test]
fn a_large_collection_is_dropped_at_once_and_emptied_later() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path(), Options::default()).unwrap();
    let store = engine.clone().open().unwrap();
    let key = doc! { "_id": 1, "a": 1 };
    let spec = doc! { "v": 2, "key": &key, "name": "x" };
    let index = IndexSpec { name: "x".into(), key, unique: false, sparse: false, spec };
    runtime().block_on(store.create_indexes(&namespace(), vec![index])).unwrap();
    insert(&store, (0..12_000).map(|id| doc! { "_id": id, "a": id }).collect(), None);
    runtime().block_on(store.drop_collection(&namespace())).unwrap();
    assert_eq!(ids(&store).len(), 0);
    insert(&store, (0..10).map(|id| doc! { "_id": id }).collect(), None);
    assert_eq!(ids(&store).len(), 10);
    // The tables are dropped in the end.
    std::thread::sleep(std::time::Duration::from_millis(300));
    drop(store);
    engine.close();
    let file = rusqlite::Connection::open(directory.path().join("selkie.sqlite")).unwrap();
    let count = |sql: &str| file.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count("SELECT count(*) FROM dropped"), 0);
    assert_eq!(count("SELECT count(*) FROM sqlite_schema WHERE name GLOB '[ci][0-9]*' AND type = 'table'"), 1);
}
