//! The contract of crate `store`, carried out by the modules beside it.

use crate::accounts::change::MariaDbAccountChange;
use crate::catalog::{attempts, collections, databases, statistics};
use crate::feed::collection::{self as log, LogPlan};
use crate::index::side_index::refresh;
use crate::index::{build, manage};
use crate::plan::{MariaDbPlan, planner};
use crate::read::{content_version, count, explain, sample, scan, validate};
use crate::store::MariaDbStore;
use crate::transaction::inside::Inside;
use crate::transaction::{self, definitions, outcome, writes};
use crate::write;
use document::{Collation, Doc, DocBuf};
use error::Error;
use futures_util::future::LocalBoxFuture;
use mariadb_client::{Failure, Result};
use query::Predicate;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use store::{
    AccountChange, BatchOutcome, ChangeFeed, ChangeObserver, Changes, CollectionInfo, CollectionStats,
    CreateIndexesOutcome, DatabaseInfo, DatabaseStats, DocumentStore, IndexSelection, IndexSpec, Namespace, Plan,
    Position, Progress, Query, ReadPreference, RecordedWrite, ScanEnd, Sharding, Sink, SizeEstimate, SnapshotLimits,
    Transaction, TransactionKey, Validation, WriteBatch, rules,
};

/// How often a tailable cursor polls for documents.
const POLL_EVERY: Duration = Duration::from_millis(20);

impl MariaDbStore {
    /// Runs a change of collections, which may change any of their documents.
    pub(crate) async fn change_collections<T>(
        &self,
        namespaces: &[&Namespace],
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        log::refuse(self, namespaces)?;
        if self.inside.is_some() {
            return Err(definitions::refused().into());
        }
        self.transactions.release_snapshots(namespaces);
        let note = |changes: &mut Changes, _: &dyn ChangeObserver| {
            namespaces.iter().for_each(|name| changes.add_unspecified(name))
        };
        self.change_observer.observe_write(note, Failure::is_lost, work).await
    }

    /// Runs a change of indexes, which may take long. It does not change results, except their
    /// order and which writes are refused.
    async fn change_indexes<T>(&self, namespace: &Namespace, work: impl Future<Output = Result<T>>) -> Result<T> {
        log::refuse(self, &[namespace])?;
        if self.inside.is_some() {
            return Err(definitions::refused().into());
        }
        self.transactions.release_snapshots(&[namespace]);
        let outcome = work.await;
        drop(self.change_observer.begin_unspecified_write(namespace));
        outcome
    }
}

fn downcast(plan: &dyn Plan) -> error::Result<&MariaDbPlan> {
    plan.as_any().downcast_ref().ok_or_else(|| Error::internal("a plan of another store"))
}

/// Returns the plan, if it is one for the log of changes.
fn of_log(plan: &dyn Plan) -> Option<&LogPlan> {
    plan.as_any().downcast_ref()
}

