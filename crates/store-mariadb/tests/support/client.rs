//! A worker's store with the few words that tests need.

use super::decode;
use bytes::Bytes;
use document::{Doc, DocBuf, Value, doc};
use query::{Context, Predicate};
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use store::*;

pub struct Client {
    runtime: tokio::runtime::Runtime,
    pub store: Rc<dyn DocumentStore>,
}

struct All(Vec<DocBuf>);

impl Sink for All {
    fn accept(&mut self, document: StoredDoc<'_>) -> error::Result<Flow> {
        self.0.push(decode(document));
        Ok(Flow::Continue)
    }
}

#[allow(dead_code)]
impl Client {
    pub fn open(engine: Arc<dyn Engine>) -> Client {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let store = runtime.block_on(async { engine.open() }).unwrap();
        Client { runtime, store }
    }

    pub fn run<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Returns the candidates for a filter, before it is evaluated.
    pub fn candidates(&self, namespace: &Namespace, predicate: &Predicate) -> error::Result<Vec<DocBuf>> {
        let query = Query::of(predicate);
        let plan = self.run(self.store.plan(namespace, query))?;
        let mut sink = All(Vec::new());
        self.run(self.store.scan(&*plan, None, usize::MAX, &mut sink))?;
        Ok(sink.0)
    }

    pub fn find(&self, namespace: &Namespace, filter: &DocBuf) -> error::Result<Vec<DocBuf>> {
        let predicate = Predicate::parse(filter.as_doc(), &Context::at(0))?;
        let mut found = self.candidates(namespace, &predicate)?;
        found.retain(|document| predicate.matches(document.as_doc()).unwrap());
        Ok(found)
    }

    pub fn insert(&self, namespace: &Namespace, documents: &[DocBuf]) -> error::Result<BatchOutcome> {
        self.insert_with(namespace, documents, false, None)
    }

    pub fn insert_with(
        &self,
        namespace: &Namespace,
        documents: &[DocBuf],
        ordered: bool,
        retry: Option<RetryKey>,
    ) -> error::Result<BatchOutcome> {
        let documents = documents.iter().map(|document| Bytes::from(document.clone().into_vec())).collect();
        let statements = Statements::Insert(documents);
        let batch = WriteBatch { ordered, retry, ..WriteBatch::new(namespace.clone(), statements) };
        self.run(self.store.write(batch))
    }

    pub fn write(
        &self,
        namespace: &Namespace,
        statements: Statements,
        retry: Option<RetryKey>,
    ) -> error::Result<BatchOutcome> {
        let batch = WriteBatch { ordered: false, retry, ..WriteBatch::new(namespace.clone(), statements) };
        self.run(self.store.write(batch))
    }

    pub fn update(&self, namespace: &Namespace, filter: &DocBuf, update: &DocBuf) -> error::Result<StatementOutcome> {
        let statement = self::update(filter, update)?;
        self.write(namespace, Statements::Update(vec![statement]), None)?.statements.remove(0)
    }
}

/// `updateOne` without frills.
#[allow(dead_code)]
pub fn update(filter: &DocBuf, update: &DocBuf) -> error::Result<UpdateStatement> {
    let context = Context::at(0);
    Ok(UpdateStatement {
        predicate: Predicate::parse(filter.as_doc(), &context)?,
        sort: None,
        update: update::Update::parse(document::Value::Document(update.as_doc()), None, &context)?,
        multi: false,
        upsert: false,
        new_id: document::ObjectId([1; 12]),
        hint: None,
        image: ReturnImage::None,
    })
}

/// The `_id` of the document, unchanged.
#[allow(dead_code)]
pub fn id(document: &DocBuf) -> document::ValueBuf {
    Doc::get(document.as_doc(), "_id").unwrap_or(document::Value::Undefined).to_owned()
}

/// Deletes all that match.
#[allow(dead_code)]
pub fn delete(filter: &DocBuf) -> DeleteStatement {
    let predicate = Predicate::parse(filter.as_doc(), &Context::at(0)).unwrap();
    DeleteStatement { predicate, sort: None, one: false, hint: None, image: ReturnImage::None }
}

/// An index with these options.
#[allow(dead_code)]
pub fn spec(name: &str, key: DocBuf, options: DocBuf) -> IndexSpec {
    let mut spec = doc! { "v": 2, "key": &key, "name": name };
    options.as_doc().iter().for_each(|(key, value)| spec.append(key, value));
    let flag = |option| options.as_doc().get(option).is_some_and(Value::is_truthy);
    IndexSpec { name: name.into(), unique: flag("unique"), sparse: flag("sparse"), key, spec }
}

/// The code with which a document is not inserted.
#[allow(dead_code)]
pub fn refusal(client: &Client, things: &Namespace, document: &DocBuf) -> Option<error::Code> {
    let outcome = client.insert(things, std::slice::from_ref(document)).unwrap();
    outcome.statements[0].as_ref().err().map(|error| error.code())
}
