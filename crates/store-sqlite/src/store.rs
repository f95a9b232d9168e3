//! The contract of document stores, implemented by a worker's half.

use crate::catalog::Collection;
use crate::check::validate;
use crate::failure::{self, Failure};
use crate::oplog;
use crate::plan::SqlitePlan;
use crate::planner;
use crate::read::sample;
use crate::worker::SqliteStore;
use crate::write::{self, Scope, Writer};
use document::{Collation, Doc, DocBuf, Value};
use error::{Error, Result};
use futures_util::future::LocalBoxFuture;
use index_keys::keys;
use query::Predicate;
use std::rc::Rc;
use std::sync::Arc;
use store::{
    BatchOutcome, ChangeFeed, CollectionInfo, CollectionStats, CreateIndexesOutcome, DatabaseInfo, DatabaseStats,
    DocumentStore, Examined, IndexSelection, IndexSpec, Namespace, Plan, Position, Progress, Query, RecordedWrite,
    ScanEnd, Sink, StoredDoc, Transaction, TransactionKey, Validation, WriteBatch, rules, views,
};

/// Documents of a random sample that are read before other sessions of the worker have their turn.
const SAMPLED_AT_ONCE: usize = 64;

impl DocumentStore for SqliteStore {
    fn default_collation<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, Result<Collation>> {
        let collation = self.find(namespace).map_or(Collation::SIMPLE, |collection| collection.collation.clone());
        Box::pin(std::future::ready(Ok(collation)))
    }

