//! Retryable writes: the outcome of each statement of a batch, recorded in the transaction of the
//! write.
//!
//! `selkie.retryable_writes` has one row per client session, for its last batch: the outcomes of
//! its finished statements. A retried batch finds its own row when it records its first write,
//! adopts the outcomes and continues after them. The record is part of each write's transaction, so
//! that neither exists without the other.

use super::interruption::Interruption;
use crate::catalog::own_schema;
use crate::transaction::outcome_record;
use document::Doc;
use error::{Code, Error};
use mariadb_client::{Connection, Failure, Result, server_error};
use mariadb_wire::Param;
use smallvec::SmallVec;
use std::sync::Arc;
use store::retry_record::{Outcome, RecordFormat};
use store::{AccessStats, RetryKey};

/// The layout of the column `outcome`.
const FORMAT: RecordFormat =
    RecordFormat { total: None, entries: "outcomes", repeats: "times", repeats_if_several: true };

/// Records the first outcome under a number. Parameters: session, number, finished statements,
/// outcome. The column refuses NULL, so the statement fails for a number that is not new.
pub(crate) const BEGIN: &str = "INSERT INTO selkie.retryable_writes (session, txn_number, statements, outcome) \
     VALUES (?, ?, ?, ?) ON DUPLICATE KEY UPDATE \
     outcome = IF(VALUES(txn_number) > txn_number, VALUES(outcome), outcome), \
     statements = IF(VALUES(txn_number) > txn_number, VALUES(statements), statements), \
     txn_number = IF(VALUES(txn_number) > txn_number, VALUES(txn_number), NULL)";

/// Selects a session's number and outcome.
pub(crate) const LOAD: &str = "SELECT txn_number, outcome FROM selkie.retryable_writes WHERE session = ?";

/// The outcomes of a batch so far, and whether they are being recorded.
pub(super) struct BatchRecord {
    key: Option<RetryKey>,
    /// The outcomes are recorded after the batch, not in the transactions of its writes.
    apart: bool,
    outcomes: Vec<Outcome>,
    /// Number of outcomes in the recorded row.
    recorded: usize,
    retried: bool,
    /// Access statistics of each update or delete.
    pub access: SmallVec<[AccessStats; 1]>,
    /// Tracks statements whose effect cannot be undone.
    pub interruption: Interruption,
    statements: Texts,
}

struct Texts {
    begin: Arc<str>,
    go_on: Arc<str>,
    load: Arc<str>,
}

impl BatchRecord {
    pub fn new(key: Option<RetryKey>, interruption: Interruption) -> BatchRecord {
        let statements = Texts {
            begin: BEGIN.into(),
            go_on: "UPDATE selkie.retryable_writes SET statements = ?, outcome = ? \
                    WHERE session = ? AND txn_number = ? AND statements = ?"
                .into(),
            load: LOAD.into(),
        };
        BatchRecord {
            key,
            apart: false,
            outcomes: Vec::new(),
            recorded: 0,
            retried: false,
            access: SmallVec::new(),
            interruption,
            statements,
        }
    }

    /// Returns whether outcomes are recorded in the transactions of the writes.
    pub fn is_recording(&self) -> bool {
        self.key.is_some() && !self.apart
    }

    /// Begins a batch on a sharded collection, whose servers do not commit atomically: a record
    /// that is committed with a write could outlive it, and the write that was acknowledged to a
    /// driver's second attempt would be lost. So the outcomes are recorded after the batch, and a
    /// second attempt after a crash in between is a second write. Adopts the outcomes of an earlier
    /// attempt.
    pub async fn begin_apart(&mut self, connection: &mut Connection) -> Result<()> {
        self.adopt(connection).await?;
        self.apart = true;
        Ok(())
    }

    /// Records the outcomes of a batch that was begun with [`BatchRecord::begin_apart`].
    pub async fn end_apart(&mut self, connection: &mut Connection) -> Result<()> {
        if !self.apart || self.outcomes.len() == self.recorded {
            return Ok(());
        }
        if self.queue_record(connection, &[]) {
            let answer = connection.finish().await.map(|ok| ok.affected_rows);
            // If another attempt was first, its record stays.
            self.is_recorded(answer)?;
        }
        Ok(())
    }

    /// Returns the number of finished statements, which is the index of the next one.
    pub fn len(&self) -> usize {
        self.outcomes.len()
    }

