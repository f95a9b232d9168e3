//! One write with its record, as one transaction and in few round trips.

use super::interruption::lasting;
use super::retry_record::BatchRecord;
use super::transaction::{commit, queue_begin_on, roll_back};
use crate::catalog::table::Table;
use crate::index::side_index::{claims, claims_table};
use mariadb_client::{Connection, Result};
use store::StatementOutcome;

/// The outcome of a write.
pub(super) enum WriteOutcome {
    /// It was executed: rows affected by each statement.
    Done(Vec<u64>),
    /// An earlier attempt of the retryable write was recorded first; nothing was written.
    Recorded,
    /// A row had changed; nothing was written.
    Stale,
}

/// Executes the statements that `queue` queues, whose number it returns, and records `outcomes`
/// with them if the batch is retryable. They are committed only if each affects rows, unless `any`
/// is set. `alone`: there is one statement, which is a transaction of its own. `queue` may fail
/// only with the connection.
pub(super) async fn write(
    connection: &mut Connection,
    table: &Table,
    record: &mut BatchRecord,
    outcomes: Vec<error::Result<StatementOutcome>>,
    alone: bool,
    any: bool,
    queue: impl AsyncFnOnce(&mut Connection) -> Result<usize>,
) -> Result<WriteOutcome> {
    let claims = claims_table::are_needed(table);
    if alone && !record.is_recording() && !claims {
        queue(connection).await?;
        let session = lasting(connection);
        let affected = record.interruption.during(session, connection.finish()).await?.affected_rows;
        return Ok(if affected > 0 || any {
            record.committed(outcomes);
            WriteOutcome::Done(vec![affected])
        } else {
            connection.fail_client_transaction()?;
            WriteOutcome::Stale
        });
    }
    let settled = !claims || claims::refresh_pending(connection, table).await?;
    queue_begin_on(connection, table);
    let recording = record.queue_record(connection, &outcomes);
    let count = queue(connection).await?;
    let mut answered = answers(connection, record, recording, count).await;
    if claims && let Ok(Some(_)) = answered {
        answered = claims::claim(connection, table).await.and(answered);
    }
    match answered {
        Ok(Some(affected)) if connection.is_in_client_transaction() && affected.contains(&0) => {
            connection.fail_client_transaction()?;
            Ok(WriteOutcome::Stale)
        }
        Ok(Some(affected)) if any || affected.iter().all(|&affected| affected > 0) => {
            record.interruption.during(lasting(connection), commit(connection)).await?;
            record.committed(outcomes);
            Ok(WriteOutcome::Done(affected))
        }
        Ok(affected) => {
            roll_back(connection).await?;
            Ok(if affected.is_some() { WriteOutcome::Stale } else { WriteOutcome::Recorded })
        }
        Err(failure) => {
            if !failure.is_lost() {
                roll_back(connection).await?;
            }
            Err(if claims { claims::check_duplicate(connection, table, settled, failure).await } else { failure })
        }
    }
}

/// Takes all answers, even after a failure; returns `None` if the write was recorded before.
async fn answers(
    connection: &mut Connection,
    record: &BatchRecord,
    recording: bool,
    count: usize,
) -> Result<Option<Vec<u64>>> {
    let began = connection.finish().await;
    let recorded = if recording { Some(connection.finish().await.map(|ok| ok.affected_rows)) } else { None };
    let mut affected = Vec::with_capacity(count);
    let mut failed = None;
    for _ in 0..count {
        match connection.finish().await {
            Ok(ok) => affected.push(ok.affected_rows),
            Err(failure) if failure.is_lost() => return Err(failure),
            Err(failure) => failed = failed.or(Some(failure)),
        }
    }
    began?;
    if let Some(recorded) = recorded
        && !record.is_recorded(recorded)?
    {
        return Ok(None);
    }
    failed.map_or(Ok(Some(affected)), Err)
}
