//! Executes several updates of a batch together: reads their documents at once and writes them in
//! one transaction.
//!
//! A single statement takes a round trip to read and a transaction to write, which waits for the
//! disk. Here the documents of many statements are read first, and decided from the first statement
//! to the last. The run ends before a statement that may match a document written by an earlier
//! one. Rows are replaced on the condition that they have not changed. If one has, or MariaDB
//! refuses anything, nothing of the run is written, and its statements are executed one by one.

mod read;

use crate::catalog::table::Table;
use crate::catalog::update_mark::UpdateMark;
use crate::encoding;
use crate::index::element_table;
use crate::plan::row_position::key_param;
use crate::store::MariaDbStore;
use crate::write::batch_options::BatchOptions;
use crate::write::change::statement::{Change, Decision, MatchedRow, RunningStatement};
use crate::write::recorded_write::{WriteOutcome, write};
use crate::write::refusal;
use crate::write::retry_record::BatchRecord;
use ahash::AHashSet;
use document::{Doc, DocBuf};
use mariadb_client::{Connection, Result};
use mariadb_wire::{ColumnType, Param, com_stmt_bulk_execute};
use read::{Named, Read};
use std::cell::RefCell;
use store::{ChangeObserver, Changes, Namespace, StatementOutcome};

/// Statements of one run.
const STATEMENTS_MAX: usize = 250;

/// Bytes of the documents of one run, read and written.
const BYTES_MAX: u64 = 4 << 20;

type Outcome = error::Result<StatementOutcome>;

/// The decisions of a run so far.
#[derive(Default)]
struct Run {
    outcomes: Vec<Outcome>,
    writes: Vec<Write>,
    /// Row keys that are replaced.
    keys: AHashSet<Vec<u8>>,
    /// If all statements name a value of one path: the values that later ones must not name.
    values: AHashSet<Vec<u8>>,
}

/// A document to write, and the row that it replaces, if any.
struct Write {
    row: Option<(MatchedRow, UpdateMark)>,
    json: Vec<u8>,
    after: DocBuf,
}

/// Executes statements from the first on. Returns 0 if some were finished; otherwise how many must
/// be executed one by one.
pub(super) async fn execute(
    store: &MariaDbStore,
    namespace: &Namespace,
    statements: &[impl Change],
    options: BatchOptions,
    record: &mut BatchRecord,
) -> Result<usize> {
    let count = statements.iter().take(STATEMENTS_MAX).take_while(|statement| statement.may_be_batched()).count();
    let Some(table) = store.catalog.cached(namespace).filter(|table| count > 1 && table.cap().is_none()) else {
        return Ok(1);
    };
    let count = match table.document_bytes.get() {
        0 => count,
        bytes => count.min((BYTES_MAX / bytes) as usize),
    };
    if count < 2 {
        return Ok(1);
    }
    let all: Vec<_> = statements[..count]
        .iter()
        .map(|statement| RunningStatement {
            store,
            namespace,
            statement,
            bypass_validation: options.bypass_validation,
            access: RefCell::default(),
            interruption: record.interruption.clone(),
        })
        .collect();
    let Read { found, named } = match read::read(&all, &table).await {
        Ok(read) => read,
        Err(failure) if failure.is_lost() => return Err(failure),
        // Executed one by one, they report the error.
        Err(_) => return Ok(count),
    };
    let mut run = Run::default();
    for (position, (running, (access, found))) in all.iter().zip(found).enumerate() {
        if run.may_match_written(running, position, named.as_ref(), found.as_ref()) {
            break;
        }
        *running.access.borrow_mut() = access;
        let outcome = run.decide(running, &table, named.as_ref(), found);
        run.outcomes.push(outcome);
        if options.ordered && run.outcomes.last().is_some_and(Result::is_err) {
            break;
        }
    }
    let done = run.outcomes.len();
    if done < 2 {
        return Ok(1);
    }
    match run.write(store, namespace, &table, record).await? {
        true => {
            let access = all.into_iter().take(done).map(|running| running.access.into_inner());
            record.access.extend(access);
            Ok(0)
        }
        false => Ok(done),
    }
}

impl Run {
    /// Returns whether a statement may match a document written by an earlier one of the run.
    fn may_match_written<C: Change>(
        &mut self,
        running: &RunningStatement<'_, C>,
        position: usize,
        named: Option<&Named>,
        found: Option<&MatchedRow>,
    ) -> bool {
        if found.is_some_and(|found| self.keys.contains(&found.key)) {
            return true;
        }
        match named.and_then(|named| named.values.get(position)) {
            Some(value) => self.values.contains(value),
            None => {
                let predicate = running.statement.predicate();
                self.writes.iter().any(|write| predicate.matches(write.after.as_doc()).unwrap_or(true))
            }
        }
    }

