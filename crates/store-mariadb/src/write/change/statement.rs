//! A statement that updates or deletes, and what its kinds have in common.

use crate::catalog::table::Table;
use crate::catalog::update_mark::UpdateMark;
use crate::encoding;
use crate::plan::MariaDbPlan;
use crate::read::scan;
use crate::store::MariaDbStore;
use crate::write::change::update_statement::UnreadUpdate;
use crate::write::interruption::Interruption;
use crate::write::refusal;
use document::{Doc, Value, ValueBuf};
use mariadb_client::{Failure, Result};
use query::{MatchDetails, Predicate, Sort};
use std::cell::RefCell;
use std::sync::Arc;
use store::{
    AccessStats, ChangeObserver, Changes, DeleteStatement, Flow, Namespace, Query, ReturnImage, UpdateStatement,
    Validator,
};
use update::UpdateOutcome;

/// The decision about a matching document.
pub(crate) enum Decision {
    Keep,
    /// The new document was written to the buffer.
    Replace,
    Delete,
}

/// An update or delete statement.
pub(crate) trait Change {
    fn predicate(&self) -> &Predicate;
    fn sort(&self) -> Option<&Sort>;
    fn hint(&self) -> Option<Value<'_>>;
    fn image(&self) -> ReturnImage;
    fn changes_many(&self) -> bool;
    /// Returns which kind of update it is.
    fn mark(&self) -> UpdateMark;
    fn needs_match_details(&self) -> bool;
    fn decide(&self, document: Doc<'_>, details: &MatchDetails, out: &mut Vec<u8>) -> error::Result<Decision>;
    /// Writes the document to insert if none matches; returns false if the statement is no upsert.
    fn upsert(&self, out: &mut Vec<u8>) -> error::Result<bool>;
    /// Returns whether matching documents may be deleted without reading them.
    fn deletes_unread(&self) -> bool;
    /// Returns the update, if the server can apply it without reading the document first.
    fn unread(&self) -> Option<UnreadUpdate<'_>>;
    /// Returns whether it may be executed with others of its batch: see [`super::batched`].
    fn may_be_batched(&self) -> bool;
}

impl Change for UpdateStatement {
    fn predicate(&self) -> &Predicate {
        &self.predicate
    }
    fn sort(&self) -> Option<&Sort> {
        self.sort.as_ref()
    }
    fn hint(&self) -> Option<Value<'_>> {
        self.hint.as_ref().map(ValueBuf::as_value)
    }
    fn image(&self) -> ReturnImage {
        self.image
    }
    fn changes_many(&self) -> bool {
        self.multi
    }
    fn mark(&self) -> UpdateMark {
        match () {
            () if self.update.has_operators() => UpdateMark::Operators,
            () if self.update.is_replacement() => UpdateMark::Replacement,
            () => UpdateMark::Unmarked,
        }
    }
    fn needs_match_details(&self) -> bool {
        self.update.needs_match_details() || self.wants_score()
    }
    fn decide(&self, document: Doc<'_>, details: &MatchDetails, out: &mut Vec<u8>) -> error::Result<Decision> {
        Ok(match self.update.apply(document, details, out)? {
            UpdateOutcome::Unchanged => Decision::Keep,
            UpdateOutcome::Changed => Decision::Replace,
        })
    }
    fn upsert(&self, out: &mut Vec<u8>) -> error::Result<bool> {
        if self.upsert {
            self.update.upsert(&self.predicate, self.new_id, out)?;
        }
        Ok(self.upsert)
    }
    fn deletes_unread(&self) -> bool {
        false
    }
    fn unread(&self) -> Option<UnreadUpdate<'_>> {
        if self.multi || self.image != ReturnImage::None || self.sort.is_some() {
            return None;
        }
        self.update
            .as_unsorted_push()
            .map(UnreadUpdate::Push)
            .or_else(|| self.update.as_assignments().map(UnreadUpdate::Set))
    }
    fn may_be_batched(&self) -> bool {
        !self.multi && self.image == ReturnImage::None && self.sort.is_none() && self.hint.is_none()
    }
}

impl Change for DeleteStatement {
    fn predicate(&self) -> &Predicate {
        &self.predicate
    }
    fn sort(&self) -> Option<&Sort> {
        self.sort.as_ref()
    }
    fn hint(&self) -> Option<Value<'_>> {
        self.hint.as_ref().map(ValueBuf::as_value)
    }
    fn image(&self) -> ReturnImage {
        self.image
    }
    fn changes_many(&self) -> bool {
        !self.one
    }
    fn mark(&self) -> UpdateMark {
        UpdateMark::Unmarked
    }
    fn needs_match_details(&self) -> bool {
        false
    }
    fn decide(&self, _: Doc<'_>, _: &MatchDetails, _: &mut Vec<u8>) -> error::Result<Decision> {
        Ok(Decision::Delete)
    }
    fn upsert(&self, _: &mut Vec<u8>) -> error::Result<bool> {
        Ok(false)
    }
    fn deletes_unread(&self) -> bool {
        self.image == ReturnImage::None
    }
    fn unread(&self) -> Option<UnreadUpdate<'_>> {
        None
    }
    fn may_be_batched(&self) -> bool {
        false
    }
}

