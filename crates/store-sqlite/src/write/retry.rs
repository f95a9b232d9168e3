//! Retryable writes: the outcomes of a session's last write are stored, so that the same write,
//! sent again, is answered from them.
//!
//! Outcomes are written in the transaction that carries out their statements, so that after a crash
//! either both are stored or neither. A batch that is carried out in parts records what has been
//! done so far with each part; when it is sent again, it continues behind that.

use super::state::Writer;
use crate::failure::Attempt;
use document::{Doc, DocBuf, Value};
use error::{Code, Error};
use rusqlite::{Connection, OptionalExtension};
use std::time::{SystemTime, UNIX_EPOCH};
use store::retry_record::{Outcome, RecordFormat};
use store::{BatchOutcome, RecordedWrite, RetryKey};

/// How long an outcome is stored, in seconds: as long as a session may stay unused
/// (`logicalSessionTimeoutMinutes`).
pub const RETENTION_SECONDS: i64 = 30 * 60;

/// The layout of the column `outcome`.
const FORMAT: RecordFormat =
    RecordFormat { total: Some("n"), entries: "s", repeats: "count", repeats_if_several: false };

impl Writer {
    /// Returns the recorded outcomes of this write if there are more than `done`. Fails with 225 if
    /// the session has written something newer since.
    ///
    /// The record may have fewer outcomes than have been carried out: statements without an effect
    /// share the transaction of the next part.
    pub(super) fn recorded_beyond(&self, key: &RetryKey, done: usize) -> Attempt<Option<BatchOutcome>> {
        let sql = "SELECT txn_number, outcome FROM retryable_writes WHERE session = ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let found = statement.query_row([&key.session], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let Some((number, record)): Option<(i64, Vec<u8>)> = found else { return Ok(None) };
        if number > key.txn_number {
            return Err(too_old(key, number).into());
        }
        if number < key.txn_number {
            return Ok(None);
        }
        if Doc::from_bytes(&record).is_some_and(is_transaction) {
            let message = "Cannot retry a retryable write that has been converted into a transaction";
            return Err(Error::new(Code::INCOMPLETE_TRANSACTION_HISTORY, message).into());
        }
        let damaged = || Error::internal("the recorded outcome of a retryable write is damaged");
        let record = Doc::from_bytes(&record).ok_or_else(damaged)?;
        if FORMAT.total_of(record).is_some_and(|recorded| recorded <= done as u64) {
            return Ok(None);
        }
        let statements = FORMAT.decode(record).ok_or_else(damaged)?;
        let outcome = BatchOutcome { statements, retried: true, ..BatchOutcome::default() };
        Ok(Some(outcome).filter(|outcome| outcome.statements.len() > done))
    }

    /// Records the outcomes of a write's first statements.
    pub(super) fn record(&self, key: &RetryKey, outcomes: [&[Outcome]; 2]) -> Attempt<()> {
        self.record_encoded(key, &encode(outcomes))
    }

    /// As [`Writer::record`], with outcomes that [`encode`] has encoded.
    pub(super) fn record_encoded(&self, key: &RetryKey, record: &DocBuf) -> Attempt<()> {
        let sql = "INSERT OR REPLACE INTO retryable_writes(session, txn_number, outcome, at) VALUES(?1, ?2, ?3, ?4)";
        self.connection.prepare_cached(sql)?.execute((
            &key.session,
            key.txn_number,
            record.as_bytes(),
            now_seconds(),
        ))?;
        Ok(())
    }
}

/// The field that distinguishes the record of a committed transaction.
const TRANSACTION: &str = "transaction";

/// Returns the record of a committed transaction.
pub fn committed_transaction() -> DocBuf {
    let mut record = encode([&[], &[]]);
    record.append(TRANSACTION, true);
    record
}

fn is_transaction(record: Doc<'_>) -> bool {
    record.get(TRANSACTION).is_some_and(Value::is_truthy)
}

/// Reads the record of a session.
pub fn recorded_write(connection: &Connection, session: [u8; 16]) -> Attempt<Option<RecordedWrite>> {
    let sql = "SELECT txn_number, outcome FROM retryable_writes WHERE session = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let found: Option<(i64, Vec<u8>)> =
        statement.query_row([&session], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    Ok(found.map(|(txn_number, record)| RecordedWrite {
        txn_number,
        is_transaction: Doc::from_bytes(&record).is_some_and(is_transaction),
    }))
}

/// Encodes the outcomes of two slices, one after the other.
pub fn encode(outcomes: [&[Outcome]; 2]) -> DocBuf {
    FORMAT.encode(outcomes.into_iter().flatten())
}

/// Returns the seconds since 1970.
pub fn now_seconds() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}

fn too_old(key: &RetryKey, number: i64) -> Error {
    let mut session = String::new();
    store::duplicate::write_value(Value::Binary { subtype: 4, bytes: &key.session }, &mut session);
    let message = format!(
        "Retryable write with txnNumber {} is prohibited on session {session} because a newer retryable write with \
         txnNumber {number} has already started on this session.",
        key.txn_number
    );
    Error::new(Code::TRANSACTION_TOO_OLD, message)
}