    fn decide<C: Change>(
        &mut self,
        running: &RunningStatement<'_, C>,
        table: &Table,
        named: Option<&Named>,
        found: Option<MatchedRow>,
    ) -> Outcome {
        let writes = self.writes.len();
        let outcome = match found {
            Some(found) => self.decide_change(running, table, found),
            None => self.decide_insert(running, table),
        };
        if let (Some(named), Some(write)) = (named, self.writes.get(writes)) {
            named.visit(write.after.as_doc(), &mut |value| {
                self.values.insert(value);
            });
        }
        outcome
    }

    fn decide_change<C: Change>(
        &mut self,
        running: &RunningStatement<'_, C>,
        table: &Table,
        found: MatchedRow,
    ) -> Outcome {
        let document = Doc::from_bytes(&found.bson).unwrap_or(Doc::EMPTY);
        let mut changed = Vec::new();
        let mut outcome = StatementOutcome { matched: 1, ..StatementOutcome::default() };
        if let Decision::Keep = running.statement.decide(document, &found.details, &mut changed)? {
            return Ok(outcome);
        }
        let after = DocBuf::from_vec(changed).unwrap_or_default();
        if let Some(validator) = running.validator(table) {
            validator.check_update(document, after.as_doc())?;
        }
        table.check_indexed(after.as_doc())?;
        let json = encoded(running.store, after.as_doc())?;
        self.keys.insert(found.key.clone());
        self.writes.push(Write { row: Some((found, running.statement.mark())), json, after });
        outcome.modified = 1;
        Ok(outcome)
    }

    fn decide_insert<C: Change>(&mut self, running: &RunningStatement<'_, C>, table: &Table) -> Outcome {
        let mut bson = Vec::new();
        if !running.statement.upsert(&mut bson)? {
            return Ok(StatementOutcome::default());
        }
        let after = DocBuf::from_vec(bson).unwrap_or_default();
        let json = encoded(running.store, after.as_doc())?;
        if let Some(validator) = running.validator(table) {
            validator.check_insert(after.as_doc())?;
        }
        table.check_indexed(after.as_doc())?;
        let upserted = read::upserted(after.as_doc());
        self.writes.push(Write { row: None, json, after });
        Ok(StatementOutcome { upserted, ..StatementOutcome::default() })
    }

    /// Writes the decisions and adds their outcomes; returns false if nothing was written.
    async fn write(
        self,
        store: &MariaDbStore,
        namespace: &Namespace,
        table: &Table,
        record: &mut BatchRecord,
    ) -> Result<bool> {
        let Run { outcomes, writes, .. } = self;
        let mut lease = store.lease_documents(namespace).await?;
        if writes.is_empty() {
            // There may be nothing to change because of an earlier attempt.
            if !record.is_recording() || !record.adopt(&mut lease).await? {
                record.add(outcomes);
            }
            return Ok(true);
        }
        let after = writes.iter().map(|write| write.after.as_doc());
        match element_table::prepare(store, &mut lease, table, after).await {
            Err(failure) if !failure.is_lost() => return Ok(false),
            outcome => outcome?,
        }
        let note = |changes: &mut Changes, observer: &dyn ChangeObserver| match observer.wants_images(namespace) {
            true => writes.iter().for_each(|write| {
                let before = write.row.as_ref().and_then(|(row, _)| Doc::from_bytes(&row.bson));
                changes.add_document(namespace, before, Some(write.after.as_doc()));
            }),
            false => changes.add_unspecified(namespace),
        };
        let writing = write(&mut lease, table, record, outcomes, false, false, async |connection| {
            Ok(queue(connection, table, &writes))
        });
        match store.observe_write(note, writing).await {
            Ok(WriteOutcome::Done(_)) => Ok(true),
            Ok(WriteOutcome::Recorded) => record.adopt(&mut lease).await,
            Err(failure) if failure.is_lost() => Err(failure),
            Ok(WriteOutcome::Stale) | Err(_) => Ok(false),
        }
    }
}

fn encoded(store: &MariaDbStore, document: Doc<'_>) -> error::Result<Vec<u8>> {
    let mut json = Vec::new();
    encoding::encode(document, &mut json);
    if json.len() as u64 >= store.packet_bytes_max { Err(refusal::too_large()) } else { Ok(json) }
}

/// Queues the writes in order, consecutive inserts as one command; returns the number of commands.
fn queue(connection: &mut Connection, table: &Table, writes: &[Write]) -> usize {
    let mut commands = 0;
    for some in writes.chunk_by(|one, next| one.row.is_none() && next.row.is_none()) {
        commands += 1;
        match some {
            [Write { row: Some((row, mark)), json, .. }] => {
                let (key, old) = (key_param(table.row_key, &row.key), Param::Text(&row.json));
                connection.queue_execute(table.statements.replace(*mark), &[Param::Text(json), key, old]);
            }
            [Write { json, .. }] => connection.queue_execute(&table.statements.insert, &[Param::Text(json)]),
            _ => connection.queue_bulk(&table.statements.insert, &[ColumnType::VAR_STRING], |out| {
                some.iter().for_each(|write| com_stmt_bulk_execute::push(Param::Text(&write.json), out));
            }),
        }
    }
    commands
}
