//! Log lines about clients that send what nobody can understand: a few, however many such clients there are.

use std::cell::Cell;
use std::fmt::Display;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Lines per worker and [`WINDOW`].
const LINES_MAX: u32 = 10;
const WINDOW: Duration = Duration::from_secs(10);

/// How much one worker has complained lately.
#[derive(Debug)]
pub(crate) struct Complaints {
    window_began: Cell<Instant>,
    lines: Cell<u32>,
    passed_over: Cell<u64>,
}

impl Default for Complaints {
    fn default() -> Self {
        Complaints { window_began: Cell::new(Instant::now()), lines: Cell::new(0), passed_over: Cell::new(0) }
    }
}

impl Complaints {
    /// Logs that a connection was closed for what came over it.
    pub fn closed(&self, connection: u64, client: Option<SocketAddr>, reason: &dyn Display) {
        if !self.may_speak(Instant::now()) {
            return;
        }
        let client = client.map_or_else(|| "a local socket".to_owned(), |client| client.to_string());
        let passed_over = self.passed_over.take();
        if passed_over > 0 {
            tracing::warn!(passed_over, "log lines about malformed messages were left out");
        }
        tracing::warn!(connection, client, "closed a connection: {reason}");
    }

    fn may_speak(&self, now: Instant) -> bool {
        if now.duration_since(self.window_began.get()) >= WINDOW {
            self.window_began.set(now);
            self.lines.set(0);
        }
        self.lines.set(self.lines.get().saturating_add(1));
        let may_speak = self.lines.get() <= LINES_MAX;
        if !may_speak {
            self.passed_over.set(self.passed_over.get() + 1);
        }
        may_speak
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_makes_a_few_lines_per_window() {
        let complaints = Complaints::default();
        let start = Instant::now();
        let spoken = |at: Instant| (0..1000).filter(|_| complaints.may_speak(at)).count();
        assert_eq!(spoken(start), 10);
        assert_eq!(spoken(start + WINDOW * 2), 10);
        assert_eq!(complaints.passed_over.get(), 1980);
    }
}
