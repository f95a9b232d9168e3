//! The one thread that writes.
//!
//! Workers send jobs over a channel. The writer takes the queued jobs, carries them out in one
//! transaction, commits, and then replies to all of them ([`Writer::run_group`]). Statements are
//! evaluated here, inside the transaction, so that an upsert or a findAndModify sees exactly what
//! it changes.
//!
//! There are two kinds of failure. A statement that is refused (a duplicate key) is part of its
//! batch's outcome and affects nothing else. When SQLite fails, the transaction is rolled back and
//! each batch of the group is tried alone.
//!
//! No job holds the writer for long. A batch is carried out in parts, and others have their turn in
//! between ([`part`]). A slow search, or slow work on a document, is left to the worker that sent
//! the batch ([`on_worker`]). The worker sends the resulting changes, each on the condition that
//! the document is unchanged ([`conditional`]). An index build yields to others ([`yield_point`]).
//!
//! [`queue`] receives jobs; [`batch`] carries out insert, update and delete; [`documents`]
//! maintains documents with their index entries, except those that are [`deferred`], and
//! [`recovery`] makes the deferred ones again after a crash; [`definition`] creates and drops,
//! [`index_build`] builds indexes; [`retry`] records outcomes; [`cleanup`] does work that can wait.

pub mod batch;
mod cleanup;
pub mod conditional;
mod deferred;
mod definition;
mod disk_reserve;
pub mod documents;
mod index_build;
mod on_worker;
pub mod part;
mod queue;
mod recovery;
pub mod retry;
mod yield_point;

use crate::catalog::{Catalog, Collection, Index};
use crate::connection;
use crate::engine::{Options, Shared};
use crate::failure::{Attempt, Failure, is_damage};
use crate::files::sync::{self, CheckpointHandle, SyncHandle};
use ahash::AHashMap;
use document::{Doc, names};
use error::{Error, Result};
use rusqlite::Connection;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use store::{AccessStats, Changes, Namespace, Progress};

pub use index_build::is_large;
use queue::{Definition, Job, Queue, Waited};
pub use queue::{Scope, WriterHandle};

/// How long writers wait for the disk when the log is too long.
const DISK_PATIENCE: Duration = Duration::from_secs(5);

/// The idle writer checks this often for work that could wait.
const IDLE_LOOK: Duration = Duration::from_secs(60);

/// The limit of batches in one transaction, and the time after which it takes no more: others wait
/// for its commit.
const GROUP_BATCHES_MAX: usize = 256;
const GROUP_TIME_MAX: Duration = Duration::from_millis(5);

/// Starts the writer's thread.
pub fn start(
    mut connection: Connection,
    shared: Arc<Shared>,
    sync: SyncHandle,
    checkpoints: CheckpointHandle,
) -> Result<(WriterHandle, JoinHandle<()>), Failure> {
    let wal_pages = Arc::new(AtomicU64::new(0));
    let pages = wal_pages.clone();
    connection.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, count| {
        pages.store(count as u64, Ordering::Relaxed);
        Ok(())
    }))?;
    let (handle, queue) = queue::open()?;
    let catalog = shared.catalog().1;
    let reserve = disk_reserve::DiskReserve::beside(&shared.path);
    let mut writer = Writer {
        connection,
        queue,
        turn: part::Turn { began: Instant::now(), is_shared: false },
        last_yield: None,
        build: None,
        progress: Arc::default(),
        catalog,
        shared,
        sync,
        checkpoints,
        wal_pages,
        wal_pages_at_checkpoint: 0,
        wal_is_long: false,
        next_seq: AHashMap::new(),
        deltas: AHashMap::new(),
        scratch: Vec::new(),
        key: Vec::new(),
        access: AccessStats::default(),
        effects: TransactionEffects::default(),
        changes: Changes::default(),
        deferred: AHashMap::new(),
        deferred_failed_at: None,
        recovery: recovery::Recovery::default(),
        reserve,
        looked_at: None,
        cleanup: cleanup::Cleanup::default(),
        escaped_names_noted: false,
    };
    writer.recover_deferred_entries()?;
    match writer.cleanup.find_dropped(&writer.connection) {
        Err(error) if is_damage(&error) => tracing::error!(%error, "the table of dropped tables is damaged"),
        found => found?,
    }
    let thread = std::thread::Builder::new()
        .name("sqlite-writer".into())
        .spawn(move || writer.run())
        .map_err(|error| Error::internal(error.to_string()))?;
    Ok((handle, thread))
}

