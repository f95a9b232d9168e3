//! Options and failures of a batch of writes.

use mariadb_client::Failure;
use store::transaction::TRANSIENT;

/// The most attempts of a statement that conflicts with concurrent writes.
pub(crate) const ATTEMPTS_MAX: usize = 1_000;

/// The options of a batch.
#[derive(Clone, Copy)]
pub(crate) struct BatchOptions {
    pub ordered: bool,
    pub bypass_validation: bool,
}

/// Errors that fail the whole batch: the session has a newer transaction, or no connection is
/// available.
const WHOLE_BATCH: [error::Code; 3] = [
    error::Code::TRANSACTION_TOO_OLD,
    error::Code::INCOMPLETE_TRANSACTION_HISTORY,
    error::Code::NETWORK_INTERFACE_EXCEEDED_TIME_LIMIT,
];

/// Returns whether a failure concerns one statement rather than the whole batch.
pub(crate) fn concerns_statement(failure: &Failure) -> bool {
    match failure {
        Failure::Lost(_) | Failure::Full(_) | Failure::NoPrimary(_) => false,
        Failure::Other(error) if error.labels().contains(&TRANSIENT) => false,
        Failure::Other(error) => !WHOLE_BATCH.contains(&error.code()),
        // An interruption, a missing privilege, a read-only server and a data server out of reach
        // end the whole command.
        Failure::Sql { .. } => {
            !failure.is_interrupted()
                && !failure.is_access_denied()
                && !failure.is_not_writable()
                && !failure.lacks_data_server()
        }
    }
}
