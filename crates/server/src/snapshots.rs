//! The snapshots that reads outside of transactions use (`readConcern: {level: "snapshot"}`).
//!
//! The first read of a client's session takes a snapshot, and its reply names the snapshot's time.
//! Later reads name that time, over any connection, so the registry belongs to the process. A
//! snapshot is a transaction of the store that is never committed. It is released at its age, or
//! when there are too many, the least recently used first.

use crate::cluster_clock::ClusterTime;
use error::{Code, Error};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::{FeedPosition, Identity, SnapshotLimits, Transaction};

/// The default of `minSnapshotHistoryWindowInSeconds`.
const WINDOW_SECONDS: i64 = 300;

/// The greatest age of snapshots for which other processes wait.
const WINDOW_SECONDS_SHARED: i64 = 60;

/// The snapshots that are kept.
pub struct Snapshots {
    /// In the order in which they were taken.
    kept: Mutex<Vec<Arc<KeptSnapshot>>>,
    /// Whether there is one, or was one.
    are_used: AtomicBool,
    /// `minSnapshotHistoryWindowInSeconds`.
    window_seconds: AtomicI64,
}

/// A snapshot, and its time.
pub struct KeptSnapshot {
    pub time: ClusterTime,
    pub handle: Arc<dyn Transaction>,
    /// Held by the read that runs: a snapshot serves one read at a time.
    pub turn: Arc<tokio::sync::Mutex<()>>,
    /// Reads of other users do not use it.
    identity: Identity,
    began_ms: i64,
    delays_definitions: bool,
    last_use_ms: AtomicI64,
    is_released: AtomicBool,
}

impl Default for Snapshots {
    fn default() -> Snapshots {
        Snapshots {
            kept: Mutex::default(),
            are_used: AtomicBool::new(false),
            window_seconds: AtomicI64::new(WINDOW_SECONDS),
        }
    }
}

impl fmt::Debug for Snapshots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshots").field("kept", &self.lock().len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for KeptSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptSnapshot").field("time", &self.time).finish_non_exhaustive()
    }
}

/// Each is equal to itself only.
impl PartialEq for KeptSnapshot {
    fn eq(&self, other: &KeptSnapshot) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for KeptSnapshot {}

impl Snapshots {
    /// Returns whether any snapshot has been taken.
    #[inline]
    pub fn are_used(&self) -> bool {
        self.are_used.load(Relaxed)
    }

    pub fn window_seconds(&self) -> i64 {
        self.window_seconds.load(Relaxed)
    }

    pub fn set_window_seconds(&self, seconds: i64) {
        self.window_seconds.store(seconds, Relaxed);
    }

    /// Returns a snapshot that is the state at a time, for reads under an identity.
    pub fn at(&self, time: ClusterTime, identity: &Identity, now_ms: i64) -> Option<Arc<KeptSnapshot>> {
        let kept = self.lock();
        let found = kept.iter().rfind(|snapshot| snapshot.is_at(time) && snapshot.identity == *identity)?;
        found.last_use_ms.store(now_ms, Relaxed);
        Some(found.clone())
    }

    /// Keeps a snapshot under its time.
    pub fn add(
        &self,
        time: ClusterTime,
        handle: Arc<dyn Transaction>,
        identity: Identity,
        limits: SnapshotLimits,
        now_ms: i64,
    ) -> Arc<KeptSnapshot> {
        self.are_used.store(true, Relaxed);
        let added = Arc::new(KeptSnapshot {
            time,
            handle,
            turn: Arc::default(),
            identity,
            began_ms: now_ms,
            delays_definitions: limits.delays_definitions,
            last_use_ms: AtomicI64::new(now_ms),
            is_released: AtomicBool::new(false),
        });
        let mut kept = self.lock();
        while kept.len() >= limits.count.max(1) {
            // Those of open cursors and of running reads last.
            let use_of =
                |snapshot: &Arc<KeptSnapshot>| (Arc::strong_count(snapshot) > 1, snapshot.last_use_ms.load(Relaxed));
            let Some((position, _)) = kept.iter().enumerate().min_by_key(|(_, snapshot)| use_of(snapshot)) else {
                break;
            };
            kept.remove(position).release();
        }
        kept.push(added.clone());
        added
    }

    /// Releases a snapshot.
    pub fn remove(&self, snapshot: &KeptSnapshot) {
        self.lock().retain(|kept| **kept != *snapshot);
        snapshot.release();
    }

