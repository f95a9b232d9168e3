//! Writing: the parts that all commands that change documents share.
//!
//! A statement that cannot be parsed counts as a failed statement: it takes its place among the
//! outcomes without reaching the store. [`execute`] merges the two.

pub mod new_document;
pub mod statements;

use crate::call::Call;
use crate::read::table_scan;
use document::ValueBuf;
use error::{Error, Result};
use store::{
    BatchOutcome, DeleteStatement, Namespace, Query, RetryKey, StatementOutcome, Statements, UpdateStatement,
    WriteBatch,
};

/// The most statements of a command (`maxWriteBatchSize`).
pub const STATEMENTS_MAX: usize = 100_000;

/// Fails for a batch that is empty or too long.
pub fn check_length(statements: usize) -> Result<()> {
    if (1..=STATEMENTS_MAX).contains(&statements) {
        return Ok(());
    }
    Err(Error::new(
        error::Code::INVALID_LENGTH,
        format!("Write batch sizes must be between 1 and {STATEMENTS_MAX}. Got {statements} operations."),
    ))
}

/// Statements of one kind, ready for the store.
pub trait Statement: Sized {
    /// Whether an invalid statement is reported only at its turn.
    const READ_LATE: bool = true;

    fn into_statements(statements: Vec<Self>) -> Statements;

    /// Returns the query of the statement, if it has one.
    fn query(&self) -> Option<Query<'_>> {
        None
    }
}

impl Statement for bytes::Bytes {
    const READ_LATE: bool = false;

    fn into_statements(statements: Vec<Self>) -> Statements {
        Statements::Insert(statements)
    }
}

impl Statement for UpdateStatement {
    fn into_statements(statements: Vec<Self>) -> Statements {
        Statements::Update(statements)
    }

    fn query(&self) -> Option<Query<'_>> {
        let hint = self.hint.as_ref().map(ValueBuf::as_value);
        Some(Query { hint, sort: self.sort.as_ref(), ..Query::of(&self.predicate) })
    }
}

impl Statement for DeleteStatement {
    fn into_statements(statements: Vec<Self>) -> Statements {
        Statements::Delete(statements)
    }

    fn query(&self) -> Option<Query<'_>> {
        let hint = self.hint.as_ref().map(ValueBuf::as_value);
        Some(Query { hint, sort: self.sort.as_ref(), ..Query::of(&self.predicate) })
    }
}

/// The options of a command for all of its statements.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub ordered: bool,
    pub bypass_validation: bool,
    /// Whether the statements are on the buckets of a time-series collection, in place of the
    /// command's own.
    pub on_buckets: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { ordered: true, bypass_validation: false, on_buckets: false }
    }
}

impl Options {
    /// Returns the options for statements on buckets in place of the command's own.
    pub fn on_buckets(self) -> Options {
        Options { bypass_validation: true, on_buckets: true, ..self }
    }
}

/// The outcomes of a command's statements, by their position. After a failure in an ordered batch
/// the rest is missing.
#[derive(Debug, Default)]
pub struct Outcomes {
    pub statements: Vec<(usize, Result<StatementOutcome>)>,
    pub retried: bool,
}

