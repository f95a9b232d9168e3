//! Changes evaluated by a worker, because evaluation would hold the writer for too long.
//!
//! Each change states the document as it was evaluated. If the document differs, nothing is
//! changed, and the worker evaluates again. Several workers evaluate at the same time without
//! waiting for one another.

use super::changes::{Applied, Change, Changed, ConditionalChanges};
use super::entries::OldDocument;
use super::progress::GROUP_TIME_MAX;
use super::state::Writer;
use crate::catalog::Collection;
use crate::failure::{Attempt, Failure, in_collection};
use crate::files::sync;
use crate::transaction::ending::Ending;
use document::Doc;
use error::{Error, Result};
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::oneshot;

impl Writer {
    pub(super) fn run_conditional(&mut self, changes: ConditionalChanges, reply: oneshot::Sender<Result<Applied>>) {
        let (journal, namespace) = (changes.journal, changes.namespace.clone());
        let deletes = |change: &Change| matches!(change, Change::Delete { .. } | Change::DeleteAny { .. });
        let deletes = changes.changes.iter().all(deletes);
        self.reserve.disk_is_full = false;
        if reply.is_closed() {
            return;
        }
        let attempt =
            catch_unwind(AssertUnwindSafe(|| self.transaction(|writer| writer.apply_conditional(changes, deletes))));
        if self.reserve.disk_is_full && deletes {
            self.make_room();
        }
        let applied = match attempt {
            Ok(applied) => applied.map_err(|failure| in_collection(failure, &namespace).into()),
            Err(_) => {
                self.roll_back();
                Err(Error::internal("this write made the server fail; it may have been carried out in part"))
            }
        };
        // If sending fails, the client is gone.
        let waiting: Vec<sync::Acknowledge> = match applied {
            Ok(applied) if journal => vec![Box::new(move |synced| {
                let _ = reply.send(synced.map(|()| applied));
            })],
            applied => {
                let _ = reply.send(applied);
                Vec::new()
            }
        };
        self.acknowledge(waiting);
    }

    fn apply_conditional(&mut self, changes: ConditionalChanges, deletes: bool) -> Attempt<Applied> {
        let ConditionalChanges { namespace, collection, changes, record, .. } = changes;
        self.catalog.check_readable(&namespace)?;
        self.refuse_log(&namespace)?;
        self.check_room(deletes)?;
        if let Some(record) = &record
            && let Some(outcome) = self.recorded_beyond(&record.key, record.statement)?
        {
            return Ok(Applied::Recorded(outcome));
        }
        if changes.is_empty() {
            return Ok(Applied::Outcomes(Vec::new(), Vec::new(), record));
        }
        let collection = match (self.catalog.get(&namespace), &collection) {
            (Some(now), Some(then)) if Arc::ptr_eq(now, then) => now.clone(),
            (Some(now), Some(then)) if now.id == then.id && !changes.iter().any(Change::has_entries) => now.clone(),
            (None, None) => self.ensure_collection(&namespace)?,
            _ => return Ok(Applied::Outdated),
        };
        let began = Instant::now();
        let mut changed = Vec::with_capacity(changes.len());
        for change in &changes {
            if let Some(holder) = self.holder_of(&collection, change)? {
                if changed.is_empty() {
                    return Ok(Applied::Blocked(holder, changes));
                }
                break;
            }
            match self.change(&collection, change) {
                Ok(true) => changed.push(Changed::Done),
                Ok(false) => changed.push(Changed::Conflict),
                Err(Failure::Refused(error)) => {
                    changed.push(Changed::Refused(error));
                    break;
                }
                Err(failure) => return Err(failure),
            }
            if began.elapsed() >= GROUP_TIME_MAX && self.queue.has_more() {
                break;
            }
        }
        if let Some(record) = &record
            && changed.iter().all(|changed| matches!(changed, Changed::Done))
        {
            self.record_encoded(&record.key, &record.outcomes)?;
        }
        Ok(Applied::Outcomes(changed, changes, record))
    }

    /// Returns the transaction that a change must wait for.
    fn holder_of(&mut self, collection: &Collection, change: &Change) -> Attempt<Option<Arc<Ending>>> {
        if self.intents.is_empty() {
            return Ok(None);
        }
        Ok(match change {
            Change::Insert { document, entries } => self.holder(collection, document.as_doc(), Some(entries)),
            Change::Replace { new, new_entries, .. } => self.holder(collection, new.as_doc(), Some(new_entries)),
            Change::Delete { old, .. } => self.holder(collection, old.as_doc(), None),
            Change::DeleteAny { seq } => match self.read(collection, *seq)? {
                Some(old) => self.holder(collection, old.as_doc(), None),
                None => None,
            },
        })
    }

    /// Applies a change. Returns false if the document differs.
    fn change(&mut self, collection: &Arc<Collection>, change: &Change) -> Attempt<bool> {
        match change {
            Change::Insert { document, entries } => {
                self.insert_with_entries(collection, document.as_doc(), entries, false)?;
            }
            Change::Replace { seq, old, old_entries, new, new_entries, difference } => {
                if !self.is_still(collection, *seq, old.as_doc())? {
                    return Ok(false);
                }
                let old = OldDocument { document: old.as_doc(), entries: Cow::Borrowed(old_entries) };
                let new = (new.as_doc(), difference.as_ref());
                self.replace_with_entries(collection, *seq, &old, new, new_entries)?;
            }
            Change::Delete { seq, old, entries } => {
                if !self.is_still(collection, *seq, old.as_doc())? {
                    return Ok(false);
                }
                let old = OldDocument { document: old.as_doc(), entries: Cow::Borrowed(entries) };
                self.delete_document(collection, *seq, &old)?;
            }
            Change::DeleteAny { seq } => {
                let Some(old) = self.read(collection, *seq)? else { return Ok(false) };
                let old = OldDocument::of(collection, old.as_doc())?;
                self.delete_document(collection, *seq, &old)?;
            }
        }
        Ok(true)
    }

    /// Returns whether a document is the same as before.
    pub(super) fn is_still(&self, collection: &Collection, seq: i64, document: Doc<'_>) -> Attempt<bool> {
        Ok(self.read(collection, seq)?.is_some_and(|now| now.as_bytes() == document.as_bytes()))
    }
}