    /// Releases the snapshots that are too old. Cheap while there is none.
    pub fn expire(&self, now_ms: i64) {
        if !self.are_used() {
            return;
        }
        let window = self.window_seconds();
        self.lock().retain(|snapshot| {
            let seconds = if snapshot.delays_definitions { window.min(WINDOW_SECONDS_SHARED) } else { window };
            let is_young = now_ms - snapshot.began_ms <= seconds.saturating_mul(1000);
            if !is_young {
                snapshot.release();
            }
            is_young
        });
    }

    /// Returns how many are kept, and the age of the oldest in milliseconds.
    pub fn counts(&self, now_ms: i64) -> (usize, i64) {
        let kept = self.lock();
        (kept.len(), kept.first().map_or(0, |oldest| now_ms - oldest.began_ms))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<KeptSnapshot>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeptSnapshot {
    /// Returns whether reads of it must fail.
    pub fn is_released(&self) -> bool {
        self.is_released.load(Relaxed)
    }

    fn is_at(&self, time: ClusterTime) -> bool {
        let position = FeedPosition { time: time.seconds(), increment: time.increment() };
        self.time == time || self.handle.snapshot_times().is_some_and(|times| times.contain(position))
    }

    fn release(&self) {
        self.is_released.store(true, Relaxed);
        self.handle.abort();
    }
}

/// Returns error 239: no snapshot of the time is kept.
pub fn too_old(time: ClusterTime) -> Error {
    let message = format!("Read timestamp {time} is older than the oldest available timestamp.");
    Error::new(Code::SNAPSHOT_TOO_OLD, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::any::Any;
    use store::SnapshotTimes;

    struct Fake(AtomicBool, Option<SnapshotTimes>);

    impl Transaction for Fake {
        fn as_any(&self) -> &dyn Any {
            self
        }

        fn snapshot_times(&self) -> Option<SnapshotTimes> {
            self.1
        }

        fn abort(&self) {
            self.0.store(true, Relaxed);
        }
    }

    fn fake(times: Option<(u32, u32)>) -> Arc<Fake> {
        let position = |increment| FeedPosition { time: 5, increment };
        let times = times.map(|(first, last)| SnapshotTimes { first: position(first), last: position(last) });
        Arc::new(Fake(AtomicBool::new(false), times))
    }

    fn at(increment: u32) -> ClusterTime {
        ClusterTime::new(5, increment)
    }

    const fn limits(count: usize) -> SnapshotLimits {
        SnapshotLimits { count, delays_definitions: false }
    }

    #[test]
    fn a_snapshot_is_found_at_all_of_its_times_by_its_user_until_its_age() {
        let snapshots = Snapshots::default();
        snapshots.set_window_seconds(10);
        let (exact, wide) = (fake(None), fake(Some((3, 6))));
        snapshots.add(at(1), exact.clone(), Identity::Nobody, limits(9), 0);
        snapshots.add(at(6), wide.clone(), Identity::Gateway, limits(9), 5_000);
        let found = |increment, identity| snapshots.at(at(increment), identity, 0).map(|it| it.time);
        assert_eq!(found(1, &Identity::Nobody), Some(at(1)));
        assert_eq!(found(2, &Identity::Nobody), None);
        assert_eq!([2, 3, 5, 6, 7].map(|it| found(it, &Identity::Gateway).is_some()), [false, true, true, true, false]);
        assert_eq!(found(6, &Identity::Nobody), None);
        snapshots.expire(10_000);
        assert!(!exact.0.load(Relaxed));
        snapshots.expire(10_001);
        assert!(exact.0.load(Relaxed) && !wide.0.load(Relaxed));
        assert_eq!((found(1, &Identity::Nobody), snapshots.counts(10_001)), (None, (1, 5_001)));
    }

    #[test]
    fn beyond_the_limit_the_least_recently_used_one_is_released() {
        let snapshots = Snapshots::default();
        let handles: Vec<Arc<Fake>> = (0..4).map(|_| fake(None)).collect();
        let add = |number: usize| {
            snapshots.add(at(number as u32), handles[number].clone(), Identity::Nobody, limits(3), number as i64)
        };
        drop(add(0));
        let in_use = add(1);
        drop(add(2));
        snapshots.at(at(0), &Identity::Nobody, 100);
        drop(add(3));
        let released: Vec<bool> = handles.iter().map(|handle| handle.0.load(Relaxed)).collect();
        assert_eq!(released, [false, false, true, false]);
        assert!(!in_use.is_released());
        snapshots.remove(&in_use);
        assert!(in_use.is_released() && snapshots.at(at(1), &Identity::Nobody, 0).is_none());
    }
}
