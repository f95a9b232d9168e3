//! One request being carried out, as the code that carries it out sees it.

use super::active::Operation;
use super::stats::OperationStats;
use crate::logical_session::LogicalSessionId;
use crate::memory_pressure;
use aggregate::Pace;
use error::{Code, Error, Result};
use std::cell::{Cell, OnceCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};
use store::Progress;

/// The clock is read once in this many documents.
const DOCUMENTS_PER_CHECK: u32 = 64;

/// How long an operation works before it yields to others of its worker.
const TIME_SLICE: Duration = Duration::from_millis(5);

/// The time limit, interruption and statistics of one request.
#[derive(Debug, Default)]
pub struct OperationContext {
    deadline: Cell<Option<Instant>>,
    session: Cell<Option<LogicalSessionId>>,
    operation: OnceCell<Arc<Operation>>,
    /// Whether the cursor that it reads was killed.
    cursor_killed: OnceCell<Arc<AtomicBool>>,
    ticks: Cell<u32>,
    /// The last yield point.
    yielded: Cell<Option<Instant>>,
    /// The depth of nested pipelines over other collections.
    nested_pipelines: Cell<usize>,
    /// What the profiler and the slow log report.
    pub stats: OperationStats,
    progress: OnceCell<Arc<Progress>>,
}

/// A pipeline that runs within another, until it is dropped.
pub struct NestedPipeline<'r>(&'r Cell<usize>);

impl Drop for NestedPipeline<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl OperationContext {
    /// Sets the deadline to this time from now.
    pub fn set_time_limit(&self, time: Duration) {
        self.deadline.set(Instant::now().checked_add(time));
    }

    /// Returns the error to end with if the operation was killed.
    pub fn kill_reason(&self) -> Option<Error> {
        self.operation.get().and_then(|operation| operation.kill_reason())
    }

    /// Sets the logical session that the request belongs to.
    pub fn set_session(&self, session: LogicalSessionId) {
        self.session.set(Some(session));
    }

    pub(super) fn session(&self) -> Option<LogicalSessionId> {
        self.session.get()
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline.get()
    }

    /// Connects the context with its registered operation.
    pub(super) fn register(&self, operation: &Arc<Operation>) {
        if let Some(progress) = self.progress.get() {
            let _ = operation.progress.set(progress.clone());
        }
        let _ = self.operation.set(operation.clone());
    }

    /// Begins a nested pipeline. Fails with 232 if too many are nested.
    pub fn enter_nested_pipeline(&self) -> Result<NestedPipeline<'_>> {
        aggregate::joins::check_nesting(self.nested_pipelines.get() + 1)?;
        self.nested_pipelines.set(self.nested_pipelines.get() + 1);
        Ok(NestedPipeline(&self.nested_pipelines))
    }

    /// Returns the remaining time, or `None` without a time limit.
    pub fn time_left(&self) -> Option<Duration> {
        Some(self.deadline.get()?.saturating_duration_since(Instant::now()))
    }

    /// Counts a document; checks for interruption once in [`DOCUMENTS_PER_CHECK`]. Must be called
    /// per document.
    #[inline]
    pub fn tick(&self) -> Result<()> {
        let ticks = self.ticks.get().wrapping_add(1);
        self.ticks.set(ticks);
        if ticks.is_multiple_of(DOCUMENTS_PER_CHECK) { self.check_interrupt() } else { Ok(()) }
    }

    /// Returns a closure that ticks and asks for a pause after a time slice, for producers that
    /// never wait.
    pub fn pacer(&self) -> impl FnMut() -> Result<Pace> {
        let began = Instant::now();
        move || {
            self.tick()?;
            let checks = self.ticks.get().is_multiple_of(DOCUMENTS_PER_CHECK);
            Ok(if checks && began.elapsed() > TIME_SLICE { Pace::Pause } else { Pace::Continue })
        }
    }

    /// Yields to other tasks of the worker if the time slice is used up; for loops that may never
    /// wait. Yielding also registers the operation, so that other connections see it.
    pub async fn yield_if_due(&self) {
        let now = Instant::now();
        let last = self.yielded.get().unwrap_or_else(|| {
            self.yielded.set(Some(now));
            now
        });
        if now.duration_since(last) > TIME_SLICE {
            tokio::task::yield_now().await;
            self.yielded.set(Some(Instant::now()));
        }
    }

    /// Waits for `work`; drops it and fails if the operation is killed or its time is up. `work`
    /// must be safe to drop.
    pub async fn run_interruptible<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let mut work = pin!(work);
        poll_fn(|task| match work.as_mut().poll(task) {
            Poll::Pending => self.check_interrupt().map_or_else(|error| Poll::Ready(Err(error)), |()| Poll::Pending),
            ready => ready,
        })
        .await
    }

    /// Waits for `work`; if the operation is killed or its time is up, asks `work` to stop at its
    /// next safe point.
    pub async fn run_stoppable<T>(&self, progress: &Progress, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|task| {
            self.check_interrupt().unwrap_or_else(|reason| progress.stop(reason));
            work.as_mut().poll(task)
        })
        .await
    }

    /// Shows in `currentOp` whether the operation waits for `fsyncUnlock`.
    pub fn set_waiting_for_lock(&self, waits: bool) {
        if let Some(operation) = self.operation.get() {
            operation.set_waiting_for_lock(waits);
        }
    }

    /// Shows the progress in `currentOp`.
    pub fn publish_progress(&self, progress: &Arc<Progress>) {
        let _ = self.progress.set(progress.clone());
        if let Some(operation) = self.operation.get() {
            let _ = operation.progress.set(progress.clone());
        }
    }

    /// Makes the operation end when its cursor is killed.
    pub fn end_with_cursor(&self, killed: &Arc<AtomicBool>) {
        let _ = self.cursor_killed.set(killed.clone());
    }

    /// Fails if the operation was killed, its time is up, or it holds too much memory.
    pub fn check_interrupt(&self) -> Result<()> {
        if let Some(reason) = self.operation.get().and_then(|operation| operation.kill_reason()) {
            return Err(reason);
        }
        if self.cursor_killed.get().is_some_and(|killed| killed.load(Ordering::Relaxed)) {
            let message = "Executor error during getMore :: caused by :: operation was interrupted";
            return Err(Error::new(Code::CURSOR_KILLED, message));
        }
        if let Some(exceeded) = steps::memory::exceeded() {
            return Err(memory_pressure::error(exceeded));
        }
        if self.deadline.get().is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(Error::new(Code::MAX_TIME_MS_EXPIRED, "operation exceeded time limit"));
        }
        Ok(())
    }
}
