//! Carrying out a batch of statements.

use super::entries::OldDocument;
use super::progress::{BatchPart, PartEnd, PartialStatement};
use super::state::Writer;
use crate::catalog::Collection;
use crate::failure::{Attempt, Failure, SlowPart};
use crate::plan::{Access, IndexScan, SqlitePlan};
use crate::planner;
use crate::read::scan::{self, Cursor, SliceEnd, Visitor};
use bytes::Bytes;
use document::{DOCUMENT_BYTES_MAX_INTERNAL, Doc, DocBuf, Value, ValueBuf};
use error::{Code, Error, Result};
use query::predicate::Predicate;
use query::{MatchDetails, Sort};
use rusqlite::OptionalExtension;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{
    DeleteStatement, Flow, Plan, Query, ReturnImage, StatementOutcome, Statements, UpdateStatement, WriteBatch,
};
use update::UpdateOutcome;

/// A collection up to this size is emptied at once.
const EMPTIED_AT_ONCE_MAX: u64 = 50_000;
const EMPTIED_AT_ONCE_BYTES_MAX: u64 = 64 << 20;

/// The limit of work on a statement, or on one of its documents, that the writer does itself: some
/// milliseconds.
const STEPS_MAX: u64 = 200_000;

/// The limits of the writer's own search: its time, and the collection's size.
const SEARCH_MAX: Duration = Duration::from_millis(10);
const SEARCHED_MAX: u64 = 2_000;

/// Inserts between two checks of the clock; changes of found documents between two checks.
const INSERTS_PER_LOOK: usize = 8;
const DOCUMENTS_PER_LOOK: usize = 8;

/// A document that a statement changes.
pub struct MatchedRow {
    pub seq: i64,
    pub document: DocBuf,
    pub details: MatchDetails,
}

/// The documents that a statement selects.
#[derive(Clone, Copy)]
pub struct UpdateTarget<'s> {
    pub predicate: &'s Predicate,
    pub sort: Option<&'s Sort>,
    pub hint: Option<&'s ValueBuf>,
    /// Whether an update needs to know how each document matched.
    pub details: bool,
}

