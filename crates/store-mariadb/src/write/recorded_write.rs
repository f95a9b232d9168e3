//! One write with its record, as one transaction and in few round trips.

use super::retry_record::Ledger;
use super::transaction::{commit, queue_begin_on, roll_back};
use crate::catalog::table::Table;
use crate::index::side_index::{claims, claims_table};
use mariadb_client::{Connection, Result};
use store::StatementOutcome;

/// What became of a write.
pub(super) enum Wrote {
    /// It is done: rows affected by each statement.
    Done(Vec<u64>),
    /// An earlier attempt of the same retryable write has been here first; nothing was written.
    Recorded,
    /// Not what was expected (a row had changed); nothing was written.
    Stale,
}

/// Carries out the statements that `queue` queues, whose number it gives, and records `outcomes` with them where the batch is retryable.
/// They are kept only if each affects rows, or `any` allows less. `alone`: there is one statement, a transaction by itself. `queue` fails
/// only with the connection.
pub(super) async fn write(
    connection: &mut Connection,
    table: &Table,
    ledger: &mut Ledger,
    outcomes: Vec<error::Result<StatementOutcome>>,
    alone: bool,
    any: bool,
    queue: impl AsyncFnOnce(&mut Connection) -> Result<usize>,
) -> Result<Wrote> {
    let claims = claims_table::are_needed(table);
    if alone && !ledger.is_recording() && !claims {
        queue(connection).await?;
        let session = connection.session();
        let affected = ledger.settling.during(session, connection.finish()).await?.affected_rows;
        return Ok(if affected > 0 || any {
            ledger.committed(outcomes);
            Wrote::Done(vec![affected])
        } else {
            Wrote::Stale
        });
    }
    let settled = !claims || claims::settle(connection, table).await?;
    queue_begin_on(connection, table);
    let recording = ledger.queue_record(connection, &outcomes);
    let count = queue(connection).await?;
    let mut answered = answers(connection, ledger, recording, count).await;
    if claims && let Ok(Some(_)) = answered {
        answered = claims::claim(connection, table).await.and(answered);
    }
    match answered {
        Ok(Some(affected)) if any || affected.iter().all(|&affected| affected > 0) => {
            let session = connection.session();
            ledger.settling.during(session, commit(connection)).await?;
            ledger.committed(outcomes);
            Ok(Wrote::Done(affected))
        }
        Ok(affected) => {
            roll_back(connection).await?;
            Ok(if affected.is_some() { Wrote::Stale } else { Wrote::Recorded })
        }
        Err(failure) => {
            if !failure.is_lost() {
                roll_back(connection).await?;
            }
            Err(if claims { claims::weigh(connection, table, settled, failure).await } else { failure })
        }
    }
}

/// Takes all answers, however the first ones turn out; `None` when the record is there already.
async fn answers(
    connection: &mut Connection,
    ledger: &Ledger,
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
        && !ledger.is_recorded(recorded)?
    {
        return Ok(None);
    }
    failed.map_or(Ok(Some(affected)), Err)
}
