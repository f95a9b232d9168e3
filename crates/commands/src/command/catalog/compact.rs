//! `compact`: succeeds without effect. The space of deleted documents is reused, and is not
//! returned to the file system.

use crate::arguments::options::strict_name;
use crate::call::{Call, Disposition};
use crate::reply::NO_CODE;
use crate::views;
use document::DocWriter;
use error::{Code, Error, Result};

pub async fn compact(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let namespace = strict_name(call.database(), call.first())?;
    if namespace.collection.starts_with("system.") {
        return Err(Error::new(NO_CODE, "can't compact a system namespace"));
    }
    if call.worker.store.collection(&namespace).await?.is_none() {
        return Err(match views::definition(call, &namespace).await? {
            Some(_) => Error::new(Code::COMMAND_NOT_SUPPORTED_ON_VIEW, "can't compact a view"),
            None => Error::new(Code::NAMESPACE_NOT_FOUND, "collection does not exist"),
        });
    }
    reply.append("bytesFreed", 0);
    Ok(Disposition::Reply)
}
