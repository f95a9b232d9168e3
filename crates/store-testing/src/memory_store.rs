//! A store that keeps documents in vectors, the simplest implementation of the contract. Its scans
//! read everything, and neither sort nor filter.

use document::{Collation, Doc, DocBuf, Value, compare};
use error::{Code, Error, Result};
use futures_util::future::LocalBoxFuture;
use query::{MatchDetails, Predicate};
use std::any::Any;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::future::ready;
use std::rc::Rc;
use std::sync::Arc;
use store::{
    BatchOutcome, ChangeObserver, CollectionInfo, CollectionStats, CreateIndexesOutcome, DatabaseInfo, DatabaseStats,
    DeleteStatement, DocumentStore, Engine, Flow, IndexSelection, IndexSpec, Namespace, Plan, PlanFacts, Position,
    Progress, Query, RetryKey, ReturnImage, ScanEnd, Sink, StatementOutcome, Statements, StoredDoc, UpdateStatement,
    Validation, WriteBatch, duplicate, index_rules, rules, views,
};
use update::UpdateOutcome;

/// Engine of stores in memory; each worker has documents of its own.
pub struct MemoryEngine;

impl Engine for MemoryEngine {
    fn open(self: Arc<Self>) -> Result<Rc<dyn DocumentStore>> {
        Ok(Rc::new(MemoryStore::default()))
    }

    fn observe_changes(&self, _observer: Arc<dyn ChangeObserver>) {}

    fn close(&self) {}

    fn describe(&self) -> String {
        "memory".into()
    }
}

#[derive(Default)]
struct Collection {
    options: DocBuf,
    documents: Vec<DocBuf>,
    indexes: Vec<IndexSpec>,
}

/// A worker's store in memory.
#[derive(Default)]
pub struct MemoryStore {
    collections: RefCell<BTreeMap<Namespace, Collection>>,
    outcomes: RefCell<HashMap<RetryKey, BatchOutcome>>,
}

#[derive(Debug)]
struct MemoryPlan(Namespace, PlanFacts);

impl Plan for MemoryPlan {
    fn facts(&self) -> &PlanFacts {
        &self.1
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn examined(&self) -> store::Examined {
        store::Examined::default()
    }

    fn stages(&self, _: &store::ExplainContext<'_>) -> DocBuf {
        document::doc! { "stage": "COLLSCAN", "direction": "forward" }
    }
}

fn id_index() -> IndexSpec {
    let key = document::doc! { "_id": 1 };
    let spec = document::doc! { "v": 2, "key": &key, "name": "_id_" };
    IndexSpec { name: "_id_".into(), key, unique: true, sparse: false, spec }
}

impl Collection {
    fn insert(&mut self, namespace: &Namespace, document: &[u8]) -> Result<StatementOutcome> {
        let document = DocBuf::from_vec(document.to_vec()).unwrap();
        let id = document.as_doc().get("_id").unwrap();
        if self.documents.iter().any(|other| compare::equal(other.as_doc().get("_id").unwrap(), id)) {
            let pattern = document::doc! { "_id": 1 };
            let value = document::doc! { "_id": id };
            return Err(duplicate::duplicate_key(
                namespace,
                "_id_",
                pattern.as_doc(),
                value.as_doc(),
                &Collation::SIMPLE,
            ));
        }
        self.documents.push(document);
        Ok(StatementOutcome { matched: 1, ..Default::default() })
    }

    fn matching(&self, predicate: &Predicate, sort: Option<&query::Sort>) -> Result<Vec<usize>> {
        let mut positions = Vec::new();
        for (position, document) in self.documents.iter().enumerate() {
            if predicate.matches(document.as_doc())? {
                positions.push(position);
            }
        }
        if let Some(sort) = sort {
            positions.sort_by_cached_key(|position| {
                let mut key = Vec::new();
                sort.key(self.documents[*position].as_doc(), &mut key).unwrap();
                key
            });
        }
        Ok(positions)
    }

