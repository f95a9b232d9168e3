//! `fsync`: waits until all writes so far are on disk, and with `lock` blocks later ones.

use crate::call::{Call, Disposition};
use document::DocWriter;
use error::{Error, Result};
use query::Predicate;
use server::operation::Operation;
use std::time::Duration;
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
    drain(call).await;
    if let Err(error) = flush(call).await {
        server.write_lock.unlock();
        return Err(error);
    }
    reply.append("info", "now locked against writes, use db.fsyncUnlock() to unlock");
    reply.append("lockCount", i64::from(count));
    reply.append("seeAlso", "http://dochub.mongodb.org/core/fsynccommand");
    Ok(Disposition::Reply)
}

/// How often a lock checks whether the writes under way have ended.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Waits until no write is under way, except for those that wait for the lock themselves.
async fn drain(call: &Call<'_>) {
    let writes = |operation: &Operation| {
        let command = operation.command();
        call.table.of_body(command).is_some_and(|spec| spec.writes(command))
    };
    loop {
        tokio::time::sleep(POLL_INTERVAL).await;
        let workers = call.worker.server.workers();
        let mut operations = workers.iter().flat_map(|worker| worker.operations.list());
        if !operations.any(|operation| !operation.waits_for_lock() && writes(&operation)) {
            return;
        }
    }
}

/// Waits until all writes so far are on disk.
async fn flush(call: &Call<'_>) -> Result<()> {
    // A write without effect is acknowledged after all writes before it.
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
