//! What every document store offers, whatever it keeps documents in.
//!
//! In reading order: [`namespace`], [`read`] (plans, scans, sinks), [`write`] (batches of statements and their outcomes),
//! [`change_observer`] (changes reported to the caches),
//! [`catalog`] (collections, indexes, figures), [`index_kind`], [`views`], [`index_rules`] and [`duplicate`] (what all stores refuse in the same words),
//! and [`DocumentStore`], the contract itself.
//!
//! A store has two halves. The shared half ([`Engine`]) belongs to the process; each worker thread opens its own
//! [`DocumentStore`] from it, which never leaves that thread.

pub mod catalog;
pub mod change_observer;
pub mod duplicate;
pub mod examined;
pub mod explain;
pub mod geo_keys;
pub mod index_kind;
pub mod index_rules;
pub mod index_selection;
pub mod namespace;
pub mod near;

pub mod progress;
pub mod read;
pub mod retry_record;
pub mod row_sampler;
pub mod rules;

pub mod selectivity;
pub mod type_bracket;
pub mod validator;
pub mod views;
pub mod write;

pub use catalog::{
    CollectionInfo, CollectionStats, CreateIndexesOutcome, DatabaseInfo, DatabaseStats, IndexSelection, IndexSpec,
    SizeEstimate, Validation,
};
pub use change_observer::{Change, ChangeObserver, Changes, InFlightWrite, ObserverSlot};
pub use examined::{Examined, ExaminedCounter};
pub use explain::{ExplainContext, PlanSummary};
pub use index_kind::{FieldKind, IndexKind};
pub use namespace::{BorrowedNamespace, Namespace};
pub use progress::Progress;
pub use read::{
    AllowedIndexes, Flow, Plan, PlanFacts, Position, PrefixFiltering, PrefixVerdict, Query, ScanEnd, Sink, StoredDoc,
    VisitIndex,
};
pub use rules::{Cap, Rules};
pub use validator::Validator;
pub use write::{
    AccessStats, BatchOutcome, DeleteStatement, RetryKey, ReturnImage, StatementOutcome, Statements, UpdateStatement,
    WriteBatch,
};

use document::{Collation, Doc, DocBuf, Value};
use error::Result;
use futures_util::future::LocalBoxFuture;
use std::rc::Rc;
use std::sync::Arc;

/// The half of a store that belongs to the process.
pub trait Engine: Send + Sync {
    /// Opens the half that lives on the calling worker thread, inside its tokio runtime.
    fn open(self: Arc<Self>) -> Result<Rc<dyn DocumentStore>>;

    /// Reports every change to `observer` from now on. Called before the first worker opens its half.
    fn observe_changes(&self, observer: Arc<dyn ChangeObserver>);

    /// Writes down what is pending and closes; called once, after the last worker has stopped.
    fn close(&self);

    /// Name and version for `buildInfo`, `serverStatus` and the log: `SQLite 3.51.0`, `MariaDB 10.11.19`.
    fn describe(&self) -> String;
}

/// The half of a store that serves one worker thread. All calls are made from that thread, many of them interleaved.
///
/// Databases and collections appear on first write. Reading from what does not exist finds nothing.
pub trait DocumentStore {
    // --- reading

    /// The collection's own collation, by which strings compare where a command has none of its own (`create` with `collation`).
    /// Asked by every command on documents, so a store answers from what it has in memory.
    fn default_collation<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, Result<Collation>> {
        Box::pin(async move {
            let info = self.collection(namespace).await?;
            info.map_or(Ok(Collation::SIMPLE), |info| catalog::default_collation(info.options.as_doc()))
        })
    }

