//! The rules for the numbers (`txnNumber`) of a logical session's transactions and retryable
//! writes: which statement begins, continues or ends a transaction, and which is refused.
//!
//! Pure: [`super::transactions`] holds the state of all sessions, and the transactions themselves.
//!
//! Source: <https://github.com/mongodb/specifications/blob/master/source/transactions/transactions.md>,
//! checked against the replies of a 6.0 server.

use crate::logical_session::LogicalSessionId;
use error::{Code, Error, Result};
use store::RecordedWrite;
use store::transaction::TRANSIENT;

/// A session's last number, and its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionState {
    number: i64,
    last: LastUse,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastUse {
    Nothing,
    RetryableWrite,
    InProgress,
    Committed,
    Aborted,
}

/// The role of a statement in its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementRole {
    /// `startTransaction: true`.
    First,
    Next,
    Commit,
    Abort,
}

/// What the statement has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Begin a transaction; one that is in progress is aborted.
    Begin,
    /// Use the transaction that is in progress.
    Continue,
    /// Nothing: the transaction was committed before.
    WasCommitted,
}

impl Default for SessionState {
    fn default() -> SessionState {
        SessionState { number: -1, last: LastUse::Nothing }
    }
}

impl SessionState {
    /// Returns the state of a session of which only a store's record is known.
    pub fn recorded(write: Option<RecordedWrite>) -> SessionState {
        write.map_or_else(SessionState::default, |write| SessionState {
            number: write.txn_number,
            last: if write.is_transaction { LastUse::Committed } else { LastUse::RetryableWrite },
        })
    }

    /// Returns whether the session has used this number or a later one here.
    pub fn has_reached(&self, number: i64) -> bool {
        number <= self.number
    }

    pub fn is_in_progress(&self, number: i64) -> bool {
        self.number == number && self.last == LastUse::InProgress
    }

    /// Accepts or refuses a statement of a transaction. Fails with 117, 225, 251 or 256.
    pub fn statement(&mut self, id: &LogicalSessionId, number: i64, role: StatementRole) -> Result<Step> {
        if number < self.number {
            return Err(self.newer_than_transaction(id, number));
        }
        if role == StatementRole::First {
            if number == self.number {
                let message = "Only servers in a sharded cluster can start a new transaction at the active transaction \
                               number";
                return Err(Error::new(Code::CONFLICTING_OPERATION_IN_PROGRESS, message));
            }
            *self = SessionState { number, last: LastUse::InProgress };
            return Ok(Step::Begin);
        }
        if number > self.number {
            return Err(self.unknown(number));
        }
        match self.last {
            LastUse::InProgress => Ok(Step::Continue),
            LastUse::Committed if role == StatementRole::Commit => Ok(Step::WasCommitted),
            LastUse::Committed => {
                let message = format!("Transaction with {{ txnNumber: {number} }} has been committed.");
                Err(Error::new(Code::TRANSACTION_COMMITTED, message))
            }
            LastUse::Aborted => Err(aborted(number)),
            LastUse::Nothing | LastUse::RetryableWrite => Err(self.unknown(number)),
        }
    }

    /// Accepts or refuses a retryable write. Returns whether it ends a transaction in progress,
    /// which is aborted. Fails with 217 or 225.
    pub fn retryable_write(&mut self, id: &LogicalSessionId, number: i64) -> Result<bool> {
        if number < self.number {
            let (name, newer) = (self.use_name(), self.number);
            let message = format!(
                "Retryable write with txnNumber {number} is prohibited on session {id} because a newer {name} with \
                 txnNumber {newer} has already started on this session."
            );
            return Err(Error::new(Code::TRANSACTION_TOO_OLD, message));
        }
        if number == self.number {
            return match self.last {
                LastUse::RetryableWrite | LastUse::Nothing => Ok(false),
                LastUse::InProgress | LastUse::Committed | LastUse::Aborted => {
                    let message = "Cannot retry a retryable write that has been converted into a transaction";
                    Err(Error::new(Code::INCOMPLETE_TRANSACTION_HISTORY, message))
                }
            };
        }
        let before = std::mem::replace(self, SessionState { number, last: LastUse::RetryableWrite });
        Ok(before.last == LastUse::InProgress)
    }

    /// Records the end of the transaction with this number, if it is in progress. Returns whether
    /// it was.
    pub fn end(&mut self, number: i64, committed: bool) -> bool {
        let ends = self.is_in_progress(number);
        if ends {
            self.last = if committed { LastUse::Committed } else { LastUse::Aborted };
        }
        ends
    }

