//! Measures the embedded store alone, without wire or commands: microseconds of this process's CPU
//! per operation.
//!
//! `cargo run --release -p store-sqlite --example measure [directory]`; DOCUMENTS, MMAP_BYTES,
//! PAGE_BYTES and CACHE_BYTES set parameters.

#![allow(clippy::unwrap_used)]

use bytes::Bytes;
use document::{DocBuf, ObjectId, doc};
use query::{Context, Predicate};
use std::sync::Arc;
use std::time::Instant;
use store::{
    Engine, Flow, IndexSpec, Namespace, Query, ReturnImage, ScanEnd, Sink, Statements, StoredDoc, UpdateStatement,
    WriteBatch,
};
use store_sqlite::{Options, open};
use update::Update;

struct Copy(Vec<u8>, usize);

impl Sink for Copy {
    fn accept(&mut self, document: StoredDoc<'_>) -> error::Result<Flow> {
        if let StoredDoc::Bson(document) = document {
            self.0.extend_from_slice(document.as_bytes());
        }
        if self.0.len() > 4 << 20 {
            self.0.clear();
        }
        self.1 -= 1;
        Ok(if self.1 == 0 { Flow::StopAfter } else { Flow::Continue })
    }
}

fn document(number: u32) -> DocBuf {
    let filler = "x".repeat(110);
    doc! {
        "_id": ObjectId::from_parts(1_700_000_000 + number / 1000, [1, 2, 3, 4, 5], number), "n": number as i32,
        "Make": if number.is_multiple_of(12) { "Toyota" } else { "Other" }, "text": &filler, "price": f64::from(number) * 1.5,
    }
}

fn cpu_us() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let own: f64 = text.split(' ').next().and_then(|it| it.parse().ok()).unwrap_or(0.0);
    let mut total = 0.0;
    for task in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let text = std::fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        total += text.split(' ').next().and_then(|it| it.parse::<f64>().ok()).unwrap_or(0.0);
    }
    f64::max(own, total) / 1000.0
}

fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |name: &str| status.lines().find(|line| line.starts_with(name)).unwrap_or("").to_owned();
    format!("{} / {}", of("VmRSS"), of("RssAnon"))
}

struct Measure {
    runtime: tokio::runtime::Runtime,
    store: std::rc::Rc<dyn store::DocumentStore>,
    namespace: Namespace,
}

impl Measure {
    fn report(&self, name: &str, operations: u32, work: impl FnOnce(&Measure)) {
        let (cpu, time) = (cpu_us(), Instant::now());
        work(self);
        let time = time.elapsed().as_secs_f64() * 1e6 / f64::from(operations);
        let cpu = (cpu_us() - cpu) / f64::from(operations);
        println!("{name:44} {time:10.2} us  {cpu:10.2} us CPU    {}", memory());
    }

    fn write(&self, statements: Statements, journal: bool) {
        let batch = WriteBatch { journal, ..WriteBatch::new(self.namespace.clone(), statements) };
        let outcome = self.runtime.block_on(self.store.write(batch)).unwrap();
        assert!(outcome.statements.iter().all(Result::is_ok));
    }

    fn insert(&self, numbers: std::ops::Range<u32>) {
        self.write(Statements::Insert(numbers.map(|number| Bytes::from(document(number).into_vec())).collect()), false);
    }

    fn scan(&self, filter: &DocBuf, wanted: usize) -> usize {
        let predicate = Predicate::parse(filter.as_doc(), &Context::at(0)).unwrap();
        let query = Query::of(&predicate);
        self.runtime.block_on(async {
            let plan = self.store.plan(&self.namespace, query).await.unwrap();
            let mut sink = Copy(Vec::with_capacity(5 << 20), wanted);
            let end = self.store.scan(&*plan, None, wanted, &mut sink).await.unwrap();
            assert!(sink.1 == 0 || end == ScanEnd::Exhausted);
            wanted - sink.1
        })
    }
}

