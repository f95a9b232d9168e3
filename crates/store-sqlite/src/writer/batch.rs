//! Carrying out a batch of statements.

use super::Writer;
use super::rows::Old;
use crate::catalog::Collection;
use crate::failure::{Attempt, Failure};
use crate::plan::{IndexScan, SqlitePlan};
use crate::planner;
use crate::scan;
use bytes::Bytes;
use document::{DOCUMENT_BYTES_MAX_INTERNAL, Doc, DocBuf, Value, ValueBuf};
use error::{Code, Error, Result};
use query::predicate::Predicate;
use query::update::Applied;
use query::{MatchDetails, Sort};
use rusqlite::OptionalExtension;
use std::cell::RefCell;
use std::sync::Arc;
use store::{
    BatchOutcome, DeleteStatement, Flow, Query, ReturnImage, StatementOutcome, Statements, UpdateStatement, WriteBatch,
};

/// Documents that a collection is emptied of at once.
const EMPTIED_AT_ONCE_MAX: u64 = 50_000;

/// A document that a statement is to change.
struct Found {
    seq: i64,
    document: DocBuf,
    details: MatchDetails,
}

/// Which documents a statement is about.
#[derive(Clone, Copy)]
struct Target<'s> {
    predicate: &'s Predicate,
    sort: Option<&'s Sort>,
    hint: Option<&'s ValueBuf>,
    /// Whether an update wants to know how each document matched.
    details: bool,
}

impl Writer {
    /// Carries out a batch in the running transaction. The inner error refuses the batch as a whole, before anything of it
    /// was done; an outer one comes from SQLite and ends the transaction.
    pub(super) fn execute(&mut self, batch: &WriteBatch) -> Attempt<Result<BatchOutcome>> {
        let attempt = self.execute_once(batch);
        match attempt {
            Ok(outcome) => Ok(Ok(outcome)),
            Err(Failure::Refused(error)) => Ok(Err(error)),
            Err(failure) => Err(failure),
        }
    }

    fn execute_once(&mut self, batch: &WriteBatch) -> Attempt<BatchOutcome> {
        if let Some(key) = &batch.retry
            && let Some(outcome) = self.recorded(key)?
        {
            return Ok(outcome);
        }
        let outcome = match &batch.statements {
            Statements::Insert(documents) => self.insert(batch, documents)?,
            Statements::Update(statements) => self.each(batch, statements, Writer::update)?,
            Statements::Delete(statements) => self.each(batch, statements, Writer::delete)?,
        };
        if let Some(key) = &batch.retry {
            self.record(key, &outcome)?;
        }
        Ok(outcome)
    }

    fn insert(&mut self, batch: &WriteBatch, documents: &[Bytes]) -> Attempt<BatchOutcome> {
        let collection = match self.ensure_collection(&batch.namespace) {
            Err(Failure::Refused(error)) if store::write::refuses_each_insert(&error) => {
                return self.each(batch, documents, |_, _, _| Err(error.clone().into()));
            }
            collection => collection?,
        };
        let later = self.gathers(&collection, documents.len());
        self.each(batch, documents, |writer, _, bytes| {
            let document =
                Doc::from_bytes(bytes).ok_or_else(|| Error::internal("an inserted document is no document"))?;
            if let Some(validator) = collection.validator().filter(|_| !batch.bypass_validation) {
                validator.check_insert(document)?;
            }
            writer.insert_document(&collection, document, later)?;
            Ok(StatementOutcome { matched: 1, ..Default::default() })
        })
    }

    /// Carries out statements one by one; an ordered batch ends with the first that is refused.
    fn each<S>(
        &mut self,
        batch: &WriteBatch,
        statements: &[S],
        mut carry_out: impl FnMut(&mut Writer, &WriteBatch, &S) -> Attempt<StatementOutcome>,
    ) -> Attempt<BatchOutcome> {
        let mut outcome = BatchOutcome { statements: Vec::with_capacity(statements.len()), ..BatchOutcome::default() };
        // A batch that was let in while another one takes long counts for itself.
        let outer = std::mem::take(&mut self.looked);
        for statement in statements {
            let carried_out = carry_out(self, batch, statement);
            if !matches!(batch.statements, Statements::Insert(_)) {
                outcome.looked.push(std::mem::take(&mut self.looked));
            }
            match carried_out {
                Ok(done) => outcome.statements.push(Ok(done)),
                Err(Failure::Refused(error)) => {
                    outcome.statements.push(Err(error));
                    if batch.ordered {
                        break;
                    }
                }
                Err(failure) => return Err(failure),
            }
        }
        self.looked = outer;
        Ok(outcome)
    }

