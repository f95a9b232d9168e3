//! The age of the follower's knowledge, readable from any thread.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The state of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Changes arrive, and those missed before have been delivered. `strict`: a writer's COMMIT
    /// returns only after the change was delivered (semi-synchronous replication), so deliveries
    /// are never late.
    Following { strict: bool },
    /// Changes do not arrive, or arrive too late. `why` says what to do where that is known. The
    /// follower retries by itself.
    Cut { since: Instant, why: String },
}

/// Shared with the follower's thread; a read is one atomic load.
#[derive(Clone, Debug)]
pub struct Freshness(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    epoch: Instant,
    /// Microseconds from `epoch` to the moment up to which everything is known, plus one; 0 if
    /// nothing is known.
    as_of: AtomicU64,
    state: Mutex<State>,
}

impl Default for Freshness {
    fn default() -> Freshness {
        Freshness::new()
    }
}

impl Freshness {
    pub fn new() -> Freshness {
        let now = Instant::now();
        Freshness(Arc::new(Shared {
            epoch: now,
            as_of: AtomicU64::new(0),
            state: Mutex::new(State::Cut { since: now, why: "not connected yet".into() }),
        }))
    }

    /// Returns the age of the follower's knowledge: every transaction whose COMMIT returned longer
    /// ago has been delivered. It grows while the stream is cut, and otherwise is at most about the
    /// heartbeat period. Returns `None` before the first connection.
    pub fn behind(&self) -> Option<Duration> {
        let as_of = self.0.as_of.load(Ordering::Acquire).checked_sub(1)?;
        Some(self.0.epoch.elapsed().saturating_sub(Duration::from_micros(as_of)))
    }

    /// Returns the state of the stream.
    pub fn state(&self) -> State {
        self.0.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// Notes that everything committed before `moment` has been delivered.
    pub fn advance(&self, moment: Instant) {
        let micros = moment.saturating_duration_since(self.0.epoch).as_micros() as u64 + 1;
        self.0.as_of.fetch_max(micros, Ordering::AcqRel);
    }

    /// Sets the state; returns whether it changed.
    pub fn set_state(&self, state: State) -> bool {
        let mut current = self.0.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let has_changed = *current != state;
        *current = state;
        has_changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knowledge_ages_and_never_goes_back() {
        let freshness = Freshness::new();
        assert_eq!(freshness.behind(), None);
        let early = Instant::now();
        std::thread::sleep(Duration::from_millis(5));
        freshness.advance(Instant::now());
        freshness.advance(early);
        assert!(freshness.behind().unwrap() < early.elapsed());
    }
}
