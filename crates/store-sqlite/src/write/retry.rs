//! Retryable writes: the outcome of a session's last write, so that sending it again does not carry it out again.
//!
//! Outcomes are written in the transaction that carries out their statements: either both are there
//! after a crash or neither. A batch that is carried out in parts has what was done so far recorded
//! with each of them, and goes on behind when it is sent again.

use super::Writer;
use crate::failure::Attempt;
use document::{Doc, DocBuf, DocWriter, Value};
use error::{Code, Error};
use rusqlite::OptionalExtension;
use std::time::{SystemTime, UNIX_EPOCH};
use store::{BatchOutcome, RetryKey, StatementOutcome};

/// How long an outcome is kept, in seconds: as long as a session may stay unused (`logicalSessionTimeoutMinutes`).
pub const KEPT_SECONDS: i64 = 30 * 60;

impl Writer {
    /// The recorded outcomes of this very write, where they are more than so many. Error 225 when
    /// the session has written something newer since.
    ///
    /// Less is recorded than has been done where statements had no effect that they share a
    /// transaction with.
    pub(super) fn recorded_beyond(&self, key: &RetryKey, done: usize) -> Attempt<Option<BatchOutcome>> {
        let sql = "SELECT txn_number, outcome FROM retryable_writes WHERE session = ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let found = statement.query_row([&key.session], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let Some((number, outcome)): Option<(i64, Vec<u8>)> = found else { return Ok(None) };
        if number > key.txn_number {
            return Err(too_old(key, number).into());
        }
        if number < key.txn_number {
            return Ok(None);
        }
        let damaged = || Error::internal("the recorded outcome of a retryable write is damaged");
        let outcome = Doc::from_bytes(&outcome).ok_or_else(damaged)?;
        if number_of(outcome, "n").is_some_and(|recorded| recorded <= done as u64) {
            return Ok(None);
        }
        let outcome = decode(outcome).ok_or_else(damaged)?;
        Ok(Some(outcome).filter(|outcome| outcome.statements.len() > done))
    }

    /// Records what has been done of a write: the outcomes of its first statements.
    pub(super) fn record(&self, key: &RetryKey, outcomes: [&[Outcome]; 2]) -> Attempt<()> {
        self.record_encoded(key, &encode(outcomes))
    }

    /// As [`Writer::record`], of what [`encode`] made of the outcomes.
    pub(super) fn record_encoded(&self, key: &RetryKey, outcome: &DocBuf) -> Attempt<()> {
        let sql = "INSERT OR REPLACE INTO retryable_writes(session, txn_number, outcome, at) VALUES(?1, ?2, ?3, ?4)";
        self.connection.prepare_cached(sql)?.execute((
            &key.session,
            key.txn_number,
            outcome.as_bytes(),
            now_seconds(),
        ))?;
        Ok(())
    }
}

/// What came of a statement.
type Outcome = Result<StatementOutcome, Error>;

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

/// Outcomes as a document: their number, and an array of statements, equal neighbors counted rather
/// than repeated.
pub fn encode(outcomes: [&[Outcome]; 2]) -> DocBuf {
    let mut all = outcomes.into_iter().flatten().peekable();
    DocBuf::build(|writer| {
        writer.append("n", outcomes.iter().map(|some| some.len()).sum::<usize>() as i64);
        let mut array = writer.array("s");
        while let Some(first) = all.next() {
            let mut count = 1i64;
            while all.next_if(|other| *other == first).is_some() {
                count += 1;
            }
            let mut statement = array.document();
            statement.append("count", count);
            match first {
                Ok(outcome) => encode_statement(outcome, &mut statement),
                Err(error) => encode_error(error, &mut statement),
            }
        }
    })
}

fn encode_statement(outcome: &StatementOutcome, writer: &mut DocWriter<'_>) {
    writer.append("matched", outcome.matched as i64);
    writer.append("modified", outcome.modified as i64);
    if let Some(id) = &outcome.upserted {
        writer.append("upserted", id);
    }
    if let Some(image) = &outcome.image {
        writer.append("image", image);
    }
}

fn encode_error(error: &Error, writer: &mut DocWriter<'_>) {
    writer.append("code", error.code().0);
    writer.append("message", error.message());
    if let Some(details) = error.details().and_then(Doc::from_bytes) {
        writer.append("details", details);
    }
}

fn decode(document: Doc<'_>) -> Option<BatchOutcome> {
    let mut statements = Vec::new();
    for statement in document.get("s")?.as_array()?.values() {
        let statement = statement.as_document()?;
        let outcome = match statement.get("code") {
            Some(Value::Int32(code)) => Err(decode_error(code, statement)?),
            _ => Ok(decode_statement(statement)?),
        };
        statements.extend(std::iter::repeat_n(outcome, number_of(statement, "count")? as usize));
    }
    Some(BatchOutcome { statements, retried: true, ..BatchOutcome::default() })
}

fn decode_statement(statement: Doc<'_>) -> Option<StatementOutcome> {
    Some(StatementOutcome {
        text_score: None,
        matched: number_of(statement, "matched")?,
        modified: number_of(statement, "modified")?,
        upserted: statement.get("upserted").map(Value::to_owned),
        image: statement.get("image").and_then(Value::as_document).map(Doc::to_owned),
    })
}

fn decode_error(code: i32, statement: Doc<'_>) -> Option<Error> {
    let error = Error::new(Code(code), statement.get("message")?.as_str()?);
    Some(match statement.get("details").and_then(Value::as_document) {
        Some(details) => error.with_details(details.as_bytes().to_vec()),
        None => error,
    })
}

fn number_of(document: Doc<'_>, key: &str) -> Option<u64> {
    match document.get(key)? {
        Value::Int64(number) => u64::try_from(number).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::doc;

    #[test]
    fn an_outcome_survives_being_recorded() {
        let plain = StatementOutcome { matched: 1, ..Default::default() };
        let upsert = StatementOutcome { upserted: Some(Value::Int32(7).to_owned()), ..Default::default() };
        let image = StatementOutcome {
            matched: 1,
            modified: 1,
            image: Some(doc! { "a": 1 }),
            upserted: None,
            text_score: None,
        };
        let error = Error::new(Code::DUPLICATE_KEY, "E11000").with_details(doc! { "keyPattern": 1 }.into_vec());
        let statements = vec![Ok(plain.clone()), Ok(plain.clone()), Ok(upsert), Err(error), Ok(plain), Ok(image)];
        let outcome = BatchOutcome { statements, ..BatchOutcome::default() };
        let (first, rest) = outcome.statements.split_at(2);
        let encoded = encode([first, rest]);
        let decoded = decode(encoded.as_doc()).unwrap();
        assert_eq!(number_of(encoded.as_doc(), "n"), Some(6));
        assert_eq!(decoded.statements, outcome.statements);
        assert!(decoded.retried);
        assert!(decode(doc! { "s": 1 }.as_doc()).is_none());
    }
}