fn main() {
    let directory = std::env::args().nth(1).unwrap_or_else(|| "/tmp/selkie-measure".into());
    let _ = std::fs::remove_dir_all(&directory);
    println!("{:44} idle before {}", "", memory());
    let documents = std::env::var("DOCUMENTS").ok().and_then(|text| text.parse().ok()).unwrap_or(100_000);
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let mut options = Options::default();
    options.mmap_bytes = number("MMAP_BYTES").unwrap_or(options.mmap_bytes);
    options.page_bytes = number("PAGE_BYTES").map_or(options.page_bytes, |bytes| bytes as u32);
    options.reader_cache_bytes = number("CACHE_BYTES").map_or(options.reader_cache_bytes, |bytes| bytes as usize);
    let engine: Arc<dyn Engine> = open(std::path::Path::new(&directory), options).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = engine.clone().open().unwrap();
    let measure = Measure { runtime, store, namespace: Namespace::new("bench", "cars") };
    println!("{:44} idle {}, document {} bytes", "", memory(), document(1).as_bytes().len());
    measure.report("make documents (to subtract)", documents, |_| {
        (0..documents).for_each(|number| drop(std::hint::black_box(document(number))));
    });
    measure.report("insert in batches of 10,000, per document", documents, |it| {
        (0..documents).step_by(10_000).for_each(|from| it.insert(from..from + 10_000));
    });
    measure.report("insert in batches of 100, per document", 20_000, |it| {
        (documents..documents + 20_000).step_by(100).for_each(|from| it.insert(from..from + 100));
    });
    measure.report("insert one by one", 5_000, |it| {
        (documents + 20_000..documents + 25_000).for_each(|from| it.insert(from..from + 1));
    });
    let ids: Vec<DocBuf> =
        (0..20_000).map(|it| doc! { "_id": document(it * 7919 % documents).as_doc().get("_id").unwrap() }).collect();
    measure.report("lookup by _id", 20_000, |it| {
        ids.iter().for_each(|id| assert_eq!(it.lookup(id), 1));
    });
    measure.report("lookup by _id, 5 hot", 20_000, |it| {
        (0..20_000).for_each(|at| assert_eq!(it.lookup(&ids[at % 5]), 1));
    });
    measure.report("first 101", 1_000, |it| (0..1_000).for_each(|_| assert_eq!(it.scan(&doc! {}, 101), 101)));
    measure
        .report("first 10,000, each", 100, |it| (0..100).for_each(|_| assert_eq!(it.scan(&doc! {}, 10_000), 10_000)));
    measure.report("all", 3, |it| {
        (0..3).for_each(|_| assert_eq!(it.scan(&doc! {}, usize::MAX), documents as usize + 25_000))
    });
    measure.report("update one by _id", 5_000, |it| {
        ids.iter().take(5_000).for_each(|id| {
            let change = doc! { "$inc": &doc! { "n": 1 } };
            it.write(
                Statements::Update(vec![UpdateStatement {
                    predicate: Predicate::parse(id.as_doc(), &Context::at(0)).unwrap(),
                    sort: None,
                    update: Update::parse(document::Value::Document(change.as_doc()), None, &Context::at(0)).unwrap(),
                    multi: false,
                    upsert: false,
                    new_id: ObjectId([0; 12]),
                    hint: None,
                    image: ReturnImage::None,
                }]),
                false,
            );
        });
    });
    let spec = doc! { "v": 2, "key": &doc! { "n": 1 }, "name": "n_1" };
    let index = IndexSpec { name: "n_1".into(), key: doc! { "n": 1 }, unique: false, sparse: false, spec };
    measure.report("createIndexes, per document", documents + 25_000, |it| {
        it.runtime.block_on(it.store.create_indexes(&it.namespace, vec![index])).unwrap();
    });
    measure.report("lookup by n", 5_000, |it| {
        (0..5_000).for_each(|at| assert!(it.scan_few(&doc! { "n": 30_000 + at }) < 4));
    });
    measure.report("insert 10,000 with an index, per document", 10_000, |it| {
        it.insert(documents + 25_000..documents + 35_000);
    });
    measure.report("insert one by one, journaled", 200, |it| {
        (documents + 35_000..documents + 35_200)
            .for_each(|at| it.write(Statements::Insert(vec![Bytes::from(document(at).into_vec())]), true));
    });
    drop(measure);
    engine.close();
    println!("{:44} closed {}", "", memory());
    for entry in std::fs::read_dir(&directory).unwrap().flatten() {
        println!("{:?} {} bytes", entry.file_name(), entry.metadata().unwrap().len());
    }
}

impl Measure {
    fn lookup(&self, id: &DocBuf) -> usize {
        self.scan_few(id)
    }

    fn scan_few(&self, filter: &DocBuf) -> usize {
        let predicate = Predicate::parse(filter.as_doc(), &Context::at(0)).unwrap();
        let query = Query::of(&predicate);
        self.runtime.block_on(async {
            let plan = self.store.plan(&self.namespace, query).await.unwrap();
            let mut sink = Copy(Vec::with_capacity(512), 1000);
            self.store.scan(&*plan, None, 1000, &mut sink).await.unwrap();
            1000 - sink.1
        })
    }
}
