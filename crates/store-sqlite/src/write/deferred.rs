//! IndexEntries of indexes that come later than their documents.
//!
//! A document inserted touches a page of each index, nearly always another one than the document before, and a page that is
//! touched is written to the log whole. So the entries of large batches are gathered over many of them, and entered in the
//! indexes' order: all at once when there are enough or somebody is about to look, and bit by bit when nothing else comes in.
//!
//! Nothing is lost meanwhile. The documents are committed before they are acknowledged, and a row
//! of the table `late` says since which of them entries are missing; after a crash they are made of
//! the documents ([`left`](super::recovery)). Nobody sees the gap: whoever reads by an index, or
//! changes one of these documents, has the entries entered first. What a unique index has to say
//! does not wait, nor do those who write and read in turns, who would gain nothing.

mod list;

use super::Writer;
use super::documents::IndexEntries;
use crate::catalog::{Collection, Index};
use crate::failure::{Attempt, Failure};
use error::Error;
use list::List;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A batch of so many documents begins to gather.
const BATCH_MIN: usize = 32;

/// Keys gathered at the most, in bytes with what is kept for each: entering them takes some ten milliseconds.
const BYTES_MAX: usize = 1 << 20;

/// While nothing comes in, the entries wait for so long; then they are entered for so long at a time.
pub const PATIENCE: Duration = Duration::from_millis(5);
const SLICE: Duration = Duration::from_micros(500);

/// After a failure it is tried again so much later.
pub const RETRY: Duration = Duration::from_secs(1);

/// IndexEntries between two looks at the clock.
const ENTRIES_PER_LOOK: usize = 64;

/// Somebody who looked when few entries had been gathered looks again soon: for so long nothing is gathered.
const SYNCHRONOUS_AFTER_FLUSH: Duration = Duration::from_millis(100);

/// What has been gathered for a collection.
pub struct DeferredEntries {
    collection: Arc<Collection>,
    /// Of each index of the collection, in its order.
    lists: Vec<List>,
    /// The first document that lacks entries; and as of the last commit.
    first: i64,
    first_committed: i64,
    /// The first document that the running transaction has gathered entries of.
    uncommitted: Option<i64>,
    /// The table `late` says so.
    noted: bool,
}

impl DeferredEntries {
    fn new(collection: &Arc<Collection>) -> DeferredEntries {
        DeferredEntries {
            collection: collection.clone(),
            lists: collection.indexes.iter().map(|_| List::default()).collect(),
            first: i64::MAX,
            first_committed: i64::MAX,
            uncommitted: None,
            noted: false,
        }
    }

    fn is_empty(&self) -> bool {
        self.lists.iter().all(List::is_empty)
    }

    fn size(&self) -> usize {
        self.lists.iter().map(List::size).sum()
    }

    fn commit(&mut self) {
        self.lists.iter_mut().for_each(List::commit);
        self.first_committed = self.first;
        self.uncommitted = None;
        self.publish();
    }

    fn roll_back(&mut self) {
        let uncommitted = self.uncommitted.take().unwrap_or(i64::MAX);
        self.lists.iter_mut().for_each(|list| list.roll_back(uncommitted));
        self.first = self.first_committed;
        self.noted = !self.is_empty();
        self.publish();
    }

    /// Lets readers know whether there is something to wait for.
    fn publish(&self) {
        for (index, list) in self.collection.indexes.iter().zip(&self.lists) {
            index.deferred.store(!list.is_empty(), Ordering::Release);
            if list.is_empty() {
                index.incomplete.store(false, Ordering::Release);
            }
        }
    }
}

/// Whether the index's entries may come later.
pub fn may_defer(index: &Index) -> bool {
    !index.spec.unique && !index.prepare_unique && !index.building
}

impl Writer {
    /// Whether a batch's entries are to be gathered.
    pub(super) fn defers(&self, collection: &Collection, documents: usize) -> bool {
        let disturbed = || self.looked_at.is_some_and(|at| at.elapsed() < SYNCHRONOUS_AFTER_FLUSH);
        let begun = || self.deferred.get(&collection.id).is_some_and(|deferred| !deferred.is_empty());
        collection.indexes.iter().any(|index| may_defer(index))
            && collection.cap().is_none()
            && !self.queue.is_nested()
            && !self.recovery.concerns(collection.id)
            && (begun() || documents >= BATCH_MIN && !disturbed())
    }

