//! The queue of the writer's jobs. `W` is the writer, to which definitions are applied.

use super::changes::{Applied, ConditionalChanges};
use super::progress::{BatchProgress, RemainingBatch};
use crate::failure::Attempt;
use error::{Code, Error, Result};
use selkie_runtime::busy_poll::{Awaited, BusyPoll, Expectation};
use std::cell::Cell;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;
use store::{BatchOutcome, Namespace, Progress, WriteBatch};
use tokio::sync::{mpsc, oneshot};

/// The number of queued jobs at which workers wait.
const LENGTH: usize = 1024;

/// A batch, and the channel to the worker that waits for its outcome.
pub struct Write {
    pub batch: Box<WriteBatch>,
    /// The outcomes of the statements that have been carried out already.
    pub done: BatchOutcome,
    pub reply: oneshot::Sender<Result<BatchProgress>>,
    claim: Claim,
}

/// Decides who owns a waiting batch: the writer, which carries it out, or the worker, which
/// withdraws it.
#[derive(Clone, Default)]
struct Claim(Arc<AtomicBool>);

impl Claim {
    /// Returns whether the caller is the first.
    fn take(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }
}

/// A change to the catalog. It is carried out in a transaction of its own and sends its own reply.
pub type Definition<W> = Box<dyn FnOnce(&mut W) + Send>;

/// The namespaces that a definition changes. It waits for an index build of one of them.
#[derive(Clone)]
pub enum Scope {
    Collections(Vec<Namespace>),
    Database(String),
    /// It is slow: it waits for any index build.
    Everything,
}

impl Scope {
    pub fn contains(&self, namespace: &Namespace) -> bool {
        match self {
            Scope::Collections(collections) => collections.contains(namespace),
            Scope::Database(database) => **database == *namespace.database,
            Scope::Everything => true,
        }
    }
}

impl From<&Namespace> for Scope {
    fn from(namespace: &Namespace) -> Self {
        Scope::Collections(vec![namespace.clone()])
    }
}

pub enum Job<W> {
    Write(Write),
    /// Changes that a worker has evaluated.
    Conditional(Box<ConditionalChanges>, oneshot::Sender<Result<Applied>>),
    Define(Scope, Definition<W>),
    /// A reader needs the deferred entries of some of a collection's indexes.
    ApplyDeferred(i64, Vec<i64>, oneshot::Sender<Result<()>>),
    Stop,
}

impl<W> Job<W> {
    /// Returns whether the job may be carried out in the middle of an index build.
    fn may_interrupt_build(&self, building: Option<&Namespace>) -> bool {
        match self {
            Job::Write(_) | Job::Conditional(..) | Job::ApplyDeferred(..) => true,
            Job::Define(scope, _) => building.is_some_and(|building| !scope.contains(building)),
            Job::Stop => false,
        }
    }

    /// Returns whether the job's sender no longer waits for it.
    fn is_withdrawn(&self) -> bool {
        matches!(self, Job::Write(write) if write.claim.0.load(Ordering::Acquire) || write.reply.is_closed())
    }
}

/// The workers' end of the queue.
pub struct Handle<W> {
    jobs: mpsc::Sender<Job<W>>,
}

impl<W> Clone for Handle<W> {
    fn clone(&self) -> Self {
        Handle { jobs: self.jobs.clone() }
    }
}

/// The writer's end of the queue.
pub struct Queue<W> {
    jobs: mpsc::Receiver<Job<W>>,
    /// Jobs that have been received and not finished; they precede all jobs still to be received.
    received: VecDeque<Job<W>>,
    /// An index build of this collection is yielding.
    building: Option<Namespace>,
    /// For waiting with a time limit.
    runtime: tokio::runtime::Runtime,
}

/// The result of waiting for a job.
pub enum Waited<W> {
    Job(Job<W>),
    TimedOut,
    Closed,
}

pub fn open<W>() -> Result<(Handle<W>, Queue<W>)> {
    let (sender, jobs) = mpsc::channel(LENGTH);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(|error| Error::internal(error.to_string()))?;
    Ok((Handle { jobs: sender }, Queue { jobs, received: VecDeque::new(), building: None, runtime }))
}

impl<W> Handle<W> {
    /// Carries out a batch, continuing behind its progress. The writer's part is durable as
    /// requested when this returns.
    ///
    /// A batch that is asked to stop while it waits is withdrawn.
    pub async fn write(&self, rest: RemainingBatch) -> Result<BatchProgress> {
        let RemainingBatch { batch, done, .. } = rest;
        // A single statement without a sync takes less time than waking the worker does.
        let is_brief = !batch.journal && batch.statements.count() == 1;
        let progress = batch.progress.clone();
        let claim = Claim::default();
        let (reply, answer) = oneshot::channel();
        let write = Write { batch, done, reply, claim: claim.clone() };
        unless_stopped(&progress, &claim, async {
            self.jobs.send(Job::Write(write)).await.map_err(|_| stopped())?;
            let settled = if is_brief { await_with_busy_poll(answer).await } else { answer.await };
            settled.map_err(|_| stopped())?
        })
        .await
    }

    /// Applies changes that a worker has evaluated.
    pub async fn apply(&self, changes: ConditionalChanges) -> Result<Applied> {
        let (reply, answer) = oneshot::channel();
        self.jobs.send(Job::Conditional(Box::new(changes), reply)).await.map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }

