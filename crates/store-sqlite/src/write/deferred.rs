//! Deferred index entries.
//!
//! An inserted document touches a page of each index, nearly always another one than the document
//! before, and a touched page is written to the log whole. So the entries of large batches are
//! collected, and applied in the indexes' order: all at once when there are enough or a reader
//! needs them, and in slices while the writer is idle.
//!
//! Nothing is lost meanwhile. The documents are committed before they are acknowledged, and the
//! table `late` has the first document whose entries are missing; after a crash they are made from
//! the documents ([`recovery`](super::recovery)). No reader sees the gap: a reader by the index, or
//! a change of one of these documents, has the entries applied first. Entries of unique indexes are
//! not deferred, nor those of clients that write and read in turns, which would gain nothing.

use super::deferred_entries::{BYTES_MAX, DeferredEntries, may_defer};
use super::entries::IndexEntries;
use super::state::Writer;
use crate::catalog::Collection;
use crate::failure::{Attempt, Failure};
use error::Error;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A batch of this many documents starts deferring.
const BATCH_MIN: usize = 32;

/// The idle writer waits this long before it applies entries, and then applies them in slices of
/// this time.
pub const PATIENCE: Duration = Duration::from_millis(5);
const SLICE: Duration = Duration::from_micros(500);

/// After a failure, the next attempt waits this long.
pub const RETRY: Duration = Duration::from_secs(1);

/// Entries between two checks of the clock.
const ENTRIES_PER_LOOK: usize = 64;

/// After a reader forces an early flush, index maintenance stays synchronous for this long.
const SYNCHRONOUS_AFTER_FLUSH: Duration = Duration::from_millis(100);

impl Writer {
    /// Returns whether a batch's entries are deferred.
    pub(super) fn defers(&self, collection: &Collection, documents: usize) -> bool {
        let disturbed = || self.last_early_flush.is_some_and(|at| at.elapsed() < SYNCHRONOUS_AFTER_FLUSH);
        let begun = || self.deferred.get(&collection.id).is_some_and(|deferred| !deferred.is_empty());
        collection.indexes.iter().any(|index| may_defer(index))
            && collection.cap().is_none()
            && !self.queue.is_nested()
            && !self.recovery.concerns(collection.id)
            && (begun() || documents >= BATCH_MIN && !disturbed())
    }

    /// Defers a new document's entries.
    pub(super) fn defer(&mut self, collection: &Arc<Collection>, seq: i64, entries: &IndexEntries) -> Attempt<()> {
        let deferred = self.deferred.entry(collection.id).or_insert_with(|| DeferredEntries::new(collection));
        for ((index, keys), list) in collection.indexes.iter().zip(&entries.keys).zip(&mut deferred.lists) {
            if may_defer(index) {
                keys.iter().for_each(|key| list.push(key, seq));
            }
        }
        if deferred.is_empty() {
            return Ok(());
        }
        deferred.uncommitted.get_or_insert(seq);
        deferred.publish();
        if !std::mem::replace(&mut deferred.noted, true) {
            deferred.first = seq;
            let sql = "INSERT OR REPLACE INTO late(collection, first_seq) VALUES(?1, ?2)";
            self.connection.prepare_cached(sql)?.execute((collection.id, seq))?;
        }
        if deferred.size() <= BYTES_MAX {
            return Ok(());
        }
        // Only the longest list, so that a batch does not wait for all of it at once.
        let longest = deferred.lists.iter().zip(&collection.indexes).max_by_key(|(list, _)| list.size());
        let longest = longest.map(|(_, index)| index.id);
        self.apply_deferred(collection.id, longest.as_slice(), None)
    }

    /// Applies a collection's deferred entries in the running transaction, because they are needed
    /// now.
    pub(super) fn apply_deferred_early(&mut self, collection: i64) -> Attempt<()> {
        self.note_early_flush(collection);
        self.apply_deferred(collection, &[], None)
    }

    /// As [`Writer::apply_deferred_early`], for a reader by these indexes.
    pub(super) fn apply_deferred_for_reader(&mut self, collection: i64, indexes: &[i64]) -> Attempt<()> {
        self.note_early_flush(collection);
        self.apply_deferred(collection, indexes, None)
    }

    /// As [`Writer::apply_deferred_early`], if this document may have deferred entries.
    pub(super) fn apply_deferred_before_change(&mut self, collection: i64, seq: i64) -> Attempt<()> {
        match self.deferred.get(&collection) {
            Some(deferred) if !deferred.is_empty() && seq >= deferred.first => self.apply_deferred_early(collection),
            _ => Ok(()),
        }
    }

