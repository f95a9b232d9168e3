//! Inserts many documents over two connections at once: the server uses one thread per connection.
//!
//! Each half of the batch is a transaction. Neither is committed before both were executed, and the
//! first half is committed first. So at any time the table has all documents up to some point, and
//! the record of a retryable batch has that point. The result is the same as with one connection:
//!
//! - *Natural order.* The row keys are reserved beforehand. The first document gets the next key
//!   from the server. The last one gets the key at the end of the range, so that the server counts
//!   on after it, and the keys between them are free. Concurrent inserts may have taken keys
//!   between these two statements, one by one or in blocks (at most 65,535), so as many are
//!   skipped.
//! - *Errors.* If anything is refused in either half, both are rolled back, and the batch is
//!   inserted over one connection, which finds the outcome of each document.
//! - *Waiting.* The halves must not wait for each other, as they would if each had a document with
//!   the same id. So neither waits for any lock: a taken lock counts as a refusal.

use super::interruption::lasting;
use super::retry_record::BatchRecord;
use super::transaction::{self, queue_begin};
use crate::write::insert_batch::{Batch, encode_document, inserted};
use bytes::Bytes;
use futures_util::future::join;
use mariadb_client::{Connection, LOCK_WAIT, NO_LOCK_WAIT, Result};
use mariadb_wire::Param;
use store::StatementOutcome;

/// For fewer documents or bytes a second connection is not worth its commit: half of the server's
/// work for this many takes 5 ms or more, and one more wait for the disk takes some of that.
const DOCUMENTS_MIN: usize = 2_500;
const BYTES_MIN: usize = 256 << 10;

/// Row keys skipped, which concurrent inserts may have taken.
const KEYS_SKIPPED: u64 = 100_000;

pub(super) fn is_worthwhile(documents: &[Bytes]) -> bool {
    documents.len() >= DOCUMENTS_MIN && documents.iter().map(Bytes::len).sum::<usize>() >= BYTES_MIN
}

/// Inserts the whole batch. Returns false if something was refused; documents without an outcome
/// were not inserted then.
pub(super) async fn insert(
    batch: &Batch<'_>,
    first: &mut Connection,
    second: &mut Connection,
    record: &mut BatchRecord,
) -> Result<bool> {
    let outcomes = vec![Ok(inserted()); batch.documents.len()];
    let (earlier, later) = outcomes.split_at(middle(batch.documents));
    if !insert_halves(batch, first, second, record, earlier).await? {
        // At the same time, because each may be waiting for the other's locks.
        let (one, other) = join(undo(first), undo(second)).await;
        one.and(other)?;
        return Ok(false);
    }
    record.interruption.during(lasting(first), commit(first)).await?;
    record.committed(earlier.iter().cloned());
    // From here on recording may wait for locks, since those of the first half are released.
    second.queue_query(LOCK_WAIT);
    answers(second, 1).await?;
    if record.queue_record(second, later) {
        let answer = second.finish().await.map(|ok| ok.affected_rows);
        if !record.is_recorded(answer)? {
            undo(second).await?;
            return Ok(false);
        }
    }
    record.interruption.during(lasting(second), commit(second)).await?;
    record.committed(later.iter().cloned());
    Ok(true)
}

/// Returns how many documents have half of the bytes.
fn middle(documents: &[Bytes]) -> usize {
    let half = documents.iter().map(Bytes::len).sum::<usize>() / 2;
    let mut bytes = 0;
    let before_half = |document: &&Bytes| {
        bytes += document.len();
        bytes <= half
    };
    documents.iter().take_while(before_half).count().clamp(1, documents.len() - 1)
}

/// Inserts both halves without committing either; returns false if something was refused.
async fn insert_halves(
    batch: &Batch<'_>,
    first: &mut Connection,
    second: &mut Connection,
    record: &BatchRecord,
    earlier: &[error::Result<StatementOutcome>],
) -> Result<bool> {
    let [first_document, between @ .., last_document] = batch.documents else { return Ok(false) };
    let (left, right) = between.split_at(earlier.len() - 1);
    for connection in [&mut *first, &mut *second] {
        queue_begin(connection);
    }
    let recording = record.queue_record(first, earlier);
    first.queue_query(NO_LOCK_WAIT);
    second.queue_query(NO_LOCK_WAIT);
    let mut text = Vec::new();
    encode_document(first_document, &mut text);
    first.queue_execute(&batch.table.statements.insert, &[Param::Text(&text)]);
    second.flush().await?;

    let began = answers(first, 1).await;
    let recorded = if recording { Some(first.finish().await.map(|ok| ok.affected_rows)) } else { None };
    let (set, inserted) = (answers(first, 1).await, first.finish().await);
    let recorded = recorded.is_none_or(|answer| record.is_recorded(answer).unwrap_or(false));
    let key = match all_went_well([began, set, answers(second, 2).await])? {
        true if recorded => refused_or(inserted)?.map_or(0, |ok| ok.last_insert_id),
        _ => 0,
    };
    let keys_from = key + KEYS_SKIPPED;
    if key == 0 || keys_from > i64::MAX as u64 {
        return Ok(false);
    }
    text.clear();
    encode_document(last_document, &mut text);
    let last_key = keys_from + between.len() as u64;
    first.queue_execute(&batch.table.statements.insert_at, &[Param::Unsigned(last_key), Param::Text(&text)]);
    if refused_or(first.finish().await)?.is_none() {
        return Ok(false);
    }
    let right_key = keys_from + left.len() as u64;
    let (left, right) =
        join(insert_half(batch, first, left, keys_from), insert_half(batch, second, right, right_key)).await;
    all_went_well([left, right])
}

/// Inserts documents with row keys from `key` on.
async fn insert_half(batch: &Batch<'_>, connection: &mut Connection, documents: &[Bytes], key: u64) -> Result<()> {
    let commands = batch.send_at(connection, documents, key).await?;
    answers(connection, commands).await
}

/// Takes this many answers; returns the first failure, or the loss of the connection.
async fn answers(connection: &mut Connection, count: usize) -> Result<()> {
    let mut outcome = Ok(());
    for _ in 0..count {
        match connection.finish().await {
            Err(failure) if failure.is_lost() => return Err(failure),
            answer => outcome = outcome.and(answer.map(drop)),
        }
    }
    outcome
}

/// Returns `Ok(None)` if the server refused the statement.
fn refused_or<T>(answer: Result<T>) -> Result<Option<T>> {
    match answer {
        Err(failure) if failure.is_lost() => Err(failure),
        answer => Ok(answer.ok()),
    }
}

fn all_went_well<const N: usize>(answers: [Result<()>; N]) -> Result<bool> {
    let mut well = true;
    for answer in answers {
        well &= refused_or(answer)?.is_some();
    }
    Ok(well)
}

async fn commit(connection: &mut Connection) -> Result<()> {
    transaction::commit(connection).await?;
    wait_again(connection).await
}

async fn undo(connection: &mut Connection) -> Result<()> {
    transaction::roll_back(connection).await?;
    wait_again(connection).await
}

async fn wait_again(connection: &mut Connection) -> Result<()> {
    connection.altered = true;
    connection.queue_query(LOCK_WAIT);
    answers(connection, 1).await?;
    connection.altered = false;
    Ok(())
}