    /// Aborts the transaction in progress. Returns its number, if there is one.
    pub fn abort(&mut self) -> Option<i64> {
        let number = self.number;
        self.end(number, false).then_some(number)
    }

    fn use_name(&self) -> &'static str {
        if self.last == LastUse::RetryableWrite { "retryable write" } else { "transaction" }
    }

    fn newer_than_transaction(&self, id: &LogicalSessionId, number: i64) -> Error {
        let retry_counter = if self.last == LastUse::RetryableWrite { -1 } else { 0 };
        let message = format!(
            "Cannot start transaction with {{ txnNumber: {number} }} on session {id} because a newer {} with \
             txnNumberAndRetryCounter {{ txnNumber: {}, txnRetryCounter: {retry_counter} }} has already started on this \
             session.",
            self.use_name(),
            self.number
        );
        Error::new(Code::TRANSACTION_TOO_OLD, message)
    }

    fn unknown(&self, number: i64) -> Error {
        let message = format!(
            "Given transaction number {number} does not match any in-progress transactions. The active transaction \
             number is {}",
            self.number
        );
        Error::new(Code::NO_SUCH_TRANSACTION, message).with_labels(&[TRANSIENT])
    }
}

/// Returns error 251: the transaction was aborted.
pub fn aborted(number: i64) -> Error {
    let message = format!("Transaction with {{ txnNumber: {number} }} has been aborted.");
    Error::new(Code::NO_SUCH_TRANSACTION, message).with_labels(&[TRANSIENT])
}

#[cfg(test)]
mod tests {
    use super::StatementRole::{Abort, Commit, First, Next};
    use super::*;

    const ID: LogicalSessionId = LogicalSessionId { uuid: [1; 16], user: [2; 32] };

    fn code(result: Result<Step>) -> i32 {
        result.map_or_else(|error| error.code().0, |step| panic!("{step:?}"))
    }

    #[test]
    fn numbers_only_rise() {
        let mut state = SessionState::default();
        for role in [Next, Commit, Abort] {
            assert_eq!(code(state.statement(&ID, 1, role)), 251);
        }
        assert_eq!(state.statement(&ID, 4, First), Ok(Step::Begin));
        assert_eq!(state.statement(&ID, 4, Next), Ok(Step::Continue));
        assert_eq!(code(state.statement(&ID, 4, First)), 117);
        assert_eq!(code(state.statement(&ID, 3, First)), 225);
        assert_eq!(code(state.statement(&ID, 3, Commit)), 225);
        assert_eq!(code(state.statement(&ID, 5, Next)), 251);
        assert!(state.is_in_progress(4));
        assert_eq!(state.statement(&ID, 5, First), Ok(Step::Begin));
        assert!(state.is_in_progress(5) && !state.is_in_progress(4));
    }

    #[test]
    fn a_committed_transaction_can_only_be_committed_again() {
        let mut state = SessionState::default();
        state.statement(&ID, 1, First).unwrap();
        assert!(state.end(1, true));
        assert_eq!(state.statement(&ID, 1, Commit), Ok(Step::WasCommitted));
        assert_eq!(code(state.statement(&ID, 1, Abort)), 256);
        assert_eq!(code(state.statement(&ID, 1, Next)), 256);
        assert!(!state.end(1, false));
        let recorded = SessionState::recorded(Some(RecordedWrite { txn_number: 1, is_transaction: true }));
        assert_eq!(state, recorded);
    }

    #[test]
    fn an_aborted_transaction_is_gone() {
        let mut state = SessionState::default();
        state.statement(&ID, 1, First).unwrap();
        assert_eq!(state.abort(), Some(1));
        assert_eq!(state.abort(), None);
        for role in [Next, Commit, Abort] {
            let error = state.statement(&ID, 1, role).unwrap_err();
            assert_eq!((error.code().0, error.labels()), (251, &[TRANSIENT][..]));
        }
    }

    #[test]
    fn retryable_writes_share_the_numbers() {
        let mut state = SessionState::default();
        assert_eq!(state.retryable_write(&ID, 3), Ok(false));
        assert_eq!(state.retryable_write(&ID, 3), Ok(false));
        assert_eq!(code(state.statement(&ID, 3, First)), 117);
        assert_eq!(code(state.statement(&ID, 3, Next)), 251);
        state.statement(&ID, 4, First).unwrap();
        assert_eq!(state.retryable_write(&ID, 4).unwrap_err().code().0, 217);
        assert_eq!(state.retryable_write(&ID, 3).unwrap_err().code().0, 225);
        assert_eq!(state.retryable_write(&ID, 5), Ok(true));
        assert!(!state.is_in_progress(4));
        assert_eq!(code(state.statement(&ID, 4, Next)), 225);
    }
}