    fn update(&mut self, namespace: &Namespace, statement: &UpdateStatement) -> Result<StatementOutcome> {
        let mut outcome = StatementOutcome::default();
        for position in self.matching(&statement.predicate, statement.sort.as_ref())? {
            let mut details = MatchDetails::default();
            statement.predicate.matches_with(self.documents[position].as_doc(), &mut details)?;
            let mut updated = Vec::new();
            let before = self.documents[position].clone();
            outcome.matched += 1;
            if statement.update.apply(before.as_doc(), &details, &mut updated)? == UpdateOutcome::Changed {
                outcome.modified += 1;
                self.documents[position] = DocBuf::from_vec(updated).unwrap();
            }
            outcome.image = match statement.image {
                ReturnImage::None => None,
                ReturnImage::Before => Some(before),
                ReturnImage::After => Some(self.documents[position].clone()),
            };
            if !statement.multi {
                return Ok(outcome);
            }
        }
        if outcome.matched == 0 && statement.upsert {
            let mut document = Vec::new();
            statement.update.upsert(&statement.predicate, statement.new_id, &mut document)?;
            self.insert(namespace, &document)?;
            let document = DocBuf::from_vec(document).unwrap();
            outcome.upserted = document.as_doc().get("_id").map(Value::to_owned);
            outcome.image = (statement.image == ReturnImage::After).then_some(document);
        }
        Ok(outcome)
    }

    fn delete(&mut self, statement: &DeleteStatement) -> Result<StatementOutcome> {
        let mut positions = self.matching(&statement.predicate, statement.sort.as_ref())?;
        positions.truncate(if statement.one { 1 } else { usize::MAX });
        let mut outcome = StatementOutcome { matched: positions.len() as u64, ..Default::default() };
        positions.sort_unstable();
        for position in positions.into_iter().rev() {
            let document = self.documents.remove(position);
            outcome.image = (statement.image != ReturnImage::None).then_some(document);
        }
        Ok(outcome)
    }
}

fn done<'a, T: 'a>(value: T) -> LocalBoxFuture<'a, T> {
    Box::pin(ready(value))
}

impl MemoryStore {
    fn is_view(&self, namespace: &Namespace) -> bool {
        let collections = self.collections.borrow();
        let definitions = collections.get(&views::definitions(&namespace.database));
        let id = namespace.to_string();
        let defines = |document: &DocBuf| document.as_doc().get("_id") == Some(Value::String(&id));
        !collections.contains_key(namespace) && definitions.is_some_and(|it| it.documents.iter().any(defines))
    }

    fn write_now(&self, batch: WriteBatch) -> BatchOutcome {
        if let Some(outcome) = batch.retry.as_ref().and_then(|key| self.outcomes.borrow().get(key).cloned()) {
            return BatchOutcome { retried: true, ..outcome };
        }
        let mut collections = self.collections.borrow_mut();
        let mut nothing = Collection::default();
        let collection = match &batch.statements {
            Statements::Delete(_) => collections.get_mut(&batch.namespace).unwrap_or(&mut nothing),
            _ => collections.entry(batch.namespace.clone()).or_default(),
        };
        let mut outcomes = Vec::new();
        let mut take = |outcome: Result<StatementOutcome>| {
            let go_on = outcome.is_ok() || !batch.ordered;
            outcomes.push(outcome);
            go_on
        };
        match &batch.statements {
            Statements::Insert(documents) => {
                let _ = documents.iter().all(|document| take(collection.insert(&batch.namespace, document)));
            }
            Statements::Update(statements) => {
                let _ = statements.iter().all(|statement| take(collection.update(&batch.namespace, statement)));
            }
            Statements::Delete(statements) => {
                let _ = statements.iter().all(|statement| take(collection.delete(statement)));
            }
        }
        let outcome = BatchOutcome { statements: outcomes, ..BatchOutcome::default() };
        if let Some(key) = batch.retry {
            self.outcomes.borrow_mut().insert(key, outcome.clone());
        }
        outcome
    }
}

