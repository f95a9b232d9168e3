//! Writes what the profiler has noted to `system.profile`, beside the requests that it tells of.
//!
//! Documents queue up in memory. A task of one worker is woken to write them down; a command that reads a profile does so first
//! itself, so that it sees all that was there before it.

use crate::server::Worker;
use bytes::Bytes;
use document::{DocBuf, Value};
use error::{Code, Result};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use store::{Namespace, Statements, WriteBatch};
use tokio::sync::Notify;

/// The collection, one in each database that is profiled.
pub const COLLECTION: &str = "system.profile";

/// Its size, as MongoDB makes it.
const PROFILE_BYTES: i32 = 1024 * 1024;

/// What may wait in memory; what comes on top is lost, which is logged.
const WAITING_BYTES_MAX: usize = 32 << 20;

/// Documents written at a time.
const BATCH_DOCUMENTS: usize = 500;

#[derive(Debug, Default)]
pub struct Keeper {
    waiting: Mutex<Waiting>,
    /// Something waits, or is being written.
    unwritten: AtomicBool,
    /// Held while writing, so that profiles are in order and readers know when all is there.
    writing: tokio::sync::Mutex<()>,
    bell: Notify,
    claimed: AtomicBool,
}

#[derive(Debug, Default)]
struct Waiting {
    /// By database.
    documents: Vec<(String, DocBuf)>,
    bytes: usize,
    lost: u64,
}

impl Keeper {
    pub fn has_entries(&self) -> bool {
        self.unwritten.load(Ordering::Acquire)
    }

    pub fn take(&self, database: &str, records: impl Iterator<Item = DocBuf>) {
        {
            let mut waiting = self.lock();
            for record in records {
                let bytes = record.as_bytes().len();
                if waiting.bytes + bytes > WAITING_BYTES_MAX {
                    waiting.lost += 1;
                    continue;
                }
                waiting.bytes += bytes;
                waiting.documents.push((database.to_owned(), record));
            }
        }
        self.unwritten.store(true, Ordering::Release);
        self.bell.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Writes profiles for as long as it is polled. To be run on every worker; all but one return at once.
pub async fn run(worker: Rc<Worker>) {
    let keeper = &worker.server.profiling.keeper;
    if keeper.claimed.swap(true, Ordering::Relaxed) {
        return;
    }
    loop {
        keeper.bell.notified().await;
        write_down(&worker).await;
    }
}

/// Writes down all that waits.
pub async fn write_down(worker: &Worker) {
    let keeper = &worker.server.profiling.keeper;
    let _writing = keeper.writing.lock().await;
    loop {
        let Waiting { documents, lost, .. } = std::mem::take(&mut *keeper.lock());
        if lost > 0 {
            tracing::warn!(lost, "operations came faster than the profiler can write them down");
        }
        if documents.is_empty() {
            keeper.unwritten.store(false, Ordering::Release);
            // One may have come between the look and the mark.
            if keeper.lock().documents.is_empty() {
                return;
            }
            keeper.unwritten.store(true, Ordering::Release);
            continue;
        }
        let mut rest = documents.as_slice();
        while let Some((database, _)) = rest.first() {
            let same = rest.iter().take(BATCH_DOCUMENTS).take_while(|(other, _)| other == database).count();
            let (batch, others) = rest.split_at(same);
            if let Err(error) = write(worker, database, batch).await {
                tracing::warn!(%error, database, lost = batch.len(), "the profile could not be written");
            }
            rest = others;
        }
    }
}

async fn write(worker: &Worker, database: &str, records: &[(String, DocBuf)]) -> Result<()> {
    ensure_profile(worker, database).await?;
    let now_ms = crate::clock::now_ms();
    let documents = records.iter().map(|(_, record)| {
        // Stores keep no documents without one.
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

/// Makes the collection, unless there is one.
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
