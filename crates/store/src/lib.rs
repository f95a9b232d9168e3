//! The contract of document stores, independent of how they store documents.
//!
//! In reading order: [`namespace`], [`read`] (plans, scans, sinks), [`write`] (batches of
//! statements and their outcomes), [`transaction`], [`change_observer`] (changes reported to the
//! caches), [`change_feed`] (changes in order, for change streams), [`catalog`] (collections,
//! indexes, statistics), [`index_kind`], [`views`], [`index_rules`] and [`duplicate`] (errors whose
//! text all stores share), [`identity`] and [`accounts`] (for stores with accounts of their own),
//! [`read_preference`] (for those on several servers), [`sharding`] (for those that distribute
//! collections), and [`DocumentStore`], the contract itself.
//!
//! A store has two halves. The shared half ([`Engine`]) belongs to the process. Each worker thread
//! opens its own [`DocumentStore`] from it, which never leaves that thread.

pub mod accounts;
pub mod catalog;
pub mod change_feed;
pub mod change_observer;
pub mod duplicate;
pub mod examined;
pub mod explain;
pub mod geo_keys;
pub mod hint;
pub mod identity;
pub mod index_kind;
pub mod index_rules;
pub mod index_selection;
pub mod namespace;
pub mod near;

pub mod progress;
pub mod read;
pub mod read_preference;
pub mod retry_record;
pub mod row_sampler;
pub mod rules;
pub mod sharding;
pub mod transaction;

pub mod type_bracket;
pub mod validator;
pub mod views;
pub mod write;

pub use accounts::{AccountChange, AccountUser, CredentialsDigest, NewPassword};
pub use catalog::{
    CollectionInfo, CollectionStats, CreateIndexesOutcome, DatabaseInfo, DatabaseStats, IndexSelection, IndexSpec,
    SizeEstimate, Validation,
};
pub use change_feed::{ChangeFeed, FeedEntry, FeedPosition, LoggedChange, Operation};
pub use change_observer::{Change, ChangeObserver, Changes, InFlightWrite, ObserverSlot};
pub use examined::{Examined, ExaminedCounter};
pub use explain::{ExplainContext, PlanSummary};
pub use hint::Hint;
pub use identity::Identity;
pub use index_kind::{FieldKind, IndexKind};
pub use namespace::{BorrowedNamespace, Namespace};
pub use progress::Progress;
pub use read::{
    AllowedIndexes, Flow, Plan, PlanFacts, Position, PrefixFiltering, PrefixVerdict, Query, ScanEnd, Sink, StoredDoc,
    VisitIndex,
};
pub use read_preference::{ReadMode, ReadPreference};
pub use rules::{Cap, Rules};
pub use sharding::{Shard, ShardedCollection, Sharding};
pub use transaction::{RecordedWrite, SnapshotLimits, SnapshotTimes, Transaction, TransactionKey};
pub use validator::Validator;
pub use write::{
    AccessStats, BatchOutcome, DeleteStatement, RetryKey, ReturnImage, StatementOutcome, Statements, UpdateStatement,
    WriteBatch,
};

use document::{Collation, Doc, DocBuf, Value};
use error::Result;
use futures_util::future::LocalBoxFuture;
use query::Predicate;
use std::rc::Rc;
use std::sync::Arc;

/// The half of a store that belongs to the process.
pub trait Engine: Send + Sync {
    /// Opens the half of the calling worker thread, inside its tokio runtime.
    fn open(self: Arc<Self>) -> Result<Rc<dyn DocumentStore>>;

    /// Reports every change to `observer` from now on. Called before the first worker opens its
    /// half.
    fn observe_changes(&self, observer: Arc<dyn ChangeObserver>);

    /// Flushes pending work and closes the store. Called once, after the last worker has stopped.
    fn close(&self);

    /// Returns name and version for `buildInfo`, `serverStatus` and the log: `SQLite 3.51.0`,
    /// `MariaDB 10.11.19`.
    fn describe(&self) -> String;
}

