//! The labels that MongoDB adds to the error of a command.
//!
//! Source: <https://github.com/mongodb/specifications/blob/master/source/transactions/transactions.md#error-labels>.
//! The lists of codes are those of a MongoDB 6.0 whose commands fail by a fail point.

use crate::envelope::Envelope;
use crate::reply;
use crate::table::spec::Spec;
use error::Code;
use store::transaction::TRANSIENT;

const RETRYABLE_WRITE: &str = "RetryableWriteError";

/// Returns the labels of an error with this code, also of an error of the write concern.
pub(super) fn of(spec: &Spec, envelope: &Envelope<'_>, code: Code) -> &'static [&'static str] {
    let is_end = matches!(spec.name, "commitTransaction" | "abortTransaction");
    let is_retryable = reply::is_retryable(code);
    match envelope.txn_number {
        Some(_) if is_retryable && (is_end || !envelope.in_transaction) => &[RETRYABLE_WRITE],
        Some(_) if envelope.in_transaction && (is_retryable || ends_transaction(code)) => &[TRANSIENT],
        _ => &[],
    }
}

/// Returns whether a transaction that has met this error may be repeated as a whole.
fn ends_transaction(code: Code) -> bool {
    matches!(code.0, 24 | 63 | 112 | 150 | 239 | 246 | 250 | 251 | 267 | 272 | 321 | 325)
}