impl DocumentStore for MemoryStore {
    fn plan<'a>(&'a self, namespace: &'a Namespace, _: Query<'a>) -> LocalBoxFuture<'a, Result<Arc<dyn Plan>>> {
        let view = self.is_view(namespace);
        done(Ok(Arc::new(MemoryPlan(namespace.clone(), PlanFacts { view, ..Default::default() })) as Arc<dyn Plan>))
    }

    fn lookup(
        &self,
        database: &str,
        collection: &str,
        id: Value<'_>,
        found: &mut dyn FnMut(StoredDoc<'_>) -> Result<()>,
    ) -> Option<Result<bool>> {
        if !matches!(id, Value::Int32(_) | Value::Int64(_) | Value::Double(_) | Value::String(_)) {
            return None;
        }
        let collections = self.collections.borrow();
        let documents = &collections.get(&Namespace::new(database, collection))?.documents;
        let document = documents.iter().find(|other| compare::equal(other.as_doc().get("_id").unwrap(), id));
        Some(document.map_or(Ok(false), |document| found(StoredDoc::Bson(document.as_doc())).map(|()| true)))
    }

    fn scan<'a>(
        &'a self,
        plan: &'a dyn Plan,
        after: Option<&'a Position>,
        _wanted: usize,
        sink: &'a mut dyn Sink,
    ) -> LocalBoxFuture<'a, Result<ScanEnd>> {
        let plan = plan.as_any().downcast_ref::<MemoryPlan>().unwrap();
        if plan.1.view {
            return done(Err(views::scanned_as_collection()));
        }
        let collections = self.collections.borrow();
        let Some(collection) = collections.get(&plan.0) else { return done(Ok(ScanEnd::Exhausted)) };
        let start = after.map_or(0, |position| usize::from_le_bytes(position.0[..].try_into().unwrap()));
        for (position, document) in collection.documents.iter().enumerate().skip(start) {
            let stop = match sink.accept(StoredDoc::Bson(document.as_doc())) {
                Err(error) => return done(Err(error)),
                Ok(Flow::Continue) => continue,
                Ok(Flow::StopAfter) => position + 1,
                Ok(Flow::StopBefore) => position,
            };
            return done(Ok(ScanEnd::Stopped(Position(stop.to_le_bytes().to_vec()))));
        }
        done(Ok(ScanEnd::Exhausted))
    }

    fn tail<'a>(
        &'a self,
        namespace: &'a Namespace,
        _: &'a Predicate,
    ) -> LocalBoxFuture<'a, Result<Option<Arc<dyn Plan>>>> {
        done(match self.collections.borrow().get(namespace) {
            Some(_) => Err(rules::not_capped()),
            None => Ok(None),
        })
    }

    fn additions(&self, _: &dyn Plan) -> LocalBoxFuture<'static, ()> {
        done(())
    }

    fn write<'a>(&'a self, batch: WriteBatch) -> LocalBoxFuture<'a, Result<BatchOutcome>> {
        Box::pin(async move {
            // Makes every write wait once, as a store's group commit does.
            tokio::task::yield_now().await;
            Ok(self.write_now(batch))
        })
    }

    fn create_collection<'a>(&'a self, namespace: &'a Namespace, options: Doc<'a>) -> LocalBoxFuture<'a, Result<()>> {
        self.collections.borrow_mut().entry(namespace.clone()).or_default().options = options.to_owned();
        done(Ok(()))
    }

    fn modify_collection<'a>(&'a self, namespace: &'a Namespace, options: Doc<'a>) -> LocalBoxFuture<'a, Result<()>> {
        self.create_collection(namespace, options)
    }

    fn drop_collection<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, Result<Option<usize>>> {
        let dropped = self.collections.borrow_mut().remove(namespace);
        done(Ok(dropped.map(|collection| collection.indexes.len() + 1)))
    }

    fn rename_collection<'a>(
        &'a self,
        from: &'a Namespace,
        to: &'a Namespace,
        _drop_target: bool,
    ) -> LocalBoxFuture<'a, Result<()>> {
        let mut collections = self.collections.borrow_mut();
        let moved = collections.remove(from).unwrap_or_default();
        collections.insert(to.clone(), moved);
        done(Ok(()))
    }

    fn collections<'a>(&'a self, database: &'a str) -> LocalBoxFuture<'a, Result<Vec<CollectionInfo>>> {
        let collections = self.collections.borrow();
        let ours = collections.keys().filter(|namespace| &*namespace.database == database);
        done(Ok(ours.map(|namespace| info(namespace, &collections[namespace])).collect()))
    }

    fn collection<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, Result<Option<CollectionInfo>>> {
        done(Ok(self.collections.borrow().get(namespace).map(|collection| info(namespace, collection))))
    }

    fn databases<'a>(&'a self) -> LocalBoxFuture<'a, Result<Vec<DatabaseInfo>>> {
        let mut names: Vec<String> = self.collections.borrow().keys().map(|n| n.database.to_string()).collect();
        names.dedup();
        done(Ok(names.into_iter().map(|name| DatabaseInfo { name, size_on_disk_bytes: 4096, empty: false }).collect()))
    }

    fn drop_database<'a>(&'a self, database: &'a str) -> LocalBoxFuture<'a, Result<bool>> {
        let mut collections = self.collections.borrow_mut();
        let before = collections.len();
        collections.retain(|namespace, _| &*namespace.database != database);
        done(Ok(collections.len() < before))
    }

    fn build_indexes<'a>(
        &'a self,
        namespace: &'a Namespace,
        indexes: Vec<IndexSpec>,
        _progress: Arc<Progress>,
    ) -> LocalBoxFuture<'a, Result<CreateIndexesOutcome>> {
        let mut collections = self.collections.borrow_mut();
        let created_collection = !collections.contains_key(namespace);
        let collection = collections.entry(namespace.clone()).or_default();
        let indexes_before = collection.indexes.len() + 1;
        for index in indexes {
            if let Err(error) = index_rules::check_key(&index) {
                return done(Err(error));
            }
            match index_rules::relation(&index, &collection.indexes) {
                Err(error) => return done(Err(error)),
                Ok(index_rules::IndexRelation::Exists) => {}
                Ok(index_rules::IndexRelation::New) => collection.indexes.push(index),
            }
        }
        let indexes_after = collection.indexes.len() + 1;
        done(Ok(CreateIndexesOutcome { indexes_before, indexes_after, created_collection }))
    }

    fn modify_index<'a>(&'a self, namespace: &'a Namespace, index: IndexSpec) -> LocalBoxFuture<'a, Result<()>> {
        let mut collections = self.collections.borrow_mut();
        let indexes = &mut collections.get_mut(namespace).unwrap().indexes;
        let position = indexes.iter().position(|other| other.name == index.name).unwrap();
        indexes[position] = index;
        done(Ok(()))
    }

    fn drop_indexes<'a>(
        &'a self,
        namespace: &'a Namespace,
        which: IndexSelection,
    ) -> LocalBoxFuture<'a, Result<usize>> {
        let mut collections = self.collections.borrow_mut();
        let Some(collection) = collections.get_mut(namespace) else {
            return done(Err(Error::new(Code::NAMESPACE_NOT_FOUND, format!("ns not found {namespace}"))));
        };
        let before = collection.indexes.len() + 1;
        collection.indexes.retain(|index| match &which {
            IndexSelection::All => false,
            IndexSelection::Names(names) => !names.contains(&index.name),
            IndexSelection::Key(key) => !index_rules::same_key(key.as_doc(), index.key.as_doc()),
        });
        done(Ok(before))
    }

    fn indexes<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, Result<Option<Vec<IndexSpec>>>> {
        let collections = self.collections.borrow();
        let collection = collections.get(namespace);
        done(Ok(collection.map(|c| std::iter::once(id_index()).chain(c.indexes.iter().cloned()).collect())))
    }

    fn collection_stats<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, Result<Option<CollectionStats>>> {
        let collections = self.collections.borrow();
        done(Ok(collections.get(namespace).map(|collection| CollectionStats {
            documents: collection.documents.len() as u64,
            data_bytes: collection.documents.iter().map(|d| d.as_bytes().len() as u64).sum(),
            storage_bytes: 4096,
            indexes: vec![("_id_".into(), 4096)],
        })))
    }

    fn database_stats<'a>(&'a self, _database: &'a str) -> LocalBoxFuture<'a, Result<DatabaseStats>> {
        done(Ok(DatabaseStats::default()))
    }

    fn validate<'a>(&'a self, _namespace: &'a Namespace) -> LocalBoxFuture<'a, Result<Validation>> {
        done(Ok(Validation::default()))
    }
}

fn info(namespace: &Namespace, collection: &Collection) -> CollectionInfo {
    let options = collection.options.clone();
    CollectionInfo { name: namespace.collection.to_string(), options, uuid: [7; 16] }
}