    fn update(&mut self, batch: &WriteBatch, statement: &UpdateStatement) -> Attempt<StatementOutcome> {
        let namespace = &batch.namespace;
        let target = Target {
            predicate: &statement.predicate,
            sort: statement.sort.as_ref(),
            hint: statement.hint.as_ref(),
            details: statement.update.needs_match_details() || statement.wants_score(),
        };
        let mut outcome = StatementOutcome::default();
        let collection = self.catalog.get(namespace).cloned();
        if collection.is_none() {
            self.refuse_view(namespace)?;
        }
        if let Some(collection) = collection {
            if statement.multi {
                for seq in self.find_all(&collection, target)? {
                    if let Some(found) = self.read_again(&collection, seq, target)? {
                        self.update_found(&collection, found, batch, statement, &mut outcome)?;
                    }
                    self.breathe()?;
                }
            } else if let Some(found) = self.find_one(&collection, target)? {
                self.update_found(&collection, found, batch, statement, &mut outcome)?;
            }
        }
        if outcome.matched == 0 && statement.upsert {
            self.upsert(batch, statement, &mut outcome)?;
        }
        Ok(outcome)
    }

    fn update_found(
        &mut self,
        collection: &Arc<Collection>,
        found: Found,
        batch: &WriteBatch,
        statement: &UpdateStatement,
        outcome: &mut StatementOutcome,
    ) -> Attempt<()> {
        let mut new = std::mem::take(&mut self.scratch);
        new.clear();
        let applied = statement.update.apply(found.document.as_doc(), &found.details, &mut new);
        let replaced = applied.map_err(Failure::from).and_then(|applied| {
            if applied == Applied::Changed {
                let new = written(&new)?;
                if let Some(validator) = collection.validator().filter(|_| !batch.bypass_validation) {
                    validator.check_update(found.document.as_doc(), new)?;
                }
                let old = Old::of(collection, found.document.as_doc())?;
                self.replace_document(collection, found.seq, &old, new)?;
            }
            Ok(applied)
        });
        let changed = match replaced {
            Ok(applied) => applied == Applied::Changed,
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
        let document = written(&bytes)?;
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

    fn delete(&mut self, batch: &WriteBatch, statement: &DeleteStatement) -> Attempt<StatementOutcome> {
        let namespace = &batch.namespace;
        let target = Target {
            predicate: &statement.predicate,
            sort: statement.sort.as_ref(),
            hint: statement.hint.as_ref(),
            details: false,
        };
        let mut outcome = StatementOutcome::default();
        let Some(collection) = self.catalog.get(namespace).cloned() else {
            self.refuse_view(namespace)?;
            return Ok(outcome);
        };
        let everything = !statement.one && statement.predicate.matches_everything() && statement.hint.is_none();
        // Emptying a table takes as long as reading it, in which nobody else can write.
        let takes_long = self.is_breathing() && collection.documents() > EMPTIED_AT_ONCE_MAX;
        if everything && !takes_long {
            outcome.matched = self.delete_all(&collection)?;
            return Ok(outcome);
        }
        if statement.one {
            if let Some(found) = self.find_one(&collection, target)? {
                let old = Old::of(&collection, found.document.as_doc())?;
                self.delete_document(&collection, found.seq, &old)?;
                outcome.matched = 1;
                outcome.image = (statement.image == ReturnImage::Before).then_some(found.document);
            }
            return Ok(outcome);
        }
        for seq in self.find_all(&collection, target)? {
            if let Some(found) = self.read_again(&collection, seq, target)? {
                let old = Old::of(&collection, found.document.as_doc())?;
                self.delete_document(&collection, seq, &old)?;
                outcome.matched += 1;
            }
            self.breathe()?;
        }
        Ok(outcome)
    }

    /// Empties a collection.
    fn delete_all(&mut self, collection: &Arc<Collection>) -> Attempt<u64> {
        self.enter_late_for_others(collection.id)?;
        for index in &collection.indexes {
            self.connection.execute(&format!("DELETE FROM {}", index.sql.table), [])?;
        }
        // The figures as they stand in this transaction.
        let sql = "SELECT documents, data_bytes FROM counters WHERE collection = ?1";
        let stored: (i64, i64) =
            self.connection.prepare_cached(sql)?.query_row([collection.id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let pending = self.deltas.get(&collection.id).map_or((0, 0), |delta| (delta.documents, delta.data_bytes));
        let deleted = self.connection.execute(&format!("DELETE FROM {}", collection.sql.table), [])?;
        self.note(collection, -(stored.0 + pending.0), -(stored.1 + pending.1));
        self.note_any_change(&collection.namespace);
        Ok(deleted as u64)
    }

    fn plan(&mut self, collection: &Arc<Collection>, query: &Query<'_>) -> Attempt<SqlitePlan> {
        let late = RefCell::new(Vec::new());
        let measure = |connection: &_, scan: &IndexScan, enough: u64| {
            let index = scan.index.as_ref().filter(|index| index.is_late());
            late.borrow_mut().extend(index.map(|index| index.id));
            scan::measure_keys(connection, collection, scan, enough).unwrap_or(enough)
        };
        let mut plan =
            planner::plan(Some(collection), query, &|_, scan, enough| measure(&self.connection, scan, enough))?;
        if !late.borrow().is_empty() {
            // It was measured by what lacks entries.
            let indexes = late.take();
            self.enter_late_for_reader(collection.id, &indexes)?;
            plan = planner::plan(Some(collection), query, &|_, scan, enough| measure(&self.connection, scan, enough))?;
        }
        if let Some((_, indexes)) = plan.late_indexes() {
            self.enter_late_for_reader(collection.id, &indexes)?;
        }
        Ok(plan)
    }

    /// The first document that matches, in the order of the sort if there is one.
    fn find_one(&mut self, collection: &Arc<Collection>, target: Target<'_>) -> Attempt<Option<Found>> {
        let plan = self.plan(collection, &query_of(target, Some(1)))?;
        match target.sort.filter(|_| !plan.facts.sorted) {
            Some(sort) => self.find_least(collection, target, &plan, sort),
            None => {
                let mut found: Option<Found> = None;
                self.walk(&plan, &mut |seq, document: Doc<'_>| {
                    let Some(details) = check(target, plan.facts.exact, document)? else { return Ok(Flow::Continue) };
                    found = Some(Found { seq, document: document.to_owned(), details });
                    Ok(Flow::StopAfter)
                })?;
                Ok(found)
            }
        }
    }

    /// The least of all documents that match.
    fn find_least(
        &mut self,
        collection: &Arc<Collection>,
        target: Target<'_>,
        plan: &SqlitePlan,
        sort: &Sort,
    ) -> Attempt<Option<Found>> {
        let target = Target { details: target.details || !sort.needs().is_empty(), ..target };
        loop {
            let others_came_in = self.is_breathing();
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
            let Some(seq) = least else { return Ok(None) };
            let found = self.read_again(collection, seq, target)?;
            if found.is_some() || !others_came_in {
                return Ok(found);
            }
            // Somebody changed it in between. The second search lets nobody in.
            self.breathing = None;
        }
    }

    /// All documents that match, by number: found before the first is changed, so that no change leads the scan astray.
    fn find_all(&mut self, collection: &Arc<Collection>, target: Target<'_>) -> Attempt<Vec<i64>> {
        let plan = self.plan(collection, &query_of(target, None))?;
        let mut found = Vec::new();
        self.walk(&plan, &mut |seq, document: Doc<'_>| {
            if plan.facts.exact || target.predicate.matches(document)? {
                found.push(seq);
            }
            Ok(Flow::Continue)
        })?;
        if self.is_breathing() {
            // Others' changes can move a document along an index, so that the scan meets it twice.
            found.sort_unstable();
            found.dedup();
        }
        Ok(found)
    }

    /// Reads a document that was found before, if it still matches.
    fn read_again(&self, collection: &Collection, seq: i64, target: Target<'_>) -> Attempt<Option<Found>> {
        let Some(document) = self.read(collection, seq)? else { return Ok(None) };
        let details = check(target, !self.is_breathing(), document.as_doc())?;
        Ok(details.map(|details| Found { seq, document, details }))
    }

    fn read(&self, collection: &Collection, seq: i64) -> Attempt<Option<DocBuf>> {
        let mut statement = self.connection.prepare_cached(&collection.sql.by_seq)?;
        let bytes: Option<Vec<u8>> = statement.query_row([seq], |row| row.get(0)).optional()?;
        let Some(bytes) = bytes else { return Ok(None) };
        Ok(Some(DocBuf::from_vec(bytes).ok_or_else(|| scan::damaged(collection, seq))?))
    }
}

fn query_of<'q>(target: Target<'q>, limit: Option<u64>) -> Query<'q> {
    let hint = target.hint.map(ValueBuf::as_value);
    Query { predicate: target.predicate, sort: target.sort, limit, hint, fields: None }
}

/// How a document matches; `None`: it does not. `exact`: it is known to.
fn check(target: Target<'_>, exact: bool, document: Doc<'_>) -> Result<Option<MatchDetails>> {
    let mut details = MatchDetails::default();
    let matches = match (target.details, exact) {
        (true, _) => target.predicate.matches_with(document, &mut details)?,
        (false, true) => true,
        (false, false) => target.predicate.matches(document)?,
    };
    Ok(matches.then_some(details))
}

/// A document that an update wrote. Error 17419 when it has grown too large.
fn written(bytes: &[u8]) -> Result<Doc<'_>> {
    if bytes.len() > DOCUMENT_BYTES_MAX_INTERNAL {
        let message = format!("Resulting document after update is larger than {}", document::DOCUMENT_BYTES_MAX);
        return Err(Error::new(Code(17419), message));
    }
    Doc::from_bytes(bytes).ok_or_else(|| Error::internal("an update wrote something that is no document"))
}
