//! Updates and deletes: reads a document, decides, and writes if it has not changed.

mod batched;
mod many;
mod push;
mod set;
mod statement;
mod unread;
mod update_statement;

use super::interruption::lasting;
use super::refusal;
use super::retry_record::BatchRecord;
use super::transaction::back_off;
use crate::catalog::table::Table;
use crate::encoding;
use crate::index::element_table;
use crate::plan::MariaDbPlan;
use crate::plan::access::Access;
use crate::plan::row_position::key_param;
use crate::store::MariaDbStore;
use crate::write::batch_options::{ATTEMPTS_MAX, BatchOptions, concerns_statement};
use crate::write::change::statement::{Change, Decision, MatchedRow, RunningStatement};
use crate::write::recorded_write::{WriteOutcome, write};
use document::{Doc, Value, ValueBuf};
use error::{Code, Error};
use mariadb_client::{Result, server_error};
use mariadb_wire::Param;
use query::predicate::{Node, Test};
use std::cell::RefCell;
use store::{ChangeObserver, Changes, Namespace, Plan, ReturnImage, StatementOutcome};

/// How often an upsert that finds its document inserted meanwhile starts over.
const UPSERT_ATTEMPTS_MAX: usize = 20;

pub(super) async fn all(
    store: &MariaDbStore,
    namespace: &Namespace,
    statements: &[impl Change],
    options: BatchOptions,
    record: &mut BatchRecord,
) -> Result<()> {
    // Number of statements that must be executed one by one.
    let mut single = 0;
    while let Some(statement) = statements.get(record.len()) {
        if single == 0 {
            single = batched::execute(store, namespace, &statements[record.len()..], options, record).await?;
            match single {
                0 if options.ordered && record.last_failed() => break,
                0 => continue,
                _ => {}
            }
        }
        single -= 1;
        let access = RefCell::default();
        let (interruption, bypass_validation) = (record.interruption.clone(), options.bypass_validation);
        let running = RunningStatement { store, namespace, statement, bypass_validation, access, interruption };
        let outcome = running.run(record).await;
        record.access.push(running.access.into_inner());
        match outcome {
            // Added by the transaction that wrote it, or adopted from an earlier attempt.
            Ok(None) => {}
            Ok(Some(outcome)) => record.add([Ok(outcome)]),
            Err(failure) if concerns_statement(&failure) => record.add([Err(failure.into())]),
            Err(failure) => return Err(failure),
        }
        if options.ordered && record.last_failed() {
            break;
        }
    }
    Ok(())
}

