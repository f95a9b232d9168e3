//! Operations that are under way: the time they may take, and the means to see and end them from elsewhere.
//!
//! Most commands finish within their first poll and are never entered anywhere. One that has to wait is entered into its
//! worker's list, where `currentOp` sees it and `killOp` reaches it; the operation itself looks between documents
//! ([`Running::check`]).

use crate::profiling::Facts;
use crate::server::ClientIdentity;
use crate::shortage;
use aggregate::Pace;
use bytes::Bytes;
use document::Doc;
use error::{Code, Error, Result};
use futures_util::task::AtomicWaker;
use std::cell::{Cell, OnceCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::task::Poll;
use std::time::{Duration, Instant};
use store::Progress;
use tokio::time::Sleep;

/// Checks of the clock are made once in so many documents.
const DOCUMENTS_PER_CHECK: u32 = 64;

/// How long an operation works before it lets others of its worker in between.
const SLICE: Duration = Duration::from_millis(5);

/// One request being carried out, as the code that carries it out sees it.
#[derive(Debug, Default)]
pub struct Running {
    deadline: Cell<Option<Instant>>,
    operation: OnceCell<Arc<Operation>>,
    /// Whether the cursor that it reads on was killed.
    cursor_killed: OnceCell<Arc<AtomicBool>>,
    ticks: Cell<u32>,
    /// When others of the worker were let in between last.
    breathed: Cell<Option<Instant>>,
    /// How many pipelines over other collections are at work within one another.
    nested_pipelines: Cell<usize>,
    /// What the profiler and the log may want to know.
    pub facts: Facts,
    /// How far it is, where that is known.
    progress: OnceCell<Arc<Progress>>,
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
        aggregate::foreign::check_nesting(self.nested_pipelines.get() + 1)?;
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

    /// For what gives out documents without waiting for anything: [`Running::tick`], and a pause after a while.
    pub fn pacer(&self) -> impl FnMut() -> Result<Pace> {
        let began = Instant::now();
        move || {
            self.tick()?;
            let looks = self.ticks.get().is_multiple_of(DOCUMENTS_PER_CHECK);
            Ok(if looks && began.elapsed() > SLICE { Pace::Pause } else { Pace::Continue })
        }
    }

    /// Lets others of the worker in between, where that has not been done for a while; for what may go on without waiting for
    /// anything. Then the operation is seen from elsewhere, too.
    pub async fn breathe(&self) {
        let now = Instant::now();
        let last = self.breathed.get().unwrap_or_else(|| {
            self.breathed.set(Some(now));
            now
        });
        if now.duration_since(last) > SLICE {
            tokio::task::yield_now().await;
            self.breathed.set(Some(Instant::now()));
        }
    }

    /// Waits for `work`, unless the operation is killed or its time is up before; then `work` is dropped. Only for what may be.
    pub async fn within<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let mut work = pin!(work);
        poll_fn(|context| match work.as_mut().poll(context) {
            Poll::Pending => self.check().map_or_else(|error| Poll::Ready(Err(error)), |()| Poll::Pending),
            ready => ready,
        })
        .await
    }

    /// Waits for `work`, and has it stop where the operation is killed or its time is up; then it is for `work` to end, with nothing half done.
    pub async fn stopping<T>(&self, progress: &Progress, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|context| {
            self.check().unwrap_or_else(|reason| progress.stop(reason));
            work.as_mut().poll(context)
        })
        .await
    }

    /// Lets others see whether it waits for `fsyncUnlock`.
    pub fn note_lock(&self, waits: bool) {
        if let Some(operation) = self.operation.get() {
            operation.waits_for_lock.store(waits, Ordering::Relaxed);
        }
    }

    /// Lets others see how far it is.
    pub fn show(&self, progress: &Arc<Progress>) {
        let _ = self.progress.set(progress.clone());
        if let Some(operation) = self.operation.get() {
            let _ = operation.progress.set(progress.clone());
        }
    }

    /// Has it end when a cursor is killed.
    pub fn end_with_cursor(&self, killed: &Arc<AtomicBool>) {
        let _ = self.cursor_killed.set(killed.clone());
    }

    /// Fails when the operation was killed or its time is up.
    pub fn check(&self) -> Result<()> {
        if let Some(reason) = self.operation.get().and_then(|operation| operation.kill_reason()) {
            return Err(reason);
        }
        if self.cursor_killed.get().is_some_and(|killed| killed.load(Ordering::Relaxed)) {
            let message = "Executor error during getMore :: caused by :: operation was interrupted";
            return Err(Error::new(Code::CURSOR_KILLED, message));
        }
        if let Some(exceeded) = steps::memory::exceeded() {
            return Err(shortage::error(exceeded));
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
    /// The code of the error that it is to end with; 0 while it may go on.
    killed: AtomicI32,
    waits_for_lock: AtomicBool,
    /// Wakes it where it waits.
    waker: AtomicWaker,
    /// How far it is, where that is known.
    pub progress: OnceLock<Arc<Progress>>,
}

impl Operation {
    pub fn command(&self) -> Doc<'_> {
        Doc::from_bytes(&self.command).unwrap_or(Doc::EMPTY)
    }

    pub fn kill(&self) {
        self.kill_with(Code::INTERRUPTED);
    }

    /// Has it end because its client has left.
    pub fn client_left(&self) {
        self.kill_with(Code::CLIENT_DISCONNECT);
    }

    /// The first reason counts.
    fn kill_with(&self, code: Code) {
        let _ = self.killed.compare_exchange(0, code.0, Ordering::Relaxed, Ordering::Relaxed);
        self.waker.wake();
    }

    fn kill_reason(&self) -> Option<Error> {
        match Code(self.killed.load(Ordering::Relaxed)) {
            Code(0) => None,
            Code::CLIENT_DISCONNECT => {
                let message = "operation was interrupted because a client disconnected";
                Some(Error::new(Code::CLIENT_DISCONNECT, message))
            }
            code => Some(Error::new(code, "operation was interrupted")),
        }
    }

    pub fn waits_for_lock(&self) -> bool {
        self.waits_for_lock.load(Ordering::Relaxed)
    }

    pub fn is_killed(&self) -> bool {
        self.killed.load(Ordering::Relaxed) != 0
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
        let first = poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await;
        if let Poll::Ready(output) = first {
            return output;
        }
        let operation = Arc::new(Operation {
            id: next_operation_id(),
            identity: identity.clone(),
            command: command(),
            started: Instant::now(),
            killed: AtomicI32::new(0),
            waits_for_lock: AtomicBool::new(false),
            waker: AtomicWaker::new(),
            progress: OnceLock::new(),
        });
        self.lock().push(operation.clone());
        if let Some(progress) = running.progress.get() {
            let _ = operation.progress.set(progress.clone());
        }
        let _ = running.operation.set(operation.clone());
        let _entry = Entry { operations: self, operation: operation.clone() };
        let mut alarm: Option<(Instant, Option<Pin<Box<Sleep>>>)> = None;
        poll_fn(|context| {
            operation.waker.register(context.waker());
            let polled = future.as_mut().poll(context);
            // Where it waits when its time is up, it is to look.
            if let (Poll::Pending, Some(deadline)) = (&polled, running.deadline.get()) {
                if alarm.as_ref().is_none_or(|(set, _)| *set != deadline) {
                    alarm = Some((deadline, Some(Box::pin(tokio::time::sleep_until(deadline.into())))));
                }
                let sleep = alarm.as_mut().map(|(_, sleep)| sleep);
                if let Some(sleep) = sleep
                    && sleep.as_mut().is_some_and(|sleep| sleep.as_mut().poll(context).is_ready())
                {
                    *sleep = None;
                    context.waker().wake_by_ref();
                }
            }
            polled
        })
        .await
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
