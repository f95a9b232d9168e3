//! A rate limit shared by all workers: so many events per second, with bursts.
//!
//! This is the generic cell rate algorithm: a token bucket whose state is one number, the moment at
//! which the bucket will be full again. So a limit that many threads share is one atomic variable.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A token bucket that is full at first.
#[derive(Debug)]
pub struct RateLimit {
    began: Instant,
    /// Nanoseconds between two tokens.
    interval: u64,
    /// How far before the bucket is full again tokens may be taken, in nanoseconds.
    burst: u64,
    /// The moment at which the bucket will be full, in nanoseconds since `began`.
    full_at: AtomicU64,
}

impl RateLimit {
    /// Creates a limit of `per_second` events, of which those of `burst` may happen at once. `now`:
    /// the current time.
    pub fn new(per_second: u32, burst: Duration, now: Instant) -> RateLimit {
        let interval = 1_000_000_000 / u64::from(per_second.max(1));
        let burst = u64::try_from(burst.as_nanos()).unwrap_or(u64::MAX / 4).max(interval);
        RateLimit { began: now, interval, burst, full_at: AtomicU64::new(0) }
    }

    /// Takes a token. Returns false if there is none.
    pub fn take(&self, now: Instant) -> bool {
        self.reserve(now, 0).is_some()
    }

    /// Takes a token that may exist only later: at most as many others may be reserved before it as
    /// `queue_max`. Returns the time until then, or `None` if too many are reserved.
    pub fn reserve(&self, now: Instant, queue_max: u32) -> Option<Duration> {
        let now = u64::try_from(now.saturating_duration_since(self.began).as_nanos()).unwrap_or(u64::MAX / 4);
        let ahead_max = self.burst.saturating_add(self.interval.saturating_mul(u64::from(queue_max)));
        let mut wait = 0;
        let taken = self.full_at.fetch_update(Relaxed, Relaxed, |full_at| {
            let full_after = full_at.max(now).saturating_add(self.interval);
            let ahead = full_after - now;
            wait = ahead.saturating_sub(self.burst);
            (ahead <= ahead_max).then_some(full_after)
        });
        taken.ok().map(|_| Duration::from_nanos(wait))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_admitted_and_then_the_rate() {
        let start = Instant::now();
        let limit = RateLimit::new(10, Duration::from_secs(2), start);
        let taken = |at: Duration| (0..1000).filter(|_| limit.take(start + at)).count();
        assert_eq!(taken(Duration::ZERO), 20);
        assert_eq!(taken(Duration::from_millis(99)), 0);
        assert_eq!(taken(Duration::from_millis(300)), 3);
        assert_eq!(taken(Duration::from_secs(60)), 20, "no more than the burst is saved up");
    }

    #[test]
    fn a_queue_is_served_at_the_rate() {
        let start = Instant::now();
        let limit = RateLimit::new(10, Duration::from_millis(100), start);
        let waits: Vec<Option<u128>> = (0..4).map(|_| limit.reserve(start, 2).map(|wait| wait.as_millis())).collect();
        assert_eq!(waits, [Some(0), Some(100), Some(200), None]);
        assert_eq!(limit.reserve(start + Duration::from_millis(150), 2).map(|wait| wait.as_millis()), Some(150));
    }
}
