//! The clock of the cluster that this process presents: the times of writes, which clients send
//! back to read after them.
//!
//! It is a hybrid clock. A write gets a time after all earlier ones, and not before the wall clock.
//! A client's `$clusterTime` moves it forward. The time of the last write that is committed is
//! `operationTime` in replies.

use document::Value;
use error::{Code, Error, Result};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// How far ahead of the wall clock a client may move the clock, as in MongoDB
/// (`maxAcceptableLogicalClockDriftSecs`).
const AHEAD_SECONDS_MAX: u32 = 365 * 24 * 60 * 60;

/// The same with access control, since times are not signed. Clocks of machines differ by less.
const AHEAD_SECONDS_MAX_UNSIGNED: u32 = 60;

/// A point in cluster time: seconds since 1970, and an increment within the second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClusterTime(u64);

impl ClusterTime {
    pub const fn new(seconds: u32, increment: u32) -> ClusterTime {
        ClusterTime((seconds as u64) << 32 | increment as u64)
    }

    /// Returns the time as a number, in the order of times and in BSON's encoding.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    pub const fn seconds(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub const fn increment(self) -> u32 {
        self.0 as u32
    }

    pub fn value(self) -> Value<'static> {
        Value::Timestamp { time: self.seconds(), increment: self.increment() }
    }
}

impl fmt::Display for ClusterTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Timestamp({}, {})", self.seconds(), self.increment())
    }
}

/// The clock. The methods that need the wall clock take its seconds, so that they are pure.
#[derive(Debug)]
pub struct ClusterClock {
    /// The latest time that this process has given to a write, or received.
    now: AtomicU64,
    /// The time of the last committed write.
    committed: AtomicU64,
    ahead_seconds_max: u32,
}

impl ClusterClock {
    /// Creates a clock. `start`: a time not before any that was given to a write. `has_logins`:
    /// whether clients must be prevented from moving the clock far.
    pub fn new(start: ClusterTime, has_logins: bool) -> ClusterClock {
        ClusterClock {
            now: AtomicU64::new(start.0),
            committed: AtomicU64::new(start.0),
            ahead_seconds_max: if has_logins { AHEAD_SECONDS_MAX_UNSIGNED } else { AHEAD_SECONDS_MAX },
        }
    }

    /// Returns the present time: `$clusterTime`.
    pub fn now(&self) -> ClusterTime {
        ClusterTime(self.now.load(Ordering::Acquire))
    }

    /// Returns the time of the last committed write: `operationTime`.
    pub fn committed(&self) -> ClusterTime {
        ClusterTime(self.committed.load(Ordering::Acquire))
    }

