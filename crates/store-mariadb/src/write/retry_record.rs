//! Retryable writes: what became of each statement of a batch, recorded in the same transaction as the write itself.
//!
//! `selkie.retryable_writes` holds one row per client session, for its last batch: how many statements are settled, and how. A
//! batch that comes a second time meets its own row when it wants to record its first write, takes over what is settled and
//! goes on behind it. Recording is part of each write's transaction, so that neither exists without the other.

use super::interruption::Settling;
use crate::catalog::own_schema;
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

/// The outcomes of a batch so far, and whether they are being recorded.
pub(super) struct Ledger {
    key: Option<RetryKey>,
    settled: Vec<Outcome>,
    /// How many outcomes the row in the database holds.
    recorded: usize,
    retried: bool,
    /// How each update or delete has found its documents.
    pub access: SmallVec<[AccessStats; 1]>,
    /// Told of statements that write for good.
    pub settling: Settling,
    statements: Texts,
}

struct Texts {
    begin: Arc<str>,
    go_on: Arc<str>,
    load: Arc<str>,
}

impl Ledger {
    pub fn new(key: Option<RetryKey>, settling: Settling) -> Ledger {
        let statements = Texts {
            // NULL is refused by the column: that is how a number that is not new makes the statement fail.
            begin:
                "INSERT INTO selkie.retryable_writes (session, txn_number, statements, outcome) VALUES (?, ?, ?, ?) \
                    ON DUPLICATE KEY UPDATE \
                    outcome = IF(VALUES(txn_number) > txn_number, VALUES(outcome), outcome), \
                    statements = IF(VALUES(txn_number) > txn_number, VALUES(statements), statements), \
                    txn_number = IF(VALUES(txn_number) > txn_number, VALUES(txn_number), NULL)"
                    .into(),
            go_on: "UPDATE selkie.retryable_writes SET statements = ?, outcome = ? \
                    WHERE session = ? AND txn_number = ? AND statements = ?"
                .into(),
            load: "SELECT txn_number, outcome FROM selkie.retryable_writes WHERE session = ?".into(),
        };
        Ledger { key, settled: Vec::new(), recorded: 0, retried: false, access: SmallVec::new(), settling, statements }
    }

    pub fn is_recording(&self) -> bool {
        self.key.is_some()
    }

    /// How many statements are settled: the next one has this index.
    pub fn len(&self) -> usize {
        self.settled.len()
    }

    pub fn was_retried(&self) -> bool {
        self.retried
    }

    /// Adds outcomes of statements that are done (and recorded, where they wrote anything).
    pub fn settle(&mut self, outcomes: impl IntoIterator<Item = Outcome>) {
        self.settled.extend(outcomes);
    }

    pub fn last_failed(&self) -> bool {
        self.settled.last().is_some_and(Result::is_err)
    }

    pub fn into_outcomes(self) -> Vec<Outcome> {
        self.settled
    }

    /// Queues the statement that records the outcomes so far and `next`, inside of the write's transaction. Nothing is queued, and
    /// false given, where nothing is recorded.
    pub fn queue_record(&self, connection: &mut Connection, next: &[Outcome]) -> bool {
        let Some(key) = &self.key else { return false };
        let count = (self.settled.len() + next.len()) as u64;
        let outcomes = FORMAT.encode(self.settled.iter().chain(next));
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

    /// What the server said to the statement of [`Ledger::queue_record`]: `Ok(false)` when another attempt has been here first.
    pub fn is_recorded(&self, answer: Result<u64>) -> Result<bool> {
        match answer {
            Ok(affected) => Ok(self.recorded == 0 || affected == 1),
            Err(failure) if failure.sql_code() == Some(server_error::COLUMN_NOT_NULL) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// The transaction with `next` in it has been committed.
    pub fn committed(&mut self, next: impl IntoIterator<Item = Outcome>) {
        self.settle(next);
        if self.is_recording() {
            self.recorded = self.settled.len();
        }
    }

    /// Takes over what an earlier attempt at the same batch has settled; gives whether there was more than is known here.
    /// Error 225 when the session has gone on to a later batch.
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
        let outcomes = Doc::from_bytes(&outcomes).and_then(|record| FORMAT.decode(record)).unwrap_or_default();
        if outcomes.len() <= self.settled.len() {
            return Ok(false);
        }
        self.recorded = outcomes.len();
        self.settled = outcomes;
        self.retried = true;
        Ok(true)
    }
}

/// Removes the records of sessions that have written nothing for twice as long as a session may live idle.
pub(super) async fn tidy(connection: &mut Connection) -> Result<()> {
    let sql = "DELETE FROM selkie.retryable_writes WHERE written_at < NOW() - INTERVAL 1 HOUR LIMIT 1000";
    own_schema::execute(connection, &sql.into(), &[]).await.map(drop)
}
