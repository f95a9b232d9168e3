//! Batches that are carried out in parts and on workers, many at once: the result equals that of
//! some order of the statements, and each is carried out once.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use bytes::Bytes;
use document::{DocBuf, ObjectId, Value, array, doc};
use error::{Code, Error};
use query::{Context, Predicate};
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Barrier};
use store::{
    BatchOutcome, DeleteStatement, DocumentStore, Engine, Flow, IndexSpec, Namespace, Query, RetryKey, ReturnImage,
    Sink, Statements, StoredDoc, UpdateStatement, WriteBatch,
};
use store_sqlite::{Options, open};
use update::Update;

/// More than the writer reads to find one.
const DOCUMENTS: i32 = 2_300;
/// The documents that are changed, few enough that statements conflict.
const CHANGED: u32 = 6;
const ROUNDS: u32 = 5;
const STATEMENTS: u32 = 16;

fn namespace() -> Namespace {
    Namespace::new("d", "c")
}

fn open_at(directory: &Path) -> Arc<dyn Engine> {
    open(directory, Options::default()).unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn write(store: &Rc<dyn DocumentStore>, batch: WriteBatch) -> Result<BatchOutcome, Error> {
    runtime().block_on(store.write(batch))
}

fn predicate(filter: &DocBuf) -> Predicate {
    Predicate::parse(filter.as_doc(), &Context::at(0)).unwrap()
}

fn update(filter: &DocBuf, change: Value<'_>) -> UpdateStatement {
    UpdateStatement {
        predicate: predicate(filter),
        sort: None,
        update: Update::parse(change, None, &Context::at(0)).unwrap(),
        multi: false,
        upsert: false,
        new_id: ObjectId([0; 12]),
        hint: None,
        image: ReturnImage::None,
    }
}

fn fill(store: &Rc<dyn DocumentStore>) {
    let document = |id: i32| doc! { "_id": id, "name": format!("d{id}").as_str(), "n": 0, "m": 0, "log": &array![] };
    let documents = (0..DOCUMENTS).map(|id| Bytes::from(document(id).into_vec())).collect();
    write(store, WriteBatch::new(namespace(), Statements::Insert(documents))).unwrap();
    let key = doc! { "n": 1, "log": 1 };
    let spec = doc! { "v": 2, "key": &key, "name": "n" };
    let index = IndexSpec { name: "n".into(), key, unique: false, sparse: false, spec };
    runtime().block_on(store.create_indexes(&namespace(), vec![index])).unwrap();
}

/// Appends a number to a document's log and counts it, in one of the ways in which a statement may
/// be carried out.
fn append(number: i32, chance: u32) -> UpdateStatement {
    let id = (chance % CHANGED) as i32;
    let by_id = doc! { "_id": id };
    let by_search = doc! { "name": format!("d{id}").as_str() };
    let push = doc! { "$push": &doc! { "log": number }, "$inc": &doc! { "n": 1 } };
    let pipeline = |work: i32| {
        let range = doc! { "$range": &array![0, work] };
        let size =
            doc! { "$size": &doc! { "$map": &doc! { "input": &range, "in": &doc! { "$add": &array!["$$this", 1] } } } };
        // All of the work has no effect.
        let one = doc! { "$min": &array![&size, 1] };
        let sum = doc! { "$add": &array!["$n", &one] };
        let log = doc! { "$concatArrays": &array!["$log", &array![number]] };
        array![&doc! { "$set": &doc! { "n": &sum, "log": &log } }]
    };
    match chance / CHANGED % 40 {
        0..14 => update(&by_id, Value::Document(push.as_doc())),
        14..28 => update(&by_search, Value::Document(push.as_doc())),
        28..34 => update(&by_search, pipeline(1).as_value()),
        34..39 => update(&by_id, pipeline(1).as_value()),
        // Too slow for the writer.
        _ => update(&by_id, pipeline(120_000).as_value()),
    }
}

/// Returns a session's batch: its numbers are its own, and ascend.
fn batch(session: u32, round: u32, image: ReturnImage) -> Vec<UpdateStatement> {
    let statement = |at: u32| {
        let number = session * 1_000_000 + round * 1000 + at;
        let chance = number.wrapping_mul(2_654_435_761) >> 7;
        UpdateStatement { image, ..append(number as i32, chance) }
    };
    (0..STATEMENTS).map(statement).collect()
}

#[derive(Default)]
struct All(Vec<DocBuf>);

impl Sink for All {
    fn accept(&mut self, document: StoredDoc<'_>) -> error::Result<Flow> {
        if let StoredDoc::Bson(document) = document {
            self.0.push(document.to_owned());
        }
        Ok(Flow::Continue)
    }
}

fn all(store: &Rc<dyn DocumentStore>) -> Vec<DocBuf> {
    let (namespace, everything) = (namespace(), predicate(&doc! {}));
    let mut all = All::default();
    runtime().block_on(async {
        let plan = store.plan(&namespace, Query::of(&everything)).await.unwrap();
        store.scan(&*plan, None, usize::MAX, &mut all).await.unwrap();
    });
    all.0
}

fn number(document: &DocBuf, field: &str) -> i64 {
    match document.as_doc().get(field) {
        Some(Value::Int32(number)) => number.into(),
        Some(Value::Int64(number)) => number,
        other => panic!("{field} is {other:?}"),
    }
}

fn log(document: &DocBuf) -> Vec<i32> {
    let Some(Value::Array(log)) = document.as_doc().get("log") else { panic!("no log: {document:?}") };
    log.values().map(|value| if let Value::Int32(number) = value { number } else { panic!("{value:?}") }).collect()
}

fn assert_valid(store: &Rc<dyn DocumentStore>) {
    let validation = runtime().block_on(store.validate(&namespace())).unwrap();
    assert_eq!(validation.findings, Vec::<String>::new());
}

#[test]
fn statements_at_once_are_as_some_order_of_them() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open_at(directory.path());
    let store = engine.clone().open().unwrap();
    fill(&store);
    // Two threads send the batches of session 0, as a client does that sends one again while the
    // first is running.
    let sessions = [0, 0, 1, 2, 3];
    let barrier = Barrier::new(2);
    let (images, counted) = std::thread::scope(|scope| {
        let threads: Vec<_> = sessions
            .into_iter()
            .map(|session| {
                let (engine, barrier) = (engine.clone(), &barrier);
                scope.spawn(move || run_session(&engine.open().unwrap(), session, barrier))
            })
            .collect();
        let engine = engine.clone();
        let counting = scope.spawn(move || count_all(&engine.open().unwrap()));
        let images: Vec<DocBuf> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        (images, counting.join().unwrap())
    });
    let documents = all(&store);
    let mut numbers = Vec::new();
    for document in &documents {
        let log = log(document);
        assert_eq!(number(document, "n"), log.len() as i64, "an update is lost in part");
        for session in 0..4 {
            let own: Vec<i32> = log.iter().copied().filter(|number| number / 1_000_000 == session).collect();
            assert!(own.is_sorted(), "session {session} is out of order: {own:?}");
        }
        numbers.extend(log);
    }
    numbers.sort_unstable();
    let expected: Vec<i32> = (0..4)
        .flat_map(|session| (0..ROUNDS as i32).map(move |round| session * 1_000_000 + round * 1000))
        .flat_map(|first| first..first + STATEMENTS as i32)
        .collect();
    assert_eq!(numbers, expected, "each statement is carried out once");
    let total: i64 = documents.iter().map(|document| number(document, "m")).sum();
    assert_eq!(total as u64, counted, "what updates of many counted is what they did");
    // Each statement has seen the results of those before.
    let logs: BTreeMap<i64, Vec<i32>> = documents.iter().map(|it| (number(it, "_id"), log(it))).collect();
    for image in images {
        let seen = log(&image);
        assert!(logs[&number(&image, "_id")].starts_with(&seen), "{seen:?}");
    }
    assert_valid(&store);
}

