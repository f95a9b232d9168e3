//! `commitTransaction` and `abortTransaction`: refused, as by a server without transactions.

use crate::dispatch::Call;
use document::DocWriter;
use error::{Code, Error, Result};

pub fn refuse(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    if call.envelope.txn_number.is_none() {
        let message = format!("{} must be run within a transaction", call.spec.name);
        return Err(Error::new(Code(125), message));
    }
    let message = "Transaction numbers are only allowed on a replica set member or mongos";
    Err(Error::new(Code::ILLEGAL_OPERATION, message))
}