    /// Keeps a new document's entries for later.
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
        // The longest list alone: what a batch has to wait for is not all of it at once.
        let longest = deferred.lists.iter().zip(&collection.indexes).max_by_key(|(list, _)| list.size());
        let longest = longest.map(|(_, index)| index.id);
        self.apply_deferred(collection.id, longest.as_slice(), None)
    }

    /// Somebody is about to look at a collection: enters, in the running transaction, what has been gathered for it.
    pub(super) fn apply_deferred_early(&mut self, collection: i64) -> Attempt<()> {
        self.note_early_flush(collection);
        self.apply_deferred(collection, &[], None)
    }

    /// As [`Writer::apply_deferred_early`], for somebody who reads these indexes alone.
    pub(super) fn apply_deferred_for_reader(&mut self, collection: i64, indexes: &[i64]) -> Attempt<()> {
        self.note_early_flush(collection);
        self.apply_deferred(collection, indexes, None)
    }

    /// As [`Writer::apply_deferred_early`], where this document may be one of those that lack entries.
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
            self.looked_at = Some(Instant::now());
        }
    }

    /// Enters what has been gathered for these indexes (none: for all of them), or as much of it as there is time for.
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

    /// Whether anything has been gathered.
    pub(super) fn has_deferred(&self) -> bool {
        self.deferred.values().any(|deferred| !deferred.is_empty())
    }

    /// Enters everything that has been gathered, in a transaction of its own.
    pub(super) fn apply_all_deferred(&mut self) -> Attempt<()> {
        self.enter_until(None)
    }

    /// As [`Writer::apply_all_deferred`], because somebody is about to look.
    pub(super) fn apply_all_deferred_early(&mut self) -> Attempt<()> {
        let collections: Vec<i64> = self.deferred.keys().copied().collect();
        collections.into_iter().for_each(|collection| self.note_early_flush(collection));
        self.apply_all_deferred()
    }

    /// Enters, in a transaction of its own, what somebody is about to read by.
    pub(super) fn commit_deferred_for_reader(&mut self, collection: i64, indexes: &[i64]) -> Attempt<()> {
        if let Err(failure) = self.transaction(|writer| writer.apply_deferred_for_reader(collection, indexes)) {
            let error = Error::from(failure);
            self.postpone_deferred(error.clone().into());
            return Err(error.into());
        }
        self.sync.note_commit();
        Ok(())
    }

    /// Enters some of what has been gathered, while nothing else is to be done.
    pub(super) fn apply_some_deferred(&mut self) {
        match self.enter_until(Some(Instant::now() + SLICE)) {
            Ok(()) => self.deferred_failed_at = None,
            Err(failure) => self.postpone_deferred(failure),
        }
        self.limit_wal_size();
    }

    /// IndexEntries cannot be entered: it is tried again, for a disk may not be full for ever. Until
    /// then no query goes by these indexes.
    fn postpone_deferred(&mut self, failure: Failure) {
        if self.deferred_failed_at.replace(Instant::now()).is_none() {
            let error = Error::from(failure);
            tracing::warn!("indexes could not be brought up to date, and are not used: {}", error.message());
        }
        for deferred in self.deferred.values() {
            let lists = deferred.collection.indexes.iter().zip(&deferred.lists).filter(|(_, list)| !list.is_empty());
            lists.for_each(|(index, _)| index.incomplete.store(true, Ordering::Release));
        }
    }

    /// Whether it is time to enter what has been gathered.
    pub(super) fn is_deferred_due(&self) -> bool {
        self.has_deferred() && self.deferred_failed_at.is_none_or(|at| at.elapsed() >= RETRY)
    }

    fn enter_until(&mut self, until: Option<Instant>) -> Attempt<()> {
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

    /// The running transaction is committed.
    pub(super) fn commit_deferred(&mut self) {
        self.deferred.values_mut().for_each(DeferredEntries::commit);
        self.deferred.retain(|_, deferred| !deferred.is_empty());
    }

    /// The running transaction is not.
    pub(super) fn roll_back_deferred(&mut self) {
        self.deferred.values_mut().for_each(DeferredEntries::roll_back);
        self.deferred.retain(|_, deferred| !deferred.is_empty());
    }
}
