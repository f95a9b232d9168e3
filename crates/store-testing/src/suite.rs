//! What every store has to do, as tests that any store can run: [`contract`] for one session after the other, [`races`] for
//! many at once.
//!
//! A store's own test opens an engine and hands it over. Each check works in a database of its own, which it drops first.

// These are tests: what is not as expected ends them.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod catalog;
mod models;
mod push;
mod race;
mod random;
mod reading;
mod writing;

use crate::*;
use bytes::Bytes;
use document::{Doc, DocBuf, ObjectId, Value, ValueBuf};
use query::{Context, Predicate};
use std::future::Future;
use update::Update;

/// Makes BSON of what a store's scan gives.
pub type Decode = fn(StoredDoc<'_>) -> DocBuf;

/// For stores that give BSON.
pub fn as_bson(document: StoredDoc<'_>) -> DocBuf {
    match document {
        StoredDoc::Bson(document) => document.to_owned(),
        StoredDoc::Json(_) => panic!("this store gives JSON"),
    }
}

/// Runs every check that one session can make.
pub fn contract(engine: Arc<dyn Engine>, decode: Decode) {
    let check = |name: &str, check: fn(&Suite)| {
        let suite = Suite::open(engine.clone(), decode, name);
        suite.run(suite.store.drop_database(&suite.namespace.database)).unwrap();
        check(&suite);
        suite.run(suite.store.drop_database(&suite.namespace.database)).unwrap();
    };
    reading::checks().into_iter().for_each(|(name, run)| check(name, run));
    writing::checks().into_iter().for_each(|(name, run)| check(name, run));
    catalog::checks().into_iter().for_each(|(name, run)| check(name, run));
    models::checks().into_iter().for_each(|(name, run)| check(name, run));
    push::checks().into_iter().for_each(|(name, run)| check(name, run));
    random::checks().into_iter().for_each(|(name, run)| check(name, run));
}

/// Runs the checks that need many sessions at once.
pub fn races(engine: Arc<dyn Engine>, decode: Decode) {
    race::run(engine, decode);
}

/// A named check.
type Check = (&'static str, fn(&Suite));

/// A worker's store with the words that checks are written in.
struct Suite {
    runtime: tokio::runtime::Runtime,
    store: Rc<dyn DocumentStore>,
    namespace: Namespace,
    decode: Decode,
}

/// Takes documents: all of them, or `left` at a time.
struct Collect {
    decode: Decode,
    predicate: Predicate,
    exact: bool,
    found: Vec<DocBuf>,
    left: usize,
}

impl Sink for Collect {
    fn accept(&mut self, document: StoredDoc<'_>) -> Result<Flow> {
        let document = (self.decode)(document);
        let matches = self.predicate.matches(document.as_doc())?;
        assert!(matches || !self.exact, "an exact plan gave {document:?} for {:?}", self.predicate);
        if matches {
            if self.left == 0 {
                return Ok(Flow::StopBefore);
            }
            self.found.push(document);
            self.left -= 1;
        }
        Ok(Flow::Continue)
    }
}

impl Suite {
    fn open(engine: Arc<dyn Engine>, decode: Decode, name: &str) -> Suite {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let store = {
            let _inside = runtime.enter();
            engine.open().unwrap()
        };
        Suite { runtime, store, namespace: Namespace::new(&format!("contract_{name}"), "things"), decode }
    }

    fn run<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// The documents that match, in the plan's order, over as many scans as batches of `batch` documents take.
    fn find_in_batches(&self, filter: &DocBuf, hint: Option<&ValueBuf>, batch: usize) -> Result<Vec<DocBuf>> {
        let predicate = predicate(filter);
        let hint = hint.map(ValueBuf::as_value);
        let query = Query { hint, ..Query::of(&predicate) };
        let plan = self.run(self.store.plan(&self.namespace, query))?;
        let mut found = Vec::new();
        let mut after = None;
        loop {
            let exact = plan.facts().exact;
            let mut sink = Collect { decode: self.decode, predicate: predicate.clone(), exact, found, left: batch };
            let end = self.run(self.store.scan(&*plan, after.as_ref(), batch, &mut sink))?;
            found = sink.found;
            match end {
                ScanEnd::Exhausted => return Ok(found),
                ScanEnd::Stopped(position) => after = Some(position),
            }
        }
    }

    /// The documents that match, found by a plan.
    fn scan(&self, filter: &DocBuf) -> Vec<DocBuf> {
        self.find_in_batches(filter, None, usize::MAX).unwrap()
    }

    /// The documents that match; where the store looks them up without a plan as well, it finds the same. For collections that
    /// nobody writes to meanwhile.
    fn find(&self, filter: &DocBuf) -> Vec<DocBuf> {
        let found = self.scan(filter);
        if let Some(looked_up) = self.look_up(filter) {
            assert_eq!(looked_up, found, "{filter:?}");
        }
        found
    }

    /// What the store finds without a plan, if the filter is an `_id` and the store does so.
    fn look_up(&self, filter: &DocBuf) -> Option<Vec<DocBuf>> {
        let mut elements = filter.as_doc().elements();
        let id = elements.next().filter(|it| it.key() == "_id" && elements.next().is_none())?;
        let mut found = Vec::new();
        let (database, collection) = (&self.namespace.database, &self.namespace.collection);
        let looked_up = self.store.lookup(database, collection, id.value(), &mut |document| {
            found.push((self.decode)(document));
            Ok(())
        });
        let Some(outcome) = looked_up else {
            assert!(found.is_empty());
            return None;
        };
        assert_eq!(outcome.unwrap(), !found.is_empty(), "{filter:?}");
        Some(found)
    }

    fn all(&self) -> Vec<DocBuf> {
        self.find(&document::doc! {})
    }

    /// What the collection's documents have as `_id`, in natural order, as text.
    fn ids(&self) -> Vec<String> {
        self.all().iter().map(|document| format!("{:?}", document.as_doc().get("_id"))).collect()
    }

    fn write(&self, statements: Statements, ordered: bool) -> Vec<Result<StatementOutcome>> {
        let batch = WriteBatch { ordered, ..WriteBatch::new(self.namespace.clone(), statements) };
        let outcome = self.run(self.store.write(batch)).unwrap();
        assert!(!outcome.retried);
        outcome.statements
    }

    fn insert(&self, documents: &[DocBuf]) {
        for outcome in self.write(inserts(documents), true) {
            assert_eq!(outcome.unwrap().matched, 1);
        }
    }

    fn update(&self, statement: UpdateStatement) -> Result<StatementOutcome> {
        self.write(Statements::Update(vec![statement]), true).remove(0)
    }

    fn delete(&self, statement: DeleteStatement) -> StatementOutcome {
        self.write(Statements::Delete(vec![statement]), true).remove(0).unwrap()
    }

    fn create_index(&self, index: IndexSpec) -> Result<CreateIndexesOutcome> {
        self.run(self.store.create_indexes(&self.namespace, vec![index]))
    }

    fn documents_and_bytes(&self) -> (u64, u64) {
        let stats = self.run(self.store.collection_stats(&self.namespace)).unwrap().unwrap_or_default();
        (stats.documents, stats.data_bytes)
    }

    /// Nothing is wrong with what is stored.
    fn assert_valid(&self) {
        let findings = self.run(self.store.validate(&self.namespace)).unwrap().findings;
        assert!(findings.is_empty(), "{findings:#?}");
    }
}

fn predicate(filter: &DocBuf) -> Predicate {
    Predicate::parse(filter.as_doc(), &Context::at(0)).unwrap()
}

fn inserts(documents: &[DocBuf]) -> Statements {
    Statements::Insert(documents.iter().map(|document| Bytes::copy_from_slice(document.as_bytes())).collect())
}

/// `updateOne` without frills; checks change what they need.
fn update(filter: DocBuf, change: DocBuf) -> UpdateStatement {
    UpdateStatement {
        predicate: predicate(&filter),
        sort: None,
        update: Update::parse(Value::Document(change.as_doc()), None, &Context::at(0)).unwrap(),
        multi: false,
        upsert: false,
        new_id: ObjectId([7; 12]),
        hint: None,
        image: ReturnImage::None,
    }
}

fn delete(filter: DocBuf, one: bool) -> DeleteStatement {
    DeleteStatement { predicate: predicate(&filter), sort: None, one, hint: None, image: ReturnImage::None }
}

/// An index named after its fields, with these options.
fn index(key: DocBuf, options: DocBuf) -> IndexSpec {
    let name = key.as_doc().iter().map(|(path, _)| path).collect::<Vec<_>>().join("_");
    let mut spec = document::doc! { "v": 2, "key": &key, "name": &name };
    options.as_doc().iter().for_each(|(option, value)| spec.append(option, value));
    let flag = |option| options.as_doc().get(option).is_some_and(Value::is_truthy);
    IndexSpec { name, unique: flag("unique"), sparse: flag("sparse"), key, spec }
}

fn details(error: &Error) -> Doc<'_> {
    Doc::from_bytes(error.details().unwrap()).unwrap()
}

use error::Error;
