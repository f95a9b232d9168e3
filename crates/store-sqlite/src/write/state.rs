//! The writer's state, and its transactions.

use super::deferred_entries::DeferredEntries;
use super::disk_reserve::{DiskReserve, is_full};
use super::intents::Intents;
use super::oplog::PendingEntries;
use super::progress::Turn;
use super::queue::{Handle, Queue};
use super::tasks::{Build, Cleanup, Recovery};
use super::wal_size::WalPin;
use crate::catalog::{Catalog, Collection, Index};
use crate::connection;
use crate::failure::Attempt;
use crate::files::sync::{CheckpointHandle, SyncHandle};
use crate::shared::Shared;
use ahash::AHashMap;
use document::{Doc, names};
use rusqlite::Connection;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use store::{AccessStats, Changes, Namespace, Progress};

/// The workers' handle of the writer.
pub type WriterHandle = Handle<Writer>;

pub struct Writer {
    pub(super) connection: Connection,
    pub(super) queue: Queue<Writer>,
    pub(super) turn: Turn,
    /// The time of the running index build's last yield; `None`: it must not yield.
    pub(super) last_yield: Option<Instant>,
    /// The running index build.
    pub(super) build: Option<Build>,
    /// Its progress.
    pub(super) progress: Arc<Progress>,
    pub(super) shared: Arc<Shared>,
    pub(super) sync: SyncHandle,
    pub(super) checkpoints: CheckpointHandle,
    /// The catalog, with the changes of the running transaction.
    pub(super) catalog: Arc<Catalog>,
    /// The last document number used, by collection.
    pub(super) next_seq: AHashMap<i64, i64>,
    /// Changes of the running transaction to the collections' counters.
    pub(super) deltas: AHashMap<i64, CounterDelta>,
    /// Pages in the write-ahead log, as of the last commit, and at the last request of a
    /// checkpoint.
    pub(super) wal_pages: Arc<AtomicU64>,
    pub(super) wal_pages_at_checkpoint: u64,
    /// The log must be reset once that checkpoint is done.
    pub(super) wal_is_long: bool,
    pub(super) wal_pin: WalPin,
    /// Reused buffers: a new document, a key.
    pub(super) scratch: Vec<u8>,
    pub(super) key: Vec<u8>,
    /// How the running statement has found its documents.
    pub(super) access: AccessStats,
    pub(super) effects: TransactionEffects,
    /// Changes of the running transaction, to be reported to the change observer.
    pub(super) changes: Changes,
    /// The same changes, to be logged.
    pub(super) pending_entries: PendingEntries,
    /// Deferred index entries, by the collection's id.
    pub(super) deferred: AHashMap<i64, DeferredEntries>,
    /// When applying them last failed.
    pub(super) deferred_failed_at: Option<Instant>,
    pub(super) recovery: Recovery,
    pub(super) reserve: DiskReserve,
    pub(super) last_early_flush: Option<Instant>,
    pub(super) cleanup: Cleanup,
    /// The file records that there may be escaped field names.
    pub(super) escaped_names_noted: bool,
    pub(super) intents: Intents,
}

/// Effects of the running transaction outside the database.
#[derive(Default)]
pub(super) struct TransactionEffects {
    /// Indexes marked as multikey, with the marks before, to be restored by a rollback.
    pub(super) multikey: Vec<(Arc<Index>, i64)>,
    /// Dropped collections; cursors learn of it at the commit.
    pub(super) dropped: Vec<Arc<Collection>>,
    /// Tables to empty after the commit.
    pub(super) tables: Vec<String>,
}

pub(super) struct CounterDelta {
    pub(super) collection: Arc<Collection>,
    pub(super) documents: i64,
    pub(super) data_bytes: i64,
}

impl Writer {
    /// Runs `work` in a transaction: commits and publishes its result if it succeeds, rolls back if
    /// it fails.
    pub(super) fn transaction<T>(&mut self, work: impl FnOnce(&mut Self) -> Attempt<T>) -> Attempt<T> {
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        match work(self).and_then(|done| self.commit().map(|()| done)) {
            Ok(done) => Ok(done),
            Err(failure) => {
                self.reserve.disk_is_full = is_full(&failure);
                self.roll_back();
                Err(failure)
            }
        }
    }

    pub(super) fn commit(&mut self) -> Attempt<()> {
        self.shared.files.health.check()?;
        self.write_entries()?;
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

    pub(super) fn roll_back(&mut self) {
        if !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "a transaction could not be rolled back");
        }
        self.catalog = self.shared.catalog().1;
        self.deltas.clear();
        self.changes = Changes::default();
        self.pending_entries.clear();
        self.roll_back_deferred();
        for (index, before) in std::mem::take(&mut self.effects).multikey.into_iter().rev() {
            index.multikey.restore(before);
        }
        // Numbers used in the transaction may belong to collections that no longer exist.
        self.next_seq.clear();
    }

    pub(super) fn write_counters(&mut self) -> Attempt<()> {
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

    pub(super) fn publish(&mut self) {
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
        if let Some(log) = &self.shared.oplog {
            log.publish(self.pending_entries.take());
        }
        self.commit_deferred();
    }

    /// Adds a statement's changes to a collection's counters; they count once the transaction is
    /// committed.
    pub(super) fn add_to_counters(&mut self, collection: &Arc<Collection>, documents: i64, data_bytes: i64) {
        let delta = self.deltas.entry(collection.id).or_insert_with(|| CounterDelta {
            collection: collection.clone(),
            documents: 0,
            data_bytes: 0,
        });
        delta.documents += documents;
        delta.data_bytes += data_bytes;
    }

    /// Adds a change of a document to those that are reported, if there is an observer.
    pub(super) fn report_change(&mut self, collection: &Collection, before: Option<Doc<'_>>, after: Option<Doc<'_>>) {
        let namespace = &collection.namespace;
        match self.shared.change_observer.get().filter(|_| !self.changes.covers(namespace)) {
            Some(observer) if observer.wants_images(namespace) => self.changes.add_document(namespace, before, after),
            Some(_) => self.changes.add_unspecified(namespace),
            None => {}
        }
    }

    /// Adds an unspecified change of a collection to those that are reported, if there is an
    /// observer.
    pub(super) fn report_unspecified_change(&mut self, namespace: &Namespace) {
        if self.shared.change_observer.get().is_some() {
            self.changes.add_unspecified(namespace);
        }
    }
}
