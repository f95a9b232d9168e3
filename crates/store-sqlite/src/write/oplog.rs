//! Logs the changes of the running transaction, and deletes the oldest entries.

mod commands;

use super::state::Writer;
use crate::catalog::Collection;
use crate::failure::Attempt;
use crate::oplog::{self, IMAGES_TABLE, Oplog, now_ms, seq_of};
use document::{Doc, DocBuf};
use error::{Code, Error};
use std::time::{SystemTime, UNIX_EPOCH};
use store::change_feed::{LoggedTransaction, in_one, keeps_images};
use store::{FeedEntry, FeedPosition, LoggedChange, Namespace, Operation};

/// Entries deleted at a commit beside as many as it has added, and in a cleanup step.
const DELETED_BESIDE: usize = 8;
const DELETED_IN_STEP: usize = 2_000;

/// The entries of the running transaction.
#[derive(Default)]
pub(super) struct PendingEntries {
    /// As they are in the log.
    entries: Vec<FeedEntry>,
    /// The position of the last entry; `None` before the first one.
    last: Option<FeedPosition>,
    /// The bytes of all images in the table; `None` until they are counted.
    image_bytes: Option<i64>,
}

impl PendingEntries {
    pub fn clear(&mut self) {
        *self = PendingEntries::default();
    }

    /// Takes the entries after their commit, as readers get them.
    pub fn take(&mut self) -> Vec<FeedEntry> {
        self.last = None;
        let entries = std::mem::take(&mut self.entries);
        match entries.iter().any(|entry| entry.document.as_doc().first().is_some_and(|first| first.key() == "lsid")) {
            true => entries.into_iter().flat_map(FeedEntry::operations).collect(),
            false => entries,
        }
    }
}

impl Writer {
    pub(super) fn is_logging(&self) -> bool {
        self.shared.oplog.is_some()
    }

    /// Logs a change of a document. `before`: the document before the change.
    pub(super) fn log_change(&mut self, collection: &Collection, operation: Operation<'_>, before: Option<Doc<'_>>) {
        if self.shared.oplog.is_none() || oplog::is_exempt(&collection.namespace) {
            return;
        }
        let before = before.filter(|_| keeps_images(collection.options.as_doc())).map(Doc::to_owned);
        self.append_entry(&collection.namespace, Some(collection.uuid), operation, before);
    }

    /// Logs a command that has changed the catalog.
    pub(super) fn log_command(
        &mut self,
        database: &str,
        uuid: Option<[u8; 16]>,
        command: &DocBuf,
        details: Option<&DocBuf>,
    ) {
        let namespace = Namespace::new(database, "$cmd");
        if self.shared.oplog.is_none() || oplog::is_exempt(&namespace) {
            return;
        }
        let operation = Operation::Command { command: command.as_doc(), details: details.map(DocBuf::as_doc) };
        self.append_entry(&namespace, uuid, operation, None);
    }

    fn append_entry(
        &mut self,
        namespace: &Namespace,
        collection_uuid: Option<[u8; 16]>,
        operation: Operation<'_>,
        before: Option<DocBuf>,
    ) {
        let Some(log) = &self.shared.oplog else { return };
        let wall_ms = now_ms();
        let last = self.pending_entries.last.unwrap_or_else(|| log.last_used());
        let position = last.next((wall_ms / 1000) as u32);
        let namespace = namespace.clone();
        let change = LoggedChange { namespace, collection_uuid, operation, wall_ms, transaction: None };
        let document = change.encode(position);
        self.pending_entries.last = Some(position);
        self.pending_entries.entries.push(FeedEntry { position, operation: 0, document, before });
    }

    /// Makes the entries of the running transaction one: it is that of a client.
    pub(super) fn combine_entries(&mut self, transaction: LoggedTransaction<'_>) {
        let entries = std::mem::take(&mut self.pending_entries.entries);
        self.pending_entries.entries = in_one(entries, transaction, now_ms());
        self.pending_entries.last = self.pending_entries.entries.last().map(|entry| entry.position);
    }