impl<'s> UpdateTarget<'s> {
    pub fn of_update(statement: &'s UpdateStatement) -> UpdateTarget<'s> {
        UpdateTarget {
            predicate: &statement.predicate,
            sort: statement.sort.as_ref(),
            hint: statement.hint.as_ref(),
            details: statement.update.needs_match_details() || statement.wants_score(),
        }
    }

    pub fn of_delete(statement: &'s DeleteStatement) -> UpdateTarget<'s> {
        UpdateTarget {
            predicate: &statement.predicate,
            sort: statement.sort.as_ref(),
            hint: statement.hint.as_ref(),
            details: false,
        }
    }
}

/// The result of carrying out a statement.
enum StatementProgress {
    Done(StatementOutcome),
    /// It is slow; the changes made so far stay.
    PartialStatement(PartialStatement),
}

impl Writer {
    /// Carries out statements in the running transaction, starting with number `from`, until none
    /// is left or the part is over.
    pub(super) fn carry_out(&mut self, batch: &WriteBatch, from: usize) -> Attempt<BatchPart> {
        match &batch.statements {
            Statements::Insert(documents) => self.insert(batch, from, documents),
            Statements::Update(statements) => self.each(batch, from, statements, Writer::update),
            Statements::Delete(statements) => self.each(batch, from, statements, Writer::delete),
        }
    }

    fn insert(&mut self, batch: &WriteBatch, from: usize, documents: &[Bytes]) -> Attempt<BatchPart> {
        let collection = match self.ensure_collection(&batch.namespace) {
            Err(Failure::Refused(error)) if store::write::refuses_each_insert(&error) => {
                return self.each(batch, from, documents, |_, _, _| Err(error.clone().into()));
            }
            collection => collection?,
        };
        let later = self.defers(&collection, documents.len());
        self.each(batch, from, documents, |writer, _, bytes| {
            let document =
                Doc::from_bytes(bytes).ok_or_else(|| Error::internal("an inserted document is no document"))?;
            if let Some(validator) = collection.validator().filter(|_| !batch.bypass_validation) {
                validator.check_insert(document)?;
            }
            writer.insert_document(&collection, document, later)?;
            Ok(StatementProgress::Done(StatementOutcome { matched: 1, ..Default::default() }))
        })
    }

    /// Carries out statements one by one; an ordered batch ends with the first refused one.
    fn each<S>(
        &mut self,
        batch: &WriteBatch,
        from: usize,
        statements: &[S],
        mut carry_out: impl FnMut(&mut Writer, &WriteBatch, &S) -> Attempt<StatementProgress>,
    ) -> Attempt<BatchPart> {
        let inserts = matches!(batch.statements, Statements::Insert(_));
        let statements_per_look = if inserts { INSERTS_PER_LOOK } else { 1 };
        let mut part = BatchPart::ending(PartEnd::Done);
        part.outcome.statements.reserve(statements.len() - from.min(statements.len()));
        for (at, statement) in statements.iter().enumerate().skip(from) {
            if at > from && at.is_multiple_of(statements_per_look) && self.is_part_over() {
                part.end = PartEnd::Paused;
                break;
            }
            let carried_out = steps::bounded(STEPS_MAX, || carry_out(self, batch, statement));
            let access = std::mem::take(&mut self.access);
            let outcome = match carried_out.map_err(Failure::from).flatten() {
                Ok(StatementProgress::Done(done)) => Ok(done),
                Err(Failure::Refused(error)) => Err(error),
                Ok(StatementProgress::PartialStatement(begun)) => {
                    part.end = PartEnd::OnWorker(Some(begun), SlowPart::Search);
                    break;
                }
                Err(Failure::TooSlow(long)) => {
                    part.end = PartEnd::OnWorker(None, long);
                    break;
                }
                Err(failure) => return Err(failure),
            };
            if !inserts {
                part.outcome.access.push(access);
            }
            let failed = outcome.is_err();
            part.outcome.statements.push(outcome);
            if failed && batch.ordered {
                break;
            }
        }
        Ok(part)
    }

    fn update(&mut self, batch: &WriteBatch, statement: &UpdateStatement) -> Attempt<StatementProgress> {
        let namespace = &batch.namespace;
        let target = UpdateTarget::of_update(statement);
        let mut outcome = StatementOutcome::default();
        let collection = self.catalog.get(namespace).cloned();
        if collection.is_none() {
            self.refuse_view(namespace)?;
        }
        if let Some(collection) = collection {
            if statement.multi {
                let found = self.find_all(&collection, target)?;
                let change = |writer: &mut Writer, seq: i64, outcome: &mut StatementOutcome| {
                    let Some(found) = writer.reread(&collection, seq, target)? else { return Ok(()) };
                    writer.update_found(&collection, found, batch, statement, outcome)
                };
                if let Some(begun) = self.change_each(&collection, found, &mut outcome, change)? {
                    return Ok(StatementProgress::PartialStatement(begun));
                }
            } else if let Some(found) = self.find_one(&collection, target)? {
                self.update_found(&collection, found, batch, statement, &mut outcome)?;
            }
        }
        if outcome.matched == 0 && statement.upsert {
            self.upsert(batch, statement, &mut outcome)?;
        }
        Ok(StatementProgress::Done(outcome))
    }

    /// Changes documents one by one. Returns the remaining ones if others have waited long enough
    /// or a document is slow.
    fn change_each(
        &mut self,
        collection: &Collection,
        found: Vec<i64>,
        outcome: &mut StatementOutcome,
        mut change: impl FnMut(&mut Writer, i64, &mut StatementOutcome) -> Attempt<()>,
    ) -> Attempt<Option<PartialStatement>> {
        for (at, seq) in found.iter().enumerate() {
            let changed = steps::bounded(STEPS_MAX, || change(self, *seq, outcome)).map_err(Failure::from).flatten();
            let left = match changed {
                Ok(()) => at + 1,
                Err(Failure::TooSlow(_)) => at,
                Err(failure) => return Err(failure),
            };
            let is_over = at.is_multiple_of(DOCUMENTS_PER_LOOK) && self.is_part_over();
            if left < found.len() && (left == at || is_over) {
                let left = found[left..].to_vec();
                return Ok(Some(PartialStatement {
                    collection: collection.id,
                    outcome: std::mem::take(outcome),
                    left,
                }));
            }
        }
        Ok(None)
    }

    fn update_found(
        &mut self,
        collection: &Arc<Collection>,
        found: MatchedRow,
        batch: &WriteBatch,
        statement: &UpdateStatement,
        outcome: &mut StatementOutcome,
    ) -> Attempt<()> {
        let mut new = std::mem::take(&mut self.scratch);
        new.clear();
        let applied = statement.update.apply(found.document.as_doc(), &found.details, &mut new);
        let replaced = applied.map_err(Failure::from).and_then(|applied| {
            if applied == UpdateOutcome::Changed {
                let new = updated_document(&new)?;
                if let Some(validator) = collection.validator().filter(|_| !batch.bypass_validation) {
                    validator.check_update(found.document.as_doc(), new)?;
                }
                let before = found.document.as_doc();
                let difference = self.is_logging().then(|| statement.update.difference(before, new)).flatten();
                let old = OldDocument::of(collection, before)?;
                self.replace_document(collection, found.seq, &old, new, difference.as_ref())?;
            }
            Ok(applied)
        });
        let changed = match replaced {
            Ok(applied) => applied == UpdateOutcome::Changed,
            Err(failure) => {
                self.scratch = new;
                return Err(failure);
            }
        };
        outcome.matched += 1;
        outcome.modified += u64::from(changed);
        outcome.text_score = found.details.text_score;
        outcome.image = match statement.image {
            ReturnImage::None => None,
            ReturnImage::After if changed => DocBuf::from_vec(new.clone()),
            ReturnImage::Before | ReturnImage::After => Some(found.document),
        };
        self.scratch = new;
        Ok(())
    }

    fn upsert(
        &mut self,
        batch: &WriteBatch,
        statement: &UpdateStatement,
        outcome: &mut StatementOutcome,
    ) -> Attempt<()> {
        let mut bytes = Vec::new();
        statement.update.upsert(&statement.predicate, statement.new_id, &mut bytes)?;
        let document = updated_document(&bytes)?;
        let collection = self.ensure_collection(&batch.namespace)?;
        if let Some(validator) = collection.validator().filter(|_| !batch.bypass_validation) {
            validator.check_insert(document)?;
        }
        self.insert_document(&collection, document, false)?;
        outcome.upserted = document.get("_id").map(Value::to_owned);
        if statement.image == ReturnImage::After {
            outcome.image = Some(document.to_owned());
        }
        Ok(())
    }

    fn delete(&mut self, batch: &WriteBatch, statement: &DeleteStatement) -> Attempt<StatementProgress> {
        let namespace = &batch.namespace;
        let target = UpdateTarget::of_delete(statement);
        let mut outcome = StatementOutcome::default();
        let Some(collection) = self.catalog.get(namespace).cloned() else {
            self.refuse_view(namespace)?;
            return Ok(StatementProgress::Done(outcome));
        };
        // Emptying a table takes as long as reading it.
        let is_large =
            collection.documents() > EMPTIED_AT_ONCE_MAX || collection.data_bytes() > EMPTIED_AT_ONCE_BYTES_MAX;
        // A log has an entry for each document.
        let at_once = !is_large && !self.is_logging() && !self.has_intents(collection.id);
        if statement.deletes_everything() && at_once {
            outcome.matched = steps::unbroken(|| self.delete_all(&collection))?;
            return Ok(StatementProgress::Done(outcome));
        }
        if statement.one {
            if let Some(found) = self.find_one(&collection, target)? {
                let old = OldDocument::of(&collection, found.document.as_doc())?;
                self.delete_document(&collection, found.seq, &old)?;
                outcome.matched = 1;
                outcome.image = (statement.image == ReturnImage::Before).then_some(found.document);
            }
            return Ok(StatementProgress::Done(outcome));
        }
        let found = self.find_all(&collection, target)?;
        let change = |writer: &mut Writer, seq: i64, outcome: &mut StatementOutcome| {
            let Some(found) = writer.reread(&collection, seq, target)? else { return Ok(()) };
            let old = OldDocument::of(&collection, found.document.as_doc())?;
            writer.delete_document(&collection, seq, &old)?;
            outcome.matched += 1;
            Ok(())
        };
        let begun = self.change_each(&collection, found, &mut outcome, change)?;
        Ok(begun.map_or(StatementProgress::Done(outcome), StatementProgress::PartialStatement))
    }

    /// Empties a collection.
    fn delete_all(&mut self, collection: &Arc<Collection>) -> Attempt<u64> {
        self.apply_deferred_early(collection.id)?;
        for index in &collection.indexes {
            self.connection.execute(&format!("DELETE FROM {}", index.sql.table), [])?;
        }
        // The counts as of this transaction.
        let sql = "SELECT documents, data_bytes FROM counters WHERE collection = ?1";
        let stored: (i64, i64) =
            self.connection.prepare_cached(sql)?.query_row([collection.id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let pending = self.deltas.get(&collection.id).map_or((0, 0), |delta| (delta.documents, delta.data_bytes));
        let deleted = self.connection.execute(&format!("DELETE FROM {}", collection.sql.table), [])?;
        self.add_to_counters(collection, -(stored.0 + pending.0), -(stored.1 + pending.1));
        self.report_unspecified_change(&collection.namespace);
        Ok(deleted as u64)
    }

    fn plan(&mut self, collection: &Arc<Collection>, query: &Query<'_>) -> Attempt<SqlitePlan> {
        let deferred = RefCell::new(Vec::new());
        let measure = |connection: &_, scan: &IndexScan, enough: u64| {
            let index = scan.index.as_ref().filter(|index| index.has_deferred_entries());
            deferred.borrow_mut().extend(index.map(|index| index.id));
            scan::measure_keys(connection, collection, scan, enough).unwrap_or(enough)
        };
        let mut plan =
            planner::plan(Some(collection), query, &|_, scan, enough| measure(&self.connection, scan, enough))?;
        if !deferred.borrow().is_empty() {
            // The plan was measured by indexes with deferred entries.
            let indexes = deferred.take();
            self.apply_deferred_for_reader(collection.id, &indexes)?;
            plan = planner::plan(Some(collection), query, &|_, scan, enough| measure(&self.connection, scan, enough))?;
        }
        if let Some((_, indexes)) = plan.deferred_indexes() {
            self.apply_deferred_for_reader(collection.id, &indexes)?;
        }
        Ok(plan)
    }

    /// Returns the first matching document, in the order of the sort if there is one.
    fn find_one(&mut self, collection: &Arc<Collection>, target: UpdateTarget<'_>) -> Attempt<Option<MatchedRow>> {
        let plan = self.plan(collection, &query_of(target, Some(1)))?;
        refuse_to_search(collection, &plan, true)?;
        match target.sort.filter(|_| !plan.facts.sorted) {
            Some(sort) => self.find_least(collection, target, &plan, sort),
            None => {
                let mut found: Option<MatchedRow> = None;
                self.walk(&plan, &mut |seq, document: Doc<'_>| {
                    let Some(details) = check(target, plan.facts.exact, document)? else { return Ok(Flow::Continue) };
                    found = Some(MatchedRow { seq, document: document.to_owned(), details });
                    Ok(Flow::StopAfter)
                })?;
                Ok(found)
            }
        }
    }

    /// Returns the least of all matching documents.
    fn find_least(
        &mut self,
        collection: &Arc<Collection>,
        target: UpdateTarget<'_>,
        plan: &SqlitePlan,
        sort: &Sort,
    ) -> Attempt<Option<MatchedRow>> {
        let target = UpdateTarget { details: target.details || !sort.needs().is_empty(), ..target };
        let mut least: Option<i64> = None;
        let mut least_key: Vec<u8> = Vec::new();
        let mut key: Vec<u8> = Vec::new();
        self.walk(plan, &mut |seq, document: Doc<'_>| {
            let Some(details) = check(target, plan.facts.exact, document)? else { return Ok(Flow::Continue) };
            key.clear();
            sort.key_of_match(document, &details, &mut key)?;
            if least.is_none() || key < least_key {
                least = Some(seq);
                std::mem::swap(&mut key, &mut least_key);
            }
            Ok(Flow::Continue)
        })?;
        least.map_or(Ok(None), |seq| self.reread(collection, seq, target))
    }

    /// Returns the numbers of all matching documents. They are collected before the first change,
    /// so that no change affects the scan.
    fn find_all(&mut self, collection: &Arc<Collection>, target: UpdateTarget<'_>) -> Attempt<Vec<i64>> {
        let plan = self.plan(collection, &query_of(target, None))?;
        refuse_to_search(collection, &plan, false)?;
        let mut found = Vec::new();
        self.walk(&plan, &mut |seq, document: Doc<'_>| {
            if plan.facts.exact || target.predicate.matches(document)? {
                found.push(seq);
            }
            Ok(Flow::Continue)
        })?;
        Ok(found)
    }

    /// Gives a plan's documents to `visit`. Fails if that is slow.
    fn walk(&mut self, plan: &SqlitePlan, visit: &mut dyn Visitor) -> Attempt<()> {
        let deadline = Some(Instant::now() + SEARCH_MAX);
        let before = plan.examined();
        let end = scan::slice(&self.connection, plan, &mut Cursor::default(), deadline, visit)?;
        if end == SliceEnd::Paused {
            return Err(Failure::TooSlow(SlowPart::Search));
        }
        self.access.examined = self.access.examined + (plan.examined() - before);
        self.access.summary = plan.summary();
        Ok(())
    }

    /// Reads a document that was found in the same transaction.
    fn reread(&self, collection: &Collection, seq: i64, target: UpdateTarget<'_>) -> Attempt<Option<MatchedRow>> {
        let Some(document) = self.read(collection, seq)? else { return Ok(None) };
        let details = check(target, true, document.as_doc())?;
        Ok(details.map(|details| MatchedRow { seq, document, details }))
    }

    pub(super) fn read(&self, collection: &Collection, seq: i64) -> Attempt<Option<DocBuf>> {
        let mut statement = self.connection.prepare_cached(&collection.sql.by_seq)?;
        let bytes: Option<Vec<u8>> = statement.query_row([seq], |row| row.get(0)).optional()?;
        let Some(bytes) = bytes else { return Ok(None) };
        Ok(Some(DocBuf::from_vec(bytes).ok_or_else(|| scan::damaged(collection, seq))?))
    }
}

/// Fails if all of a large collection would have to be read.
fn refuse_to_search(collection: &Collection, plan: &SqlitePlan, one: bool) -> Attempt<()> {
    let reads_all = matches!(plan.access, Access::Natural { .. }) && !plan.reads_few(one);
    match reads_all && collection.documents() > SEARCHED_MAX {
        true => Err(Failure::TooSlow(SlowPart::Search)),
        false => Ok(()),
    }
}

pub fn query_of<'q>(target: UpdateTarget<'q>, limit: Option<u64>) -> Query<'q> {
    let hint = target.hint.map(ValueBuf::as_value);
    Query { predicate: target.predicate, sort: target.sort, limit, hint, fields: None }
}

/// Returns how a document matches; `None` if it does not. `exact`: it is known to match.
pub fn check(target: UpdateTarget<'_>, exact: bool, document: Doc<'_>) -> Result<Option<MatchDetails>> {
    let mut details = MatchDetails::default();
    let matches = match (target.details, exact) {
        (true, _) => target.predicate.matches_with(document, &mut details)?,
        (false, true) => true,
        (false, false) => target.predicate.matches(document)?,
    };
    Ok(matches.then_some(details))
}

/// Returns an update's result as a document. Fails with 17419 if it is too large.
pub fn updated_document(bytes: &[u8]) -> Result<Doc<'_>> {
    if bytes.len() > DOCUMENT_BYTES_MAX_INTERNAL {
        let message = format!("Resulting document after update is larger than {}", document::DOCUMENT_BYTES_MAX);
        return Err(Error::new(Code(17419), message));
    }
    Doc::from_bytes(bytes).ok_or_else(|| Error::internal("an update wrote something that is no document"))
}
