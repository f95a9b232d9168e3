//! The TTL monitor: deletes expired documents, by indexes with `expireAfterSeconds`, once a minute
//! by default (`ttlMonitorSleepSecs`).
//!
//! Source: <https://www.mongodb.com/docs/manual/core/index-ttl/>
//!
//! One worker of the process runs it. A document expires when the date in the indexed field, or the
//! earliest of several, is old enough. Documents without a date never expire, nor do those that a
//! partial index excludes.

use crate::arguments::number_to_i64;
use crate::time_series::OPTION;
use document::{Doc, DocBuf, DocWriter, Value};
use error::Result;
use query::{Context, Predicate};
use server::clock;
use server::{Server, Worker};
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use store::catalog::default_collation;
use store::identity::under;
use store::rules::CLUSTERED_INDEX;
use store::{DeleteStatement, Identity, IndexSpec, Namespace, ReturnImage, Statements, WriteBatch};

/// Deletes expired documents for as long as it is polled. Must be run on every worker; all but one
/// return at once.
pub async fn run(worker: Rc<Worker>) {
    if !worker.server.claim_ttl_monitor() {
        return;
    }
    loop {
        sleep(&worker.server).await;
        if !worker.server.parameters.ttl_monitor_enabled.load(Relaxed) || worker.server.write_lock.is_locked() {
            continue;
        }
        // No user has asked for it.
        match under(Identity::Gateway, expire(&worker, clock::now_ms())).await {
            Ok(0) => {}
            Ok(deleted) => tracing::debug!(deleted, "documents past their time were deleted"),
            // The store may be unreachable for a while; the next round tries again.
            Err(error) => tracing::warn!(%error, "documents past their time could not be deleted"),
        }
    }
}

/// Waits for the next round. A shorter `ttlMonitorSleepSecs` that is set meanwhile takes effect at
/// once.
async fn sleep(server: &Server) {
    const LOOKS_AGAIN: Duration = Duration::from_secs(1);
    let began = Instant::now();
    loop {
        let seconds = server.parameters.ttl_monitor_sleep_seconds.load(Relaxed);
        let left = Duration::from_secs(seconds.unsigned_abs()).saturating_sub(began.elapsed());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(LOOKS_AGAIN)).await;
    }
}

/// Deletes the documents that have expired by now; returns their number.
pub async fn expire(worker: &Worker, now_ms: i64) -> Result<u64> {
    let mut deleted = 0;
    for database in worker.store.databases().await? {
        for collection in worker.store.collections(&database.name).await? {
            let namespace = Namespace::new(&database.name, &collection.name);
            let options = collection.options.as_doc();
            if let Some(filter) = expired_by_id(options, now_ms).or_else(|| expired_buckets(options, now_ms)) {
                deleted += delete(worker, &namespace, &filter, &Context::at(now_ms)).await?;
            }
            for index in worker.store.indexes(&namespace).await?.unwrap_or_default() {
                match expire_by(worker, &namespace, &index, now_ms).await {
                    Ok(count) => deleted += count,
                    // An error of one index does not stop the others.
                    Err(error) => tracing::warn!(%namespace, index = %index.name, %error, "an index's documents stay"),
                }
            }
        }
    }
    Ok(deleted)
}

async fn expire_by(worker: &Worker, namespace: &Namespace, index: &IndexSpec, now_ms: i64) -> Result<u64> {
    let Some(filter) = expired(index, now_ms) else { return Ok(0) };
    let collation = default_collation(index.spec.as_doc())?;
    delete(worker, namespace, &filter, &Context { collation, ..Context::at(now_ms) }).await
}

/// Returns the filter for the expired documents of an index; `None` if it has no expiry. Indexes of
/// several fields have none.
fn expired(index: &IndexSpec, now_ms: i64) -> Option<DocBuf> {
    let seconds = number_to_i64(index.spec.as_doc().get("expireAfterSeconds")?)?;
    let mut fields = index.key.as_doc().elements();
    let field = fields.next().filter(|_| fields.next().is_none())?;
    let limit_ms = now_ms.saturating_sub(seconds.saturating_mul(1000));
    // Only dates compare less than a date.
    let is_over = DocBuf::build(|writer| writer.document(field.key()).append("$lt", Value::DateTime(limit_ms)));
    let partial_filter = index.spec.as_doc().get("partialFilterExpression").and_then(Value::as_document);
    let filter = |writer: &mut DocWriter<'_>| {
        let mut all = writer.array("$and");
        [Some(is_over.as_doc()), partial_filter].into_iter().flatten().for_each(|condition| all.push(condition));
    };
    (field.key() != "_id").then(|| DocBuf::build(filter))
}

/// Returns the filter for the expired documents of a clustered collection, whose ids are dates.
fn expired_by_id(options: Doc<'_>, now_ms: i64) -> Option<DocBuf> {
    options.get(CLUSTERED_INDEX)?.as_document()?;
    let seconds = options.get("expireAfterSeconds")?.to_i64()?;
    let limit = Value::DateTime(now_ms.saturating_sub(seconds.saturating_mul(1000)));
    Some(DocBuf::build(|writer| writer.document("_id").append("$lte", limit)))
}

/// Returns the filter for the expired buckets of a time-series collection: those whose last
/// measurement has expired.
fn expired_buckets(options: Doc<'_>, now_ms: i64) -> Option<DocBuf> {
    let series = options.get(OPTION)?.as_document()?;
    let seconds = options.get("expireAfterSeconds")?.to_i64()?;
    let path = format!("control.max.{}", series.get("timeField")?.as_str()?);
    let limit = Value::DateTime(now_ms.saturating_sub(seconds.saturating_mul(1000)));
    Some(DocBuf::build(|writer| writer.document(&path).append("$lte", limit)))
}

async fn delete(worker: &Worker, namespace: &Namespace, filter: &DocBuf, context: &Context) -> Result<u64> {
    let statement = DeleteStatement {
        predicate: Predicate::parse(filter.as_doc(), context)?,
        sort: None,
        one: false,
        hint: None,
        image: ReturnImage::None,
    };
    let batch = WriteBatch::new(namespace.clone(), Statements::Delete(vec![statement]));
    let outcome = worker.store.write(batch).await?;
    let mut deleted = 0;
    for statement in outcome.statements {
        deleted += statement?.matched;
    }
    worker.statistics().documents_deleted.add(deleted);
    Ok(deleted)
}
