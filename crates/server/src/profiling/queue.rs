//! Profile documents that wait to be written.

use document::DocBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use tokio::sync::Notify;

/// The most bytes that wait in memory; further documents are dropped, which is logged.
const QUEUED_BYTES_MAX: usize = 32 << 20;

/// The queue between operations and the profile writer.
#[derive(Debug, Default)]
pub struct ProfileQueue {
    queued: Mutex<Queued>,
    /// Whether documents are queued or being written.
    unwritten: AtomicBool,
    /// Held while writing, so that profiles are in order and readers know when all is written.
    pub(super) writing: tokio::sync::Mutex<()>,
    pub(super) wake_up: Notify,
    claimed: AtomicBool,
}

/// The queued documents.
#[derive(Debug, Default)]
pub(super) struct Queued {
    /// Each with its database.
    pub documents: Vec<(String, DocBuf)>,
    bytes: usize,
    pub dropped: u64,
}

impl ProfileQueue {
    pub fn has_entries(&self) -> bool {
        self.unwritten.load(Ordering::Acquire)
    }

    /// Returns true for the first caller, which must run the writer.
    pub(super) fn claim(&self) -> bool {
        !self.claimed.swap(true, Ordering::Relaxed)
    }

    pub fn push(&self, database: &str, records: impl Iterator<Item = DocBuf>) {
        {
            let mut queued = self.lock();
            for record in records {
                let bytes = record.as_bytes().len();
                if queued.bytes + bytes > QUEUED_BYTES_MAX {
                    queued.dropped += 1;
                    continue;
                }
                queued.bytes += bytes;
                queued.documents.push((database.to_owned(), record));
            }
        }
        self.unwritten.store(true, Ordering::Release);
        self.wake_up.notify_one();
    }

    /// Takes all queued documents. Marks the queue as written if there are none.
    pub(super) fn take(&self) -> Queued {
        loop {
            let queued = std::mem::take(&mut *self.lock());
            if !queued.documents.is_empty() || queued.dropped > 0 {
                return queued;
            }
            self.unwritten.store(false, Ordering::Release);
            // A document may have been pushed between the two steps.
            if self.lock().documents.is_empty() {
                return queued;
            }
            self.unwritten.store(true, Ordering::Release);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queued> {
        self.queued.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
