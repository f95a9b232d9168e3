//! The background task that stores profile documents in `system.profile`.
//!
//! Operations queue documents in memory. A task of one worker writes them; a command that reads a
//! profile first writes the queue itself, so that it sees every operation before it.

use super::COLLECTION;
use crate::worker::Worker;
use bytes::Bytes;
use document::{DocBuf, Element, Value};
use error::{Code, Result};
use std::rc::Rc;
use store::identity::under;
use store::{Identity, Namespace, Statements, WriteBatch};

/// The size of a profile, as in MongoDB.
const PROFILE_BYTES: i32 = 1024 * 1024;

/// The documents written at a time.
const BATCH_DOCUMENTS: usize = 500;

/// Writes profiles for as long as it is polled. Must be run on every worker; all but one return at
/// once.
pub async fn run(worker: Rc<Worker>) {
    let queue = &worker.server.profiling.queue;
    if !queue.claim() {
        return;
    }
    loop {
        queue.wake_up.notified().await;
        flush(&worker).await;
    }
}

/// Writes the queue before a command that reads a profile. `first`: the element that names the
/// command.
pub async fn flush_before_read(worker: &Worker, first: Option<Element<'_>>) {
    let reads_profile = || {
        first.is_some_and(|first| {
            first.key_bytes() == b"profile" || matches!(first.value(), Value::String(name) if name == COLLECTION)
        })
    };
    if worker.server.profiling.queue.has_entries() && reads_profile() {
        Box::pin(flush(worker)).await;
    }
}

/// Writes all queued documents.
async fn flush(worker: &Worker) {
    let queue = &worker.server.profiling.queue;
    let _writing = queue.writing.lock().await;
    loop {
        let queued = queue.take();
        if queued.dropped > 0 {
            tracing::warn!(dropped = queued.dropped, "operations came faster than the profiler can store them");
        }
        if queued.documents.is_empty() && queued.dropped == 0 {
            return;
        }
        let mut rest = queued.documents.as_slice();
        while let Some((database, _)) = rest.first() {
            let same = rest.iter().take(BATCH_DOCUMENTS).take_while(|(other, _)| other == database).count();
            let (batch, others) = rest.split_at(same);
            // No user has asked for it.
            let writing = under(Identity::Gateway, write(worker, database, batch));
            if let Err(error) = writing.await {
                tracing::warn!(%error, database, dropped = batch.len(), "the profile could not be written");
            }
            rest = others;
        }
    }
}

async fn write(worker: &Worker, database: &str, records: &[(String, DocBuf)]) -> Result<()> {
    ensure_profile(worker, database).await?;
    let now_ms = crate::clock::now_ms();
    let documents = records.iter().map(|(_, record)| {
        // Stores require an `_id`.
        let document = DocBuf::build(|writer| {
            writer.append("_id", Value::ObjectId(worker.new_object_id(now_ms)));
            record.as_doc().elements().for_each(|element| writer.append_element(element));
        });
        Bytes::from(document.into_vec())
    });
    let batch = WriteBatch {
        ordered: false,
        bypass_validation: true,
        ..WriteBatch::new(Namespace::new(database, COLLECTION), Statements::Insert(documents.collect()))
    };
    worker.store.write(batch).await?.statements.into_iter().try_for_each(|outcome| outcome.map(drop))
}

/// Creates `system.profile` in a database, unless it exists.
pub async fn ensure_profile(worker: &Worker, database: &str) -> Result<()> {
    let namespace = Namespace::new(database, COLLECTION);
    if worker.store.collection(&namespace).await?.is_some() {
        return Ok(());
    }
    let options = document::doc! { "capped": true, "size": PROFILE_BYTES };
    match worker.store.create_collection(&namespace, options.as_doc()).await {
        Err(error) if error.code() == Code::NAMESPACE_EXISTS => Ok(()),
        created => created,
    }
}
