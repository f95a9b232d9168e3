//! Statements that take long: an update of a million documents, a search without an index.
//!
//! Such a batch has its transaction to itself, and every few milliseconds it takes breath: what it has done so far is
//! committed, batches that wait are carried out, and it goes on in a new transaction. MongoDB yields at the same places: each
//! document changes atomically, a statement over many documents does not.

use super::queue::Write;
use super::{GROUP_TIME_MAX, Writer};
use crate::failure::Attempt;
use crate::plan::SqlitePlan;
use crate::scan::{self, Cursor, SliceEnd, Visitor};
use error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use store::Plan;

/// How long such a statement works between two breaths.
const INTERVAL: Duration = Duration::from_millis(5);

impl Writer {
    /// Carries out a batch that may take long.
    pub(super) fn run_long(&mut self, write: Write) {
        let attempt = catch_unwind(AssertUnwindSafe(|| {
            self.catch_up_for_others()?;
            self.transaction(|writer| {
                writer.breathing = Some(Instant::now());
                writer.execute(&write.batch)
            })
        }));
        self.breathing = None;
        let outcome = match attempt {
            Ok(outcome) => outcome.map_err(Error::from).flatten(),
            Err(_) => {
                self.queue.set_nested(false);
                self.roll_back();
                Err(Error::internal("this write made the server fail; it may have been carried out in part"))
            }
        };
        self.answer([(write, outcome)]);
    }

    /// Whether others may come in between while the running statement looks for its documents.
    pub(super) fn is_breathing(&self) -> bool {
        self.breathing.is_some()
    }

    /// Lets others in, if it is time. What was read before may have changed afterwards.
    pub(super) fn breathe(&mut self) -> Attempt<()> {
        if self.breathing.is_none_or(|since| since.elapsed() < INTERVAL) {
            return Ok(());
        }
        self.breathing = None;
        self.commit()?;
        self.sync.note_commit();
        self.keep_log_short();
        self.queue.set_nested(true);
        let begun = Instant::now();
        while begun.elapsed() < GROUP_TIME_MAX
            && let Some(write) = self.queue.next_short()
        {
            self.run_group(write);
        }
        self.queue.set_nested(false);
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        self.breathing = Some(Instant::now());
        Ok(())
    }

    /// When the running statement is to let others in.
    pub(super) fn breathing_until(&self) -> Option<Instant> {
        self.breathing.map(|since| since + INTERVAL)
    }

    /// Gives a plan's documents to `visit`, taking breath in between.
    pub(super) fn walk(&mut self, plan: &SqlitePlan, visit: &mut dyn Visitor) -> Attempt<()> {
        let mut cursor = Cursor::default();
        let before = plan.examined();
        while scan::slice(&self.connection, plan, &mut cursor, self.breathing_until(), visit)? == SliceEnd::Paused {
            self.breathe()?;
        }
        self.looked.examined = self.looked.examined + (plan.examined() - before);
        self.looked.summary = plan.summary();
        Ok(())
    }
}
