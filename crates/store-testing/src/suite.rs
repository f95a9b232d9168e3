//! A worker's store with the helpers that checks are written with.

use bytes::Bytes;
use document::{Doc, DocBuf, ObjectId, Value, ValueBuf};
use error::{Error, Result};
use query::{Context, Predicate};
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use store::{
    CreateIndexesOutcome, DeleteStatement, DocumentStore, Engine, Flow, IndexSpec, Namespace, Query, ReturnImage,
    ScanEnd, Sink, StatementOutcome, Statements, StoredDoc, UpdateStatement, WriteBatch,
};
use update::Update;

/// Converts a document of a store's scan to BSON.
pub type Decode = fn(StoredDoc<'_>) -> DocBuf;

/// The conversion for stores that give BSON.
pub fn as_bson(document: StoredDoc<'_>) -> DocBuf {
    match document {
        StoredDoc::Bson(document) => document.to_owned(),
        StoredDoc::Json(_) => panic!("this store gives JSON"),
    }
}

/// A named check.
pub type Check = (&'static str, fn(&Suite));

/// A worker's store, and the collection that a check works in.
pub struct Suite {
    runtime: tokio::runtime::Runtime,
    pub store: Rc<dyn DocumentStore>,
    pub namespace: Namespace,
    pub decode: Decode,
}

/// A sink that collects matching documents until `left` of them have been taken.
pub struct Collect {
    pub decode: Decode,
    pub predicate: Predicate,
    pub exact: bool,
    pub found: Vec<DocBuf>,
    pub left: usize,
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
    pub fn open(engine: Arc<dyn Engine>, decode: Decode, name: &str) -> Suite {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let store = {
            let _inside = runtime.enter();
            engine.open().unwrap()
        };
        Suite { runtime, store, namespace: Namespace::new(&format!("contract_{name}"), "things"), decode }
    }

    pub fn run<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Returns the matching documents in the plan's order, by scans of at most `batch` documents
    /// each.
    pub fn find_in_batches(&self, filter: &DocBuf, hint: Option<&ValueBuf>, batch: usize) -> Result<Vec<DocBuf>> {
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

    /// Returns the matching documents, found by a plan.
    pub fn scan(&self, filter: &DocBuf) -> Vec<DocBuf> {
        self.find_in_batches(filter, None, usize::MAX).unwrap()
    }

    /// Returns the matching documents. Checks that a lookup without a plan, if the store has one,
    /// finds the same; so no other session may write to the collection meanwhile.
    pub fn find(&self, filter: &DocBuf) -> Vec<DocBuf> {
        let found = self.scan(filter);
        if let Some(looked_up) = self.look_up(filter) {
            assert_eq!(looked_up, found, "{filter:?}");
        }
        found
    }

    /// Returns the result of the store's lookup without a plan, if the filter is an `_id` and the
    /// store has such a lookup.
    pub fn look_up(&self, filter: &DocBuf) -> Option<Vec<DocBuf>> {
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

    pub fn all(&self) -> Vec<DocBuf> {
        self.find(&document::doc! {})
    }

    /// Returns the documents' `_id`s as text, in natural order.
    pub fn ids(&self) -> Vec<String> {
        self.all().iter().map(|document| format!("{:?}", document.as_doc().get("_id"))).collect()
    }

    pub fn write(&self, statements: Statements, ordered: bool) -> Vec<Result<StatementOutcome>> {
        let batch = WriteBatch { ordered, ..WriteBatch::new(self.namespace.clone(), statements) };
        let outcome = self.run(self.store.write(batch)).unwrap();
        assert!(!outcome.retried);
        outcome.statements
    }

    pub fn insert(&self, documents: &[DocBuf]) {
        for outcome in self.write(inserts(documents), true) {
            assert_eq!(outcome.unwrap().matched, 1);
        }
    }

    pub fn update(&self, statement: UpdateStatement) -> Result<StatementOutcome> {
        self.write(Statements::Update(vec![statement]), true).remove(0)
    }

    pub fn delete(&self, statement: DeleteStatement) -> StatementOutcome {
        self.write(Statements::Delete(vec![statement]), true).remove(0).unwrap()
    }

    pub fn create_index(&self, index: IndexSpec) -> Result<CreateIndexesOutcome> {
        self.run(self.store.create_indexes(&self.namespace, vec![index]))
    }

    pub fn documents_and_bytes(&self) -> (u64, u64) {
        let stats = self.run(self.store.collection_stats(&self.namespace)).unwrap().unwrap_or_default();
        (stats.documents, stats.data_bytes)
    }

    /// Checks that `validate` finds no damage.
    pub fn assert_valid(&self) {
        let findings = self.run(self.store.validate(&self.namespace)).unwrap().findings;
        assert!(findings.is_empty(), "{findings:#?}");
    }
}

pub fn predicate(filter: &DocBuf) -> Predicate {
    Predicate::parse(filter.as_doc(), &Context::at(0)).unwrap()
}

pub fn inserts(documents: &[DocBuf]) -> Statements {
    Statements::Insert(documents.iter().map(|document| Bytes::copy_from_slice(document.as_bytes())).collect())
}

/// Returns an `updateOne` without options; checks change what they need.
pub fn update(filter: DocBuf, change: DocBuf) -> UpdateStatement {
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

pub fn delete(filter: DocBuf, one: bool) -> DeleteStatement {
    DeleteStatement { predicate: predicate(&filter), sort: None, one, hint: None, image: ReturnImage::None }
}

/// Returns an index named after its fields, with these options.
pub fn index(key: DocBuf, options: DocBuf) -> IndexSpec {
    let name = key.as_doc().iter().map(|(path, _)| path).collect::<Vec<_>>().join("_");
    let mut spec = document::doc! { "v": 2, "key": &key, "name": &name };
    options.as_doc().iter().for_each(|(option, value)| spec.append(option, value));
    let flag = |option| options.as_doc().get(option).is_some_and(Value::is_truthy);
    IndexSpec { name, unique: flag("unique"), sparse: flag("sparse"), key, spec }
}

pub fn details(error: &Error) -> Doc<'_> {
    Doc::from_bytes(error.details().unwrap()).unwrap()
}
