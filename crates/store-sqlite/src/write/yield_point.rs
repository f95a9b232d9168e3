//! Yield points of index builds.
//!
//! Every few milliseconds a build yields: it commits its work so far, waiting jobs are carried out,
//! and it continues in a new transaction.

use super::progress::GROUP_TIME_MAX;
use super::queue::Job;
use super::state::Writer;
use crate::failure::Attempt;
use std::time::{Duration, Instant};

/// The time between two yields.
const INTERVAL: Duration = Duration::from_millis(5);

impl Writer {
    /// Yields to waiting jobs, if it is time. Documents read before may have changed afterwards.
    pub(super) fn yield_to_others(&mut self) -> Attempt<()> {
        if self.last_yield.is_none_or(|since| since.elapsed() < INTERVAL) {
            return Ok(());
        }
        let Some(building) = self.build.as_ref().map(|build| build.namespace.clone()) else { return Ok(()) };
        self.last_yield = None;
        self.commit()?;
        self.sync.note_commit();
        self.limit_wal_size();
        self.queue.set_building(Some(building));
        let begun = Instant::now();
        while begun.elapsed() < GROUP_TIME_MAX
            && let Some(job) = self.queue.next_during_build()
        {
            match job {
                Job::Write(write) => self.run_group(write),
                Job::Conditional(changes, reply) => self.run_conditional(*changes, reply),
                Job::Define(_, change) => self.run_definition(change),
                // These jobs are never carried out in between.
                Job::ApplyDeferred(..) | Job::Stop => {}
            }
        }
        self.queue.set_building(None);
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        self.last_yield = Some(Instant::now());
        Ok(())
    }

    /// Returns when the running build must yield.
    pub(super) fn yield_deadline(&self) -> Option<Instant> {
        self.last_yield.map(|since| since + INTERVAL)
    }
}