/// Maps the failure of `future` to MongoDB's errors.
fn mapped<'a, T: 'a>(future: impl Future<Output = Result<T>> + 'a) -> LocalBoxFuture<'a, error::Result<T>> {
    Box::pin(async move { future.await.map_err(Error::from) })
}

/// As [`mapped`], for a read that must not fail because of a change of definitions: a node of a
/// Galera cluster ends each statement that is in the way of another node's change.
fn repeated<'a, T: 'a>(read: impl AsyncFn() -> Result<T> + 'a) -> LocalBoxFuture<'a, error::Result<T>> {
    mapped(async move {
        for attempt in 1..attempts::ATTEMPTS_MAX {
            match read().await {
                Err(failure) if failure.is_contention() => attempts::pause(attempt).await,
                outcome => return outcome,
            }
        }
        read().await
    })
}

impl DocumentStore for MariaDbStore {
    fn default_collation<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, error::Result<Collation>> {
        if let Some(table) = self.catalog.cached(namespace) {
            return Box::pin(std::future::ready(Ok(table.collation.clone())));
        }
        repeated(async move || {
            let table = match self.catalog.names(namespace) {
                Ok(_) => self.look_up(namespace).await?,
                // A name that MariaDB cannot hold is no collection's.
                Err(_) => None,
            };
            Ok(table.map_or(Collation::SIMPLE, |table| table.collation.clone()))
        })
    }

    fn plan<'a>(
        &'a self,
        namespace: &'a Namespace,
        query: Query<'a>,
    ) -> LocalBoxFuture<'a, error::Result<Arc<dyn Plan>>> {
        if log::is_log(self, namespace) {
            return Box::pin(async move { query.check().map(|()| Arc::new(log::plan(&query)) as Arc<dyn Plan>) });
        }
        repeated(async move || self.make_plan(namespace, query).await)
    }

    fn plan_distinct<'a>(
        &'a self,
        namespace: &'a Namespace,
        query: Query<'a>,
        path: &'a str,
        collation: &'a Collation,
    ) -> LocalBoxFuture<'a, error::Result<Arc<dyn Plan>>> {
        if log::is_log(self, namespace) {
            return self.plan(namespace, query);
        }
        repeated(async move || {
            if query.predicate.matches_everything() && query.hint.is_none() && collation.is_simple() {
                let table = self.known_table(namespace).await?;
                if let Some(plan) = table.and_then(|table| planner::plan_distinct(namespace, table, path)) {
                    return Ok(Arc::new(plan) as Arc<dyn Plan>);
                }
            }
            self.make_plan(namespace, query).await
        })
    }

    fn scan<'a>(
        &'a self,
        plan: &'a dyn Plan,
        after: Option<&'a Position>,
        wanted: usize,
        sink: &'a mut dyn Sink,
    ) -> LocalBoxFuture<'a, error::Result<ScanEnd>> {
        match of_log(plan) {
            Some(plan) => Box::pin(log::scan(self, plan, after, sink)),
            None => mapped(async move { scan::scan(self, downcast(plan)?, after, wanted, sink).await }),
        }
    }

    fn sample<'a>(&'a self, plan: &'a dyn Plan, size: usize) -> LocalBoxFuture<'a, error::Result<Option<Vec<DocBuf>>>> {
        mapped(async move {
            match of_log(plan) {
                Some(_) => Ok(None),
                None => sample::sample(self, downcast(plan)?, size).await,
            }
        })
    }

    fn count<'a>(&'a self, plan: &'a dyn Plan, enough: Option<u64>) -> LocalBoxFuture<'a, error::Result<Option<u64>>> {
        repeated(async move || match of_log(plan) {
            Some(_) => Ok(None),
            None => count::count(self, downcast(plan)?, enough).await,
        })
    }

    fn explain<'a>(
        &'a self,
        plan: &'a dyn Plan,
        counted: bool,
    ) -> LocalBoxFuture<'a, error::Result<Option<(&'static str, DocBuf)>>> {
        mapped(async move {
            if of_log(plan).is_some() {
                return Ok(None);
            }
            Ok(explain::statements(self, downcast(plan)?, counted).await?.map(|statements| ("mariadb", statements)))
        })
    }

    fn tail<'a>(
        &'a self,
        namespace: &'a Namespace,
        predicate: &'a Predicate,
    ) -> LocalBoxFuture<'a, error::Result<Option<Arc<dyn Plan>>>> {
        mapped(async move {
            if log::is_log(self, namespace) {
                return Ok(Some(Arc::new(log::tail(predicate)) as Arc<dyn Plan>));
            }
            let mut lease = self.pool.lease_for(namespace).await?;
            let Some(table) = self.catalog.table(&mut lease, namespace).await? else { return Ok(None) };
            if table.cap().is_none() {
                return Err(rules::not_capped().into());
            }
            Ok(Some(Arc::new(MariaDbPlan::tail(namespace, table)) as Arc<dyn Plan>))
        })
    }

    fn additions(&self, plan: &dyn Plan) -> LocalBoxFuture<'static, ()> {
        if let (Some(_), Some(feed)) = (of_log(plan), &self.feed) {
            let mut watched = feed.watch();
            return Box::pin(async move { drop(watched.changed().await) });
        }
        // Other gateways and SQL clients may write too, so the cursor polls.
        Box::pin(async { tokio::time::sleep(POLL_EVERY).await })
    }

    fn write<'a>(&'a self, batch: WriteBatch) -> LocalBoxFuture<'a, error::Result<BatchOutcome>> {
        Box::pin(async move {
            if let Err(error) = log::refuse(self, &[&batch.namespace]) {
                return Ok(log::refused(error, &batch));
            }
            if let Some(inside) = &self.inside {
                return writes::write(self, inside, batch).await;
            }
            let namespace = batch.namespace.clone();
            let outcome = write::write(self, batch).await;
            refresh::refresh_in_background(self, &namespace);
            outcome
        })
    }

    fn begin_transaction(&self) -> LocalBoxFuture<'_, error::Result<Arc<dyn Transaction>>> {
        Box::pin(transaction::begin(self))
    }

    fn take_snapshot(&self) -> LocalBoxFuture<'_, error::Result<Arc<dyn Transaction>>> {
        Box::pin(async move {
            let snapshot = transaction::begin(self).await?;
            self.transactions.add_snapshot(&snapshot);
            Ok(snapshot)
        })
    }

    fn snapshot_limits(&self) -> SnapshotLimits {
        self.transactions.snapshot_limits()
    }

    fn in_transaction(&self, transaction: &Arc<dyn Transaction>) -> error::Result<Rc<dyn DocumentStore>> {
        Ok(Rc::new(self.inside(Inside::begin(transaction)?)))
    }

    fn commit_transaction<'a>(
        &'a self,
        transaction: &'a Arc<dyn Transaction>,
        key: TransactionKey,
        _: bool,
    ) -> LocalBoxFuture<'a, error::Result<()>> {
        Box::pin(async move {
            let written = transaction::commit(self, transaction, &key).await?;
            written.iter().for_each(|namespace| refresh::refresh_in_background(self, namespace));
            Ok(())
        })
    }

    fn recorded_write(
        &self,
        session: [u8; 16],
        commits: Option<i64>,
    ) -> LocalBoxFuture<'_, error::Result<Option<RecordedWrite>>> {
        mapped(outcome::recorded(self, session, commits))
    }

    fn change_feed(&self) -> Option<&dyn ChangeFeed> {
        self.feed.as_ref().map(|_| self as &dyn ChangeFeed)
    }

    fn sharding(&self) -> Option<&dyn Sharding> {
        (!self.shards.is_empty()).then_some(self as &dyn Sharding)
    }

    fn create_collection<'a>(
        &'a self,
        namespace: &'a Namespace,
        options: Doc<'a>,
    ) -> LocalBoxFuture<'a, error::Result<()>> {
        mapped(async move {
            self.prepare().await?;
            if let Some(inside) = &self.inside {
                return definitions::create_collection(self, inside, namespace, options).await;
            }
            self.change_collections(&[namespace], collections::create(self, namespace, options)).await
        })
    }

    fn modify_collection<'a>(
        &'a self,
        namespace: &'a Namespace,
        options: Doc<'a>,
    ) -> LocalBoxFuture<'a, error::Result<()>> {
        mapped(
            async move { self.change_collections(&[namespace], collections::modify(self, namespace, options)).await },
        )
    }

    fn drop_collection<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, error::Result<Option<usize>>> {
        mapped(async move { self.change_collections(&[namespace], collections::drop(self, namespace)).await })
    }

    fn rename_collection<'a>(
        &'a self,
        from: &'a Namespace,
        to: &'a Namespace,
        drop_target: bool,
    ) -> LocalBoxFuture<'a, error::Result<()>> {
        mapped(
            async move { self.change_collections(&[from, to], collections::rename(self, from, to, drop_target)).await },
        )
    }

    fn collections<'a>(&'a self, database: &'a str) -> LocalBoxFuture<'a, error::Result<Vec<CollectionInfo>>> {
        repeated(async move || {
            let mut collections = collections::list(self, database).await?;
            log::add_to_collections(self, database, &mut collections);
            Ok(collections)
        })
    }

    fn collection<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, error::Result<Option<CollectionInfo>>> {
        repeated(async move || match log::is_log(self, namespace) {
            true => Ok(Some(log::info())),
            false => collections::one(self, namespace).await,
        })
    }

    fn databases<'a>(&'a self) -> LocalBoxFuture<'a, error::Result<Vec<DatabaseInfo>>> {
        repeated(async move || {
            let mut databases = databases::list(self).await?;
            log::add_to_databases(self, &mut databases);
            Ok(databases)
        })
    }

    fn drop_database<'a>(&'a self, database: &'a str) -> LocalBoxFuture<'a, error::Result<bool>> {
        mapped(async move {
            let everything = Namespace::new(database, "");
            self.change_collections(&[&everything], collections::drop_database(self, database)).await
        })
    }

    fn build_indexes<'a>(
        &'a self,
        namespace: &'a Namespace,
        indexes: Vec<IndexSpec>,
        progress: Arc<Progress>,
    ) -> LocalBoxFuture<'a, error::Result<CreateIndexesOutcome>> {
        mapped(async move {
            let work = async {
                self.prepare().await?;
                if let Some(inside) = &self.inside {
                    return definitions::create_indexes(self, inside, namespace, indexes, &progress).await;
                }
                self.change_indexes(namespace, manage::create(self, namespace, indexes, &progress)).await
            };
            build::until_stopped(&progress, work).await
        })
    }

    fn modify_index<'a>(&'a self, namespace: &'a Namespace, index: IndexSpec) -> LocalBoxFuture<'a, error::Result<()>> {
        mapped(async move { self.change_indexes(namespace, manage::modify(self, namespace, index)).await })
    }

    fn drop_indexes<'a>(
        &'a self,
        namespace: &'a Namespace,
        which: IndexSelection,
    ) -> LocalBoxFuture<'a, error::Result<usize>> {
        mapped(async move { self.change_indexes(namespace, manage::drop(self, namespace, which)).await })
    }

    fn indexes<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, error::Result<Option<Vec<IndexSpec>>>> {
        repeated(async move || match log::is_log(self, namespace) {
            true => Ok(Some(Vec::new())),
            false => manage::list(self, namespace).await,
        })
    }

    fn cached_indexes<'a>(
        &'a self,
        namespace: &'a Namespace,
    ) -> LocalBoxFuture<'a, error::Result<Option<Vec<IndexSpec>>>> {
        repeated(async move || match log::is_log(self, namespace) {
            true => Ok(Some(Vec::new())),
            false => manage::known(self, namespace).await,
        })
    }

    fn collection_stats<'a>(
        &'a self,
        namespace: &'a Namespace,
    ) -> LocalBoxFuture<'a, error::Result<Option<CollectionStats>>> {
        repeated(async move || match log::is_log(self, namespace) {
            true => Ok(Some(log::statistics(self).await?)),
            false => statistics::collection(self, namespace).await,
        })
    }

    fn estimated_size<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, error::Result<SizeEstimate>> {
        repeated(async move || match log::is_log(self, namespace) {
            true => Ok(log::estimated_size()),
            false => statistics::estimated_size(self, namespace).await,
        })
    }

    fn content_version<'a>(&'a self, namespaces: &'a [Namespace]) -> LocalBoxFuture<'a, error::Result<Option<u64>>> {
        mapped(async move { content_version::of(self, namespaces).await.map(Some) })
    }

    fn database_stats<'a>(&'a self, database: &'a str) -> LocalBoxFuture<'a, error::Result<DatabaseStats>> {
        repeated(async move || statistics::database(self, database).await)
    }

    fn reads_elsewhere(&self, preference: &ReadPreference) -> bool {
        self.read_pools.as_ref().is_some_and(|pools| pools.servers.reads_elsewhere(preference))
    }

    fn keeps_accounts(&self) -> bool {
        self.accounts.is_some()
    }

    fn change_accounts(&self) -> LocalBoxFuture<'_, error::Result<Option<Box<dyn AccountChange>>>> {
        mapped(async move {
            let Some(settings) = self.accounts.clone() else { return Ok(None) };
            let change = MariaDbAccountChange::begin(self, settings).await?;
            Ok(Some(Box::new(change) as Box<dyn AccountChange>))
        })
    }

    fn validate<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, error::Result<Validation>> {
        mapped(async move {
            match log::is_log(self, namespace) {
                true => Ok(Validation::default()),
                false => validate::validate(self, namespace).await,
            }
        })
    }
}
