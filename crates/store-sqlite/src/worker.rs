//! The half of the store that serves one worker: its connections for reading, and the handle of the
//! writer.

use crate::catalog::{Catalog, Collection};
use crate::connection::{self, Role};
use crate::failure::{self, Attempt, Failure, engine_error};
use crate::plan::{IndexScan, SqlitePlan};
use crate::planner;
use crate::read::connections::{ConnectionPool, Lease};
use crate::read::id_lookup::ReadConnection;
use crate::read::mapped::Mapped;
use crate::read::scan::{self, Cursor, PrefixHabit, ScanPosition, SliceEnd, Visitor};
use crate::shared::Shared;
use crate::transaction::statement::Inside;
use crate::write::{Scope, Writer, WriterHandle};
use document::Doc;
use error::Result;
use futures_util::future::LocalBoxFuture;
use std::cell::{Ref, RefCell};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use store::{
    Flow, Namespace, Plan, Position, PrefixFiltering, PrefixVerdict, Progress, Query, ScanEnd, Sink, StoredDoc,
    Transaction,
};

/// A scan runs this long before it yields to the worker's other sessions.
const SLICE: Duration = Duration::from_micros(500);

/// A read waits at most this long for a reset of the log.
const RESTART_PATIENCE: Duration = Duration::from_millis(20);

pub struct SqliteStore {
    pool: ConnectionPool<ReadConnection>,
    mapped: Mapped,
    pub shared: Arc<Shared>,
    pub writer: WriterHandle,
    /// The latest catalog that this worker has seen, with its version.
    catalog: RefCell<(u64, Arc<Catalog>)>,
    /// The transaction that it reads and writes within, for one statement.
    pub inside: Option<Inside>,
}

impl SqliteStore {
    pub fn open(shared: Arc<Shared>, writer: WriterHandle) -> Result<SqliteStore> {
        let connection = connection::open(&shared.path, Role::Reader, &shared.options).map_err(engine_error)?;
        let catalog = RefCell::new(shared.catalog());
        Ok(SqliteStore {
            pool: ConnectionPool::with(ReadConnection::on(connection)),
            mapped: Mapped::default(),
            shared,
            writer,
            catalog,
            inside: None,
        })
    }

    /// Returns the store for a statement of a transaction. Fails with 251 if the transaction is
    /// over.
    pub fn within(&self, transaction: &Arc<dyn Transaction>) -> Result<SqliteStore> {
        Ok(SqliteStore {
            pool: ConnectionPool::default(),
            mapped: Mapped::default(),
            shared: self.shared.clone(),
            writer: self.writer.clone(),
            catalog: RefCell::default(),
            inside: Some(Inside::begin(transaction)?),
        })
    }

