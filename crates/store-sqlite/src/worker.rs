//! The half of the store that serves one worker: its connections for reading, and the way to the writer.

use crate::catalog::{Catalog, Collection};
use crate::connection::{self, Role};
use crate::engine::Shared;
use crate::failure::{self, Attempt, Failure, engine_error};
use crate::plan::{IndexScan, SqlitePlan};
use crate::planner;
use crate::read::connections::{Lease, Readers};
use crate::read::id_lookup::Reading;
use crate::read::mapped::Mapped;
use crate::read::scan::{self, Cursor, Habit, Place, SliceEnd, Visitor};
use crate::write::{Scope, Writer, WriterHandle};
use document::Doc;
use error::Result;
use futures_util::future::LocalBoxFuture;
use std::cell::{Ref, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{Flow, Namespace, Plan, Position, PrefixFiltering, PrefixVerdict, Query, ScanEnd, Sink, StoredDoc};

/// How long a scan runs before it gives way to the worker's other sessions.
const SLICE: Duration = Duration::from_micros(500);

/// How long a read gives way to the log's new beginning.
const RESTART_PATIENCE: Duration = Duration::from_millis(20);

pub struct SqliteStore {
    readers: Readers<Reading>,
    mapped: Mapped,
    pub shared: Arc<Shared>,
    pub writer: WriterHandle,
    /// The latest catalog this worker has seen.
    catalog: RefCell<(u64, Arc<Catalog>)>,
}

impl SqliteStore {
    pub fn open(shared: Arc<Shared>, writer: WriterHandle) -> Result<SqliteStore> {
        let connection = connection::open(&shared.path, Role::Reader, &shared.options).map_err(engine_error)?;
        let catalog = RefCell::new(shared.catalog());
        Ok(SqliteStore {
            readers: Readers::with(Reading::on(connection)),
            mapped: Mapped::default(),
            shared,
            writer,
            catalog,
        })
    }

    /// A connection to read by.
    #[inline]
    pub fn reading(&self) -> Result<Lease<'_, Reading>> {
        self.readers.take(|| Ok(Reading::on(connection::open(&self.shared.path, Role::Reader, &self.shared.options)?)))
    }

    pub fn catalog(&self) -> Arc<Catalog> {
        self.latest_catalog().clone()
    }

    pub fn latest_catalog(&self) -> Ref<'_, Arc<Catalog>> {
        if self.catalog.borrow().0 != self.shared.version() {
            *self.catalog.borrow_mut() = self.shared.catalog();
        }
        Ref::map(self.catalog.borrow(), |(_, catalog)| catalog)
    }

    pub fn find(&self, namespace: &Namespace) -> Option<Arc<Collection>> {
        self.latest_catalog().get(namespace).cloned()
    }

    /// Whether strings are equal if their bytes are, by default.
    pub fn compares_bytes(collection: &Collection) -> bool {
        let options = collection.options.as_doc();
        options.is_empty() || options.get("collation").is_none()
    }

    pub fn plan_without_collection(&self, namespace: &Namespace, query: &Query<'_>) -> Result<SqlitePlan> {
        match crate::catalog::view_names::is_view(self.reading()?.connection(), &self.catalog(), namespace)? {
            true => Ok(planner::view()),
            false => planner::plan(None, query, &|_, _, _| 0),
        }
    }

    pub fn measure(&self, collection: &Collection, scan: &IndexScan, enough: u64) -> u64 {
        let counted = self.reading().map_err(Failure::from);
        let counted = counted.and_then(|it| scan::measure_keys(it.connection(), collection, scan, enough));
        // Dropped a moment ago; reading it will say so.
        counted.unwrap_or(enough)
    }

    /// Counts the keys of a scan, giving way now and then.
    pub async fn count_in_slices(&self, collection: &Collection, scan: &IndexScan, enough: u64) -> Result<u64> {
        let mut place = Place::default();
        let mut counted = 0;
        loop {
            if self.shared.must_reads_wait() {
                self.let_the_log_begin_anew().await;
            }
            let deadline = Some(Instant::now() + SLICE);
            let reading = self.reading()?;
            let connection = reading.connection();
            let found = scan::count_keys(connection, collection, scan, &mut place, deadline, enough - counted);
            let (more, end) = found.map_err(|failure| failure::in_collection(failure, &collection.namespace))?;
            counted += more;
            if end != SliceEnd::Paused {
                return Ok(counted);
            }
            drop(reading);
            tokio::task::yield_now().await;
        }
    }

    /// Makes a plan; and again, where what it was measured by lacked entries.
    pub fn planned<'a>(
        &'a self,
        make: impl Fn() -> Result<(SqlitePlan, Option<MeasuredLate>)> + 'a,
    ) -> LocalBoxFuture<'a, Result<Arc<dyn Plan>>> {
        match make() {
            Ok((_, Some(MeasuredLate { collection, indexes }))) => Box::pin(async move {
                self.writer.catch_up(collection, indexes).await?;
                make().map(|(plan, _)| Arc::new(plan) as Arc<dyn Plan>)
            }),
            made => Box::pin(std::future::ready(made.map(|(plan, _)| Arc::new(plan) as Arc<dyn Plan>))),
        }
    }

    /// Makes a plan, and gives which indexes it was measured by although they lacked entries.
    pub fn measured(
        &self,
        collection: &Collection,
        make: impl FnOnce(planner::Measure<'_>) -> Result<SqlitePlan>,
    ) -> Result<(SqlitePlan, Option<MeasuredLate>)> {
        let late = RefCell::new(Vec::new());
        let plan = make(&|collection, scan, enough| {
            let index = scan.index.as_ref().filter(|index| index.is_late());
            late.borrow_mut().extend(index.map(|index| index.id));
            self.measure(collection, scan, enough)
        })?;
        let indexes = late.into_inner();
        Ok((plan, (!indexes.is_empty()).then_some(MeasuredLate { collection: collection.id, indexes })))
    }

    /// Has the indexes that a plan reads by brought up to what is acknowledged.
    pub async fn catch_up(&self, plan: &SqlitePlan) -> Result<()> {
        match plan.late_indexes() {
            Some((collection, indexes)) => self.writer.catch_up(collection.id, indexes).await,
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
            // Dropped since the plan was made: a query that begins now finds nothing.
            None if plan.collection.as_ref().is_some_and(|it| it.is_dropped()) => return Ok(ScanEnd::Exhausted),
            None => Cursor::default(),
        };
        let mut shown = Shown { records: sink.wants_records(), sink, habit: Habit::default(), bytes: 0 };
        let is_large = plan.collection.as_ref().is_some_and(|it| self.mapped.suits(it, &self.shared));
        loop {
            if self.shared.must_reads_wait() {
                self.let_the_log_begin_anew().await;
            }
            let deadline = Some(Instant::now() + SLICE);
            let end = match is_large {
                true => {
                    let connection = self.mapped.connection(&self.shared)?;
                    let end = scan::slice(&connection, plan, &mut cursor, deadline, &mut shown);
                    self.mapped.has_read(&connection, std::mem::take(&mut shown.bytes), &self.shared)?;
                    end
                }
                false => scan::slice(self.reading()?.connection(), plan, &mut cursor, deadline, &mut shown),
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

    /// Serves other sessions until the writer is done with the log, which takes a millisecond or two; not for ever, so that
    /// a writer in trouble does not stop reads.
    pub async fn let_the_log_begin_anew(&self) {
        let end = Instant::now() + RESTART_PATIENCE;
        while self.shared.must_reads_wait() && Instant::now() < end {
            tokio::task::yield_now().await;
        }
    }

    pub fn define<'a, T: Send + 'static>(
        &'a self,
        scope: Scope,
        change: impl FnOnce(&mut Writer) -> Attempt<T> + Send + 'static,
    ) -> LocalBoxFuture<'a, Result<T>> {
        Box::pin(self.writer.define(scope, Arc::default(), change))
    }
}

/// What a scan gives goes to a sink.
struct Shown<'s> {
    records: bool,
    sink: &'s mut dyn Sink,
    habit: Habit,
    /// The documents' bytes.
    bytes: u64,
}

impl Visitor for Shown<'_> {
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
        self.sink.filters_by_prefix()
    }

    fn check_prefix(&mut self, prefix: Doc<'_>) -> Result<PrefixVerdict> {
        self.sink.check_prefix(prefix)
    }

    fn habit(&mut self) -> Option<&mut Habit> {
        Some(&mut self.habit)
    }
}

/// Indexes of a collection that were measured before all entries were in them.
pub struct MeasuredLate {
    collection: i64,
    indexes: Vec<i64>,
}
