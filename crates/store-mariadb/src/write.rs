//! Executes write batches: each statement is atomic per document, and recorded if it may be
//! retried.
//!
//! An update or delete reads a document, decides in the gateway, and writes on the condition that
//! the row has not changed. So no lock is held while the gateway decides, and no change is lost,
//! however many gateways and SQL clients write at the same time. A statement that finds its row
//! changed starts over. Deletes, `$set`s and `$push`es that the server can execute alone are one
//! statement, without a read. In reading order: [`insert`] (and [`parallel_insert`]), [`change`]
//! (updates and deletes), [`retry_record`] (retryable writes), [`transaction`] (what they have in
//! common), [`refusal`] (errors of unique indexes), [`interruption`] (batches that are to stop).

mod batch_options;
mod change;
mod insert;
mod insert_batch;
mod interruption;
mod parallel_insert;
mod recorded_write;
mod refusal;
pub(crate) mod retry_record;
pub(crate) mod transaction;

use crate::store::MariaDbStore;
use batch_options::BatchOptions;
use interruption::Interruption;
use retry_record::BatchRecord;
use std::time::{Duration, Instant};
use store::{BatchOutcome, Namespace, Statements, WriteBatch};

/// Labels an error after which a driver may send the same again.
const RETRYABLE: &[&str] = &["RetryableWriteError"];

/// How often a worker deletes the records of ended sessions.
const CLEAN_EVERY: Duration = Duration::from_secs(600);

/// Executes a batch, until its command is stopped.
pub(crate) async fn write(store: &MariaDbStore, batch: WriteBatch) -> error::Result<BatchOutcome> {
    let (progress, interruption) = (batch.progress.clone(), Interruption::default());
    let work = execute(store, batch, interruption.clone());
    interruption::until_stopped(|session| store.pool.kill_query(session), &progress, &interruption, work).await
}

/// Deletes the records of ended sessions, if that was not done for a while.
pub(crate) async fn delete_old_records(store: &MariaDbStore) -> mariadb_client::Result<()> {
    if store.cleaned_at.get().elapsed() > CLEAN_EVERY {
        store.cleaned_at.set(Instant::now());
        let mut lease = store.pool.lease_for_catalog().await?;
        retry_record::delete_old(&mut lease).await?;
    }
    Ok(())
}

async fn execute(store: &MariaDbStore, batch: WriteBatch, interruption: Interruption) -> error::Result<BatchOutcome> {
    store.prepare().await?;
    let retryable = batch.retry.is_some();
    let mut record = BatchRecord::new(batch.retry, interruption);
    if retryable {
        delete_old_records(store).await?;
    }
    let is_apart = retryable && store.known_table(&batch.namespace).await?.is_some_and(|table| table.is_sharded);
    if is_apart {
        let mut lease = store.pool.lease_for(&batch.namespace).await?;
        record.begin_apart(&mut lease).await?;
    }
    let namespace = batch.namespace.clone();
    let rest = BatchOptions { ordered: batch.ordered, bypass_validation: batch.bypass_validation };
    let outcome = match batch.statements {
        Statements::Insert(documents) => insert::insert(store, &batch.namespace, &documents, rest, &mut record).await,
        Statements::Update(statements) => change::all(store, &batch.namespace, &statements, rest, &mut record).await,
        Statements::Delete(statements) => change::all(store, &batch.namespace, &statements, rest, &mut record).await,
    };
    if is_apart {
        record_apart(store, &namespace, &mut record).await;
    }
    match outcome {
        Ok(()) => {
            let access = std::mem::take(&mut record.access);
            Ok(BatchOutcome { retried: record.was_retried(), access, statements: record.into_outcomes() })
        }
        Err(failure) => {
            let safe = retryable && (failure.is_lost() || failure.is_contention() || failure.awaits_primary());
            let error = error::Error::from(failure);
            Err(if safe { error.with_labels(RETRYABLE) } else { error })
        }
    }
}

/// Records the outcomes of a batch after it. Without the record the batch is done nevertheless.
async fn record_apart(store: &MariaDbStore, namespace: &Namespace, record: &mut BatchRecord) {
    let recorded = async {
        let mut lease = store.pool.lease_for(namespace).await?;
        record.end_apart(&mut lease).await
    };
    if let Err(failure) = recorded.await {
        tracing::warn!(%namespace, %failure, "a write was not recorded: if the driver repeats it, it is another write");
    }
}