    /// Takes a connection for reading.
    #[inline]
    pub fn read_connection(&self) -> Result<Lease<'_, ReadConnection>> {
        if let Some(inside) = &self.inside {
            return inside.reading().map(Lease::of_pinned);
        }
        self.pool
            .take(|| Ok(ReadConnection::on(connection::open(&self.shared.path, Role::Reader, &self.shared.options)?)))
    }

    pub fn catalog(&self) -> Arc<Catalog> {
        self.latest_catalog().clone()
    }

    pub fn latest_catalog(&self) -> Ref<'_, Arc<Catalog>> {
        if let Some(inside) = &self.inside {
            return inside.catalog.borrow();
        }
        if self.catalog.borrow().0 != self.shared.version() {
            *self.catalog.borrow_mut() = self.shared.catalog();
        }
        Ref::map(self.catalog.borrow(), |(_, catalog)| catalog)
    }

    pub fn find(&self, namespace: &Namespace) -> Option<Arc<Collection>> {
        self.latest_catalog().get(namespace).cloned()
    }

    /// Returns whether strings compare by their bytes by default.
    pub fn compares_bytes(collection: &Collection) -> bool {
        let options = collection.options.as_doc();
        options.is_empty() || options.get("collation").is_none()
    }

    pub fn plan_without_collection(&self, namespace: &Namespace, query: &Query<'_>) -> Result<SqlitePlan> {
        match crate::catalog::view_names::is_view(self.read_connection()?.connection(), &self.catalog(), namespace)? {
            true => Ok(planner::view()),
            false => planner::plan(None, query, &|_, _, _| 0),
        }
    }

    pub fn measure(&self, collection: &Collection, scan: &IndexScan, enough: u64) -> u64 {
        let counted = self.read_connection().map_err(Failure::from);
        let counted = counted.and_then(|it| scan::measure_keys(it.connection(), collection, scan, enough));
        // The collection was just dropped; reading it will report that.
        counted.unwrap_or(enough)
    }

    /// Counts the keys of a scan in slices.
    pub async fn count_in_slices(&self, collection: &Collection, scan: &IndexScan, enough: u64) -> Result<u64> {
        let mut position = ScanPosition::default();
        let mut counted = 0;
        loop {
            if self.shared.are_reads_paused() {
                self.wait_for_wal_reset().await;
            }
            let deadline = Some(Instant::now() + SLICE);
            let reading = self.read_connection()?;
            let connection = reading.connection();
            let found = scan::count_keys(connection, collection, scan, &mut position, deadline, enough - counted);
            let (more, end) = found.map_err(|failure| failure::in_collection(failure, &collection.namespace))?;
            counted += more;
            if end != SliceEnd::Paused {
                return Ok(counted);
            }
            drop(reading);
            tokio::task::yield_now().await;
        }
    }

    /// Makes a plan. If it was measured by indexes with deferred entries, applies these and plans
    /// again.
    pub fn planned<'a>(
        &'a self,
        make: impl Fn() -> Result<(SqlitePlan, Option<MeasuredDeferred>)> + 'a,
    ) -> LocalBoxFuture<'a, Result<Arc<dyn Plan>>> {
        match make() {
            Ok((_, Some(MeasuredDeferred { collection, indexes }))) => Box::pin(async move {
                self.writer.apply_all_deferred(collection, indexes).await?;
                make().map(|(plan, _)| Arc::new(plan) as Arc<dyn Plan>)
            }),
            made => Box::pin(std::future::ready(made.map(|(plan, _)| Arc::new(plan) as Arc<dyn Plan>))),
        }
    }

    /// Makes a plan. Also returns the indexes with deferred entries by which it was measured.
    pub fn measured(
        &self,
        collection: &Collection,
        make: impl FnOnce(planner::Measure<'_>) -> Result<SqlitePlan>,
    ) -> Result<(SqlitePlan, Option<MeasuredDeferred>)> {
        let deferred = RefCell::new(Vec::new());
        let plan = make(&|collection, scan, enough| {
            // A transaction's snapshot lacks no entries.
            let index = scan.index.as_ref().filter(|index| self.inside.is_none() && index.has_deferred_entries());
            deferred.borrow_mut().extend(index.map(|index| index.id));
            self.measure(collection, scan, enough)
        })?;
        let indexes = deferred.into_inner();
        Ok((plan, (!indexes.is_empty()).then_some(MeasuredDeferred { collection: collection.id, indexes })))
    }

    /// Applies the deferred entries of the indexes that a plan reads.
    pub async fn apply_all_deferred(&self, plan: &SqlitePlan) -> Result<()> {
        match plan.deferred_indexes().filter(|_| self.inside.is_none()) {
            Some((collection, indexes)) => self.writer.apply_all_deferred(collection.id, indexes).await,
            None => Ok(()),
        }
    }

    pub async fn scan_in_slices(
        &self,
        plan: &SqlitePlan,
        after: Option<&Position>,
        sink: &mut dyn Sink,
    ) -> Result<ScanEnd> {
        let mut cursor = match after {
            Some(position) => Cursor::from_position(position)?,
            // The collection was dropped since the plan was made: a query that begins now finds
            // nothing.
            None if plan.collection.as_ref().is_some_and(|it| it.is_dropped()) => return Ok(ScanEnd::Exhausted),
            None => Cursor::default(),
        };
        let mut shown = SinkVisitor {
            records: sink.wants_records(),
            sink,
            prefix_habit: PrefixHabit::default(),
            bytes: 0,
            whole: self.inside.is_some(),
        };
        let is_large =
            self.inside.is_none() && plan.collection.as_ref().is_some_and(|it| self.mapped.suits(it, &self.shared));
        loop {
            if self.shared.are_reads_paused() {
                self.wait_for_wal_reset().await;
            }
            let deadline = Some(Instant::now() + SLICE);
            let end = match is_large {
                true => {
                    let connection = self.mapped.connection(&self.shared)?;
                    let end = scan::slice(&connection, plan, &mut cursor, deadline, &mut shown);
                    self.mapped.count_read(&connection, std::mem::take(&mut shown.bytes), &self.shared)?;
                    end
                }
                false => scan::slice(self.read_connection()?.connection(), plan, &mut cursor, deadline, &mut shown),
            };
            let end = end.map_err(|failure| match &plan.collection {
                Some(collection) => failure::in_collection(failure, &collection.namespace),
                None => failure,
            })?;
            match end {
                SliceEnd::Exhausted if plan.tailable => return Ok(ScanEnd::Stopped(cursor.to_position())),
                SliceEnd::Exhausted => return Ok(ScanEnd::Exhausted),
                SliceEnd::Stopped => return Ok(ScanEnd::Stopped(cursor.to_position())),
                SliceEnd::Paused => tokio::task::yield_now().await,
            }
        }
    }

    /// Serves other sessions until the writer has reset the log, which takes a millisecond or two.
    /// The wait is limited, so that a writer in trouble does not stop reads.
    pub async fn wait_for_wal_reset(&self) {
        let end = Instant::now() + RESTART_PATIENCE;
        while self.shared.are_reads_paused() && Instant::now() < end {
            tokio::task::yield_now().await;
        }
    }

    /// Runs a change to the catalog on the writer.
    pub fn define<'a, T: Send + 'static>(
        &'a self,
        scope: Scope,
        change: impl FnOnce(&mut Writer) -> Attempt<T> + Send + 'static,
    ) -> LocalBoxFuture<'a, Result<T>> {
        self.define_with_progress(scope, Arc::default(), change)
    }

    /// As [`SqliteStore::define`], for a change that reports progress and can be stopped.
    pub fn define_with_progress<'a, T: Send + 'static>(
        &'a self,
        scope: Scope,
        progress: Arc<Progress>,
        change: impl FnOnce(&mut Writer) -> Attempt<T> + Send + 'static,
    ) -> LocalBoxFuture<'a, Result<T>> {
        Box::pin(async move {
            if self.shared.pinned_snapshots.load(Ordering::Acquire) > 0 {
                self.wait_for_transactions(&scope, &progress).await?;
            }
            self.writer.define(scope, progress, |writer: &mut Writer| writer.change_catalog(change)).await
        })
    }

    /// Waits until no transaction is open that has changed these collections. Long index builds do
    /// not wait, since a commit makes the entries of new indexes.
    async fn wait_for_transactions(&self, scope: &Scope, progress: &Progress) -> Result<()> {
        if matches!(scope, Scope::Everything) {
            return Ok(());
        }
        loop {
            let scope = scope.clone();
            let holder = self.writer.run(move |writer| Ok(writer.holder_in(&scope))).await?;
            let Some(transaction) = holder else { return Ok(()) };
            transaction.wait_unless(|| progress.check()).await?;
        }
    }
}

