//! Writing: batches of statements, each carried out atomically per document and recorded where it may be retried.
//!
//! An update or delete reads, decides here, and writes on the condition that the row is still what
//! was read: nobody waits for a lock while the gateway thinks, and no change is lost, however many
//! gateways and SQL clients write at the same time. A statement that finds its row changed starts
//! over. Deletes, `$set`s and `$push`es of which the server can see all by itself are one
//! statement, without a look. In reading order: [`insert`] (and [`parallel_insert`]), [`change`] (updates
//! and deletes), [`retry_record`] (retryable writes), [`transaction`] (what they have in common),
//! [`refusal`] (errors of unique indexes), [`interruption`] (batches that are to stop).

mod change;
mod insert;
mod interruption;
mod parallel_insert;
mod refusal;
mod retry_record;
pub(crate) mod transaction;

use crate::store::MariaDbStore;
use interruption::Settling;
use mariadb_client::Failure;
use retry_record::Ledger;
use std::time::{Duration, Instant};
use store::{BatchOutcome, Statements, WriteBatch};

/// Labels an error after which a driver may send the same again.
const RETRYABLE: &[&str] = &["RetryableWriteError"];

/// How often a worker removes the records of sessions that are long gone.
const TIDY_EVERY: Duration = Duration::from_secs(600);

/// A statement that finds somebody else in its way so often gives up.
const ATTEMPTS_MAX: usize = 1_000;

/// Carries a batch out, until its command is to stop.
pub(crate) async fn write(store: &MariaDbStore, batch: WriteBatch) -> error::Result<BatchOutcome> {
    let (progress, settling) = (batch.progress.clone(), Settling::default());
    let work = carry_out(store, batch, settling.clone());
    interruption::until_stopped(|session| store.pool.kill_query(session), &progress, &settling, work).await
}

async fn carry_out(store: &MariaDbStore, batch: WriteBatch, settling: Settling) -> error::Result<BatchOutcome> {
    store.prepare().await?;
    let retryable = batch.retry.is_some();
    let mut ledger = Ledger::new(batch.retry, settling);
    if retryable && store.tidied.get().elapsed() > TIDY_EVERY {
        store.tidied.set(Instant::now());
        let mut lease = store.pool.lease_for_catalog().await?;
        retry_record::tidy(&mut lease).await?;
    }
    let rest = Options { ordered: batch.ordered, bypass_validation: batch.bypass_validation };
    let outcome = match batch.statements {
        Statements::Insert(documents) => insert::insert(store, &batch.namespace, &documents, rest, &mut ledger).await,
        Statements::Update(statements) => change::all(store, &batch.namespace, &statements, rest, &mut ledger).await,
        Statements::Delete(statements) => change::all(store, &batch.namespace, &statements, rest, &mut ledger).await,
    };
    match outcome {
        Ok(()) => {
            let access = std::mem::take(&mut ledger.access);
            Ok(BatchOutcome { retried: ledger.was_retried(), access, statements: ledger.into_outcomes() })
        }
        Err(failure) => {
            let safe = retryable && (failure.is_lost() || failure.is_contention());
            let error = error::Error::from(failure);
            Err(if safe { error.with_labels(RETRYABLE) } else { error })
        }
    }
}

/// What a batch says about all of its statements.
#[derive(Clone, Copy)]
struct Options {
    ordered: bool,
    bypass_validation: bool,
}

/// The session has gone on, so none of the batch may be carried out; or there is no connection for
/// it.
const WHOLE_BATCH: [error::Code; 2] =
    [error::Code::TRANSACTION_TOO_OLD, error::Code::NETWORK_INTERFACE_EXCEEDED_TIME_LIMIT];

/// Whether a failure concerns one statement, to be reported beside the others' outcomes, rather than the whole batch.
fn concerns_statement(failure: &Failure) -> bool {
    match failure {
        Failure::Lost(_) | Failure::Full(_) => false,
        Failure::Other(error) => !WHOLE_BATCH.contains(&error.code()),
        // Somebody has killed the command, not the statement.
        Failure::Sql { .. } => !failure.is_interrupted(),
    }
}
