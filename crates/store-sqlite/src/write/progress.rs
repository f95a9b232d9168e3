//! The progress of a batch on its way through the writer.

use crate::failure::SlowPart;
use error::Error;
use std::time::{Duration, Instant};
use store::{BatchOutcome, StatementOutcome, WriteBatch};

/// The limit of batches in one transaction, and the time after which it takes no more: others wait
/// for its commit.
pub const GROUP_BATCHES_MAX: usize = 256;
pub const GROUP_TIME_MAX: Duration = Duration::from_millis(5);

/// The state in which a batch leaves the writer.
pub enum BatchProgress {
    Done(BatchOutcome),
    /// The next statement is so slow that the worker must carry it out.
    OnWorker(RemainingBatch),
}

/// A batch, with its progress.
pub struct RemainingBatch {
    pub batch: Box<WriteBatch>,
    /// The outcomes of the first statements.
    pub done: BatchOutcome,
    /// The progress of the next statement.
    pub begun: Option<PartialStatement>,
    /// Why the writer did not carry it out.
    pub long: SlowPart,
}

impl RemainingBatch {
    /// Returns a batch without progress.
    pub fn all_of(batch: WriteBatch) -> RemainingBatch {
        RemainingBatch { batch: Box::new(batch), done: BatchOutcome::default(), begun: None, long: SlowPart::Search }
    }
}

/// A statement about many documents that has been carried out in part.
#[derive(Debug)]
pub struct PartialStatement {
    /// The collection's id.
    pub collection: i64,
    pub outcome: StatementOutcome,
    /// The documents that were found and not yet changed.
    pub left: Vec<i64>,
}

/// The progress of a batch in the running transaction.
pub struct BatchPart {
    /// The outcomes that an earlier attempt has recorded; they replace those that the batch came
    /// with.
    pub recorded: Option<BatchOutcome>,
    /// The outcomes of the statements behind them.
    pub outcome: BatchOutcome,
    pub end: PartEnd,
}

pub enum PartEnd {
    /// Nothing is left to do.
    Done,
    /// The batch as a whole is refused.
    Refused(Error),
    /// Others have their turn before the next statement.
    Paused,
    /// The next statement is slow.
    OnWorker(Option<PartialStatement>, SlowPart),
}

impl BatchPart {
    pub fn ending(end: PartEnd) -> BatchPart {
        BatchPart { recorded: None, outcome: BatchOutcome::default(), end }
    }
}

/// When the running transaction began, and whether its first part shares it with others.
pub struct Turn {
    pub began: Instant,
    pub is_shared: bool,
}

/// Returns whether nothing is left to do of a batch.
pub fn is_over(batch: &WriteBatch, done: &BatchOutcome) -> bool {
    let failed = done.statements.last().is_some_and(Result::is_err);
    done.statements.len() >= batch.statements.count() || batch.ordered && failed
}

/// Appends the outcomes of the next statements.
pub fn append(done: &mut BatchOutcome, next: BatchOutcome) {
    if done.statements.is_empty() {
        let retried = done.retried || next.retried;
        *done = BatchOutcome { retried, ..next };
    } else {
        done.statements.extend(next.statements);
        done.access.extend(next.access);
    }
}
