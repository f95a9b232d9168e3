//! The record of the outcome of a transaction.

use document::{Doc, DocBuf, Value};
use store::TransactionKey;

/// The field that says how the transaction has ended. Records of retryable writes do not have it.
const TRANSACTION: &str = "transaction";

const COMMITTED: &str = "committed";
const ABORTED: &str = "aborted";

/// The field with the session of a committed transaction, as logs of changes name it.
const SESSION: &str = "lsid";

pub(crate) fn committed(key: &TransactionKey) -> DocBuf {
    DocBuf::build(|writer| {
        writer.append(TRANSACTION, COMMITTED);
        writer.append(SESSION, &key.logged_session());
    })
}

pub(crate) fn aborted() -> DocBuf {
    DocBuf::build(|writer| writer.append(TRANSACTION, ABORTED))
}

/// Returns whether it is the record of a transaction.
pub(crate) fn is_transaction(record: Doc<'_>) -> bool {
    record.get(TRANSACTION).is_some()
}

pub(crate) fn is_committed(record: Doc<'_>) -> bool {
    record.get(TRANSACTION).and_then(Value::as_str) == Some(COMMITTED)
}

pub(crate) fn is_aborted(record: Doc<'_>) -> bool {
    record.get(TRANSACTION).and_then(Value::as_str) == Some(ABORTED)
}

/// Returns the session of a committed transaction.
pub(crate) fn committed_session(record: Doc<'_>) -> Option<Doc<'_>> {
    record.get(SESSION).filter(|_| is_committed(record))?.as_document()
}
