//! Batches in parts: the writer carries out statements until others have waited too long, commits,
//! and continues later.
//!
//! The progress of a batch is committed with the record of a retryable write, so a part is
//! complete, and a crash between two parts loses nothing: the batch that is sent again continues
//! behind the last part ([`super::retry`]). MongoDB yields at the same points: each document
//! changes atomically, a batch does not.

use super::progress::{
    BatchPart, BatchProgress, GROUP_BATCHES_MAX, GROUP_TIME_MAX, PartEnd, RemainingBatch, Turn, append, is_over,
};
use super::queue::Write;
use super::state::Writer;
use crate::failure::{Attempt, Failure, in_collection};
use crate::files::sync;
use error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use store::Statements;

/// The limit of a part's time while nothing else waits.
const PART_TIME_MAX: Duration = Duration::from_millis(100);

impl Writer {
    /// Returns whether others have waited long enough for the running part.
    pub(super) fn is_part_over(&self) -> bool {
        let elapsed = self.turn.began.elapsed();
        elapsed >= GROUP_TIME_MAX
            && (self.turn.is_shared || elapsed >= PART_TIME_MAX || self.queue.is_nested() || self.queue.has_more())
    }

    /// Carries out a batch and those queued behind it, in one transaction.
    pub(super) fn run_group(&mut self, first: Write) {
        let mut group = vec![first];
        let mut parts: Vec<BatchPart> = Vec::new();
        self.turn = Turn { began: Instant::now(), is_shared: false };
        let attempt = catch_unwind(AssertUnwindSafe(|| {
            self.transaction(|writer| {
                while let Some(write) = group.get(parts.len()) {
                    writer.turn.is_shared = !parts.is_empty();
                    parts.push(writer.execute(write)?);
                    if group.len() < GROUP_BATCHES_MAX && writer.turn.began.elapsed() < GROUP_TIME_MAX {
                        group.extend(writer.queue.next_of_group());
                    }
                }
                Ok(())
            })
        }));
        match attempt {
            Ok(Ok(())) => self.reply_to_batches(group.into_iter().zip(parts)),
            failed => {
                if failed.is_err() {
                    self.roll_back();
                }
                // One of them is at fault, and only that one must fail.
                for write in group {
                    let part = self.run_alone(&write);
                    self.reply_to_batches([(write, part)]);
                }
            }
        }
    }

    /// Carries out a part of a batch in a transaction of its own. Deletions are tried again if the
    /// disk is full.
    fn run_alone(&mut self, write: &Write) -> BatchPart {
        self.reserve.disk_is_full = false;
        let part = self.run_alone_once(write);
        if !self.reserve.disk_is_full || !matches!(write.batch.statements, Statements::Delete(_)) {
            return part;
        }
        self.make_room();
        self.run_alone_once(write)
    }

    fn run_alone_once(&mut self, write: &Write) -> BatchPart {
        self.turn = Turn { began: Instant::now(), is_shared: false };
        match catch_unwind(AssertUnwindSafe(|| self.transaction(|writer| writer.execute(write)))) {
            Ok(Ok(part)) => part,
            Ok(Err(failure)) => {
                let failure = in_collection(failure, &write.batch.namespace);
                BatchPart::ending(PartEnd::Refused(failure.into()))
            }
            Err(_) => {
                self.roll_back();
                let message = match write.done.statements.is_empty() {
                    true => "this write made the server fail; nothing was written",
                    false => "this write made the server fail; it was carried out in part",
                };
                BatchPart::ending(PartEnd::Refused(Error::internal(message)))
            }
        }
    }

    /// Replies to batches after their commit; journaled ones once they are on disk. Queues the
    /// unfinished ones again.
    fn reply_to_batches(&mut self, parts: impl IntoIterator<Item = (Write, BatchPart)>) {
        let mut waiting: Vec<sync::Acknowledge> = Vec::new();
        for (mut write, part) in parts {
            let BatchPart { recorded, outcome, end } = part;
            if let Some(recorded) = recorded {
                write.done = recorded;
            }
            append(&mut write.done, outcome);
            let Write { batch, done, reply, .. } = match end {
                PartEnd::Paused => {
                    self.queue.requeue(write);
                    continue;
                }
                _ => write,
            };
            // Sending fails if the client is gone.
            match end {
                PartEnd::Refused(error) => drop(reply.send(Err(error))),
                PartEnd::OnWorker(begun, long) => {
                    drop(reply.send(Ok(BatchProgress::OnWorker(RemainingBatch { batch, done, begun, long }))));
                }
                PartEnd::Done | PartEnd::Paused if batch.journal => waiting.push(Box::new(move |synced| {
                    let _ = reply.send(synced.map(|()| BatchProgress::Done(done)));
                })),
                PartEnd::Done | PartEnd::Paused => drop(reply.send(Ok(BatchProgress::Done(done)))),
            }
        }
        self.acknowledge(waiting);
    }

    /// Records a commit; `waiting` is called once it is on disk.
    pub(super) fn acknowledge(&self, waiting: Vec<sync::Acknowledge>) {
        if waiting.is_empty() {
            self.sync.note_commit();
        } else {
            self.sync.acknowledge(waiting);
        }
    }

    /// Carries out a part of a batch in the running transaction. An error comes from SQLite and
    /// ends the transaction.
    fn execute(&mut self, write: &Write) -> Attempt<BatchPart> {
        match self.execute_part(write) {
            Err(Failure::Refused(error)) => Ok(BatchPart::ending(PartEnd::Refused(error))),
            Err(Failure::TooSlow(long)) => Ok(BatchPart::ending(PartEnd::OnWorker(None, long))),
            attempt => attempt,
        }
    }

    fn execute_part(&mut self, write: &Write) -> Attempt<BatchPart> {
        let batch = &*write.batch;
        batch.progress.check()?;
        self.catalog.check_readable(&batch.namespace)?;
        self.refuse_log(&batch.namespace)?;
        self.check_room(matches!(batch.statements, Statements::Delete(_)))?;
        let mut recorded = None;
        if let Some(key) = &batch.retry {
            recorded = self.recorded_beyond(key, write.done.statements.len())?;
        }
        let done = recorded.as_ref().unwrap_or(&write.done);
        if recorded.is_some() && is_over(batch, done) {
            return Ok(BatchPart { recorded, ..BatchPart::ending(PartEnd::Done) });
        }
        let part = self.carry_out(batch, done.statements.len())?;
        if let Some(key) = &batch.retry
            && !part.outcome.statements.is_empty()
        {
            self.record(key, [done.statements.as_slice(), part.outcome.statements.as_slice()])?;
        }
        Ok(BatchPart { recorded, ..part })
    }
}
