//! Refuses transactions of several statements: `commitTransaction`, `abortTransaction`, and their
//! statements.
//!
//! The refusal names transactions and has code 263. Some drivers turn code 20 with "Transaction
//! numbers …" into the advice to add `retryWrites=false`, and users would switch off retryable
//! writes, which work.

use crate::call::Call;
use crate::envelope::Envelope;
use crate::table::spec::{Access, Spec};
use document::DocWriter;
use error::{Code, Error, Result};
use server::Topology;

pub fn refuse(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    if call.envelope.txn_number.is_none() {
        let message = format!("{} must be run within a transaction", call.spec.name);
        return Err(Error::new(Code(125), message));
    }
    Err(unsupported())
}

/// Refuses a command in a transaction, and a `txnNumber` with a command that is not a retryable
/// write.
///
/// A standalone server supports neither, and fails with MongoDB's error for both.
pub fn check(topology: &Topology, spec: &Spec, envelope: &Envelope<'_>) -> Result<()> {
    if envelope.txn_number.is_none() && !envelope.in_transaction {
        return Ok(());
    }
    if *topology == Topology::Standalone {
        let message = "Transaction numbers are only allowed on a replica set member or mongos";
        return Err(Error::new(Code::ILLEGAL_OPERATION, message));
    }
    if envelope.in_transaction {
        return Err(unsupported());
    }
    if spec.access == Access::Write {
        return Ok(());
    }
    let message = format!(
        "txnNumber may only be provided for multi-document transactions and retryable write commands. autocommit:false was \
         not provided, and {} is not a retryable write command.",
        spec.name
    );
    Err(Error::new(Code::NOT_A_RETRYABLE_WRITE_COMMAND, message))
}

fn unsupported() -> Error {
    let message = "Multi-document transactions are not supported by this server; retryable writes are";
    Error::new(Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, message)
}