/// Sends a session's batches. Returns the images of its statements.
fn run_session(store: &Rc<dyn DocumentStore>, session: u32, barrier: &Barrier) -> Vec<DocBuf> {
    let mut images = Vec::new();
    for round in 0..ROUNDS {
        let image = if session == 3 { ReturnImage::After } else { ReturnImage::None };
        let statements = Statements::Update(batch(session, round, image));
        let retry = (session < 2).then(|| RetryKey { session: [session as u8; 16], txn_number: i64::from(round) });
        let journal = round % 4 == 3;
        let outcome = write(store, WriteBatch { retry, journal, ..WriteBatch::new(namespace(), statements) }).unwrap();
        assert_eq!(outcome.statements.len(), STATEMENTS as usize);
        for outcome in outcome.statements {
            let outcome = outcome.unwrap();
            assert_eq!((outcome.matched, outcome.modified), (1, 1));
            images.extend(outcome.image);
        }
        if session == 0 {
            barrier.wait();
        }
    }
    images
}

/// Updates all documents again and again, while others change some of them.
fn count_all(store: &Rc<dyn DocumentStore>) -> u64 {
    let change = doc! { "$inc": &doc! { "m": 1 } };
    let everything = || UpdateStatement {
        multi: true,
        ..update(&doc! { "n": &doc! { "$gte": 0 } }, Value::Document(change.as_doc()))
    };
    let mut counted = 0;
    for _ in 0..4 {
        let outcome = write(store, WriteBatch::new(namespace(), Statements::Update(vec![everything()]))).unwrap();
        let outcome = outcome.statements.into_iter().next().unwrap().unwrap();
        assert_eq!(outcome.matched, DOCUMENTS as u64);
        counted += outcome.modified;
    }
    counted
}

