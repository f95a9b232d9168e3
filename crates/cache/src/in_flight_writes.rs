//! In-flight and recently finished writes, which replies being computed may have missed.

use crate::dependencies::Dependencies;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use store::Changes;

/// Finished writes that are remembered while replies are being computed. A reply that takes longer
/// than they reach back is not cached.
const FINISHED_MAX: usize = 512;

/// How long a write with unknown outcome blocks caching; twice the longest time in which it can
/// still commit.
const UNKNOWN_OUTCOME_BLOCKS_FOR: Duration = Duration::from_secs(240);

/// The cache's logical time, which increases with each finished write, and the writes.
pub struct InFlightWrites {
    time: AtomicU64,
    /// Replies that are being computed.
    reads: AtomicU64,
    /// Writes begun so far.
    begun: AtomicU64,
    writes: Mutex<Writes>,
}

#[derive(Default)]
struct Writes {
    in_flight: Vec<InFlight>,
    /// With the time at which they became visible to every reader, the latest last.
    finished: VecDeque<(u64, Write)>,
    /// Writes finished up to this time are no longer remembered.
    forgotten: u64,
}

/// Changes that are made together.
#[derive(Clone)]
struct Write {
    /// Counts from 1.
    number: u64,
    changes: Arc<Changes>,
}

struct InFlight {
    write: Write,
    /// When the outcome became unknown.
    unknown_since: Option<Instant>,
}

impl InFlightWrites {
    pub fn new() -> InFlightWrites {
        let (reads, begun) = (AtomicU64::new(0), AtomicU64::new(0));
        InFlightWrites { time: AtomicU64::new(1), reads, begun, writes: Mutex::default() }
    }

    /// Begins a read, which must end with [`InFlightWrites::end_read`]. Returns the time.
    pub fn begin_read(&self) -> u64 {
        // Counted first: a write that finishes and counts no reads has increased the time before.
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.time.load(Ordering::SeqCst)
    }

    pub fn end_read(&self) {
        self.reads.fetch_sub(1, Ordering::SeqCst);
    }

    /// Begins a write. Returns its number, for [`InFlightWrites::finish`] and
    /// [`InFlightWrites::outcome_unknown`].
    pub fn begin(&self, changes: Arc<Changes>) -> u64 {
        let mut writes = self.lock();
        let is_blocking = |since: Instant| since.elapsed() < UNKNOWN_OUTCOME_BLOCKS_FOR;
        writes.in_flight.retain(|one| one.unknown_since.is_none_or(is_blocking));
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        writes.in_flight.push(InFlight { write: Write { number, changes }, unknown_since: None });
        number
    }

    /// Finishes a write: it is visible to every reader, or will never happen. Ignored if its
    /// outcome is unknown.
    pub fn finish(&self, number: u64) {
        let mut writes = self.lock();
        let is_it = |one: &InFlight| one.write.number == number && one.unknown_since.is_none();
        let Some(at) = writes.in_flight.iter().position(is_it) else { return };
        let InFlight { write, .. } = writes.in_flight.swap_remove(at);
        let time = self.time.fetch_add(1, Ordering::SeqCst);
        if self.reads.load(Ordering::SeqCst) == 0 {
            // No read can have missed this write or an earlier one. Without readers, writers keep
            // no memory.
            writes.finished.clear();
            writes.forgotten = time;
            return;
        }
        writes.finished.push_back((time, write));
        if writes.finished.len() > FINISHED_MAX
            && let Some((time, _)) = writes.finished.pop_front()
        {
            writes.forgotten = time;
        }
    }

    /// Marks a write's outcome as unknown: it may commit at any time.
    pub fn outcome_unknown(&self, number: u64) {
        let mut writes = self.lock();
        let found = writes.in_flight.iter_mut().find(|one| one.write.number == number);
        found.into_iter().for_each(|one| one.unknown_since = Some(Instant::now()));
    }