    fn plan<'a>(&'a self, namespace: &'a Namespace, query: Query<'a>) -> LocalBoxFuture<'a, Result<Arc<dyn Plan>>> {
        self.planned(move || match self.find(namespace) {
            None => {
                self.shared.catalog().1.check_readable(namespace)?;
                Ok((self.plan_without_collection(namespace, &query)?, None))
            }
            Some(collection) => self.measured(&collection, |measure| planner::plan(Some(&collection), &query, measure)),
        })
    }

    fn plan_distinct<'a>(
        &'a self,
        namespace: &'a Namespace,
        query: Query<'a>,
        path: &'a str,
        collation: &'a Collation,
    ) -> LocalBoxFuture<'a, Result<Arc<dyn Plan>>> {
        self.planned(move || match self.find(namespace) {
            None => Ok((self.plan_without_collection(namespace, &query)?, None)),
            Some(collection) => self
                .measured(&collection, |measure| planner::plan_distinct(&collection, &query, path, collation, measure)),
        })
    }

    fn scan<'a>(
        &'a self,
        plan: &'a dyn Plan,
        after: Option<&'a Position>,
        // Rows are read one by one as the sink takes them, so the number is of no use.
        _wanted: usize,
        sink: &'a mut dyn Sink,
    ) -> LocalBoxFuture<'a, Result<ScanEnd>> {
        Box::pin(async move {
            let plan = plan.as_any().downcast_ref::<SqlitePlan>();
            let plan = plan.ok_or_else(|| Error::internal("a plan of another store"))?;
            if plan.facts.view {
                return Err(views::scanned_as_collection());
            }
            self.apply_all_deferred(plan).await?;
            self.scan_in_slices(plan, after, sink).await
        })
    }

    fn lookup(
        &self,
        database: &str,
        collection: &str,
        id: Value<'_>,
        found: &mut dyn FnMut(StoredDoc<'_>) -> Result<()>,
    ) -> Option<Result<bool>> {
        if self.inside.is_some() || !keys::is_plain(id.kind()) || self.shared.are_reads_paused() {
            return None;
        }
        // No shared state may be borrowed while the document is processed.
        let collection = self.latest_catalog().get_named(database, collection)?.clone();
        if collection.is_dropped() || !Self::compares_bytes(&collection) {
            return None;
        }
        let reading = match self.read_connection() {
            Ok(reading) => reading,
            Err(error) => return Some(Err(error)),
        };
        let looked_up = reading.look_up(&collection, id, &mut |document| found(StoredDoc::Bson(document)));
        match looked_up {
            // The collection was just dropped.
            Err(Failure::Engine(error)) if failure::is_missing_table(&error) => None,
            outcome => Some(outcome.map_err(Error::from)),
        }
    }

    fn sample<'a>(&'a self, plan: &'a dyn Plan, size: usize) -> LocalBoxFuture<'a, Result<Option<Vec<DocBuf>>>> {
        let plan = plan.as_any().downcast_ref::<SqlitePlan>();
        let whole = plan.filter(|_| self.inside.is_none()).and_then(|plan| Some((plan, plan.whole_collection()?)));
        let Some((plan, collection)) = whole else {
            return Box::pin(std::future::ready(Ok(None)));
        };
        Box::pin(async move {
            let begun = sample::begin(self.read_connection()?.connection(), collection, size)?;
            let Some(mut draws) = begun else { return Ok(None) };
            while !draws.is_done() {
                let Some(numbers) = draws.draw() else { return Ok(None) };
                for some in numbers.chunks(SAMPLED_AT_ONCE) {
                    if self.shared.are_reads_paused() {
                        self.wait_for_wal_reset().await;
                    }
                    let Some(documents) =
                        sample::look(self.read_connection()?.connection(), collection, some, &mut draws)?
                    else {
                        return Ok(None);
                    };
                    plan.counter.add(Examined { documents, ..Examined::default() });
                    tokio::task::yield_now().await;
                }
            }
            Ok(Some(draws.finish()))
        })
    }

    fn count<'a>(&'a self, plan: &'a dyn Plan, enough: Option<u64>) -> LocalBoxFuture<'a, Result<Option<u64>>> {
        let plan = plan.as_any().downcast_ref::<SqlitePlan>();
        let enough = enough.unwrap_or(u64::MAX);
        if let Some(collection) = plan.filter(|_| self.inside.is_none()).and_then(SqlitePlan::whole_collection) {
            return Box::pin(std::future::ready(collection.count().map(|count| Some(count.min(enough)))));
        }
        let Some((collection, scan)) = plan.and_then(SqlitePlan::one_key_per_document) else {
            return Box::pin(std::future::ready(Ok(None)));
        };
        Box::pin(async move {
            if let Some(plan) = plan {
                self.apply_all_deferred(plan).await?;
            }
            self.count_in_slices(collection, scan, enough).await.map(Some)
        })
    }

    fn tail<'a>(
        &'a self,
        namespace: &'a Namespace,
        predicate: &'a Predicate,
    ) -> LocalBoxFuture<'a, Result<Option<Arc<dyn Plan>>>> {
        let plan = match self.find(namespace) {
            None => Ok(None),
            Some(collection) if collection.cap().is_none() => Err(rules::not_capped()),
            Some(collection) => {
                let rows = oplog::rows_to_follow(self.shared.oplog.as_ref(), &collection, predicate);
                Ok(Some(Arc::new(planner::tail(&collection, rows)) as Arc<dyn Plan>))
            }
        };
        Box::pin(std::future::ready(plan))
    }

    fn additions(&self, plan: &dyn Plan) -> LocalBoxFuture<'static, ()> {
        let collection = plan.as_any().downcast_ref::<SqlitePlan>().and_then(|plan| plan.collection.as_ref());
        let watched = collection.map(|collection| collection.counters.additions.subscribe());
        Box::pin(async move {
            match watched {
                // Fails when the collection is dropped, which the caller must learn as well.
                Some(mut watched) => drop(watched.changed().await),
                None => std::future::pending().await,
            }
        })
    }

    fn write<'a>(&'a self, batch: WriteBatch) -> LocalBoxFuture<'a, Result<BatchOutcome>> {
        Box::pin(self.carry_out(batch))
    }

    fn change_feed(&self) -> Option<&dyn ChangeFeed> {
        self.shared.oplog.is_some().then_some(self)
    }

    fn begin_transaction(&self) -> LocalBoxFuture<'_, Result<Arc<dyn Transaction>>> {
        Box::pin(self.begin())
    }

    fn in_transaction(&self, transaction: &Arc<dyn Transaction>) -> Result<Rc<dyn DocumentStore>> {
        Ok(Rc::new(self.within(transaction)?))
    }

    fn commit_transaction<'a>(
        &'a self,
        transaction: &'a Arc<dyn Transaction>,
        key: TransactionKey,
        journal: bool,
    ) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(self.commit(transaction, key, journal))
    }

    /// No other process commits to the file.
    fn recorded_write(&self, session: [u8; 16], _: Option<i64>) -> LocalBoxFuture<'_, Result<Option<RecordedWrite>>> {
        let reading = self.read_connection();
        let recorded = reading.and_then(|reading| Ok(write::retry::recorded_write(reading.connection(), session)?));
        Box::pin(std::future::ready(recorded))
    }

    fn create_collection<'a>(&'a self, namespace: &'a Namespace, options: Doc<'a>) -> LocalBoxFuture<'a, Result<()>> {
        if let Some(inside) = &self.inside {
            let created = self.create_inside(inside, namespace, options.to_owned());
            return Box::pin(std::future::ready(created.map(drop)));
        }
        let scope = Scope::from(namespace);
        let (namespace, options) = (namespace.clone(), options.to_owned());
        self.define(scope, move |writer| writer.create_collection(&namespace, options))
    }

    fn modify_collection<'a>(&'a self, namespace: &'a Namespace, options: Doc<'a>) -> LocalBoxFuture<'a, Result<()>> {
        let scope = Scope::from(namespace);
        let (namespace, options) = (namespace.clone(), options.to_owned());
        self.define(scope, move |writer| writer.modify_collection(&namespace, options))
    }

    fn drop_collection<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, Result<Option<usize>>> {
        let scope = Scope::from(namespace);
        let namespace = namespace.clone();
        self.define(scope, move |writer| writer.drop_collection(&namespace))
    }

    fn rename_collection<'a>(
        &'a self,
        from: &'a Namespace,
        to: &'a Namespace,
        drop_target: bool,
    ) -> LocalBoxFuture<'a, Result<()>> {
        let (from, to) = (from.clone(), to.clone());
        let scope = Scope::Collections(vec![from.clone(), to.clone()]);
        self.define(scope, move |writer| writer.rename_collection(&from, &to, drop_target))
    }

    fn collections<'a>(&'a self, database: &'a str) -> LocalBoxFuture<'a, Result<Vec<CollectionInfo>>> {
        let collections = self.catalog().of_database(database);
        Box::pin(std::future::ready(Ok(collections.iter().map(|collection| info(collection)).collect())))
    }

    fn collection<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, Result<Option<CollectionInfo>>> {
        let collection = self.find(namespace).map(|collection| info(&collection));
        Box::pin(std::future::ready(Ok(collection)))
    }

    fn databases<'a>(&'a self) -> LocalBoxFuture<'a, Result<Vec<DatabaseInfo>>> {
        let catalog = self.catalog();
        let database = |name: Box<str>| {
            let collections = catalog.of_database(&name);
            let stats = collections.iter().map(|collection| self.stats(collection));
            let size_on_disk_bytes = stats.map(|stats| stats.storage_bytes + index_bytes(&stats)).sum();
            DatabaseInfo { name: name.into(), size_on_disk_bytes, empty: collections.is_empty() }
        };
        let databases = catalog.databases().into_iter().map(database).collect();
        Box::pin(std::future::ready(Ok(databases)))
    }

    fn drop_database<'a>(&'a self, database: &'a str) -> LocalBoxFuture<'a, Result<bool>> {
        let database = database.to_owned();
        self.define(Scope::Database(database.clone()), move |writer| writer.drop_database(&database))
    }

    fn build_indexes<'a>(
        &'a self,
        namespace: &'a Namespace,
        indexes: Vec<IndexSpec>,
        progress: Arc<Progress>,
    ) -> LocalBoxFuture<'a, Result<CreateIndexesOutcome>> {
        if let Some(inside) = &self.inside {
            return Box::pin(std::future::ready(self.create_indexes_inside(inside, namespace, indexes)));
        }
        // A long build waits for another one.
        let is_long = self.find(namespace).is_some_and(|collection| write::is_large(&collection));
        let scope = if is_long { Scope::Everything } else { Scope::from(namespace) };
        let namespace = namespace.clone();
        let stops = progress.clone();
        let create = move |writer: &mut Writer| writer.create_indexes(&namespace, indexes, progress);
        self.define_with_progress(scope, stops, create)
    }

    fn modify_index<'a>(&'a self, namespace: &'a Namespace, index: IndexSpec) -> LocalBoxFuture<'a, Result<()>> {
        let scope = Scope::from(namespace);
        let namespace = namespace.clone();
        self.define(scope, move |writer| writer.modify_index(&namespace, index))
    }

    fn drop_indexes<'a>(
        &'a self,
        namespace: &'a Namespace,
        which: IndexSelection,
    ) -> LocalBoxFuture<'a, Result<usize>> {
        let scope = Scope::from(namespace);
        let namespace = namespace.clone();
        self.define(scope, move |writer| writer.drop_indexes(&namespace, &which))
    }

    fn indexes<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, Result<Option<Vec<IndexSpec>>>> {
        let indexes = self.find(namespace).map(|collection| collection.index_specs());
        Box::pin(std::future::ready(Ok(indexes)))
    }

    fn collection_stats<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, Result<Option<CollectionStats>>> {
        let stats = self.find(namespace).map(|collection| self.stats(&collection));
        Box::pin(std::future::ready(Ok(stats)))
    }

    fn database_stats<'a>(&'a self, database: &'a str) -> LocalBoxFuture<'a, Result<DatabaseStats>> {
        let mut total = DatabaseStats::default();
        for collection in self.catalog().of_database(database) {
            let stats = self.stats(&collection);
            total.collections += 1;
            total.documents += stats.documents;
            total.data_bytes += stats.data_bytes;
            total.storage_bytes += stats.storage_bytes;
            total.indexes += stats.indexes.len() as u64;
            total.index_bytes += index_bytes(&stats);
        }
        Box::pin(std::future::ready(Ok(total)))
    }

    fn validate<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, Result<Validation>> {
        let collection = self.find(namespace);
        let shared = self.shared.clone();
        Box::pin(async move {
            match collection {
                Some(collection) => validate::on_its_own_thread(shared, collection).await,
                None => Ok(Validation::default()),
            }
        })
    }
}

impl SqliteStore {
    /// Returns statistics. Counts are exact. Sizes on disk are estimated from them, since measuring
    /// would read every page.
    fn stats(&self, collection: &Collection) -> CollectionStats {
        /// Bytes of a row besides its document: lengths, its number, the key of its `_id`.
        const ROW: u64 = 24;
        /// Bytes of a typical index entry, including free space in its page.
        const ENTRY: u64 = 32;
        let page = u64::from(self.shared.options.page_bytes);
        let pages = |bytes: u64| (bytes.div_ceil(page)).max(1) * page;
        let documents = collection.documents();
        let data_bytes = collection.data_bytes();
        let indexes = collection.index_specs().into_iter().map(|spec| (spec.name, pages(documents * ENTRY)));
        CollectionStats {
            documents,
            data_bytes,
            storage_bytes: pages(data_bytes + documents * ROW),
            indexes: indexes.collect(),
        }
    }
}

fn index_bytes(stats: &CollectionStats) -> u64 {
    stats.indexes.iter().map(|(_, bytes)| bytes).sum()
}

fn info(collection: &Collection) -> CollectionInfo {
    CollectionInfo {
        name: collection.namespace.collection.to_string(),
        options: collection.options.clone(),
        uuid: collection.uuid,
    }
}