    /// Writes the entries of the running transaction, and deletes old ones in their place.
    pub(super) fn write_entries(&mut self) -> Attempt<()> {
        let shared = self.shared.clone();
        let Some(log) = shared.oplog.as_ref().filter(|_| !self.pending_entries.entries.is_empty()) else {
            return Ok(());
        };
        let (mut bytes, mut images) = (0, 0);
        for entry in &self.pending_entries.entries {
            let seq = seq_of(entry.position);
            let row = (seq, &log.id_key, entry.document.as_bytes());
            self.connection.prepare_cached(&log.collection.sql.insert)?.execute(row)?;
            bytes += entry.document.as_bytes().len() as i64;
            if let Some(image) = &entry.before {
                let sql = format!("INSERT INTO {IMAGES_TABLE}(seq, doc) VALUES(?1, ?2)");
                self.connection.prepare_cached(&sql)?.execute((seq, image.as_bytes()))?;
                images += image.as_bytes().len() as i64;
            }
        }
        self.pending_entries.image_bytes = self.pending_entries.image_bytes.map(|bytes| bytes + images);
        let added = self.pending_entries.entries.len();
        self.add_to_counters(&log.collection, added as i64, bytes);
        self.delete_old_entries(2 * added + DELETED_BESIDE).map(drop)
    }

    /// Deletes entries beyond the age limit, in a transaction of its own. Returns whether there may
    /// be more.
    pub(super) fn delete_expired_entries(&mut self) -> Attempt<bool> {
        self.transaction(|writer| writer.delete_old_entries(DELETED_IN_STEP))
    }

    /// Deletes up to `rows_max` of the oldest entries, as far as the log exceeds its limits; the
    /// latest entry stays. Returns whether all of these had to be deleted.
    fn delete_old_entries(&mut self, rows_max: usize) -> Attempt<bool> {
        let shared = self.shared.clone();
        let Some(log) = &shared.oplog else { return Ok(false) };
        let mut excess = self.log_bytes(log)? - log.options.bytes_max as i64;
        let expired = log.options.age_max.map_or(i64::MIN, |age| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            seq_of(FeedPosition { time: now.saturating_sub(age).as_secs() as u32, increment: 0 })
        });
        if excess <= 0 && expired == i64::MIN {
            return Ok(false);
        }
        let table = &log.collection.sql.table;
        let (mut last, mut rows, mut bytes) = (i64::MIN, 0, 0);
        {
            let sql = format!(
                "SELECT seq, length(doc) FROM {table} WHERE seq < (SELECT max(seq) FROM {table}) ORDER BY seq LIMIT ?1"
            );
            let mut statement = self.connection.prepare_cached(&sql)?;
            let mut oldest = statement.query([rows_max as i64])?;
            while let Some(row) = oldest.next()? {
                let (seq, length): (i64, i64) = (row.get(0)?, row.get(1)?);
                if excess <= 0 && seq >= expired {
                    break;
                }
                (last, rows, bytes, excess) = (seq, rows + 1, bytes + length, excess - length);
            }
        }
        if rows == 0 {
            return Ok(false);
        }
        self.connection.prepare_cached(&format!("DELETE FROM {table} WHERE seq <= ?1"))?.execute([last])?;
        let images =
            self.connection.prepare_cached(&format!("DELETE FROM {IMAGES_TABLE} WHERE seq <= ?1"))?.execute([last])?;
        if images > 0 {
            // They are counted again.
            self.pending_entries.image_bytes = None;
        }
        self.add_to_counters(&log.collection, -(rows as i64), -bytes);
        Ok(rows == rows_max)
    }

    /// Returns the bytes of the log, including the running transaction.
    fn log_bytes(&mut self, log: &Oplog) -> Attempt<i64> {
        let images = match self.pending_entries.image_bytes {
            Some(bytes) => bytes,
            None => {
                let sql = format!("SELECT coalesce(sum(length(doc)), 0) FROM {IMAGES_TABLE}");
                self.connection.prepare_cached(&sql)?.query_row([], |row| row.get(0))?
            }
        };
        self.pending_entries.image_bytes = Some(images);
        let pending = self.deltas.get(&log.collection.id).map_or(0, |delta| delta.data_bytes);
        Ok(log.collection.data_bytes() as i64 + pending + images)
    }

    /// Fails with 73 if the collection is the log, which only the server writes.
    pub(super) fn refuse_log(&self, namespace: &Namespace) -> Attempt<()> {
        match &self.shared.oplog {
            Some(log) if log.collection.namespace == *namespace => {
                Err(Error::new(Code::INVALID_NAMESPACE, "cannot write to local.oplog.rs").into())
            }
            _ => Ok(()),
        }
    }
}