#[test]
fn each_document_is_taken_by_one() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open_at(directory.path());
    let store = engine.clone().open().unwrap();
    fill(&store);
    let taken: usize = std::thread::scope(|scope| {
        let take = |thread: u32| {
            let engine = engine.clone();
            scope.spawn(move || {
                let store = engine.open().unwrap();
                let statement = || DeleteStatement {
                    predicate: predicate(
                        &doc! { "name": &doc! { "$in": &array!["d1", "d2", "d3", "d4", "d5", "d6", "d7"] } },
                    ),
                    sort: None,
                    one: true,
                    hint: None,
                    image: ReturnImage::Before,
                };
                let statements: Vec<_> = (0..3 + thread).map(|_| statement()).collect();
                let outcome = write(&store, WriteBatch::new(namespace(), Statements::Delete(statements))).unwrap();
                outcome.statements.into_iter().filter(|outcome| outcome.as_ref().unwrap().matched == 1).count()
            })
        };
        let threads: Vec<_> = (0..4).map(take).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(taken, 7);
    assert_eq!(all(&store).len(), DOCUMENTS as usize - 7);
    assert_valid(&store);
}

#[test]
fn an_error_in_the_middle_ends_an_ordered_batch_alone() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open_at(directory.path());
    let store = engine.clone().open().unwrap();
    fill(&store);
    let by_search = |id: i32| doc! { "name": format!("d{id}").as_str() };
    let good = doc! { "$inc": &doc! { "m": 1 } };
    let bad = doc! { "$inc": &doc! { "name": 1 } };
    for ordered in [true, false] {
        let statement = |(id, change): (i32, &DocBuf)| update(&by_search(id), Value::Document(change.as_doc()));
        let statements = Statements::Update((0..).zip([&good, &bad, &good]).map(statement).collect());
        let outcome = write(&store, WriteBatch { ordered, ..WriteBatch::new(namespace(), statements) }).unwrap();
        let codes: Vec<Option<Code>> =
            outcome.statements.iter().map(|it| it.as_ref().err().map(|error| error.code())).collect();
        let rest = if ordered { vec![] } else { vec![None] };
        assert_eq!(codes, [vec![None, Some(Code::TYPE_MISMATCH)], rest].concat());
        assert_eq!(outcome.access.len(), codes.len());
    }
    let upsert = UpdateStatement { upsert: true, ..update(&doc! { "name": "new" }, Value::Document(good.as_doc())) };
    let outcome = write(&store, WriteBatch::new(namespace(), Statements::Update(vec![upsert]))).unwrap();
    assert!(outcome.statements[0].as_ref().unwrap().upserted.is_some());
    assert_eq!(all(&store).len(), DOCUMENTS as usize + 1);
    assert_valid(&store);
}

