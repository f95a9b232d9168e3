//! `fsync`: waits until everything written so far is on disk, and with `lock` holds back writes after that.

use crate::dispatch::{Call, Disposition};
use crate::write_lock;
use document::DocWriter;
use error::{Error, Result};
use query::Predicate;
use store::{DeleteStatement, Namespace, ReturnImage, Statements, WriteBatch};

pub async fn fsync(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let server = &*call.worker.server;
    let locks = call.fields().any(|field| field.key() == "lock" && field.value().is_truthy());
    if !locks {
        flush(call).await?;
        reply.append("numFiles", 1);
        return Ok(Disposition::Reply);
    }
    let count = server.write_lock.lock();
    write_lock::drain(server).await;
    if let Err(error) = flush(call).await {
        server.write_lock.unlock();
        return Err(error);
    }
    reply.append("info", "now locked against writes, use db.fsyncUnlock() to unlock");
    reply.append("lockCount", i64::from(count));
    reply.append("seeAlso", "http://dochub.mongodb.org/core/fsynccommand");
    Ok(Disposition::Reply)
}

/// Waits until everything written so far is on disk.
async fn flush(call: &Call<'_>) -> Result<()> {
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
    Ok(())
}

pub fn unlock(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let Some(left) = call.worker.server.write_lock.unlock() else {
        return Err(Error::new(crate::reply::NO_CODE, "fsyncUnlock called when not locked"));
    };
    reply.append("info", "fsyncUnlock completed");
    reply.append("lockCount", i64::from(left));
    Ok(())
}
