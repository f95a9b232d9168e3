//! One user that goes through the steps of an operation: its messages, and its reactions to
//! replies.

use super::generator::{Draw, Source};
use super::scenario::{Operation, Step};
use super::schedule::ScheduledStart;
use document::{Doc, DocBuf, Value, ValueBuf, doc};
use harness::message::{Message, reply_body};
use std::time::Instant;

/// The database of scenarios.
pub const DATABASE: &str = "selkie_simulate";

pub struct User<'s> {
    /// The index of the operation in the scenario.
    pub index: usize,
    pub start: ScheduledStart,
    /// The scheduled start.
    pub scheduled: Instant,
    pub sent: Instant,
    /// The start of the current step.
    pub step_start: Instant,
    pub step: usize,
    pub retries: u64,
    operation: &'s Operation,
    variables: Vec<ValueBuf>,
    phase: Phase,
}

/// The request that the next reply answers.
enum Phase {
    Step,
    Commit,
    /// The abort of the transaction, for this outcome.
    Abort(UserOutcome),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserOutcome {
    Done,
    Stopped,
    /// With the error of the server.
    Failed(String),
}

/// The consequence of a reply.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// The user sends another message; with the step that is completed, if one is.
    Send(Option<usize>),
    Finished(UserOutcome, Option<usize>),
}

/// The logical session of a connection, for transactions.
pub struct Session {
    id: ValueBuf,
    transaction: i64,
}

/// A transaction that conflicts in more attempts fails.
const RETRIES_MAX: u64 = 100;

impl Session {
    pub fn new(source: &mut Source) -> Session {
        Session { id: super::generator::uuid(&mut source.random), transaction: 1 }
    }

    /// Appends the fields that make a command part of the transaction.
    pub fn append_to(&self, command: &mut DocBuf, first: bool) {
        command.append("lsid", &doc! { "id": &self.id });
        command.append("txnNumber", self.transaction);
        command.append("autocommit", false);
        if first {
            command.append("startTransaction", true);
        }
    }
}

impl<'s> User<'s> {
    pub fn begin(
        operation: &'s Operation,
        index: usize,
        start: ScheduledStart,
        scheduled: Instant,
        source: &mut Source,
    ) -> Result<User<'s>, String> {
        let mut variables = Vec::new();
        for value in &operation.values {
            let mut draw = Draw { variables: &variables, index: start.user as i64, ..Draw::from(source) };
            let drawn = value.value(&mut draw)?;
            variables.push(drawn);
        }
        let now = Instant::now();
        Ok(User {
            index,
            start,
            scheduled,
            sent: now,
            step_start: scheduled,
            step: 0,
            retries: 0,
            operation,
            variables,
            phase: Phase::Step,
        })
    }

    /// Returns the next message of the user.
    pub fn message(&mut self, source: &mut Source, session: &mut Session) -> Result<Message, String> {
        let ending = |name| {
            let mut command = if name == COMMIT {
                doc! { "commitTransaction": 1i32 }
            } else {
                doc! { "abortTransaction": 1i32 }
            };
            session.append_to(&mut command, false);
            Ok(Message::command_on("admin", command))
        };
        match self.phase {
            Phase::Commit => return ending(COMMIT),
            Phase::Abort(_) => return ending(ABORT),
            Phase::Step => {}
        }
        let mut draw = Draw { variables: &self.variables, index: self.start.user as i64, ..Draw::from(source) };
        let mut command = self.current().command.document(&mut draw)?;
        if self.operation.transaction {
            let first = self.step == 0;
            session.transaction += i64::from(first);
            session.append_to(&mut command, first);
        }
        Ok(Message::command_on(DATABASE, command))
    }

    fn current(&self) -> &'s Step {
        &self.operation.steps[self.step]
    }

    /// Handles a complete reply.
    pub fn reply(&mut self, bytes: &[u8]) -> Next {
        let body = match reply_body(bytes) {
            Ok(body) => body,
            Err(error) => return Next::Finished(UserOutcome::Failed(error.to_string()), None),
        };
        match std::mem::replace(&mut self.phase, Phase::Step) {
            Phase::Step => self.step_reply(body),
            Phase::Commit => match error_of(body) {
                None => Next::Finished(UserOutcome::Done, None),
                Some(error) if error.transient => self.retry(error),
                Some(error) => Next::Finished(UserOutcome::Failed(error.text), None),
            },
            Phase::Abort(outcome) => Next::Finished(outcome, None),
        }
    }

    fn step_reply(&mut self, body: Doc<'_>) -> Next {
        let step = self.current();
        if let Some(error) = error_of(body) {
            return match error {
                error if self.operation.transaction && error.transient => self.retry(error),
                error if step.stop_on.contains(&error.code) => self.end(UserOutcome::Stopped),
                error => self.end(UserOutcome::Failed(error.text)),
            };
        }
        if step.stop_unless.as_ref().is_some_and(|path| !find(body, path).is_some_and(is_truthy)) {
            return self.end(UserOutcome::Stopped);
        }
        for path in &step.take {
            match find(body, path) {
                Some(value) => self.variables.push(ValueBuf::from(value)),
                None => return self.end(UserOutcome::Failed(format!("{}: the reply has no {path}", step.name))),
            }
        }
        let completed = self.step;
        if self.step + 1 < self.operation.steps.len() {
            self.step += 1;
            return Next::Send(Some(completed));
        }
        if self.operation.transaction {
            self.phase = Phase::Commit;
            return Next::Send(Some(completed));
        }
        Next::Finished(UserOutcome::Done, Some(completed))
    }

    /// Ends the operation; aborts its transaction first.
    fn end(&mut self, outcome: UserOutcome) -> Next {
        if self.operation.transaction {
            self.phase = Phase::Abort(outcome);
            return Next::Send(None);
        }
        let completed = (outcome == UserOutcome::Stopped).then_some(self.step);
        Next::Finished(outcome, completed)
    }

    /// Restarts the transaction, with the same random values.
    fn retry(&mut self, error: ServerError) -> Next {
        self.retries += 1;
        if self.retries > RETRIES_MAX {
            return self.end(UserOutcome::Failed(error.text));
        }
        self.step = 0;
        self.variables.truncate(self.operation.values.len());
        Next::Send(None)
    }
}

