//! Transactions of several statements, and what a store records about their outcomes.
//!
//! [`crate::DocumentStore::begin_transaction`] begins one, and
//! [`crate::DocumentStore::in_transaction`] returns a store whose reads and writes belong to it. So
//! a command does not know whether it is part of a transaction.

use crate::{FeedPosition, Namespace, RetryKey};
use document::{DocBuf, Value};
use error::{Code, Error};
use std::any::Any;

/// Identifies a client's transaction at its commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionKey {
    /// The session and the transaction's number, under which its outcome is recorded.
    pub retry: RetryKey,
    /// The `lsid`'s id, a UUID.
    pub session: [u8; 16],
    /// The SHA-256 digest of the user's name.
    pub user: [u8; 32],
}

impl TransactionKey {
    /// Returns the session as logs of changes name it.
    pub fn logged_session(&self) -> DocBuf {
        DocBuf::build(|writer| {
            writer.append("id", Value::Binary { subtype: 4, bytes: &self.session });
            writer.append("uid", Value::Binary { subtype: 0, bytes: &self.user });
        })
    }
}

/// The label of errors after which a client may repeat the whole transaction.
pub const TRANSIENT: &str = "TransientTransactionError";

/// A transaction: its statements read one snapshot, and its writes become visible together.
///
/// A transaction belongs to no thread, since a client may send each statement over another
/// connection, which another worker serves. Any worker may execute the next statement, but only one
/// statement runs at a time: the caller ensures that.
///
/// The first writer of a document wins. A write of a document that another transaction has changed
/// and not committed, or that has been changed since the snapshot, fails at once with
/// [`write_conflict`]. Writers outside of transactions wait instead.
pub trait Transaction: Any + Send + Sync {
    fn as_any(&self) -> &dyn Any;

    /// Returns the times at which its snapshot is the state of the store. `None`: they are unknown.
    fn snapshot_times(&self) -> Option<SnapshotTimes> {
        None
    }

    /// Discards the writes and releases the snapshot. The statement that runs fails, if there is
    /// one. Without an effect on a transaction that has ended or is being committed. Dropping a
    /// transaction aborts it as well.
    fn abort(&self);
}

/// The limits of snapshots for reads outside of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotLimits {
    /// How many may be kept.
    pub count: usize,
    /// Whether other processes that change the definition of a collection wait for them.
    pub delays_definitions: bool,
}

/// Times in the change feed at which a snapshot is the state of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotTimes {
    /// The last change that the snapshot contains.
    pub first: FeedPosition,
    /// All changes that it does not contain are later than this.
    pub last: FeedPosition,
}

impl SnapshotTimes {
    pub fn contain(&self, time: FeedPosition) -> bool {
        (self.first..=self.last).contains(&time)
    }
}

/// The last transaction or retryable write of a session whose outcome a store has recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedWrite {
    pub txn_number: i64,
    /// Whether it is a committed transaction; otherwise it is a retryable write.
    pub is_transaction: bool,
}

/// Returns error 112: another writer was first.
pub fn write_conflict() -> Error {
    let message = "WriteConflict error: this operation conflicted with another operation. Please retry your operation \
                   or multi-document transaction.";
    Error::new(Code::WRITE_CONFLICT, message).with_labels(&[TRANSIENT])
}

/// Returns whether a commit that failed with this error may have succeeded. The store knows:
/// [`crate::DocumentStore::recorded_write`].
pub fn may_be_committed(error: &Error) -> bool {
    !matches!(error.code(), Code::WRITE_CONFLICT | Code::NO_SUCH_TRANSACTION)
}

/// Returns the error for a write of a capped collection in a transaction: 20 for a delete
/// (`deletes`), otherwise 263.
pub fn capped(namespace: &Namespace, deletes: bool) -> Error {
    if deletes {
        let message = format!("Cannot remove from a capped collection in a multi-document transaction: {namespace}");
        return Error::new(Code::ILLEGAL_OPERATION, message);
    }
    let message = format!(
        "Collection '{namespace}' is a capped collection. Writes in transactions are not allowed on capped collections."
    );
    Error::new(Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, message)
}

/// Returns error 263: the store has no transactions.
pub fn unsupported() -> Error {
    let message = "Multi-document transactions are not supported by this server; retryable writes are";
    Error::new(Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, message)
}

/// Returns error 251: the transaction was aborted while its statement ran.
pub fn aborted() -> Error {
    Error::new(Code::NO_SUCH_TRANSACTION, "The transaction has been aborted.").with_labels(&[TRANSIENT])
}