pub struct Writer {
    connection: Connection,
    queue: Queue,
    turn: part::Turn,
    /// The time of the running index build's last yield; `None`: it must not yield.
    last_yield: Option<Instant>,
    /// The running index build.
    build: Option<index_build::Build>,
    /// Its progress.
    progress: Arc<Progress>,
    shared: Arc<Shared>,
    sync: SyncHandle,
    checkpoints: CheckpointHandle,
    /// The catalog, with the changes of the running transaction.
    catalog: Arc<Catalog>,
    /// The last document number used, by collection.
    next_seq: AHashMap<i64, i64>,
    /// Changes of the running transaction to the collections' counters.
    deltas: AHashMap<i64, CounterDelta>,
    /// Pages in the write-ahead log, as of the last commit, and at the last request of a
    /// checkpoint.
    wal_pages: Arc<AtomicU64>,
    wal_pages_at_checkpoint: u64,
    /// The log must be reset once that checkpoint is done.
    wal_is_long: bool,
    /// Reused buffers: a new document, a key.
    scratch: Vec<u8>,
    key: Vec<u8>,
    /// How the running statement has found its documents.
    access: AccessStats,
    effects: TransactionEffects,
    /// Changes of the running transaction, to be reported to the change observer.
    changes: Changes,
    /// Deferred index entries, by the collection's id.
    deferred: AHashMap<i64, deferred::DeferredEntries>,
    /// When applying them last failed.
    deferred_failed_at: Option<Instant>,
    recovery: recovery::Recovery,
    reserve: disk_reserve::DiskReserve,
    looked_at: Option<Instant>,
    cleanup: cleanup::Cleanup,
    /// The file records that there may be escaped field names.
    escaped_names_noted: bool,
}

/// Effects of the running transaction outside the database.
#[derive(Default)]
struct TransactionEffects {
    /// Indexes marked as multikey, with the marks before, to be restored by a rollback.
    multikey: Vec<(Arc<Index>, i64)>,
    /// Dropped collections; cursors learn of it at the commit.
    dropped: Vec<Arc<Collection>>,
    /// Tables to empty after the commit.
    tables: Vec<String>,
}

struct CounterDelta {
    collection: Arc<Collection>,
    documents: i64,
    data_bytes: i64,
}

impl Writer {
    fn run(mut self) {
        while let Some(job) = self.next_job() {
            match job {
                Job::Write(write) => self.run_group(write),
                Job::Conditional(changes, reply) => self.run_conditional(*changes, reply),
                Job::Define(_, change) => self.run_definition(change),
                Job::ApplyDeferred(collection, indexes, reply) => {
                    // If the client is gone, nothing waits for the reply.
                    let _ = reply.send(self.commit_deferred_for_reader(collection, &indexes).map_err(Error::from));
                }
                Job::Stop => return self.finish(),
            }
            self.limit_wal_size();
        }
    }

    /// Changes the catalog.
    fn run_definition(&mut self, change: Definition) {
        self.reserve.disk_is_full = false;
        if catch_unwind(AssertUnwindSafe(|| change(self))).is_err() {
            // During an index build, another job than the build has failed.
            if !self.queue.is_nested() {
                (self.last_yield, self.build) = (None, None);
            }
            self.roll_back();
        }
        if self.reserve.disk_is_full {
            self.make_room();
        }
        self.sync.note_commit();
    }

    /// Returns the next job. Does cleanup steps while there is none, and now and then in between.
    fn next_job(&mut self) -> Option<Job> {
        loop {
            if !self.cleanup.is_overdue()
                && let Some(job) = self.queue.next()
            {
                return Some(job);
            }
            if self.run_cleanup_step() {
                self.sync.note_commit();
                self.limit_wal_size();
                continue;
            }
            let patience = match self.recovery.is_empty() && !self.has_deferred() {
                true => IDLE_LOOK,
                false if self.is_deferred_due() => deferred::PATIENCE,
                false => deferred::RETRY,
            };
            match self.queue.wait(patience) {
                Waited::Job(job) => return Some(job),
                Waited::TimedOut if self.is_deferred_due() => {
                    while self.is_deferred_due() {
                        self.apply_some_deferred();
                        if let Some(job) = self.queue.next() {
                            return Some(job);
                        }
                    }
                }
                Waited::TimedOut => {}
                Waited::Closed => return None,
            }
        }
    }

    /// Runs `work` in a transaction: commits and publishes its result if it succeeds, rolls back if
    /// it fails.
    fn transaction<T>(&mut self, work: impl FnOnce(&mut Self) -> Attempt<T>) -> Attempt<T> {
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        match work(self).and_then(|done| self.commit().map(|()| done)) {
            Ok(done) => Ok(done),
            Err(failure) => {
                self.reserve.disk_is_full = disk_reserve::is_full(&failure);
                self.roll_back();
                Err(failure)
            }
        }
    }

    fn commit(&mut self) -> Attempt<()> {
        self.shared.files.health.check()?;
        self.write_counters()?;
        let escaped_names = names::may_be_escaped();
        if escaped_names && !self.escaped_names_noted {
            connection::note_escaped_names(&self.connection)?;
        }
        let changes = std::mem::take(&mut self.changes);
        let announced = self
            .shared
            .change_observer
            .get()
            .filter(|_| !changes.is_empty())
            .map(|observer| observer.begin_write(changes));
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        self.shared.files.note_committed();
        self.escaped_names_noted = escaped_names;
        self.publish();
        drop(announced);
        Ok(())
    }