#[test]
fn a_document_that_cannot_be_changed_leaves_those_before_it_changed() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open_at(directory.path());
    let store = engine.clone().open().unwrap();
    fill(&store);
    let names = array!["d0", "d1", "d2", "d3", "d4", "d5"];
    let by_id = doc! { "_id": &doc! { "$lt": 6 } };
    // The worker searches for these.
    let by_search = doc! { "name": &doc! { "$in": &names } };
    for (filter, m) in [(by_id, 1), (by_search, 2)] {
        // Fails at the fourth document.
        let fails = doc! { "$divide": &array![1, &doc! { "$subtract": &array!["$_id", 3] }] };
        let set = doc! { "m": &doc! { "$add": &array!["$m", 1] }, "n": &fails };
        let pipeline = array![&doc! { "$set": &set }];
        let statement = UpdateStatement { multi: true, ..update(&filter, pipeline.as_value()) };
        let outcome = write(&store, WriteBatch::new(namespace(), Statements::Update(vec![statement]))).unwrap();
        assert!(outcome.statements[0].is_err());
        let counts: Vec<i64> = all(&store).iter().take(6).map(|document| number(document, "m")).collect();
        assert_eq!(counts, [m, m, m, 0, 0, 0]);
    }
    assert_valid(&store);
}

#[test]
fn a_stopped_batch_keeps_what_it_did_and_goes_on_when_sent_again() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open_at(directory.path());
    let store = engine.clone().open().unwrap();
    fill(&store);
    let statements = || {
        let change = doc! { "$inc": &doc! { "m": 1 } };
        let one = |id: i32| update(&doc! { "name": format!("d{id}").as_str() }, Value::Document(change.as_doc()));
        Statements::Update((0..400).map(one).collect())
    };
    let retry = RetryKey { session: [7; 16], txn_number: 1 };
    let batch = || WriteBatch { retry: Some(retry.clone()), ..WriteBatch::new(namespace(), statements()) };
    let stopped = batch();
    let progress = stopped.progress.clone();
    let outcome = runtime().block_on(async {
        let stop = async {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            progress.stop(Error::new(Code::INTERRUPTED, "operation was interrupted"));
        };
        futures_util::future::join(store.write(stopped), stop).await.0
    });
    assert_eq!(outcome.unwrap_err().code(), Code::INTERRUPTED);
    let counts = || all(&store).iter().map(|document| number(document, "m")).collect::<Vec<_>>();
    let done: i64 = counts().iter().sum();
    assert!((1..400).contains(&done), "{done} statements were carried out");
    let outcome = write(&store, batch()).unwrap();
    assert!(outcome.retried && outcome.statements.iter().all(|it| it.as_ref().unwrap().modified == 1));
    assert_eq!(outcome.statements.len(), 400);
    assert_eq!(counts()[..400], [1; 400]);
    assert_eq!(write(&store, batch()).unwrap().statements.len(), 400);
    assert_eq!(counts().iter().sum::<i64>(), 400);
    // A newer write of the session excludes the older one.
    let newer = RetryKey { txn_number: 2, ..retry.clone() };
    write(&store, WriteBatch { retry: Some(newer), ..batch() }).unwrap();
    assert_eq!(write(&store, batch()).unwrap_err().code(), Code::TRANSACTION_TOO_OLD);
}