/// The half of a store that serves one worker thread. All calls are made from that thread, many of
/// them interleaved.
///
/// Databases and collections are created by the first write. Reading from a collection that does
/// not exist finds nothing.
pub trait DocumentStore {
    // --- reading

    /// Returns the collection's default collation, by which strings compare if a command has none
    /// of its own (`create` with `collation`). Every command on documents calls this, so a store
    /// must answer from memory.
    fn default_collation<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, Result<Collation>> {
        Box::pin(async move {
            let info = self.collection(namespace).await?;
            info.map_or(Ok(Collation::SIMPLE), |info| catalog::default_collation(info.options.as_doc()))
        })
    }

    /// Decides how to find the documents that match `query`.
    fn plan<'a>(&'a self, namespace: &'a Namespace, query: Query<'a>) -> LocalBoxFuture<'a, Result<Arc<dyn Plan>>>;

    /// As [`DocumentStore::plan`], for callers that need only one document, any one, per value of
    /// `path`; `collation` decides which strings are equal. The plan may return more.
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

    /// Gives documents to `sink` in the plan's order, from behind `after` (or from the start),
    /// until the sink stops or no document is left. `wanted` is the number that the caller expects
    /// to take now, so that a first batch reads about one batch.
    ///
    /// Holds no snapshot, lock or backend connection once it has returned: the returned position is
    /// all that a cursor stores. A long scan yields to other sessions of the worker regularly.
    fn scan<'a>(
        &'a self,
        plan: &'a dyn Plan,
        after: Option<&'a Position>,
        wanted: usize,
        sink: &'a mut dyn Sink,
    ) -> LocalBoxFuture<'a, Result<ScanEnd>>;

    /// Gives the document with this `_id` to `found`, without waiting and without a plan. Returns
    /// whether it exists.
    ///
    /// This is the fast path of the most frequent query. Returns `None`, without a call of `found`,
    /// if it does not apply: the collection does not exist, an `_id` of this type may match several
    /// documents or compares by a collation, or the store would have to wait. The caller then plans
    /// and scans.
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

    /// Returns `size` random documents of the plan's scan, uniformly chosen and in no order, if the
    /// store can find them without reading all (`$sample`). Returns `None` if the caller must read
    /// all.
    fn sample<'a>(&'a self, plan: &'a dyn Plan, size: usize) -> LocalBoxFuture<'a, Result<Option<Vec<DocBuf>>>> {
        let _ = (plan, size);
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Returns how many documents the plan's scan would give, at most `enough`, if the plan is
    /// exact and counting is cheaper than scanning. Returns `None` if the caller must count.
    fn count<'a>(&'a self, plan: &'a dyn Plan, enough: Option<u64>) -> LocalBoxFuture<'a, Result<Option<u64>>> {
        let _ = (plan, enough);
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Returns the backend's own `explain` of a plan, if it has one, with the name of the field to
    /// show it in. `counted`: the command needs only a number ([`DocumentStore::count`]).
    fn explain<'a>(
        &'a self,
        plan: &'a dyn Plan,
        counted: bool,
    ) -> LocalBoxFuture<'a, Result<Option<(&'static str, DocBuf)>>> {
        let _ = (plan, counted);
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Returns a plan that gives a capped collection's documents in natural order and never ends: a
    /// scan stops behind the last document, and the next scan continues there. Returns `None` if
    /// the collection does not exist. Fails with 2 if it is not capped. A scan fails with 136 if
    /// the document at its position has been deleted. Scans may leave out documents that do not
    /// match the predicate.
    fn tail<'a>(
        &'a self,
        namespace: &'a Namespace,
        predicate: &'a Predicate,
    ) -> LocalBoxFuture<'a, Result<Option<Arc<dyn Plan>>>>;

    /// Waits until there may be more documents than at the time of the call; for plans of
    /// [`DocumentStore::tail`]. May complete although nothing was added.
    fn additions(&self, plan: &dyn Plan) -> LocalBoxFuture<'static, ()>;

    // --- writing

    /// Carries out a batch of statements. Each statement's documents change atomically and durably
    /// before this returns. An `Err` of the whole means that the outcome is unknown (the store is
    /// out of reach).
    fn write<'a>(&'a self, batch: WriteBatch) -> LocalBoxFuture<'a, Result<BatchOutcome>>;

    /// Returns the change feed, if the store keeps one.
    fn change_feed(&self) -> Option<&dyn ChangeFeed> {
        None
    }

    /// Returns the sharding, if the store distributes collections over several servers.
    fn sharding(&self) -> Option<&dyn Sharding> {
        None
    }

    // --- transactions

    /// Begins a transaction, whose snapshot is the state of now. Fails with 263 if the store has no
    /// transactions.
    fn begin_transaction(&self) -> LocalBoxFuture<'_, Result<Arc<dyn Transaction>>> {
        Box::pin(std::future::ready(Err(transaction::unsupported())))
    }

    /// Takes a snapshot for reads outside of transactions: a transaction that is never committed. A
    /// store may release it early.
    fn take_snapshot(&self) -> LocalBoxFuture<'_, Result<Arc<dyn Transaction>>> {
        self.begin_transaction()
    }

    fn snapshot_limits(&self) -> SnapshotLimits {
        SnapshotLimits { count: 100, delays_definitions: false }
    }

    /// Returns a store for the next statement of a transaction: its calls read the transaction's
    /// snapshot with its own writes, and write into it. Dropping the store ends the statement.
    /// Fails with 251 if the transaction was aborted.
    ///
    /// The store refuses changes to the catalog with 263, except for new collections and indexes
    /// on these. After a failed write the caller must abort the transaction.
    fn in_transaction(&self, transaction: &Arc<dyn Transaction>) -> Result<Rc<dyn DocumentStore>> {
        let _ = transaction;
        Err(transaction::unsupported())
    }

    /// Commits a transaction: its writes become visible and durable together, with a record of
    /// the outcome under `key`. Fails with 112 or 251, and then nothing is written; after another
    /// error the outcome is unknown ([`transaction::may_be_committed`]). `journal` is as in
    /// [`WriteBatch`].
    fn commit_transaction<'a>(
        &'a self,
        transaction: &'a Arc<dyn Transaction>,
        key: TransactionKey,
        journal: bool,
    ) -> LocalBoxFuture<'a, Result<()>> {
        let _ = (transaction, key, journal);
        Box::pin(std::future::ready(Err(transaction::unsupported())))
    }

    /// Returns the recorded write of a session ([`RetryKey::session`]), if there is one. `commits`:
    /// the number of a transaction that another process may still be committing. Unless it is
    /// recorded as committed now, it never will be.
    fn recorded_write(
        &self,
        session: [u8; 16],
        commits: Option<i64>,
    ) -> LocalBoxFuture<'_, Result<Option<RecordedWrite>>> {
        let _ = (session, commits);
        Box::pin(std::future::ready(Ok(None)))
    }

    // --- catalog

    /// Creates a collection. Fails with 48 if it exists with other options. `options` is the
    /// `create` command's document without its name and generic fields.
    fn create_collection<'a>(&'a self, namespace: &'a Namespace, options: Doc<'a>) -> LocalBoxFuture<'a, Result<()>>;

    /// Replaces a collection's options (`collMod`). Fails with 26 if the collection does not exist.
    fn modify_collection<'a>(&'a self, namespace: &'a Namespace, options: Doc<'a>) -> LocalBoxFuture<'a, Result<()>>;

    /// Drops a collection with its indexes. Returns the number of indexes it had, or `None` if it
    /// did not exist.
    fn drop_collection<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, Result<Option<usize>>>;

    /// Renames a collection, across databases too. Fails with 26 if there is no source, and with 48
    /// if the target exists and `drop_target` is false.
    fn rename_collection<'a>(
        &'a self,
        from: &'a Namespace,
        to: &'a Namespace,
        drop_target: bool,
    ) -> LocalBoxFuture<'a, Result<()>>;

    fn collections<'a>(&'a self, database: &'a str) -> LocalBoxFuture<'a, Result<Vec<CollectionInfo>>>;

    fn collection<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, Result<Option<CollectionInfo>>>;

    fn databases<'a>(&'a self) -> LocalBoxFuture<'a, Result<Vec<DatabaseInfo>>>;

    /// Drops a database. Returns whether it existed.
    fn drop_database<'a>(&'a self, database: &'a str) -> LocalBoxFuture<'a, Result<bool>>;

    fn create_indexes<'a>(
        &'a self,
        namespace: &'a Namespace,
        indexes: Vec<IndexSpec>,
    ) -> LocalBoxFuture<'a, Result<CreateIndexesOutcome>> {
        self.build_indexes(namespace, indexes, Arc::default())
    }

    /// As [`DocumentStore::create_indexes`], reporting progress.
    fn build_indexes<'a>(
        &'a self,
        namespace: &'a Namespace,
        indexes: Vec<IndexSpec>,
        progress: Arc<Progress>,
    ) -> LocalBoxFuture<'a, Result<CreateIndexesOutcome>>;

    /// Replaces an index's specification, with the same name and key. Only options that the index
    /// does not depend on may change: `expireAfterSeconds`, `hidden`, `prepareUnique`. Fails with
    /// 26 or 27.
    fn modify_index<'a>(&'a self, namespace: &'a Namespace, index: IndexSpec) -> LocalBoxFuture<'a, Result<()>>;

    /// Drops indexes. Returns how many there were before. Fails with 26 or 27.
    fn drop_indexes<'a>(&'a self, namespace: &'a Namespace, which: IndexSelection)
    -> LocalBoxFuture<'a, Result<usize>>;

    /// Returns the collection's indexes, `_id_` first; `None` if the collection does not exist.
    fn indexes<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, Result<Option<Vec<IndexSpec>>>>;

    /// As [`Self::indexes`], for choosing how to read: changes made by other processes may show
    /// some seconds later.
    fn cached_indexes<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, Result<Option<Vec<IndexSpec>>>> {
        self.indexes(namespace)
    }

    /// Returns counts and sizes; `None` if the collection does not exist. The count is exact, which
    /// may take time: `estimatedDocumentCount` uses it.
    fn collection_stats<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, Result<Option<CollectionStats>>>;

    /// Estimates how many documents and bytes there are, zero if the collection does not exist.
    /// Cheap, for choosing how to read.
    fn estimated_size<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, Result<SizeEstimate>> {
        Box::pin(async move {
            let stats = self.collection_stats(namespace).await?;
            Ok(stats.map_or(SizeEstimate::default(), |stats| SizeEstimate {
                documents: stats.documents,
                data_bytes: stats.data_bytes,
            }))
        })
    }

    /// Returns a number that changes with the documents of these collections, whichever program
    /// changes them. Returns `None` if every change is reported to the observer, because no other
    /// program can write to the store.
    fn content_version<'a>(&'a self, namespaces: &'a [Namespace]) -> LocalBoxFuture<'a, Result<Option<u64>>> {
        let _ = namespaces;
        Box::pin(std::future::ready(Ok(None)))
    }

    fn database_stats<'a>(&'a self, database: &'a str) -> LocalBoxFuture<'a, Result<DatabaseStats>>;

    // --- accounts

    /// Returns whether a read with this preference may be executed on another server than the
    /// primary. Then the command runs under the preference ([`read_preference::under`]).
    fn reads_elsewhere(&self, preference: &ReadPreference) -> bool {
        let _ = preference;
        false
    }

    /// Returns whether the store keeps accounts beside users, under which it executes statements on
    /// documents.
    fn keeps_accounts(&self) -> bool {
        false
    }

    /// Begins a change of accounts; `None` if the store keeps none.
    fn change_accounts(&self) -> LocalBoxFuture<'_, Result<Option<Box<dyn AccountChange>>>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Reads everything and reports damage (`validate`).
    fn validate<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, Result<Validation>>;
}
