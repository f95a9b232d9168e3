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
//! between ([`part`], [`progress`]). A slow search, or slow work on a document, is left to the
//! worker that sent the batch ([`on_worker`]). The worker sends the resulting [`changes`], each on
//! the condition that the document is unchanged ([`conditional`]). An index build yields to others
//! ([`yield_point`]).
//!
//! [`state`] is the writer with its transactions; [`queue`] receives jobs; [`batch`] carries out
//! insert, update and delete; [`documents`] maintains documents with their index [`entries`],
//! except those that are [`deferred`], and [`recovery`] makes the deferred ones again after a
//! crash; [`definition`] creates and drops, [`index_build`] builds indexes; [`retry`] records
//! outcomes; [`oplog`] logs changes; [`intents`] and [`transaction`] are about transactions;
//! [`cleanup`] does work that can wait; [`wal_size`] and [`disk_reserve`] limit the space on disk.

mod batch;
pub mod changes;
mod cleanup;
mod conditional;
mod deferred;
mod deferred_entries;
mod definition;
mod disk_reserve;
pub mod documents;
pub mod entries;
mod index_build;
pub mod intents;
mod on_worker;
mod oplog;
mod part;
mod progress;
mod queue;
mod recovery;
pub mod retry;
mod state;
mod tasks;
mod transaction;
mod wal_size;
mod yield_point;

use crate::failure::{Failure, is_damage};
use crate::files::sync::{self, CheckpointHandle, SyncHandle};
use crate::shared::Shared;
use ahash::AHashMap;
use disk_reserve::DiskReserve;
use error::{Error, Result};
use intents::Intents;
use progress::Turn;
use rusqlite::Connection;
use state::TransactionEffects;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use store::{AccessStats, Changes};
use tasks::{Cleanup, Recovery};
use wal_size::WalPin;

pub use index_build::is_large;
pub use queue::Scope;
use queue::{Definition, Job, Waited};
pub use state::{Writer, WriterHandle};

/// The idle writer checks this often for work that could wait.
const IDLE_LOOK: Duration = Duration::from_secs(60);

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
    let reserve = DiskReserve::beside(&shared.path);
    let mut writer = Writer {
        connection,
        queue,
        turn: Turn { began: Instant::now(), is_shared: false },
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
        wal_pin: WalPin::default(),
        next_seq: AHashMap::new(),
        deltas: AHashMap::new(),
        scratch: Vec::new(),
        key: Vec::new(),
        access: AccessStats::default(),
        effects: TransactionEffects::default(),
        changes: Changes::default(),
        pending_entries: oplog::PendingEntries::default(),
        deferred: AHashMap::new(),
        deferred_failed_at: None,
        recovery: Recovery::default(),
        reserve,
        last_early_flush: None,
        cleanup: Cleanup::default(),
        escaped_names_noted: false,
        intents: Intents::default(),
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
    fn run_definition(&mut self, change: Definition<Writer>) {
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
    fn next_job(&mut self) -> Option<Job<Writer>> {
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

    /// Moves everything into the file before the process ends.
    fn finish(mut self) {
        if let Err(failure) = self.apply_all_deferred() {
            tracing::warn!(?failure, "deferred index entries are recovered at the next start");
        }
        if let Err(error) = sync::checkpoint(&self.connection, "TRUNCATE") {
            tracing::warn!(%error, "the write-ahead log stays for the next start");
        }
    }
}
