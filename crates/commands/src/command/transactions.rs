//! `commitTransaction` and `abortTransaction`: refused, as by a server without transactions.

use crate::dispatch::Call;
use document::DocWriter;
use error::{Code, Error, Result};

pub fn refuse(_call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    let message = "Transaction numbers are only allowed on a replica set member or mongos";
    Err(Error::new(Code::ILLEGAL_OPERATION, message))
}
