//! Writing: batches of statements, each carried out atomically per document and recorded where it may be retried.
//!
//! An update or delete reads, decides here, and writes on the condition that the row is still what
//! was read: nobody waits for a lock while the gateway thinks, and no change is lost, however many
//! gateways and SQL clients write at the same time. A statement that finds its row changed starts
//! over. Deletes, `$set`s and `$push`es of which the server can see all by itself are one
//! statement, without a look. In reading order: [`insert`] (and [`parallel_insert`]), [`change`] (updates
//! and deletes), [`retry_record`] (retryable writes), [`transaction`] (what they have in common),
//! [`refusal`] (errors of unique indexes), [`interruption`] (batches that are to stop).

mod batch_options;
mod change;
mod insert;
mod insert_batch;
mod interruption;
mod parallel_insert;
mod recorded_write;
mod refusal;
mod retry_record;
pub(crate) mod transaction;

use crate::store::MariaDbStore;
use batch_options::Options;
use interruption::Settling;
use retry_record::Ledger;
use std::time::{Duration, Instant};
use store::{BatchOutcome, Statements, WriteBatch};

/// Labels an error after which a driver may send the same again.
const RETRYABLE: &[&str] = &["RetryableWriteError"];

/// How often a worker removes the records of sessions that are long gone.
const TIDY_EVERY: Duration = Duration::from_secs(600);

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