pub(crate) struct RunningStatement<'r, C> {
    pub(crate) store: &'r MariaDbStore,
    pub(crate) namespace: &'r Namespace,
    pub(crate) statement: &'r C,
    pub(crate) bypass_validation: bool,
    /// The statement's access statistics.
    pub(crate) access: RefCell<AccessStats>,
    pub(crate) interruption: Interruption,
}

/// A row whose document matches.
pub(crate) struct MatchedRow {
    pub(crate) key: Vec<u8>,
    pub(crate) json: Vec<u8>,
    pub(crate) bson: Vec<u8>,
    pub(crate) details: MatchDetails,
}

impl<C: Change> RunningStatement<'_, C> {
    /// Returns the validator for documents that the statement writes.
    pub(crate) fn validator<'t>(&self, table: &'t Table) -> Option<&'t Validator> {
        table.validator().filter(|_| !self.bypass_validation)
    }

    pub(crate) async fn plan_on(&self, table: Option<Arc<Table>>) -> Result<MariaDbPlan> {
        let statement = self.statement;
        let query = Query {
            predicate: statement.predicate(),
            sort: statement.sort(),
            limit: (!statement.changes_many() && statement.sort().is_none()).then_some(1),
            hint: statement.hint(),
            fields: None,
        };
        self.store.plan_on(self.namespace, table, &query).await
    }

    /// Finds the first matching document, by the statement's sort.
    pub(crate) async fn find(&self, plan: &MariaDbPlan) -> Result<Option<MatchedRow>> {
        let sort = self.statement.sort().filter(|_| !store::Plan::facts(plan).sorted);
        let (mut best, mut best_order) = (None, Vec::new());
        let (mut bson, mut order) = (Vec::new(), Vec::new());
        let mut take = |key: &[u8], json: &[u8]| {
            let Some(details) = self.matches(json, &mut bson)? else { return Ok(Flow::Continue) };
            if let Some(sort) = sort {
                order.clear();
                sort.key_of_match(Doc::from_bytes(&bson).unwrap_or(Doc::EMPTY), &details, &mut order)?;
                if best.is_some() && order >= best_order {
                    return Ok(Flow::Continue);
                }
                std::mem::swap(&mut order, &mut best_order);
            }
            best = Some(MatchedRow { key: key.to_vec(), json: json.to_vec(), bson: bson.clone(), details });
            Ok(if sort.is_some() { Flow::Continue } else { Flow::StopAfter })
        };
        let wanted = if sort.is_some() { usize::MAX } else { 1 };
        scan::rows(self.store, plan, None, wanted, &mut take).await?;
        Ok(best)
    }

    /// Decodes a document into `bson`; returns the match details if it matches.
    pub(crate) fn matches(&self, json: &[u8], bson: &mut Vec<u8>) -> error::Result<Option<MatchDetails>> {
        bson.clear();
        encoding::decode(json, bson)?;
        let document = Doc::from_bytes(bson).unwrap_or(Doc::EMPTY);
        let mut details = MatchDetails::default();
        let predicate = self.statement.predicate();
        let sorts_by_match = self.statement.sort().is_some_and(|sort| !sort.needs().is_empty());
        let matches = if self.statement.needs_match_details() || sorts_by_match {
            predicate.matches_with(document, &mut details)?
        } else {
            predicate.matches(document)?
        };
        Ok(matches.then_some(details))
    }

    /// Maps a failure to MongoDB's errors, unless a retry may help or the whole batch
    /// fails.
    pub(crate) fn refused(&self, failure: Failure, table: &Table, document: Doc<'_>) -> Failure {
        let may_help_to_retry = failure.is_lost() || failure.is_contention() || failure.is_missing_table();
        if may_help_to_retry || failure.is_interrupted() || failure.is_not_writable() {
            return failure;
        }
        Failure::Other(refusal::of(failure, self.namespace, table, document))
    }

    /// Executes a write of one document, reported to the observer of changes.
    pub(crate) async fn observed<T>(
        &self,
        before: Option<Doc<'_>>,
        after: Option<Doc<'_>>,
        writing: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let note = |changes: &mut Changes, observer: &dyn ChangeObserver| match observer.wants_images(self.namespace) {
            true => changes.add_document(self.namespace, before, after),
            false => changes.add_unspecified(self.namespace),
        };
        self.store.observe_write(note, writing).await
    }

    pub(crate) async fn observed_unspecified<T>(&self, writing: impl Future<Output = Result<T>>) -> Result<T> {
        let note = |changes: &mut Changes, _: &dyn ChangeObserver| changes.add_unspecified(self.namespace);
        self.store.observe_write(note, writing).await
    }
}
