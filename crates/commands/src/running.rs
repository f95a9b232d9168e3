//! Operations that are under way: the time they may take, and the means to see and end them from elsewhere.
//!
//! Most commands finish within their first poll and are never entered anywhere. One that has to wait is entered into its
//! worker's list, where `currentOp` sees it and `killOp` reaches it; the operation itself looks between documents
//! ([`Running::check`]).

use crate::server::ClientIdentity;
use bytes::Bytes;
use document::Doc;
use error::{Code, Error, Result};
use std::cell::{Cell, OnceCell};
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Poll;
use std::time::{Duration, Instant};

/// Checks of the clock are made once in so many documents.
const DOCUMENTS_PER_CHECK: u32 = 64;

/// One request being carried out, as the code that carries it out sees it.
#[derive(Debug, Default)]
pub struct Running {
    deadline: Cell<Option<Instant>>,
    operation: OnceCell<Arc<Operation>>,
    ticks: Cell<u32>,
    /// How many pipelines over other collections are at work within one another.
    nested_pipelines: Cell<usize>,
}

/// A pipeline at work within another.
pub struct Nested<'r>(&'r Cell<usize>);

impl Drop for Nested<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Running {
    /// Gives the operation that much time from now.
    pub fn limit(&self, time: Duration) {
        self.deadline.set(Instant::now().checked_add(time));
    }

    /// Begins a pipeline within another, until what it gives is dropped; error 232 where they are too many.
    pub fn nest(&self) -> Result<Nested<'_>> {
        query::aggregate::foreign::check_nesting(self.nested_pipelines.get() + 1)?;
        self.nested_pipelines.set(self.nested_pipelines.get() + 1);
        Ok(Nested(&self.nested_pipelines))
    }

    /// What is left of the time the operation was given, if it was given any.
    pub fn time_left(&self) -> Option<Duration> {
        Some(self.deadline.get()?.saturating_duration_since(Instant::now()))
    }

    /// To be called per document; looks at the clock now and then.
    #[inline]
    pub fn tick(&self) -> Result<()> {
        let ticks = self.ticks.get().wrapping_add(1);
        self.ticks.set(ticks);
        if ticks.is_multiple_of(DOCUMENTS_PER_CHECK) { self.check() } else { Ok(()) }
    }

    /// Fails when the operation was killed or its time is up.
    pub fn check(&self) -> Result<()> {
        if self.operation.get().is_some_and(|operation| operation.killed.load(Ordering::Relaxed)) {
            return Err(Error::new(Code::INTERRUPTED, "operation was interrupted"));
        }
        if self.deadline.get().is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(Error::new(Code::MAX_TIME_MS_EXPIRED, "operation exceeded time limit"));
        }
        Ok(())
    }
}

/// An operation that had to wait, as other sessions see it.
#[derive(Debug)]
pub struct Operation {
    pub id: i32,
    pub identity: Arc<ClientIdentity>,
    /// The command's body.
    pub command: Bytes,
    pub started: Instant,
    killed: AtomicBool,
}

impl Operation {
    pub fn command(&self) -> Doc<'_> {
        Doc::from_bytes(&self.command).unwrap_or(Doc::EMPTY)
    }

    pub fn kill(&self) {
        self.killed.store(true, Ordering::Relaxed);
    }

    pub fn is_killed(&self) -> bool {
        self.killed.load(Ordering::Relaxed)
    }
}

/// A worker's operations under way.
#[derive(Debug, Default)]
pub struct Operations {
    list: Mutex<Vec<Arc<Operation>>>,
}

/// Operation ids are given out process-wide; only operations that wait draw one.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

pub fn next_operation_id() -> i32 {
    (NEXT_ID.fetch_add(1, Ordering::Relaxed) & 0x7FFF_FFFF) as i32
}

impl Operations {
    pub fn list(&self) -> Vec<Arc<Operation>> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Operation>>> {
        self.list.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Drives `future`; enters it into the list if it does not finish at once.
    pub async fn watch<T>(
        &self,
        running: &Running,
        identity: &Arc<ClientIdentity>,
        command: impl FnOnce() -> Bytes,
        future: impl Future<Output = T>,
    ) -> T {
        let mut future = pin!(future);
        let first = std::future::poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await;
        if let Poll::Ready(output) = first {
            return output;
        }
        let operation = Arc::new(Operation {
            id: next_operation_id(),
            identity: identity.clone(),
            command: command(),
            started: Instant::now(),
            killed: AtomicBool::new(false),
        });
        self.lock().push(operation.clone());
        let _ = running.operation.set(operation.clone());
        let _entry = Entry { operations: self, operation };
        future.await
    }
}

/// Takes the operation off the list, also when its future is dropped half-way.
struct Entry<'a> {
    operations: &'a Operations,
    operation: Arc<Operation>,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.operations.lock().retain(|other| !Arc::ptr_eq(other, &self.operation));
    }
}