    /// Returns a time for a write that is about to be committed, after all earlier times.
    pub fn tick(&self, wall_seconds: u32) -> ClusterTime {
        let next = |now: u64| (now + 1).max(ClusterTime::new(wall_seconds, 1).0);
        let before = self.now.fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| Some(next(now)));
        // The update never refuses.
        ClusterTime(next(before.unwrap_or_else(|now| now)))
    }

    /// Records that a write with this time is committed.
    pub fn note_commit(&self, time: ClusterTime) {
        self.now.fetch_max(time.0, Ordering::AcqRel);
        self.committed.fetch_max(time.0, Ordering::AcqRel);
    }

    /// Gives a time to a write that has just been committed.
    pub fn note_write(&self, wall_seconds: u32) {
        self.note_commit(self.tick(wall_seconds));
    }

    /// Moves the clock forward to a time that a client has received. Fails with 205 if it is too
    /// far ahead of the wall clock.
    pub fn advance(&self, to: ClusterTime, wall_seconds: u32) -> Result<()> {
        if to <= self.now() {
            return Ok(());
        }
        if to.seconds() > wall_seconds.saturating_add(self.ahead_seconds_max) {
            let message = format!(
                "New $clusterTime, {}, is too far from this node's wall clock time, {wall_seconds}.",
                to.seconds()
            );
            return Err(Error::new(Code::CLUSTER_TIME_FAILS_RATE_LIMITER, message));
        }
        self.now.fetch_max(to.0, Ordering::AcqRel);
        Ok(())
    }

    /// Lets `operationTime` reach a time at which a client wants to read: all writes before it are
    /// committed. Fails with 72 if the clock has not reached it.
    pub fn wait_for(&self, after: ClusterTime, wall_seconds: u32) -> Result<()> {
        self.check_reached("afterClusterTime", after)?;
        if after > self.committed() {
            self.note_write(wall_seconds);
        }
        Ok(())
    }

    /// Fails with 72 if the clock has not reached the time of an option of a read concern.
    pub fn check_reached(&self, option: &str, time: ClusterTime) -> Result<()> {
        let now = self.now();
        if time <= now {
            return Ok(());
        }
        let message = format!(
            "readConcern {option} value must not be greater than the current clusterTime. Requested clusterTime: {{ ts: \
             {time} }}; current clusterTime: {{ ts: {now} }}"
        );
        Err(Error::new(Code::INVALID_OPTIONS, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> ClusterClock {
        ClusterClock::new(ClusterTime::new(100, 1), false)
    }

    #[test]
    fn times_of_writes_rise_with_and_without_the_wall_clock() {
        let clock = clock();
        let times = [90, 100, 101, 101, 50, 102].map(|wall| clock.tick(wall));
        let expected = [(100, 2), (100, 3), (101, 1), (101, 2), (101, 3), (102, 1)];
        assert_eq!(times, expected.map(|(seconds, increment)| ClusterTime::new(seconds, increment)));
        assert_eq!((clock.now(), clock.committed()), (times[5], ClusterTime::new(100, 1)));
        clock.note_commit(times[3]);
        clock.note_commit(times[1]);
        assert_eq!((clock.now(), clock.committed()), (times[5], times[3]));
    }

    #[test]
    fn an_increment_that_overflows_goes_to_the_next_second() {
        let clock = ClusterClock::new(ClusterTime::new(100, u32::MAX), false);
        assert_eq!(clock.tick(100), ClusterTime::new(101, 0));
    }

    #[test]
    fn clients_move_the_clock_within_limits() {
        let clock = clock();
        clock.advance(ClusterTime::new(99, 7), 100).unwrap();
        assert_eq!(clock.now(), ClusterTime::new(100, 1));
        clock.advance(ClusterTime::new(200, 7), 100).unwrap();
        assert_eq!((clock.now(), clock.committed()), (ClusterTime::new(200, 7), ClusterTime::new(100, 1)));
        let far = clock.advance(ClusterTime::new(101 + AHEAD_SECONDS_MAX, 1), 100).unwrap_err();
        assert_eq!(far.code().0, 205);
        assert_eq!(clock.tick(150), ClusterTime::new(200, 8));
        let with_logins = ClusterClock::new(ClusterTime::new(100, 1), true);
        assert!(with_logins.advance(ClusterTime::new(161, 0), 100).is_err());
        with_logins.advance(ClusterTime::new(160, 9), 100).unwrap();
        // A time of the clock itself is never too far ahead of a wall clock that was set back.
        with_logins.advance(ClusterTime::new(160, 9), 1).unwrap();
    }

    #[test]
    fn reads_after_a_time_see_at_least_that_operation_time() {
        let clock = clock();
        assert_eq!(clock.wait_for(ClusterTime::new(200, 1), 100).unwrap_err().code().0, 72);
        clock.advance(ClusterTime::new(200, 1), 100).unwrap();
        clock.wait_for(ClusterTime::new(200, 1), 100).unwrap();
        assert_eq!(clock.committed(), ClusterTime::new(200, 2));
        clock.wait_for(ClusterTime::new(150, 1), 100).unwrap();
        assert_eq!(clock.committed(), ClusterTime::new(200, 2));
    }
}