/// Lets the store execute the parsed statements, and merges the outcomes with the errors of the
/// others.
pub async fn execute<S: Statement>(
    call: &Call<'_>,
    namespace: &Namespace,
    options: Options,
    parsed: Vec<Result<S>>,
) -> Result<Outcomes> {
    let mut statements = Vec::with_capacity(parsed.len());
    let mut indexes = Vec::with_capacity(parsed.len());
    let mut refused = Vec::new();
    for (index, statement) in parsed.into_iter().enumerate() {
        let refusal = call.envelope.refusal.clone().filter(|_| statement.is_ok() || S::READ_LATE);
        let mut statement = refusal.map_or(statement, Err);
        if table_scan::are_forbidden()
            && let Some(query) = statement.as_ref().ok().and_then(S::query)
            && let Err(error) = table_scan::check_query(&*call.worker.store, namespace, query).await
        {
            statement = Err(error);
        }
        match statement {
            Ok(statement) => {
                indexes.push(index);
                statements.push(statement);
            }
            Err(error) => {
                refused.push((index, Err(error)));
                if options.ordered {
                    break;
                }
            }
        }
    }
    let mut outcome = BatchOutcome::default();
    if !statements.is_empty() {
        let batch = WriteBatch {
            ordered: options.ordered,
            bypass_validation: options.bypass_validation,
            journal: call.envelope.durability.journal,
            retry: retry_key(call).map(|key| if options.on_buckets { apart(key) } else { key }),
            ..WriteBatch::new(namespace.clone(), S::into_statements(statements))
        };
        outcome = write(call, batch).await?;
    }
    note_written(call, &outcome);
    let failed = outcome.statements.iter().any(Result::is_err);
    let mut all: Vec<_> = indexes.into_iter().zip(outcome.statements).collect();
    if !(options.ordered && failed) {
        all.extend(refused);
        all.sort_by_key(|(index, _)| *index);
    }
    Ok(Outcomes { statements: all, retried: outcome.retried })
}

/// Lets the store execute a batch; stops it if the command is killed or its time is up.
pub async fn write(call: &Call<'_>, batch: WriteBatch) -> Result<BatchOutcome> {
    let progress = batch.progress.clone();
    call.operation.run_stoppable(&progress, call.worker.store.write(batch)).await
}

/// Returns whether the target turned out to be a view, such as a time-series collection.
pub fn met_view(outcomes: &Result<Outcomes>) -> bool {
    let error = match outcomes {
        Ok(outcomes) => outcomes.statements.first().and_then(|(_, outcome)| outcome.as_ref().err()),
        Err(error) => Some(error),
    };
    error.is_some_and(|error| error.code() == error::Code::COMMAND_NOT_SUPPORTED_ON_VIEW)
}

/// Records the outcome of each statement for the profiler, and of all for the log.
fn note_written(call: &Call<'_>, outcome: &BatchOutcome) {
    let stats = &call.operation.stats;
    outcome.access.iter().for_each(|looked| stats.record_write(looked));
    if call.worker.server.profiling.records_fast_operations() {
        let statements = outcome.statements.iter().zip(&outcome.access);
        stats.record_statements(statements.map(|(done, looked)| (done.clone(), looked.clone())));
    }
}

/// Returns the key of a retryable write: the session and its counter.
pub fn retry_key(call: &Call<'_>) -> Option<RetryKey> {
    Some(RetryKey { session: call.envelope.session?.retry_id(), txn_number: call.envelope.retryable_write()? })
}

/// Returns the key for the statements on buckets. The original key is used by the failed statements
/// on the view.
fn apart(key: RetryKey) -> RetryKey {
    RetryKey { session: key.session.map(|byte| !byte), ..key }
}

/// Appends the reply to an unacknowledged write; returns whether it did.
///
/// A client that sends `w: 0` without moreToCome gets a reply that does not report the outcome.
pub fn write_unacknowledged(call: &Call<'_>, reply: &mut document::DocWriter<'_>) -> bool {
    if !call.envelope.durability.unacknowledged {
        return false;
    }
    reply.append("n", 0);
    if call.spec.name == "update" {
        reply.append("nModified", 0);
    }
    true
}

/// Appends `retriedStmtIds` to the reply of a write that had been executed before.
pub fn write_retried(outcomes: &Outcomes, reply: &mut document::DocWriter<'_>) {
    if outcomes.retried {
        let mut ids = reply.array("retriedStmtIds");
        outcomes.statements.iter().for_each(|(index, _)| ids.push(*index as i32));
    }
}

/// Appends `writeErrors`, if there are any.
pub fn write_errors(outcomes: &Outcomes, reply: &mut document::DocWriter<'_>) {
    if outcomes.statements.iter().all(|(_, outcome)| outcome.is_ok()) {
        return;
    }
    let mut errors = reply.array("writeErrors");
    for (index, outcome) in &outcomes.statements {
        if let Err(error) = outcome {
            crate::reply::write_write_error(*index, error, &mut errors);
        }
    }
}