    /// Decides how to find the documents that `query` wants.
    fn plan<'a>(&'a self, namespace: &'a Namespace, query: Query<'a>) -> LocalBoxFuture<'a, Result<Arc<dyn Plan>>>;

    /// As [`DocumentStore::plan`], where one document for each value of `path` is enough, whichever it is; strings are the same by
    /// `collation`. The plan may give more.
    fn plan_distinct<'a>(
        &'a self,
        namespace: &'a Namespace,
        query: Query<'a>,
        path: &'a str,
        collation: &'a Collation,
    ) -> LocalBoxFuture<'a, Result<Arc<dyn Plan>>> {
        let _ = (path, collation);
        self.plan(namespace, query)
    }

    /// Gives documents to `sink`, in the plan's order, from behind `after` (or from the start) until the sink stops or
    /// nothing is left. `wanted` is how many the caller expects to take now, so that a first batch reads about one batch.
    ///
    /// Holds no snapshot, lock or backend connection once it has returned: the position it returns is all a cursor keeps.
    /// A scan over much data gives way to other sessions of the worker now and then.
    fn scan<'a>(
        &'a self,
        plan: &'a dyn Plan,
        after: Option<&'a Position>,
        wanted: usize,
        sink: &'a mut dyn Sink,
    ) -> LocalBoxFuture<'a, Result<ScanEnd>>;

    /// Gives the document with this `_id` to `found`, without waiting and without a plan, and tells whether there is one.
    ///
    /// For the commonest query of all. `None`: not this way (there is no such collection, an `_id` of this kind may match more
    /// than one document or compare by a collation, the store has to wait for somebody); a plan and a scan decide then.
    /// `found` has not been called in that case.
    fn lookup(
        &self,
        database: &str,
        collection: &str,
        id: Value<'_>,
        found: &mut dyn FnMut(StoredDoc<'_>) -> Result<()>,
    ) -> Option<Result<bool>> {
        let _ = (database, collection, id, found);
        None
    }

    /// So many of the documents that the plan's scan would give, each as likely as any other and in no order, where the store finds them without
    /// reading all (`$sample`). `None` leaves it to the caller to read all.
    fn sample<'a>(&'a self, plan: &'a dyn Plan, size: usize) -> LocalBoxFuture<'a, Result<Option<Vec<DocBuf>>>> {
        let _ = (plan, size);
        Box::pin(std::future::ready(Ok(None)))
    }

    /// How many documents the plan's scan would give, `enough` at the most, where the store can tell without giving them: the
    /// plan is exact, and counting is cheaper than scanning. `None` leaves the counting to the caller.
    fn count<'a>(&'a self, plan: &'a dyn Plan, enough: Option<u64>) -> LocalBoxFuture<'a, Result<Option<u64>>> {
        let _ = (plan, enough);
        Box::pin(std::future::ready(Ok(None)))
    }

    /// What the engine below makes of a plan, where there is one that has an `explain` of its own: the name of the field it is shown
    /// in, and what it says. `counted`: no more is asked of it than a number ([`DocumentStore::count`]).
    fn explain<'a>(
        &'a self,
        plan: &'a dyn Plan,
        counted: bool,
    ) -> LocalBoxFuture<'a, Result<Option<(&'static str, DocBuf)>>> {
        let _ = (plan, counted);
        Box::pin(std::future::ready(Ok(None)))
    }

    /// A plan that gives a capped collection's documents in natural order and never comes to an end: a scan of it stops behind the
    /// last document there is, and another one goes on from there. `None` when there is no such collection. Error 2 when it
    /// is not capped. A scan whose last document has been deleted meanwhile is error 136.
    fn tail<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, Result<Option<Arc<dyn Plan>>>>;

    /// Waits until there may be more documents than when this was called; for plans of [`DocumentStore::tail`]. May come to
    /// an end for nothing.
    fn additions(&self, plan: &dyn Plan) -> LocalBoxFuture<'static, ()>;

    // --- writing

    /// Carries out a batch of statements. Each statement's documents change atomically and durably before this returns; an
    /// `Err` of the whole means that nothing is known to have happened (the store is out of reach).
    fn write<'a>(&'a self, batch: WriteBatch) -> LocalBoxFuture<'a, Result<BatchOutcome>>;

    // --- catalog

    /// Creates a collection; error 48 when there is one with other options. `options` is the `create` command's document
    /// less its name and generic fields.
    fn create_collection<'a>(&'a self, namespace: &'a Namespace, options: Doc<'a>) -> LocalBoxFuture<'a, Result<()>>;

    /// Puts other options in the place of a collection's (`collMod`). Error 26 when there is no such collection.
    fn modify_collection<'a>(&'a self, namespace: &'a Namespace, options: Doc<'a>) -> LocalBoxFuture<'a, Result<()>>;

    /// Drops a collection with its indexes; gives the number of indexes it had, or `None` when there is none.
    fn drop_collection<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, Result<Option<usize>>>;

    /// Renames, across databases too. Errors 26 (no source) and 48 (target exists and `drop_target` is false).
    fn rename_collection<'a>(
        &'a self,
        from: &'a Namespace,
        to: &'a Namespace,
        drop_target: bool,
    ) -> LocalBoxFuture<'a, Result<()>>;

    fn collections<'a>(&'a self, database: &'a str) -> LocalBoxFuture<'a, Result<Vec<CollectionInfo>>>;

    fn collection<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, Result<Option<CollectionInfo>>>;

    fn databases<'a>(&'a self) -> LocalBoxFuture<'a, Result<Vec<DatabaseInfo>>>;

    /// Drops a database; gives whether there was one.
    fn drop_database<'a>(&'a self, database: &'a str) -> LocalBoxFuture<'a, Result<bool>>;

    fn create_indexes<'a>(
        &'a self,
        namespace: &'a Namespace,
        indexes: Vec<IndexSpec>,
    ) -> LocalBoxFuture<'a, Result<CreateIndexesOutcome>> {
        self.build_indexes(namespace, indexes, Arc::default())
    }

    /// As [`DocumentStore::create_indexes`], telling how far it is.
    fn build_indexes<'a>(
        &'a self,
        namespace: &'a Namespace,
        indexes: Vec<IndexSpec>,
        progress: Arc<Progress>,
    ) -> LocalBoxFuture<'a, Result<CreateIndexesOutcome>>;

    /// Puts another specification in the place of an index's, with the same name and key. What it may change is what an index
    /// does not depend on: `expireAfterSeconds`, `hidden`, `prepareUnique`. Errors 26 and 27.
    fn modify_index<'a>(&'a self, namespace: &'a Namespace, index: IndexSpec) -> LocalBoxFuture<'a, Result<()>>;

    /// Drops indexes; gives how many there were before. Errors 26 and 27.
    fn drop_indexes<'a>(&'a self, namespace: &'a Namespace, which: IndexSelection)
    -> LocalBoxFuture<'a, Result<usize>>;

    /// The collection's indexes, `_id_` first; `None` when there is no such collection.
    fn indexes<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, Result<Option<Vec<IndexSpec>>>>;

    /// As [`Self::indexes`], for choosing how to read: what others than this process have changed may show some seconds later.
    fn cached_indexes<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, Result<Option<Vec<IndexSpec>>>> {
        self.indexes(namespace)
    }

    /// Counts and sizes; `None` when there is no such collection. The count is exact, which may take time: `estimatedDocumentCount` asks for it.
    fn collection_stats<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, Result<Option<CollectionStats>>>;

    /// About how many documents and bytes there are, zeros where there is no such collection: for choosing how to read, so it is cheap.
    fn estimated_size<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, Result<SizeEstimate>> {
        Box::pin(async move {
            let stats = self.collection_stats(namespace).await?;
            Ok(stats.map_or(SizeEstimate::default(), |stats| SizeEstimate {
                documents: stats.documents,
                data_bytes: stats.data_bytes,
            }))
        })
    }

    fn database_stats<'a>(&'a self, database: &'a str) -> LocalBoxFuture<'a, Result<DatabaseStats>>;

    /// Reads everything and says what is wrong with it (`validate`).
    fn validate<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, Result<Validation>>;
}
