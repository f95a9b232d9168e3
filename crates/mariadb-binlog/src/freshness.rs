//! How old the follower's knowledge is, for others to ask at any time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Whether the stream flows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Changes come in, and those that were missed before have been handed on. `strict`: the server lets no writer's COMMIT return before the change has been handed on (semi-synchronous
    /// replication), so that nothing handed on is ever late.
    Following { strict: bool },
    /// They do not, or too late, and `why` says what to do where that is known. The follower tries again by itself.
    Cut { since: Instant, why: String },
}

/// Shared with the follower's thread; asking takes a load.
#[derive(Clone, Debug)]
pub struct Freshness(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    epoch: Instant,
    /// Microseconds from `epoch` to the moment up to which everything is known, plus one; zero when nothing is.
    as_of: AtomicU64,
    state: Mutex<State>,
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

    /// Every transaction whose COMMIT returned longer ago than this has been handed on. Holds while the stream is cut, too: then it grows.
    /// `None` before the first connection. While all is well it is at most about the heartbeat period.
    pub fn behind(&self) -> Option<Duration> {
        let as_of = self.0.as_of.load(Ordering::Acquire).checked_sub(1)?;
        Some(self.0.epoch.elapsed().saturating_sub(Duration::from_micros(as_of)))
    }

    pub fn state(&self) -> State {
        self.0.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// Everything committed before `moment` has been handed on.
    pub fn advance(&self, moment: Instant) {
        let micros = moment.saturating_duration_since(self.0.epoch).as_micros() as u64 + 1;
        self.0.as_of.fetch_max(micros, Ordering::AcqRel);
    }

    /// Gives whether that is news.
    pub fn set_state(&self, state: State) -> bool {
        let mut current = self.0.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let is_news = *current != state;
        *current = state;
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knowledge_grows_old_and_is_never_taken_back() {
        let freshness = Freshness::new();
        assert_eq!(freshness.behind(), None);
        let early = Instant::now();
        std::thread::sleep(Duration::from_millis(5));
        freshness.advance(Instant::now());
        freshness.advance(early);
        assert!(freshness.behind().unwrap() < early.elapsed());
    }
}