    fn roll_back(&mut self) {
        if !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "a transaction could not be rolled back");
        }
        self.catalog = self.shared.catalog().1;
        self.deltas.clear();
        self.changes = Changes::default();
        self.roll_back_deferred();
        for (index, before) in std::mem::take(&mut self.effects).multikey.into_iter().rev() {
            index.multikey.restore(before);
        }
        // Numbers used in the transaction may belong to collections that no longer exist.
        self.next_seq.clear();
    }

    fn write_counters(&mut self) -> Attempt<()> {
        for (id, delta) in &self.deltas {
            if delta.documents == 0 && delta.data_bytes == 0 {
                continue;
            }
            let sql =
                "UPDATE counters SET documents = documents + ?2, data_bytes = data_bytes + ?3 WHERE collection = ?1";
            self.connection.prepare_cached(sql)?.execute((id, delta.documents, delta.data_bytes))?;
        }
        Ok(())
    }

    fn publish(&mut self) {
        for (_, delta) in self.deltas.drain() {
            delta.collection.counters.documents.fetch_add(delta.documents, Ordering::Relaxed);
            delta.collection.counters.data_bytes.fetch_add(delta.data_bytes, Ordering::Relaxed);
            if delta.collection.cap().is_some() {
                delta.collection.counters.additions.send_modify(|count| *count += 1);
            }
        }
        if !Arc::ptr_eq(&self.catalog, &self.shared.catalog().1) {
            self.shared.publish(self.catalog.clone());
        }
        let TransactionEffects { multikey: _, dropped, tables } = std::mem::take(&mut self.effects);
        for collection in &dropped {
            collection.counters.dropped.store(true, Ordering::Release);
            collection.counters.additions.send_modify(|count| *count += 1);
        }
        self.cleanup.add_dropped(tables);
        self.commit_deferred();
    }

    /// Adds a statement's changes to a collection's counters; they count once the transaction is
    /// committed.
    fn add_to_counters(&mut self, collection: &Arc<Collection>, documents: i64, data_bytes: i64) {
        let delta = self.deltas.entry(collection.id).or_insert_with(|| CounterDelta {
            collection: collection.clone(),
            documents: 0,
            data_bytes: 0,
        });
        delta.documents += documents;
        delta.data_bytes += data_bytes;
    }

    /// Adds a change of a document to those that are reported, if there is an observer.
    fn report_change(&mut self, collection: &Collection, before: Option<Doc<'_>>, after: Option<Doc<'_>>) {
        let namespace = &collection.namespace;
        match self.shared.change_observer.get().filter(|_| !self.changes.covers(namespace)) {
            Some(observer) if observer.wants_images(namespace) => self.changes.add_document(namespace, before, after),
            Some(_) => self.changes.add_unspecified(namespace),
            None => {}
        }
    }

    /// Adds an unspecified change of a collection to those that are reported, if there is an
    /// observer.
    fn report_unspecified_change(&mut self, namespace: &Namespace) {
        if self.shared.change_observer.get().is_some() {
            self.changes.add_unspecified(namespace);
        }
    }

    /// Has the log checkpointed in the background, and resets it when it is long. Only this thread
    /// can reset it. Except for recent writes the log has been checkpointed by then, so that no
    /// writer waits for the disk to take all of it.
    fn limit_wal_size(&mut self) {
        let Options { page_bytes, checkpoint_bytes, log_bytes_max, .. } = self.shared.options;
        let pages = self.wal_pages.load(Ordering::Relaxed);
        if pages < self.wal_pages_at_checkpoint {
            // The log has been reset.
            self.wal_pages_at_checkpoint = 0;
            self.wal_is_long = false;
        }
        if self.wal_is_long && self.checkpoints.is_idle() {
            self.reset_wal();
        }
        if (pages - self.wal_pages_at_checkpoint) * u64::from(page_bytes) < checkpoint_bytes {
            return;
        }
        self.wal_pages_at_checkpoint = pages;
        let bytes = pages * u64::from(page_bytes);
        if bytes >= 2 * log_bytes_max {
            // The disk is slower than the writers, so they wait for it.
            self.checkpoints.wait_until_idle(DISK_PATIENCE);
            self.reset_wal();
        } else {
            self.checkpoints.ask();
            self.wal_is_long = bytes >= log_bytes_max;
        }
    }

    /// Resets the log. A long read (validate) prevents it; it is tried again when the log has grown
    /// by as much once more.
    fn reset_wal(&mut self) {
        self.wal_is_long = false;
        if !self.checkpoints.is_idle() {
            return;
        }
        let restarted = self.shared.with_reads_paused(|| sync::checkpoint(&self.connection, "RESTART"));
        if let Err(error) = restarted {
            tracing::debug!(%error, "the write-ahead log could not be begun anew");
        }
    }

    /// Moves everything into the file before the process ends.
    fn finish(mut self) {
        if let Err(failure) = self.apply_all_deferred() {
            tracing::warn!(?failure, "indexes are brought up to date with the next start");
        }
        if let Err(error) = sync::checkpoint(&self.connection, "TRUNCATE") {
            tracing::warn!(%error, "the write-ahead log stays for the next start");
        }
    }
}