    /// Returns whether a read may have missed a write that affects its result. It began at `time`,
    /// which was `moment` on the clock.
    ///
    /// `seen`: the writes that have been checked for this read. It is set to all that have begun.
    pub fn may_have_missed(&self, time: u64, moment: Instant, dependencies: &Dependencies, seen: &mut u64) -> bool {
        let begun = self.begun.load(Ordering::SeqCst);
        let before = std::mem::replace(seen, begun);
        if begun == before {
            return false;
        }
        let writes = self.lock();
        if time <= writes.forgotten {
            return true;
        }
        let finished = writes.finished.iter().rev().take_while(|(finished, _)| *finished >= time);
        let all = finished.map(|(_, write)| write);
        let all = all.chain(writes.in_flight.iter().map(|one| &one.write));
        let is_unchecked = |one: &&Write| one.number > before && !one.changes.are_visible_to(moment);
        let missed: SmallVec<[Arc<Changes>; 8]> = all.filter(is_unchecked).map(|one| one.changes.clone()).collect();
        drop(writes);
        let affects = |changes: &Arc<Changes>| {
            changes.iter().any(|(namespace, change)| dependencies.is_affected(namespace, change))
        };
        missed.iter().any(affects)
    }

    fn lock(&self) -> MutexGuard<'_, Writes> {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::Namespace;

    fn changes(collection: &str) -> Arc<Changes> {
        let mut changes = Changes::default();
        changes.add_unspecified(&Namespace::new("d", collection));
        changes.into()
    }

    fn misses(writes: &InFlightWrites, time: u64) -> bool {
        let scope = Dependencies::all_documents(Namespace::new("d", "c"), vec![]);
        writes.may_have_missed(time, Instant::now(), &scope, &mut 0)
    }

    #[test]
    fn a_write_that_was_in_flight_when_a_read_began_may_be_missed() {
        let writes = InFlightWrites::new();
        let before = writes.begin_read();
        assert!(!misses(&writes, before));
        let number = writes.begin(changes("c"));
        assert!(misses(&writes, before));
        writes.finish(number);
        assert!(misses(&writes, before) && !misses(&writes, writes.begin_read()));
        writes.finish(writes.begin(changes("other")));
        assert!(!misses(&writes, writes.begin_read()));
        // Lost, it may happen at any time.
        let number = writes.begin(changes("c"));
        writes.outcome_unknown(number);
        writes.finish(number);
        assert!(misses(&writes, writes.begin_read()));
    }

    #[test]
    fn checked_writes_are_not_checked_again() {
        let writes = InFlightWrites::new();
        let scope = Dependencies::all_documents(Namespace::new("d", "c"), vec![]);
        let mut seen = 0;
        writes.begin(changes("c"));
        assert!(writes.may_have_missed(1, Instant::now(), &scope, &mut seen));
        assert!(!writes.may_have_missed(1, Instant::now(), &scope, &mut seen));
        writes.begin(changes("other"));
        assert!(!writes.may_have_missed(1, Instant::now(), &scope, &mut seen));
        writes.begin(changes("c"));
        assert!(writes.may_have_missed(1, Instant::now(), &scope, &mut seen));
    }

    #[test]
    fn a_read_that_outlives_the_remembered_writes_may_have_missed_one() {
        let writes = InFlightWrites::new();
        let before = writes.begin_read();
        for _ in 0..FINISHED_MAX {
            writes.finish(writes.begin(changes("other")));
        }
        assert!(!misses(&writes, before));
        writes.finish(writes.begin(changes("other")));
        assert!(misses(&writes, before) && !misses(&writes, writes.begin_read()));
    }

    #[test]
    fn writes_that_no_read_can_have_missed_are_forgotten() {
        let writes = InFlightWrites::new();
        let change = || writes.finish(writes.begin(changes("c")));
        let remembered = || writes.lock().finished.len();
        change();
        assert_eq!(remembered(), 0);
        let first = writes.begin_read();
        assert!(!misses(&writes, first));
        change();
        let second = writes.begin_read();
        writes.end_read();
        change();
        assert_eq!(remembered(), 2);
        assert!(misses(&writes, first) && misses(&writes, second));
        writes.end_read();
        change();
        assert_eq!(remembered(), 0);
        assert!(misses(&writes, second), "a read that is not counted any more");
        assert!(!misses(&writes, writes.begin_read()));
    }
}