const COMMIT: &str = "commitTransaction";
const ABORT: &str = "abortTransaction";

struct ServerError {
    code: i64,
    text: String,
    transient: bool,
}

/// Returns the error in a reply: the command's or that of one of its writes.
fn error_of(body: Doc<'_>) -> Option<ServerError> {
    let failed = body.get("ok").and_then(Value::to_i64) != Some(1);
    let write = find(body, "writeErrors.0").and_then(Value::as_document);
    let concern = body.get("writeConcernError").and_then(Value::as_document);
    let error = if failed { body } else { write.or(concern)? };
    let code = error.get("code").and_then(Value::to_i64).unwrap_or(0);
    let message = error.get("errmsg").and_then(Value::as_str).unwrap_or("no message");
    let labels = body.get("errorLabels").and_then(Value::as_array);
    let transient =
        labels.is_some_and(|labels| labels.values().any(|label| label.as_str() == Some("TransientTransactionError")));
    Some(ServerError { code, text: format!("{code}: {}", without_values(message)), transient })
}

/// Longer messages are truncated.
const MESSAGE_MAX: usize = 160;

/// Returns a message without its values, so that equal errors are counted together.
fn without_values(message: &str) -> String {
    let message = message.split(" dup key:").next().unwrap_or(message);
    let mut text = String::new();
    for c in message.chars().take(MESSAGE_MAX) {
        match c {
            '0'..='9' if text.ends_with('#') => {}
            '0'..='9' => text.push('#'),
            other => text.push(other),
        }
    }
    text
}

/// Returns the value at a path such as `cursor.firstBatch.0._id`.
pub fn find<'d>(document: Doc<'d>, path: &str) -> Option<Value<'d>> {
    let mut parts = path.split('.');
    let mut value = document.get(parts.next()?)?;
    for part in parts {
        value = match value {
            Value::Document(inner) | Value::Array(inner) => inner.get(part)?,
            _ => return None,
        };
    }
    Some(value)
}

/// Returns false for null, false, zero, and an empty array or document.
fn is_truthy(value: Value<'_>) -> bool {
    match value {
        Value::Null | Value::Undefined | Value::Boolean(false) => false,
        Value::Document(inner) | Value::Array(inner) => !inner.is_empty(),
        other => other.to_i64() != Some(0),
    }
}

#[cfg(test)]
mod tests;