impl<C: Change> RunningStatement<'_, C> {
    /// Executes the statement. Returns `None` if the record has its outcome already.
    async fn run(&self, record: &mut BatchRecord) -> Result<Option<StatementOutcome>> {
        for attempt in 0..ATTEMPTS_MAX {
            match self.attempt(record, attempt).await {
                Ok(Some(outcome)) => return Ok(outcome),
                Ok(None) => back_off(attempt).await,
                Err(failure) if failure.is_contention() => back_off(attempt.max(3)).await,
                Err(failure) if failure.is_missing_table() => self.store.catalog.invalidate(self.namespace),
                Err(failure) => return Err(failure),
            }
        }
        Err(Error::new(
            Code::WRITE_CONFLICT,
            format!("a document of {} is being written by too many others", self.namespace),
        )
        .into())
    }

    /// Makes one attempt. Returns `None` on a conflict, after which it must be repeated.
    async fn attempt(&self, record: &mut BatchRecord, attempt: usize) -> Result<Option<Option<StatementOutcome>>> {
        let table = match self.store.catalog.cached(self.namespace) {
            Some(table) => Some(table),
            None => {
                let mut lease = self.store.pool.lease_for(self.namespace).await?;
                self.store.catalog.table(&mut lease, self.namespace).await?
            }
        };
        let statement = self.statement;
        let plan = self.plan_on(table.clone()).await?;
        let Some(table) = table else {
            let mut lease = self.store.pool.lease_for(self.namespace).await?;
            if self.store.catalog.is_view(&mut lease, self.namespace).await? {
                return Err(store::views::not_a_collection(self.namespace).into());
            }
            drop(lease);
            return self.nothing_matched(record, attempt).await;
        };
        // The rows of a transaction are those of its snapshot.
        let is_alone = self.store.inside.is_none();
        if statement.deletes_unread()
            && is_alone
            && !record.is_recording()
            && let Some(outcome) = self.delete_unread(&plan, &table).await?
        {
            plan.all_rows().for_each(|rows| rows.tally.add(rows.examined(outcome.matched)));
            self.note(&plan);
            return Ok(Some(Some(outcome)));
        }
        let unread = match is_alone {
            true => self.update_unread(&plan, &table, record).await?,
            false => None,
        };
        match unread {
            Some(WriteOutcome::Done(_)) => {
                plan.all_rows().for_each(|rows| rows.tally.add(rows.examined(1)));
                self.note(&plan);
                return Ok(Some(None));
            }
            Some(WriteOutcome::Recorded) => return Ok(self.adopt(record).await?.then_some(None)),
            // The document must be read first, or does not exist.
            Some(WriteOutcome::Stale) | None => {}
        }
        if statement.changes_many() {
            let Some(outcome) = self.change_many(&plan, &table).await? else { return Ok(None) };
            self.note(&plan);
            let upserts = outcome.matched == 0 && statement.upsert(&mut Vec::new())?;
            return if upserts { self.nothing_matched(record, attempt).await } else { Ok(Some(Some(outcome))) };
        }
        let found = match self.find(&plan).await {
            Err(failure) if failure.is_killed_plan() => return Ok(None),
            found => found?,
        };
        self.note(&plan);
        match found {
            Some(found) => self.change_one(&table, &found, record).await,
            None => self.nothing_matched(record, attempt).await,
        }
    }

    fn note(&self, plan: &MariaDbPlan) {
        let mut access = self.access.borrow_mut();
        access.examined = access.examined + plan.examined();
        access.summary = plan.summary();
    }

    async fn change_one(
        &self,
        table: &Table,
        found: &MatchedRow,
        record: &mut BatchRecord,
    ) -> Result<Option<Option<StatementOutcome>>> {
        let document = Doc::from_bytes(&found.bson).unwrap_or(Doc::EMPTY);
        let mut changed = Vec::new();
        let decision = self.statement.decide(document, &found.details, &mut changed)?;
        let image = |after: Doc<'_>| match self.statement.image() {
            ReturnImage::None => None,
            ReturnImage::Before => Some(document.to_owned()),
            ReturnImage::After => Some(after.to_owned()),
        };
        let text_score = found.details.text_score;
        let mut outcome = StatementOutcome { matched: 1, text_score, ..StatementOutcome::default() };
        let mut json = Vec::new();
        match decision {
            Decision::Keep => {
                outcome.image = image(document);
                // There may be nothing to change because of an earlier attempt.
                return Ok(Some(if self.adopt(record).await? { None } else { Some(outcome) }));
            }
            Decision::Replace => {
                let after = Doc::from_bytes(&changed).unwrap_or(Doc::EMPTY);
                if let Some(validator) = self.validator(table) {
                    validator.check_update(document, after)?;
                }
                table.check_indexed(after)?;
                outcome.modified = 1;
                outcome.image = image(after);
                encoding::encode(after, &mut json);
                if json.len() as u64 >= self.store.packet_bytes_max {
                    return Err(refusal::too_large().into());
                }
            }
            Decision::Delete => outcome.image = image(document),
        }
        let mut lease = self.store.lease_documents(self.namespace).await?;
        element_table::prepare(self.store, &mut lease, table, Doc::from_bytes(&changed).into_iter()).await?;
        let (key, replace) = (key_param(table.row_key, &found.key), table.statements.replace(self.statement.mark()));
        let writing = write(&mut lease, table, record, vec![Ok(outcome)], true, false, async |connection| {
            let old = Param::Text(&found.json);
            match decision {
                Decision::Delete => connection.queue_execute(&table.statements.delete, &[key, old]),
                _ => connection.queue_execute(replace, &[Param::Text(&json), key, old]),
            }
            Ok(1)
        });
        let wrote = self.observed(Some(document), Doc::from_bytes(&changed), writing).await;
        drop(lease);
        match wrote.map_err(|failure| self.refused(failure, table, Doc::from_bytes(&changed).unwrap_or(document)))? {
            WriteOutcome::Done(_) => Ok(Some(None)),
            WriteOutcome::Stale => Ok(None),
            WriteOutcome::Recorded => Ok(self.adopt(record).await?.then_some(None)),
        }
    }

    /// Returns the `_id`, if the filter is nothing but an equality on it.
    fn only_id(&self) -> Option<Value<'_>> {
        match self.statement.predicate().root() {
            Node::Path { path, test: Test::Equal(id) } if *path == *"_id" => Some(id.as_value()),
            _ => None,
        }
    }

    async fn adopt(&self, record: &mut BatchRecord) -> Result<bool> {
        if !record.is_recording() {
            return Ok(false);
        }
        let mut lease = self.store.lease_documents(self.namespace).await?;
        record.adopt(&mut lease).await
    }

    /// Handles that no document matches: inserts one if the statement is an upsert.
    async fn nothing_matched(
        &self,
        record: &mut BatchRecord,
        attempt: usize,
    ) -> Result<Option<Option<StatementOutcome>>> {
        if self.adopt(record).await? {
            return Ok(Some(None));
        }
        let mut bson = Vec::new();
        if !self.statement.upsert(&mut bson)? {
            return Ok(Some(Some(StatementOutcome::default())));
        }
        let document = Doc::from_bytes(&bson).unwrap_or(Doc::EMPTY);
        let mut json = Vec::new();
        encoding::encode(document, &mut json);
        if json.len() as u64 >= self.store.packet_bytes_max {
            return Err(refusal::too_large().into());
        }
        let outcome = StatementOutcome {
            upserted: document.get("_id").map(ValueBuf::from),
            image: (self.statement.image() == ReturnImage::After).then(|| document.to_owned()),
            ..StatementOutcome::default()
        };
        let table = self.store.table_or_create(self.namespace).await?;
        let mut lease = self.store.lease_documents(self.namespace).await?;
        if let Some(validator) = self.validator(&table) {
            validator.check_insert(document)?;
        }
        table.check_indexed(document)?;
        element_table::prepare(self.store, &mut lease, &table, std::iter::once(document)).await?;
        let cap = table.cap();
        let writing =
            write(&mut lease, &table, record, vec![Ok(outcome)], cap.is_none(), cap.is_some(), async |connection| {
                let Some(cap) = cap else {
                    connection.queue_execute(&table.statements.insert, &[Param::Text(&json)]);
                    return Ok(1);
                };
                table.queue_cap_lock(connection);
                connection.queue_execute(&table.statements.insert, &[Param::Text(&json)]);
                table.queue_trim(connection, cap);
                Ok(3)
            });
        let wrote = match cap {
            None => self.observed(None, Some(document), writing).await,
            // The oldest documents may be deleted.
            Some(_) => self.observed_unspecified(writing).await,
        };
        drop(lease);
        match wrote {
            // Another client inserted it meanwhile: now it may match.
            Err(failure)
                if failure.sql_code() == Some(server_error::DUPLICATE_ENTRY)
                    && attempt < UPSERT_ATTEMPTS_MAX
                    && self.store.inside.is_none() =>
            {
                Ok(None)
            }
            Err(failure) => Err(self.refused(failure, &table, document)),
            Ok(WriteOutcome::Done(_)) => Ok(Some(None)),
            Ok(WriteOutcome::Stale) => Ok(None),
            Ok(WriteOutcome::Recorded) => Ok(self.adopt(record).await?.then_some(None)),
        }
    }

    /// Deletes without reading first, if the plan represents the filter exactly.
    async fn delete_unread(&self, plan: &MariaDbPlan, table: &Table) -> Result<Option<StatementOutcome>> {
        let Access::Rows(rows) = &plan.access else { return Ok(None) };
        if !store::Plan::facts(plan).exact {
            return Ok(None);
        }
        let mut lease = self.store.lease_documents(self.namespace).await?;
        if let Some(id) = plan.single_id() {
            lease.queue_execute(&table.statements.delete_by_id, &[Param::Text(id)]);
        } else if self.statement.changes_many() && rows.is_everything() {
            lease.queue_query(&format!("DELETE FROM {}", table.quoted));
        } else {
            return Ok(None);
        }
        let note = |changes: &mut Changes, _: &dyn ChangeObserver| match self.only_id() {
            Some(id) => changes.add_id(self.namespace, id),
            None => changes.add_unspecified(self.namespace),
        };
        // Queued statements are sent when their answers are awaited.
        let deleting = self.interruption.during(lasting(&lease), lease.finish());
        let matched = self.store.observe_write(note, deleting).await?.affected_rows;
        Ok(Some(StatementOutcome { matched, ..StatementOutcome::default() }))
    }
}
