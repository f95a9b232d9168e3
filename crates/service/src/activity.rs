//! What a server does for sessions now, and how fast it is.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Each new time changes the smoothed time by this part of the difference.
const SMOOTHING: u64 = 8;

/// The statements that a server is executing, and the time that they take.
#[derive(Debug, Default)]
pub struct Activity {
    outstanding: AtomicUsize,
    /// Nanoseconds to the first byte of a reply; 0 until one was measured.
    smoothed: AtomicU64,
}

/// A statement that a server executes, until this is dropped.
#[derive(Debug)]
pub struct Running<'a> {
    activity: &'a Activity,
    began: Instant,
}

impl Activity {
    /// Notes the beginning of a statement.
    pub fn begin(&self) -> Running<'_> {
        self.outstanding.fetch_add(1, Relaxed);
        Running { activity: self, began: Instant::now() }
    }

    pub fn outstanding(&self) -> usize {
        self.outstanding.load(Relaxed)
    }

    /// Returns the smoothed time of a statement.
    pub fn latency(&self) -> Duration {
        Duration::from_nanos(self.smoothed.load(Relaxed))
    }

    fn record(&self, took: Duration) {
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        // Of two sessions that write at a time, one is lost, which does no harm.
        let before = self.smoothed.load(Relaxed);
        let after = match before {
            0 => took,
            _ => before - before / SMOOTHING + took / SMOOTHING,
        };
        self.smoothed.store(after.max(1), Relaxed);
    }
}

impl Running<'_> {
    /// Notes that the reply has begun.
    pub fn replied(&self) {
        self.activity.record(self.began.elapsed());
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.activity.outstanding.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_smoothed() {
        let activity = Activity::default();
        activity.record(Duration::from_nanos(800));
        assert_eq!(activity.latency(), Duration::from_nanos(800));
        activity.record(Duration::from_nanos(1600));
        assert_eq!(activity.latency(), Duration::from_nanos(900));
        let running = activity.begin();
        assert_eq!(activity.outstanding(), 1);
        running.replied();
        drop(running);
        assert_eq!(activity.outstanding(), 0);
    }
}
