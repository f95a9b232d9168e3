//! Updates of a batch that are carried out together: their documents are read at once and written in one transaction.
//!
//! A statement by itself is a round trip to read and a transaction to write, each of which waits for the disk. Here the
//! documents of many statements are read first, and what becomes of them is decided from the first statement to the
//! last. The run ends before a statement that may find what an earlier one of it writes. Rows are replaced on the
//! condition that they are still what was read, as ever. If one is not, or MariaDB refuses anything, nothing of the run is
//! written, and its statements are carried out one by one.

mod read;

use crate::catalog::table::Table;
use crate::encoding;
use crate::index::element_table;
use crate::plan::row_position::key_param;
use crate::store::MariaDbStore;
use crate::write::batch_options::Options;
use crate::write::change::statement::{Change, Decision, Found, Running};
use crate::write::recorded_write::{Wrote, write};
use crate::write::refusal;
use crate::write::retry_record::Ledger;
use ahash::AHashSet;
use document::{Doc, DocBuf};
use mariadb_client::{Connection, Failure, Result};
use mariadb_wire::{ColumnType, Param, com_stmt_bulk_execute};
use read::{Named, Read};
use std::cell::RefCell;
use store::{ChangeObserver, Changes, Namespace, StatementOutcome};

/// Statements of one run.
const STATEMENTS_MAX: usize = 250;

/// Bytes of the documents of one run, read and written.
const BYTES_MAX: u64 = 4 << 20;

type Outcome = error::Result<StatementOutcome>;

/// What a run has decided so far.
#[derive(Default)]
struct Run {
    outcomes: Vec<Outcome>,
    writes: Vec<Write>,
    /// The rows that are replaced.
    keys: AHashSet<Vec<u8>>,
    /// Where all statements name a value of one path: the values that later ones must not name.
    values: AHashSet<Vec<u8>>,
}

/// A document to write, and the row that it replaces, if any.
struct Write {
    row: Option<Found>,
    json: Vec<u8>,
    after: DocBuf,
}

/// Carries out statements from the first on. Returns how many should not be tried this way again: zero if some were settled.
pub(super) async fn carry_out(
    store: &MariaDbStore,
    namespace: &Namespace,
    statements: &[impl Change],
    options: Options,
    ledger: &mut Ledger,
) -> Result<usize> {
    let count = statements.iter().take(STATEMENTS_MAX).take_while(|statement| statement.may_go_together()).count();
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
        .map(|statement| Running {
            store,
            namespace,
            statement,
            bypass_validation: options.bypass_validation,
            access: RefCell::default(),
            settling: ledger.settling.clone(),
        })
        .collect();
    let Read { found, named } = match read::read(&all, &table).await {
        Ok(read) => read,
        Err(failure) if failure.is_lost() => return Err(failure),
        // One by one they tell what the matter is.
        Err(_) => return Ok(count),
    };
    let mut run = Run::default();
    for (position, (running, (access, found))) in all.iter().zip(found).enumerate() {
        if run.may_concern(running, position, named.as_ref(), found.as_ref()) {
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
    match run.write(store, namespace, &table, ledger).await? {
        true => {
            let access = all.into_iter().take(done).map(|running| running.access.into_inner());
            ledger.access.extend(access);
            Ok(0)
        }
        false => Ok(done),
    }
}

impl Run {
    /// Whether a statement may find what an earlier one of the run writes.
    fn may_concern<C: Change>(
        &mut self,
        running: &Running<'_, C>,
        position: usize,
        named: Option<&Named>,
        found: Option<&Found>,
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
        running: &Running<'_, C>,
        table: &Table,
        named: Option<&Named>,
        found: Option<Found>,
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

    fn decide_change<C: Change>(&mut self, running: &Running<'_, C>, table: &Table, found: Found) -> Outcome {
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
        let json = spelled(running.store, after.as_doc())?;
        self.keys.insert(found.key.clone());
        self.writes.push(Write { row: Some(found), json, after });
        outcome.modified = 1;
        Ok(outcome)
    }

    fn decide_insert<C: Change>(&mut self, running: &Running<'_, C>, table: &Table) -> Outcome {
        let mut bson = Vec::new();
        if !running.statement.upsert(&mut bson)? {
            return Ok(StatementOutcome::default());
        }
        let after = DocBuf::from_vec(bson).unwrap_or_default();
        let json = spelled(running.store, after.as_doc())?;
        if let Some(validator) = running.validator(table) {
            validator.check_insert(after.as_doc())?;
        }
        table.check_indexed(after.as_doc())?;
        let upserted = read::upserted(after.as_doc());
        self.writes.push(Write { row: None, json, after });
        Ok(StatementOutcome { upserted, ..StatementOutcome::default() })
    }

    /// Writes what was decided and settles it. False: nothing was written.
    async fn write(
        self,
        store: &MariaDbStore,
        namespace: &Namespace,
        table: &Table,
        ledger: &mut Ledger,
    ) -> Result<bool> {
        let Run { outcomes, writes, .. } = self;
        let mut lease = store.pool.lease_for(namespace).await?;
        if writes.is_empty() {
            // An earlier attempt may be why there is nothing left to change.
            if !ledger.is_recording() || !ledger.adopt(&mut lease).await? {
                ledger.settle(outcomes);
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
                let before = write.row.as_ref().and_then(|row| Doc::from_bytes(&row.bson));
                changes.add_document(namespace, before, Some(write.after.as_doc()));
            }),
            false => changes.add_unspecified(namespace),
        };
        let writing = write(&mut lease, table, ledger, outcomes, false, false, async |connection| {
            Ok(queue(connection, table, &writes))
        });
        match store.change_observer.observe_write(note, Failure::is_lost, writing).await {
            Ok(Wrote::Done(_)) => Ok(true),
            Ok(Wrote::Recorded) => ledger.adopt(&mut lease).await,
            Err(failure) if failure.is_lost() => Err(failure),
            Ok(Wrote::Stale) | Err(_) => Ok(false),
        }
    }
}

fn spelled(store: &MariaDbStore, document: Doc<'_>) -> error::Result<Vec<u8>> {
    let mut json = Vec::new();
    encoding::encode(document, &mut json);
    if json.len() as u64 >= store.packet_bytes_max { Err(refusal::too_large()) } else { Ok(json) }
}

/// Queues the writes in their order, inserts that follow one another as one command; gives how many commands.
fn queue(connection: &mut Connection, table: &Table, writes: &[Write]) -> usize {
    let mut commands = 0;
    for some in writes.chunk_by(|one, next| one.row.is_none() && next.row.is_none()) {
        commands += 1;
        match some {
            [Write { row: Some(row), json, .. }] => {
                let (key, old) = (key_param(table.row_key, &row.key), Param::Text(&row.json));
                connection.queue_execute(&table.statements.replace, &[Param::Text(json), key, old]);
            }
            [Write { json, .. }] => connection.queue_execute(&table.statements.insert, &[Param::Text(json)]),
            _ => connection.queue_bulk(&table.statements.insert, &[ColumnType::VAR_STRING], |out| {
                some.iter().for_each(|write| com_stmt_bulk_execute::push(Param::Text(&write.json), out));
            }),
        }
    }
    commands
}
