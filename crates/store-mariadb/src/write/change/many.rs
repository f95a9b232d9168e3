//! Changes many documents by one statement: page by page, each page one transaction.

use crate::catalog::table::Table;
use crate::catalog::update_mark::UpdateMark;
use crate::encoding;
use crate::index::element_table;
use crate::plan::MariaDbPlan;
use crate::plan::row_position::key_param;
use crate::read::scan;
use crate::write::batch_options::ATTEMPTS_MAX;
use crate::write::change::statement::{Change, Decision, RunningStatement};
use crate::write::recorded_write::{WriteOutcome, write};
use crate::write::retry_record::BatchRecord;
use crate::write::transaction::back_off;
use ahash::AHashSet;
use document::{Doc, DocBuf};
use error::{Code, Error};
use mariadb_client::{Connection, Event, Result};
use mariadb_wire::Param;
use query::MatchDetails;
use std::sync::Arc;
use store::{ChangeObserver, Changes, Flow, Namespace, Position, ScanEnd, StatementOutcome};

/// Documents of one transaction of a statement that changes many.
const PAGE_DOCUMENTS: usize = 500;
const PAGE_BYTES: usize = 4 << 20;

impl<C: Change> RunningStatement<'_, C> {
    /// Changes all matching documents, page by page. Returns `None` if the plan's index was dropped
    /// before anything was changed.
    pub(super) async fn change_many(&self, plan: &MariaDbPlan, table: &Arc<Table>) -> Result<Option<StatementOutcome>> {
        let mut outcome = StatementOutcome::default();
        let mut position: Option<Position> = None;
        // A change may move a document behind the position in an index, so that it would be read
        // again.
        let mut seen = (!plan.is_by_row_key()).then(AHashSet::new);
        loop {
            let (mut pending, mut bson, mut bytes) = (Vec::new(), Vec::new(), 0);
            let mut refused = None;
            let mut take = |key: &[u8], json: &[u8]| {
                if seen.as_ref().is_some_and(|seen| seen.contains(key)) {
                    return Ok(Flow::Continue);
                }
                let Some(details) = self.matches(json, &mut bson)? else { return Ok(Flow::Continue) };
                if let Some(seen) = &mut seen {
                    seen.insert(Box::<[u8]>::from(key));
                }
                let document = Doc::from_bytes(&bson).unwrap_or(Doc::EMPTY);
                match self.pending(table, key, json, document, &details) {
                    Ok(Some(one)) => {
                        bytes += one.json.len() + one.replacement.as_ref().map_or(0, |(json, _)| json.len());
                        pending.push(one);
                    }
                    Ok(None) => outcome.matched += 1,
                    Err(error) => {
                        refused = Some(error);
                        return Ok(Flow::StopAfter);
                    }
                }
                Ok(if pending.len() >= PAGE_DOCUMENTS || bytes >= PAGE_BYTES {
                    Flow::StopAfter
                } else {
                    Flow::Continue
                })
            };
            let end = match scan::rows(self.store, plan, position.as_ref(), PAGE_DOCUMENTS, &mut take).await {
                Err(failure) if failure.is_killed_plan() && position.is_none() => return Ok(None),
                end => end?,
            };
            // Documents before the one that cannot be changed are changed.
            self.change_page(table, &pending, &mut outcome).await?;
            if let Some(error) = refused {
                return Err(error.into());
            }
            match end {
                ScanEnd::Exhausted => return Ok(Some(outcome)),
                ScanEnd::Stopped(stopped) => position = Some(stopped),
            }
        }
    }

    fn pending(
        &self,
        table: &Table,
        key: &[u8],
        json: &[u8],
        document: Doc<'_>,
        details: &MatchDetails,
    ) -> error::Result<Option<Pending>> {
        let mut changed = Vec::new();
        let replacement = match self.statement.decide(document, details, &mut changed)? {
            Decision::Keep => return Ok(None),
            Decision::Delete => None,
            Decision::Replace => {
                let replacement = DocBuf::from_vec(changed).unwrap_or_default();
                if let Some(validator) = self.validator(table) {
                    validator.check_update(document, replacement.as_doc())?;
                }
                table.check_indexed(replacement.as_doc())?;
                let mut json = Vec::new();
                encoding::encode(replacement.as_doc(), &mut json);
                Some((json, replacement))
            }
        };
        Ok(Some(Pending { key: key.to_vec(), json: json.to_vec(), replacement }))
    }

    /// Writes a page in one transaction. Documents that were changed meanwhile are read and changed
    /// again, one by one.
    async fn change_page(&self, table: &Arc<Table>, pending: &[Pending], outcome: &mut StatementOutcome) -> Result<()> {
        if pending.is_empty() {
            return Ok(());
        }
        let mut lease = self.store.lease_documents(self.namespace).await?;
        let after = pending.iter().filter_map(|one| Some(one.replacement.as_ref()?.1.as_doc()));
        element_table::prepare(self.store, &mut lease, table, after).await?;
        let mut unrecorded = BatchRecord::new(None, self.interruption.clone());
        let writing =
            write(&mut lease, table, &mut unrecorded, Vec::new(), pending.len() == 1, true, async |connection| {
                pending.iter().for_each(|one| one.queue(connection, table, self.statement.mark()));
                Ok(pending.len())
            });
        let note = |changes: &mut Changes, observer: &dyn ChangeObserver| {
            pending.iter().for_each(|one| one.note(self.namespace, changes, observer));
        };
        let wrote = self.store.observe_write(note, writing).await;
        let affected = match wrote {
            Ok(WriteOutcome::Done(affected)) => affected,
            Err(failure) if failure.is_lost() => return Err(failure),
            // Nothing of the page was written: change documents one by one, up to the one that is
            // refused.
            _ => vec![0; pending.len()],
        };
        for (one, affected) in pending.iter().zip(affected) {
            if affected > 0 {
                outcome.matched += 1;
                outcome.modified += u64::from(one.replacement.is_some());
            } else {
                self.change_again(&mut lease, table, &one.key, outcome).await?;
            }
        }
        Ok(())
    }

    /// Changes the document with this row key, if it still exists and matches.
    async fn change_again(
        &self,
        connection: &mut Connection,
        table: &Arc<Table>,
        key: &[u8],
        outcome: &mut StatementOutcome,
    ) -> Result<()> {
        for attempt in 0..ATTEMPTS_MAX {
            connection.queue_execute(&table.statements.by_key, &[key_param(table.row_key, key)]);
            let mut current = None;
            while let Event::Row(range) = connection.next().await? {
                let mut row = connection.row(range)?;
                row.next_bytes()?;
                current = row.next_bytes()?.map(<[u8]>::to_vec);
            }
            let Some(json) = current else { return Ok(()) };
            let mut bson = Vec::new();
            let Some(details) = self.matches(&json, &mut bson)? else { return Ok(()) };
            let Some(one) = self.pending(table, key, &json, Doc::from_bytes(&bson).unwrap_or(Doc::EMPTY), &details)?
            else {
                outcome.matched += 1;
                return Ok(());
            };
            let note =
                |changes: &mut Changes, observer: &dyn ChangeObserver| one.note(self.namespace, changes, observer);
            let mut unrecorded = BatchRecord::new(None, self.interruption.clone());
            let writing = write(connection, table, &mut unrecorded, Vec::new(), true, false, async |connection| {
                one.queue(connection, table, self.statement.mark());
                Ok(1)
            });
            match self.store.observe_write(note, writing).await {
                Ok(WriteOutcome::Done(_)) => {
                    outcome.matched += 1;
                    outcome.modified += u64::from(one.replacement.is_some());
                    return Ok(());
                }
                Err(failure) if !failure.is_contention() => {
                    let document = one.replacement.as_ref().map_or(Doc::EMPTY, |(_, document)| document.as_doc());
                    return Err(self.refused(failure, table, document));
                }
                _ => back_off(attempt).await,
            }
        }
        Err(Error::new(
            Code::WRITE_CONFLICT,
            format!("a document of {} is being written by too many others", self.namespace),
        )
        .into())
    }
}

/// A decided change that is not written yet.
struct Pending {
    key: Vec<u8>,
    json: Vec<u8>,
    /// `None` for a delete.
    replacement: Option<(Vec<u8>, DocBuf)>,
}

impl Pending {
    fn note(&self, namespace: &Namespace, changes: &mut Changes, observer: &dyn ChangeObserver) {
        let mut before = Vec::new();
        let known = !changes.covers(namespace)
            && observer.wants_images(namespace)
            && encoding::decode(&self.json, &mut before).is_ok();
        let after = self.replacement.as_ref().map(|(_, document)| document.as_doc());
        match Doc::from_bytes(&before).filter(|_| known) {
            Some(before) => changes.add_document(namespace, Some(before), after),
            None => changes.add_unspecified(namespace),
        }
    }

    fn queue(&self, connection: &mut Connection, table: &Table, mark: UpdateMark) {
        let key = key_param(table.row_key, &self.key);
        match &self.replacement {
            Some((json, _)) => {
                let params = [Param::Text(json), key, Param::Text(&self.json)];
                connection.queue_execute(table.statements.replace(mark), &params);
            }
            None => connection.queue_execute(&table.statements.delete, &[key, Param::Text(&self.json)]),
        }
    }
}
