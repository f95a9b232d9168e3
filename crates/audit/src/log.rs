//! The audit log of a server: a queue of events, and a thread that seals and writes them.
//!
//! No thread of a server ever waits for a disk. If the log cannot be written, events stay in the
//! queue and are written later. A setting ([`OnFailure`]) decides whether the server goes on
//! meanwhile.

mod options;
mod queue;
mod writer;

pub use options::{OnFailure, Options};
pub use queue::Ticket;

use crate::event::{Event, Subject, kind};
use document::DocBuf;
use queue::{QUEUE_EVENTS_MAX, Queue, Shared, WAITING_EVENTS_MAX};
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::{oneshot, watch};
use writer::Writer;

/// The log cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unavailable;

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the audit log cannot be written; the server's log says why")
    }
}

/// A log that is open. Shared by all threads.
pub struct AuditLog {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditLog").field("destination", &self.shared.options.destination).finish()
    }
}

impl AuditLog {
    /// Opens the log, continues its chain and starts its thread.
    pub fn open(options: Options) -> io::Result<AuditLog> {
        let (writer, first) = Writer::open(&options)?;
        let shared = Arc::new(Shared {
            options,
            queue: Mutex::new(Queue::default()),
            wake: Condvar::new(),
            written: watch::Sender::new(Ticket(0)),
            is_failing: AtomicBool::new(false),
            is_full: AtomicBool::new(false),
        });
        let log = AuditLog { shared: shared.clone(), thread: Mutex::default() };
        if let Some(first) = first {
            log.record(first);
        }
        let thread = std::thread::Builder::new().name("audit-log".to_owned()).spawn(move || writer.run(&shared))?;
        *log.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(log)
    }

    /// Returns whether events of this kind are written. Building others is a waste.
    pub fn wants(&self, kind: &str) -> bool {
        self.shared.options.filter.admits_kind(kind)
    }

    /// Returns whether successful authorization checks are written.
    pub fn wants_authorization_success(&self) -> bool {
        self.shared.options.authorization_success && self.wants(kind::AUTH_CHECK)
    }

    /// Fails if logins and logged commands must be refused, because the log cannot be written.
    pub fn check(&self) -> Result<(), Unavailable> {
        match self.shared.options.on_failure {
            OnFailure::Refuse if self.is_unavailable() => Err(Unavailable),
            OnFailure::Refuse | OnFailure::Continue => Ok(()),
        }
    }

    fn is_unavailable(&self) -> bool {
        self.shared.is_failing.load(Ordering::Relaxed) || self.shared.is_full.load(Ordering::Relaxed)
    }

    /// Queues an event, if the filter admits it.
    pub fn record(&self, event: Event) -> Option<Ticket> {
        let Shared { options, wake, .. } = &*self.shared;
        if !options.filter.admits(&event) {
            return None;
        }
        let mut queue = self.shared.lock();
        let events_max = match options.on_failure {
            OnFailure::Refuse => WAITING_EVENTS_MAX,
            OnFailure::Continue => QUEUE_EVENTS_MAX,
        };
        if queue.events.len() >= events_max {
            queue.dropped += 1;
            return None;
        }
        queue.events.push_back(event);
        queue.queued += 1;
        if queue.events.len() >= QUEUE_EVENTS_MAX {
            self.shared.is_full.store(true, Ordering::Relaxed);
        }
        let ticket = Ticket(queue.queued);
        drop(queue);
        wake.notify_one();
        Some(ticket)
    }

    /// Queues an event that the server itself causes.
    pub fn record_own(&self, kind: &'static str, param: DocBuf) -> Option<Ticket> {
        let Options { process, now_ms, .. } = self.shared.options;
        self.record(Event { kind, ts_ms: now_ms(), subject: Subject::system(process), param, result: 0 })
    }

    /// Returns the place of the event that was queued last.
    pub fn last(&self) -> Ticket {
        Ticket(self.shared.lock().queued)
    }

    /// Waits until an event is written, or the log fails. The event stays in the queue then.
    pub async fn written(&self, ticket: Ticket) {
        let mut written = self.shared.written.subscribe();
        // Fails only when the thread has ended.
        let _ = written.wait_for(|last| *last >= ticket || self.is_unavailable()).await;
    }

    /// Asks the thread to rename the log's file and to begin a new one. The receiver gets the
    /// outcome, and nothing if the thread has ended.
    pub fn rotate(&self) -> oneshot::Receiver<Result<(), String>> {
        let (sender, receiver) = oneshot::channel();
        self.shared.lock().rotations.push(sender);
        self.shared.wake.notify_one();
        receiver
    }

    /// Writes the queue and ends the thread. Gives up after a few seconds if the log cannot
    /// be written.
    pub fn close(&self) {
        self.shared.lock().is_stopping = true;
        self.shared.wake.notify_one();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the audit log's thread ended in a panic");
        }
    }
}

#[cfg(test)]
mod tests;
