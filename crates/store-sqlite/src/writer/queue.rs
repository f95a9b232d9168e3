//! How jobs reach the writer.

use super::Writer;
use crate::failure::Attempt;
use error::{Code, Error, Result};
use selkie_runtime::busy_poll::{Awaited, BusyPoll, Expectation};
use std::cell::Cell;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::time::Duration;
use store::{BatchOutcome, WriteBatch};
use tokio::sync::{mpsc, oneshot};

/// Jobs that may queue up before workers wait.
const LENGTH: usize = 1024;

/// A batch, and who waits for its outcome.
pub struct Write {
    pub batch: Box<WriteBatch>,
    pub reply: oneshot::Sender<Result<BatchOutcome>>,
    /// It may read or change a great many documents: others are let in between.
    pub long: bool,
}

/// A change to the catalog: carried out in a transaction of its own, it sends its own answer.
type Definition = Box<dyn FnOnce(&mut Writer) + Send>;

pub enum Job {
    Write(Write),
    Define(Definition),
    /// Somebody is about to read by indexes of a collection whose entries are late.
    CatchUp(i64, Vec<i64>, oneshot::Sender<Result<()>>),
    Stop,
}

/// Sends jobs to the writer.
#[derive(Clone)]
pub struct WriterHandle {
    jobs: mpsc::Sender<Job>,
}

/// The writer's end: what comes in, and what it has put aside.
pub struct Queue {
    jobs: mpsc::Receiver<Job>,
    /// Jobs that came in where they did not fit; they are next.
    aside: VecDeque<Job>,
    /// A statement is letting others in: what was put aside waits for its end.
    nested: bool,
    /// For waiting with a time limit.
    runtime: tokio::runtime::Runtime,
}

/// What waiting came to.
pub enum Waited {
    Job(Job),
    InVain,
    Closed,
}

pub fn open() -> Result<(WriterHandle, Queue)> {
    let (sender, jobs) = mpsc::channel(LENGTH);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(|error| Error::internal(error.to_string()))?;
    Ok((WriterHandle { jobs: sender }, Queue { jobs, aside: VecDeque::new(), nested: false, runtime }))
}

impl WriterHandle {
    /// Carries out a batch. Durable as asked for when this returns.
    pub async fn write(&self, batch: WriteBatch, long: bool) -> Result<BatchOutcome> {
        // One statement that no disk is waited for takes less time than waking the worker does.
        let is_brief = !long && !batch.journal && batch.statements.count() == 1;
        let (reply, answer) = oneshot::channel();
        let write = Write { batch: Box::new(batch), reply, long };
        self.jobs.send(Job::Write(write)).await.map_err(|_| stopped())?;
        let outcome = if is_brief { looked_for(answer).await } else { answer.await };
        outcome.map_err(|_| stopped())?
    }

    /// Runs a change to the catalog on the writer and gives its answer.
    pub async fn define<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Writer) -> Attempt<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let job = Job::Define(Box::new(move |writer| {
            // A client that has gone away does not wait for the answer.
            let done = writer.catch_up_for_others().and_then(|()| writer.transaction(change));
            let _ = reply.send(done.map_err(Error::from));
        }));
        self.jobs.send(job).await.map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }

    /// Has these indexes of a collection brought up to what is acknowledged.
    pub async fn catch_up(&self, collection: i64, indexes: Vec<i64>) -> Result<()> {
        let (reply, answer) = oneshot::channel();
        self.jobs.send(Job::CatchUp(collection, indexes, reply)).await.map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }

    /// Ends the writer once it has done what was sent before.
    pub fn stop(&self) {
        let mut job = Job::Stop;
        while let Err(mpsc::error::TrySendError::Full(returned)) = self.jobs.try_send(job) {
            job = returned;
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Waits for the outcome of a brief write, looking again where these usually come soon.
async fn looked_for<T>(answer: oneshot::Receiver<T>) -> Result<T, oneshot::error::RecvError> {
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

impl Queue {
    /// The next job, if there is one.
    pub fn next(&mut self) -> Option<Job> {
        self.aside.pop_front().or_else(|| self.jobs.try_recv().ok())
    }

    /// Waits for a job.
    pub fn wait(&mut self, limit: Duration) -> Waited {
        if let Some(job) = self.aside.pop_front() {
            return Waited::Job(job);
        }
        let Queue { jobs, runtime, .. } = self;
        match runtime.block_on(async { tokio::time::timeout(limit, jobs.recv()).await }) {
            Ok(Some(job)) => Waited::Job(job),
            Ok(None) => Waited::Closed,
            Err(_) => Waited::InVain,
        }
    }

    /// The next batch that can share a transaction with others. What cannot is put aside, and ends the group.
    pub fn next_of_group(&mut self) -> Option<Write> {
        if !self.nested && !self.aside.is_empty() {
            return None;
        }
        self.next_short()
    }

    /// The next batch that does not take long, past all that does.
    pub fn next_short(&mut self) -> Option<Write> {
        loop {
            match self.jobs.try_recv().ok()? {
                Job::Write(write) if !write.long => return Some(write),
                // Before a statement that takes long everything was entered, and beside it nothing is gathered.
                Job::CatchUp(_, _, reply) if self.nested => drop(reply.send(Ok(()))),
                other => self.aside.push_back(other),
            }
            if !self.nested {
                return None;
            }
        }
    }

    pub fn is_nested(&self) -> bool {
        self.nested
    }

    /// While this is set, jobs that are not short batches are put aside.
    pub fn set_nested(&mut self, nested: bool) {
        self.nested = nested;
    }
}