    pub fn was_retried(&self) -> bool {
        self.retried
    }

    /// Adds outcomes of finished statements, which are recorded if they wrote anything.
    pub fn add(&mut self, outcomes: impl IntoIterator<Item = Outcome>) {
        self.outcomes.extend(outcomes);
    }

    pub fn last_failed(&self) -> bool {
        self.outcomes.last().is_some_and(Result::is_err)
    }

    pub fn into_outcomes(self) -> Vec<Outcome> {
        self.outcomes
    }

    /// Queues the statement that records the outcomes so far and `next`, inside the write's
    /// transaction. Returns false, and queues nothing, if the batch is not retryable.
    pub fn queue_record(&self, connection: &mut Connection, next: &[Outcome]) -> bool {
        let Some(key) = self.key.as_ref().filter(|_| !self.apart || next.is_empty()) else { return false };
        let count = (self.outcomes.len() + next.len()) as u64;
        let outcomes = FORMAT.encode(self.outcomes.iter().chain(next));
        let (session, number) = (Param::Bytes(&key.session), Param::Signed(key.txn_number));
        let (count, outcomes) = (Param::Unsigned(count), Param::Bytes(outcomes.as_bytes()));
        if self.recorded == 0 {
            connection.queue_execute(&self.statements.begin, &[session, number, count, outcomes]);
        } else {
            let recorded = Param::Unsigned(self.recorded as u64);
            connection.queue_execute(&self.statements.go_on, &[count, outcomes, session, number, recorded]);
        }
        true
    }

    /// Interprets the answer to [`BatchRecord::queue_record`]: `Ok(false)` if another attempt was
    /// first.
    pub fn is_recorded(&self, answer: Result<u64>) -> Result<bool> {
        match answer {
            Ok(affected) => Ok(self.recorded == 0 || affected == 1),
            Err(failure) if failure.sql_code() == Some(server_error::COLUMN_NOT_NULL) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// Adds the outcomes of a committed transaction.
    pub fn committed(&mut self, next: impl IntoIterator<Item = Outcome>) {
        self.add(next);
        if self.is_recording() {
            self.recorded = self.outcomes.len();
        }
    }

    /// Adopts the outcomes of an earlier attempt at the batch; returns whether there were any new
    /// ones. Fails with 225 if the session has begun a later batch.
    pub async fn adopt(&mut self, connection: &mut Connection) -> Result<bool> {
        let Some(key) = self.key.clone() else { return Ok(false) };
        let mut found = None;
        own_schema::query(connection, &self.statements.load, &[Param::Bytes(&key.session)], |row| {
            if let [Some(number), Some(outcome)] = row {
                let number = number.first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes));
                found = Some((number, outcome.clone()));
            }
            Ok(())
        })
        .await?;
        let Some((number, outcomes)) = found else { return Ok(false) };
        if number > key.txn_number {
            return Err(Failure::Other(Error::new(
                Code::TRANSACTION_TOO_OLD,
                format!(
                    "Retryable write with txnNumber {} is prohibited on this session because a newer retryable write with \
                     txnNumber {number} has already started on this session.",
                    key.txn_number
                ),
            )));
        }
        if number < key.txn_number {
            return Ok(false);
        }
        if Doc::from_bytes(&outcomes).is_some_and(outcome_record::is_transaction) {
            let message = "Cannot retry a retryable write that has been converted into a transaction";
            return Err(Failure::Other(Error::new(Code::INCOMPLETE_TRANSACTION_HISTORY, message)));
        }
        let outcomes = Doc::from_bytes(&outcomes).and_then(|record| FORMAT.decode(record)).unwrap_or_default();
        if outcomes.len() <= self.outcomes.len() {
            return Ok(false);
        }
        self.recorded = outcomes.len();
        self.outcomes = outcomes;
        self.retried = true;
        Ok(true)
    }
}

/// Removes the records of sessions that have written nothing for twice as long as a session may
/// live idle.
pub(super) async fn delete_old(connection: &mut Connection) -> Result<()> {
    let sql = "DELETE FROM selkie.retryable_writes WHERE written_at < NOW() - INTERVAL 1 HOUR LIMIT 1000";
    own_schema::execute(connection, &sql.into(), &[]).await.map(drop)
}
