//! The writer's part in transactions: their snapshots and their commits.

use super::entries::OldDocument;
use super::retry;
use super::state::Writer;
use crate::catalog::{Catalog, Collection};
use crate::failure::{Attempt, Failure};
use crate::transaction::ending::Ending;
use crate::transaction::execute;
use crate::transaction::log::{CreatedCollection, FIRST_OWN_NUMBER, Log, LogEntry};
use ahash::AHashMap;
use document::DocBuf;
use error::{Code, Error};
use rusqlite::Connection;
use std::sync::Arc;
use store::change_feed::LoggedTransaction;
use store::transaction::{TRANSIENT, TransactionKey, aborted, write_conflict};
use store::{Namespace, SnapshotTimes};

/// A connection that reads a snapshot, the snapshot's catalog, and its times.
pub type PinnedSnapshot = (Connection, Arc<Catalog>, Option<SnapshotTimes>);

impl Writer {
    /// Begins to read on a connection. Returns it with the catalog of its snapshot, and the times
    /// of which it is the state.
    ///
    /// This runs between two commits. So the catalog is that of the snapshot, and no index lacks
    /// entries: deferred ones are applied before.
    pub fn pin_snapshot(&mut self, connection: Connection) -> Attempt<PinnedSnapshot> {
        self.apply_all_deferred_early()?;
        if !self.recovery.is_empty() {
            let message = "index entries are being recovered after a crash; transactions can begin soon";
            return Err(Error::new(Code::SNAPSHOT_UNAVAILABLE, message).with_labels(&[TRANSIENT]).into());
        }
        execute(&connection, "BEGIN")?;
        // The first read takes the snapshot.
        connection.prepare_cached("SELECT id FROM collections LIMIT 1")?.exists([])?;
        let log = self.shared.oplog.as_ref();
        let times = log.map(|log| SnapshotTimes { first: log.latest(), last: log.last_used() });
        Ok((connection, self.catalog.clone(), times))
    }

    /// Commits a transaction, with the record of its outcome. Fails with 251 if it was aborted, and
    /// with 112 if a collection has been changed that it depends on.
    pub fn commit_transaction(&mut self, ending: &Arc<Ending>, log: Log, key: &TransactionKey) -> Attempt<()> {
        if !ending.begin_commit() {
            return Err(aborted().into());
        }
        // Its own intents do not apply to it.
        self.intents.remove(ending);
        let committed = match log.created.is_empty() {
            true => self.transaction(|writer| writer.replay(log, key)),
            false => self.change_catalog(|writer| writer.replay(log, key)),
        };
        ending.finish();
        match committed {
            // An index that others have created since does not allow it.
            Err(Failure::Refused(error)) if error.code() == Code::DUPLICATE_KEY => Err(write_conflict().into()),
            committed => committed,
        }
    }

    fn replay(&mut self, log: Log, key: &TransactionKey) -> Attempt<()> {
        self.check_room(false)?;
        let mut created = log.created.iter().peekable();
        let is_created = |namespace: &Namespace| log.created.iter().any(|created| created.namespace == *namespace);
        let mut numbers = AHashMap::new();
        for (behind, entry) in log.entries.into_iter().enumerate() {
            while let Some(collection) = created.next_if(|created| created.behind <= behind) {
                self.replay_creation(collection)?;
            }
            let current = self.catalog.get(&entry.namespace);
            let current = current.filter(|now| now.id == entry.collection || is_created(&entry.namespace));
            let Some(collection) = current.cloned() else { return Err(write_conflict().into()) };
            self.replay_entry(&collection, entry, &mut numbers)?;
        }
        created.try_for_each(|collection| self.replay_creation(collection))?;
        if self.is_logging() {
            let session = key.logged_session();
            self.combine_entries(LoggedTransaction { session: session.as_doc(), number: key.retry.txn_number });
        }
        self.record_encoded(&key.retry, &retry::committed_transaction())
    }

    fn replay_creation(&mut self, created: &CreatedCollection) -> Attempt<()> {
        if self.catalog.get(&created.namespace).is_some() {
            return Err(write_conflict().into());
        }
        self.create_collection(&created.namespace, created.options.clone())?;
        if !created.indexes.is_empty() {
            self.create_indexes(&created.namespace, created.indexes.clone(), Arc::default())?;
        }
        Ok(())
    }

    /// Repeats a change. `numbers`: those of documents that the transaction has inserted, by their
    /// numbers in the transaction.
    fn replay_entry(
        &mut self,
        collection: &Arc<Collection>,
        entry: LogEntry,
        numbers: &mut AHashMap<(i64, i64), i64>,
    ) -> Attempt<()> {
        let LogEntry { seq, old, new, difference, collection: id, .. } = entry;
        let Some(old) = old else {
            let new = new.as_ref().map(DocBuf::as_doc).unwrap_or_default();
            self.insert_document(collection, new, false)?;
            let stored = self.next_seq.get(&collection.id).copied().unwrap_or_default();
            numbers.insert((id, seq), stored);
            return Ok(());
        };
        let stored = if seq < FIRST_OWN_NUMBER { Some(seq) } else { numbers.get(&(id, seq)).copied() };
        let Some(stored) = stored else { return Err(Error::internal("a transaction's document is unknown").into()) };
        if !self.is_still(collection, stored, old.as_doc())? {
            return Err(write_conflict().into());
        }
        let old = OldDocument::of(collection, old.as_doc())?;
        match new {
            Some(new) => self.replace_document(collection, stored, &old, new.as_doc(), difference.as_ref()),
            None => self.delete_document(collection, stored, &old),
        }
    }
}