    fn note_early_flush(&mut self, collection: i64) {
        if self
            .deferred
            .get(&collection)
            .is_some_and(|deferred| !deferred.is_empty() && deferred.size() < BYTES_MAX / 2)
        {
            self.last_early_flush = Some(Instant::now());
        }
    }

    /// Applies the deferred entries of these indexes (none: of all), or as many as there is time
    /// for.
    fn apply_deferred(&mut self, collection: i64, indexes: &[i64], until: Option<Instant>) -> Attempt<()> {
        let Some(deferred) = self.deferred.get_mut(&collection).filter(|deferred| !deferred.is_empty()) else {
            return Ok(());
        };
        'indexes: for (index, list) in deferred.collection.indexes.iter().zip(&mut deferred.lists) {
            if list.is_empty() || !indexes.is_empty() && !indexes.contains(&index.id) {
                continue;
            }
            let mut insert = self.connection.prepare_cached(&index.sql.insert)?;
            while let Some((entries, keys)) = list.next(ENTRIES_PER_LOOK) {
                for entry in entries {
                    insert.execute((entry.key(keys), entry.seq))?;
                }
                if until.is_some_and(|until| Instant::now() >= until) {
                    break 'indexes;
                }
            }
        }
        if deferred.is_empty() {
            self.connection.prepare_cached("DELETE FROM late WHERE collection = ?1")?.execute([collection])?;
            deferred.noted = false;
        }
        Ok(())
    }

    /// Returns whether any entries are deferred.
    pub(super) fn has_deferred(&self) -> bool {
        self.deferred.values().any(|deferred| !deferred.is_empty())
    }

    /// Applies all deferred entries, in a transaction of its own.
    pub(super) fn apply_all_deferred(&mut self) -> Attempt<()> {
        self.apply_deferred_until(None)
    }

    /// As [`Writer::apply_all_deferred`], because they are needed now.
    pub(super) fn apply_all_deferred_early(&mut self) -> Attempt<()> {
        let collections: Vec<i64> = self.deferred.keys().copied().collect();
        collections.into_iter().for_each(|collection| self.note_early_flush(collection));
        self.apply_all_deferred()
    }

    /// Applies the entries that a reader needs, in a transaction of its own.
    pub(super) fn commit_deferred_for_reader(&mut self, collection: i64, indexes: &[i64]) -> Attempt<()> {
        if let Err(failure) = self.transaction(|writer| writer.apply_deferred_for_reader(collection, indexes)) {
            let error = Error::from(failure);
            self.postpone_deferred(error.clone().into());
            return Err(error.into());
        }
        self.sync.note_commit();
        Ok(())
    }

    /// Applies some of the entries, while the writer is idle.
    pub(super) fn apply_some_deferred(&mut self) {
        match self.apply_deferred_until(Some(Instant::now() + SLICE)) {
            Ok(()) => self.deferred_failed_at = None,
            Err(failure) => self.postpone_deferred(failure),
        }
        self.limit_wal_size();
    }

    /// Called when entries cannot be applied. The next attempt comes later, since a full disk may
    /// be freed. Until then no query uses these indexes.
    fn postpone_deferred(&mut self, failure: Failure) {
        if self.deferred_failed_at.replace(Instant::now()).is_none() {
            let error = Error::from(failure);
            tracing::warn!(
                "deferred index entries could not be applied, and their indexes are not used: {}",
                error.message()
            );
        }
        for deferred in self.deferred.values() {
            let lists = deferred.collection.indexes.iter().zip(&deferred.lists).filter(|(_, list)| !list.is_empty());
            lists.for_each(|(index, _)| index.incomplete.store(true, Ordering::Release));
        }
    }

    /// Returns whether it is time to apply deferred entries.
    pub(super) fn is_deferred_due(&self) -> bool {
        self.has_deferred() && self.deferred_failed_at.is_none_or(|at| at.elapsed() >= RETRY)
    }

    fn apply_deferred_until(&mut self, until: Option<Instant>) -> Attempt<()> {
        if !self.has_deferred() {
            return Ok(());
        }
        let collections: Vec<i64> = self.deferred.keys().copied().collect();
        self.transaction(|writer| {
            collections.iter().try_for_each(|collection| writer.apply_deferred(*collection, &[], until))
        })?;
        self.sync.note_commit();
        Ok(())
    }

    /// Called when the running transaction is committed.
    pub(super) fn commit_deferred(&mut self) {
        self.deferred.values_mut().for_each(DeferredEntries::commit);
        self.deferred.retain(|_, deferred| !deferred.is_empty());
    }

    /// Called when the running transaction is rolled back.
    pub(super) fn roll_back_deferred(&mut self) {
        self.deferred.values_mut().for_each(DeferredEntries::roll_back);
        self.deferred.retain(|_, deferred| !deferred.is_empty());
    }
}
