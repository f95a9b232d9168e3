//! Recovery of index entries that were deferred when an earlier process died.
//!
//! They are made from the documents at the start. If that fails (the disk is full, a page is
//! damaged) the server starts all the same: incomplete indexes are not used for reading, and
//! recovery is tried again and again.

use super::deferred_entries::may_defer;
use super::state::Writer;
use super::tasks::Recovery;
use crate::catalog::Collection;
use crate::failure::{Attempt, Failure, in_collection, is_damage, is_duplicate};
use crate::read::scan;
use error::Error;
use index_keys::keys;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

impl Writer {
    /// Makes the entries that were deferred when an earlier process died, or marks their indexes as
    /// incomplete.
    pub(super) fn recover_deferred_entries(&mut self) -> Attempt<()> {
        self.recovery.collections = match self.read_deferred_table() {
            Err(Failure::Engine(error)) if is_damage(&error) => {
                tracing::error!("the table of deferred index entries is damaged: all documents are indexed again");
                self.catalog.collections().map(|collection| (collection.id, i64::MIN)).collect()
            }
            left => left?,
        };
        if self.recovery.is_empty() {
            return Ok(());
        }
        self.set_incomplete(true);
        self.recover();
        Ok(())
    }

    fn read_deferred_table(&self) -> Attempt<Vec<(i64, i64)>> {
        let mut statement = self.connection.prepare("SELECT collection, first_seq FROM late")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Tries again, if it is time.
    pub(super) fn retry_recovery(&mut self) {
        if self.recovery.is_due() {
            self.recover();
        }
    }

    fn recover(&mut self) {
        self.recovery.tried_at = Some(Instant::now());
        let left = self.recovery.collections.clone();
        let catalog = self.catalog.clone();
        let entered = self.transaction(|writer| {
            for (id, first_seq) in left {
                if let Some(collection) = catalog.collections().find(|collection| collection.id == id) {
                    let entered = writer.recover_collection(collection, first_seq);
                    entered.map_err(|failure| in_collection(failure, &collection.namespace))?;
                }
            }
            writer.connection.execute("DELETE FROM late", [])?;
            Ok(())
        });
        match entered {
            Ok(()) => {
                self.set_incomplete(false);
                self.recovery = Recovery::default();
                self.sync.note_commit();
            }
            Err(failure) => {
                let error = Error::from(failure);
                if !std::mem::replace(&mut self.recovery.logged, true) {
                    tracing::error!(
                        "indexes with entries missing since an earlier process died are not used: {}",
                        error.message()
                    );
                }
            }
        }
    }

    /// Marks indexes that lack entries as incomplete, or as complete.
    fn set_incomplete(&self, behind: bool) {
        for collection in self.catalog.collections().filter(|collection| self.recovery.concerns(collection.id)) {
            for index in collection.indexes.iter().filter(|index| may_defer(index)) {
                index.incomplete.store(behind, Ordering::Release);
            }
        }
    }

    /// Indexes the documents from this one on; some of their entries may exist.
    fn recover_collection(&self, collection: &Arc<Collection>, first_seq: i64) -> Attempt<()> {
        let sql = format!("SELECT seq, doc FROM {} WHERE seq >= ?1 ORDER BY seq", collection.sql.table);
        let mut statement = self.connection.prepare(&sql)?;
        let mut rows = statement.query([first_seq])?;
        while let Some(row) = rows.next()? {
            let (seq, document) = scan::stored(row, collection)?;
            for index in collection.indexes.iter().filter(|index| may_defer(index)) {
                for key in keys::index_keys(document, index)? {
                    match self.connection.prepare_cached(&index.sql.insert)?.execute((key.as_slice(), seq)) {
                        Err(error) if !is_duplicate(&error) => return Err(error.into()),
                        _ => {}
                    }
                }
            }
        }
        Ok(())
    }
}
