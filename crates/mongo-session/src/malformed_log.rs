//! Rate-limited log lines about clients that send malformed messages.

use std::cell::Cell;
use std::fmt::Display;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The most lines per worker and [`WINDOW`].
const LINES_MAX: u32 = 10;
const WINDOW: Duration = Duration::from_secs(10);

/// A worker's recent log lines.
#[derive(Debug)]
pub(crate) struct MalformedLog {
    window_began: Cell<Instant>,
    lines: Cell<u32>,
    suppressed: Cell<u64>,
}

impl Default for MalformedLog {
    fn default() -> Self {
        MalformedLog { window_began: Cell::new(Instant::now()), lines: Cell::new(0), suppressed: Cell::new(0) }
    }
}

impl MalformedLog {
    /// Logs that a connection was closed, with the reason.
    pub fn log_closed(&self, connection: u64, client: Option<SocketAddr>, reason: &dyn Display) {
        if !self.may_log(Instant::now()) {
            return;
        }
        let client = client.map_or_else(|| "a local socket".to_owned(), |client| client.to_string());
        let suppressed = self.suppressed.take();
        if suppressed > 0 {
            tracing::warn!(suppressed, "suppressed log lines about malformed messages");
        }
        tracing::warn!(connection, client, "closed a connection: {reason}");
    }

    fn may_log(&self, now: Instant) -> bool {
        if now.duration_since(self.window_began.get()) >= WINDOW {
            self.window_began.set(now);
            self.lines.set(0);
        }
        self.lines.set(self.lines.get().saturating_add(1));
        let may_log = self.lines.get() <= LINES_MAX;
        if !may_log {
            self.suppressed.set(self.suppressed.get() + 1);
        }
        may_log
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_logs_a_few_lines_per_window() {
        let malformed_log = MalformedLog::default();
        let start = Instant::now();
        let logged = |at: Instant| (0..1000).filter(|_| malformed_log.may_log(at)).count();
        assert_eq!(logged(start), 10);
        assert_eq!(logged(start + WINDOW * 2), 10);
        assert_eq!(malformed_log.suppressed.get(), 1980);
    }
}
