//! `fsync`: waits until everything written so far is on disk.

use crate::dispatch::{Call, Disposition};
use document::DocWriter;
use error::{Code, Error, Result};
use query::Predicate;
use store::{DeleteStatement, Namespace, ReturnImage, Statements, WriteBatch};

pub async fn fsync(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    if call.fields().any(|field| field.key() == "lock" && field.value().is_truthy()) {
        return Err(Error::new(Code::NOT_IMPLEMENTED, "fsync with lock is not supported by this server"));
    }
    // A write that changes nothing is acknowledged behind all those before it.
    let statement = DeleteStatement {
        predicate: Predicate::everything(),
        sort: None,
        one: true,
        hint: None,
        image: ReturnImage::None,
    };
    let batch = WriteBatch {
        journal: true,
        ..WriteBatch::new(Namespace::new("admin", "tmp.fsync"), Statements::Delete(vec![statement]))
    };
    if call.worker.store.collection(&batch.namespace).await?.is_none() {
        call.worker.store.write(batch).await?.statements.into_iter().try_for_each(|outcome| outcome.map(drop))?;
    }
    reply.append("numFiles", 1);
    Ok(Disposition::Reply)
}

pub fn unlock(_: &mut Call<'_>, _: &mut DocWriter<'_>) -> Result<()> {
    Err(Error::new(crate::reply::NO_CODE, "fsyncUnlock called when not locked"))
}
