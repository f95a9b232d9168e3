//! What holds for all statements of a batch.

use mariadb_client::Failure;

/// A statement that finds somebody else in its way so often gives up.
pub(crate) const ATTEMPTS_MAX: usize = 1_000;

/// What a batch says about all of its statements.
#[derive(Clone, Copy)]
pub(crate) struct Options {
    pub ordered: bool,
    pub bypass_validation: bool,
}

/// The session has gone on, so none of the batch may be carried out; or there is no connection for
/// it.
const WHOLE_BATCH: [error::Code; 2] =
    [error::Code::TRANSACTION_TOO_OLD, error::Code::NETWORK_INTERFACE_EXCEEDED_TIME_LIMIT];

/// Whether a failure concerns one statement, to be reported beside the others' outcomes, rather
/// than the whole batch.
pub(crate) fn concerns_statement(failure: &Failure) -> bool {
    match failure {
        Failure::Lost(_) | Failure::Full(_) => false,
        Failure::Other(error) => !WHOLE_BATCH.contains(&error.code()),
        // Somebody has killed the command, not the statement.
        Failure::Sql { .. } => !failure.is_interrupted(),
    }
}