/// A visitor that passes the documents of a scan to a sink.
struct SinkVisitor<'s> {
    records: bool,
    sink: &'s mut dyn Sink,
    prefix_habit: PrefixHabit,
    /// Bytes of the documents given so far.
    bytes: u64,
    /// Documents are read whole, since some of them are in temporary tables.
    whole: bool,
}

impl Visitor for SinkVisitor<'_> {
    #[inline]
    fn visit(&mut self, seq: i64, document: Doc<'_>) -> Result<Flow> {
        if self.records {
            self.sink.record(seq);
        }
        self.bytes += document.as_bytes().len() as u64;
        self.sink.accept(StoredDoc::Bson(document))
    }

    fn wants_numbers(&self) -> bool {
        self.records
    }

    fn filters_by_prefix(&self) -> PrefixFiltering {
        if self.whole { PrefixFiltering::Never } else { self.sink.filters_by_prefix() }
    }

    fn check_prefix(&mut self, prefix: Doc<'_>) -> Result<PrefixVerdict> {
        self.sink.check_prefix(prefix)
    }

    fn prefix_habit(&mut self) -> Option<&mut PrefixHabit> {
        Some(&mut self.prefix_habit)
    }
}

/// Indexes of a collection that were measured while they had deferred entries.
pub struct MeasuredDeferred {
    collection: i64,
    indexes: Vec<i64>,
}
