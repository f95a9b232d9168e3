//! The queue of events between the threads of a server and the thread that writes.

use super::options::Options;
use crate::event::Event;
use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use tokio::sync::{oneshot, watch};

/// The number of waiting events from which on the log counts as unavailable.
pub(super) const QUEUE_EVENTS_MAX: usize = 16_384;

/// The most waiting events. Commands that had begun before, and refused ones, add to the queue
/// while the log is unavailable. Further events are dropped and counted.
pub(super) const WAITING_EVENTS_MAX: usize = 4 * QUEUE_EVENTS_MAX;

/// A place in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub(super) u64);

/// The state that the threads share.
pub(super) struct Shared {
    pub options: Options,
    pub queue: Mutex<Queue>,
    /// Wakes the thread.
    pub wake: Condvar,
    /// The last ticket whose event is written.
    pub written: watch::Sender<Ticket>,
    /// Whether writing fails at present.
    pub is_failing: AtomicBool,
    /// Whether the queue is full.
    pub is_full: AtomicBool,
}

#[derive(Default)]
pub(super) struct Queue {
    pub events: VecDeque<Event>,
    /// The number of events that were queued.
    pub queued: u64,
    /// The number of events that were dropped since the last one was written.
    pub dropped: u64,
    pub rotations: Vec<oneshot::Sender<Result<(), String>>>,
    pub is_stopping: bool,
}

impl Shared {
    pub fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