    /// Runs a change to the catalog on the writer and returns its result. A change that is asked to
    /// stop while it waits is withdrawn.
    pub async fn define<T: Send + 'static>(
        &self,
        scope: Scope,
        progress: Arc<Progress>,
        change: impl FnOnce(&mut W) -> Attempt<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let claim = Claim::default();
        let claimed = claim.clone();
        let definition: Definition<W> = Box::new(move |writer| {
            if reply.is_closed() || !claimed.take() {
                return;
            }
            // If the client is gone, nothing waits for the reply.
            let _ = reply.send(change(writer).map_err(Error::from));
        });
        unless_stopped(&progress, &claim, async {
            self.jobs.send(Job::Define(scope, definition)).await.map_err(|_| stopped())?;
            answer.await.map_err(|_| stopped())?
        })
        .await
    }

    /// Runs work on the writer that changes no definition.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce(&mut W) -> Attempt<T> + Send + 'static) -> Result<T> {
        self.define(Scope::Collections(Vec::new()), Arc::default(), work).await
    }

    /// Has the deferred entries of these indexes applied, up to all acknowledged writes.
    pub async fn apply_all_deferred(&self, collection: i64, indexes: Vec<i64>) -> Result<()> {
        let (reply, answer) = oneshot::channel();
        self.jobs.send(Job::ApplyDeferred(collection, indexes, reply)).await.map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }

    /// Stops the writer after the jobs that were sent before.
    pub fn stop(&self) {
        let mut job = Job::Stop;
        while let Err(mpsc::error::TrySendError::Full(returned)) = self.jobs.try_send(job) {
            job = returned;
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Waits for `work`. Fails with the reason if it is asked to stop before the writer has begun it.
async fn unless_stopped<T>(progress: &Progress, claim: &Claim, work: impl Future<Output = Result<T>>) -> Result<T> {
    let mut work = pin!(work);
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Pending => match progress.check() {
            Err(reason) if claim.take() => Poll::Ready(Err(reason)),
            _ => Poll::Pending,
        },
        ready => ready,
    })
    .await
}

/// Waits for the outcome of a brief write, by busy polling where outcomes usually come soon.
async fn await_with_busy_poll<T>(answer: oneshot::Receiver<T>) -> Result<T, oneshot::error::RecvError> {
    thread_local! {
        static EXPECTATION: Cell<Expectation> = Cell::default();
    }
    let mut answer = pin!(answer);
    let mut busy_poll = BusyPoll::new(Awaited::ServerBehind);
    poll_fn(|context| {
        let found = answer.as_mut().poll(context);
        let mut expectation = EXPECTATION.get();
        let found = busy_poll.poll(context, &mut expectation, found);
        EXPECTATION.set(expectation);
        found
    })
    .await
}

fn stopped() -> Error {
    Error::new(Code::SHUTDOWN_IN_PROGRESS, "the server is shutting down")
}

impl<W> Queue<W> {
    /// Returns the next job, if there is one.
    pub fn next(&mut self) -> Option<Job<W>> {
        loop {
            match self.received.pop_front().or_else(|| self.jobs.try_recv().ok())? {
                Job::Write(write) if !claimed(&write) => {}
                job => return Some(job),
            }
        }
    }

    /// Waits for a job.
    pub fn wait(&mut self, limit: Duration) -> Waited<W> {
        if let Some(job) = self.next() {
            return Waited::Job(job);
        }
        let Queue { jobs, runtime, .. } = self;
        match runtime.block_on(async { tokio::time::timeout(limit, jobs.recv()).await }) {
            Ok(Some(Job::Write(write))) if !claimed(&write) => Waited::TimedOut,
            Ok(Some(job)) => Waited::Job(job),
            Ok(None) => Waited::Closed,
            Err(_) => Waited::TimedOut,
        }
    }

    /// Returns the next batch that can share a transaction with others, if a batch is next.
    pub fn next_of_group(&mut self) -> Option<Write> {
        loop {
            let next = match self.received.front() {
                Some(Job::Write(_)) => self.received.pop_front()?,
                Some(_) => return None,
                None => self.jobs.try_recv().ok()?,
            };
            match next {
                Job::Write(write) if claimed(&write) => return Some(write),
                Job::Write(_) => {}
                other => {
                    self.received.push_front(other);
                    return None;
                }
            }
        }
    }

    /// Returns the next job that may be carried out in the middle of the index build, skipping all
    /// others.
    pub fn next_during_build(&mut self) -> Option<Job<W>> {
        self.receive();
        loop {
            let building = self.building.as_ref();
            let at = self.received.iter().position(|job| job.may_interrupt_build(building))?;
            match self.received.remove(at)? {
                Job::Write(write) if !claimed(&write) => {}
                // All entries were applied before the index build, and none are deferred during it.
                Job::ApplyDeferred(_, _, reply) => drop(reply.send(Ok(()))),
                job => return Some(job),
            }
        }
    }

    /// Returns whether jobs are waiting.
    pub fn has_more(&self) -> bool {
        !self.jobs.is_empty() || !self.received.is_empty()
    }

    /// Queues a batch again, to continue after the waiting jobs.
    pub fn requeue(&mut self, write: Write) {
        self.receive();
        // Until its next turn it may be withdrawn again.
        write.claim.0.store(false, Ordering::Release);
        self.received.push_back(Job::Write(write));
    }

    fn receive(&mut self) {
        while let Ok(job) = self.jobs.try_recv() {
            self.received.push_back(job);
        }
        // Drops withdrawn batches, so that they are not checked again and again.
        self.received.retain(|job| !job.is_withdrawn());
    }

    pub fn is_nested(&self) -> bool {
        self.building.is_some()
    }

    /// Sets the collection whose index build waits for the jobs.
    pub fn set_building(&mut self, building: Option<Namespace>) {
        self.building = building;
    }
}

/// Claims a batch from the worker. Returns false if it was withdrawn.
fn claimed(write: &Write) -> bool {
    !write.reply.is_closed() && write.claim.take()
}
