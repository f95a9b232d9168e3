//! A statement that updates or deletes, and what its kinds have in common.

use crate::catalog::table::Table;
use crate::encoding;
use crate::plan::MariaDbPlan;
use crate::read::scan;
use crate::store::MariaDbStore;
use crate::write::change::update_statement::Unseen;
use crate::write::interruption::Settling;
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

/// What is to become of a document that matches.
pub(crate) enum Decision {
    Keep,
    /// The new document was written to the buffer.
    Replace,
    Delete,
}

/// What updates and deletes have in common.
pub(crate) trait Change {
    fn predicate(&self) -> &Predicate;
    fn sort(&self) -> Option<&Sort>;
    fn hint(&self) -> Option<Value<'_>>;
    fn image(&self) -> ReturnImage;
    fn changes_many(&self) -> bool;
    fn needs_match_details(&self) -> bool;
    fn decide(&self, document: Doc<'_>, details: &MatchDetails, out: &mut Vec<u8>) -> error::Result<Decision>;
    /// Writes the document to insert where none matches; false when there is none to insert.
    fn upsert(&self, out: &mut Vec<u8>) -> error::Result<bool>;
    /// Matching documents go without a look at them.
    fn deletes_unseen(&self) -> bool;
    /// What happens to the first document that matches, where nothing need be known of it.
    fn unseen(&self) -> Option<Unseen<'_>>;
    /// Whether it may be carried out with others of its batch: see [`batched`].
    fn may_go_together(&self) -> bool;
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
    fn deletes_unseen(&self) -> bool {
        false
    }
    fn unseen(&self) -> Option<Unseen<'_>> {
        if self.multi || self.image != ReturnImage::None || self.sort.is_some() {
            return None;
        }
        self.update.as_unsorted_push().map(Unseen::Push).or_else(|| self.update.as_assignments().map(Unseen::Set))
    }
    fn may_go_together(&self) -> bool {
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
    fn needs_match_details(&self) -> bool {
        false
    }
    fn decide(&self, _: Doc<'_>, _: &MatchDetails, _: &mut Vec<u8>) -> error::Result<Decision> {
        Ok(Decision::Delete)
    }
    fn upsert(&self, _: &mut Vec<u8>) -> error::Result<bool> {
        Ok(false)
    }
    fn deletes_unseen(&self) -> bool {
        self.image == ReturnImage::None
    }
    fn unseen(&self) -> Option<Unseen<'_>> {
        None
    }
    fn may_go_together(&self) -> bool {
        false
    }
}

pub(crate) struct Running<'r, C> {
    pub(crate) store: &'r MariaDbStore,
    pub(crate) namespace: &'r Namespace,
    pub(crate) statement: &'r C,
    pub(crate) bypass_validation: bool,
    /// How the statement has found its documents.
    pub(crate) access: RefCell<AccessStats>,
    pub(crate) settling: Settling,
}

/// A document that matches.
pub(crate) struct Found {
    pub(crate) key: Vec<u8>,
    pub(crate) json: Vec<u8>,
    pub(crate) bson: Vec<u8>,
    pub(crate) details: MatchDetails,
}

impl<C: Change> Running<'_, C> {
    /// The validator that documents written by this statement have to pass.
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

    /// The first document that matches, by the statement's sort.
    pub(crate) async fn find(&self, plan: &MariaDbPlan) -> Result<Option<Found>> {
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
            best = Some(Found { key: key.to_vec(), json: json.to_vec(), bson: bson.clone(), details });
            Ok(if sort.is_some() { Flow::Continue } else { Flow::StopAfter })
        };
        let wanted = if sort.is_some() { usize::MAX } else { 1 };
        scan::rows(self.store, plan, None, wanted, &mut take).await?;
        Ok(best)
    }

    /// Reads a document's text into `bson`; gives how it matches, if it does.
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

    /// A failure in MongoDB's terms, unless trying again may help.
    pub(crate) fn refused(&self, failure: Failure, table: &Table, document: Doc<'_>) -> Failure {
        if failure.is_lost() || failure.is_contention() || failure.is_missing_table() || failure.is_interrupted() {
            return failure;
        }
        Failure::Other(refusal::of(failure, self.namespace, table, document))
    }

    /// Does a write of one document, announced to whoever keeps answers.
    pub(crate) async fn announced<T>(
        &self,
        before: Option<Doc<'_>>,
        after: Option<Doc<'_>>,
        writing: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let note = |changes: &mut Changes, observer: &dyn ChangeObserver| match observer.wants_images(self.namespace) {
            true => changes.add_document(self.namespace, before, after),
            false => changes.add_unspecified(self.namespace),
        };
        self.store.change_observer.observe_write(note, Failure::is_lost, writing).await
    }

    pub(crate) async fn announced_anything<T>(&self, writing: impl Future<Output = Result<T>>) -> Result<T> {
        let note = |changes: &mut Changes, _: &dyn ChangeObserver| changes.add_unspecified(self.namespace);
        self.store.change_observer.observe_write(note, Failure::is_lost, writing).await
    }
}
