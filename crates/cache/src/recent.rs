//! Changes under way and just over: what answers that are being made may have missed.

use crate::scope::Scope;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use store::Changes;

/// Changes that are over are remembered up to this number. A read that takes longer than they reach back is not kept.
const REMEMBERED_MAX: usize = 512;

/// How long changes of which nobody knows what has become are taken to be under way.
const LOST_FOR: Duration = Duration::from_secs(120);

/// When a change is settled, by the cache's own count; this stands for "not yet".
const UNDER_WAY: u64 = u64::MAX;

/// It was lost so long ago that it has happened by now, or never will.
const LOST: u64 = u64::MAX - 1;

/// Changes announced together.
#[derive(Debug)]
pub struct Announcement {
    pub changes: Changes,
    /// The time at which the changes could be seen by everybody.
    settled: AtomicU64,
    lost: std::sync::OnceLock<Instant>,
}

impl Announcement {
    pub fn new(changes: Changes) -> Arc<Announcement> {
        Arc::new(Announcement { changes, settled: AtomicU64::new(UNDER_WAY), lost: std::sync::OnceLock::new() })
    }

    pub fn settle(&self, time: u64) {
        self.settled.store(time, Ordering::SeqCst);
    }

    pub fn lose(&self) {
        let _ = self.lost.set(Instant::now());
    }

    /// Whether a read that began at `time` may have missed it.
    fn may_be_missed(&self, time: u64) -> bool {
        match self.settled() {
            Some(LOST) => self.lost.get().is_some_and(|since| since.elapsed() < 2 * LOST_FOR),
            Some(settled) => settled >= time,
            None => true,
        }
    }

    fn settled(&self) -> Option<u64> {
        match self.settled.load(Ordering::SeqCst) {
            UNDER_WAY if self.lost.get().is_some_and(|since| since.elapsed() > LOST_FOR) => Some(LOST),
            UNDER_WAY => None,
            time => Some(time),
        }
    }
}

/// The changes, the latest last.
#[derive(Default)]
pub struct Recent {
    announcements: VecDeque<Arc<Announcement>>,
    /// Changes up to this time are not remembered any more.
    forgotten: u64,
}

impl Recent {
    pub fn push(&mut self, announcement: Arc<Announcement>) {
        self.announcements.push_back(announcement);
        if self.announcements.len() > REMEMBERED_MAX {
            let mut spare = REMEMBERED_MAX / 4;
            let forgotten = &mut self.forgotten;
            self.announcements.retain(|announcement| match announcement.settled().filter(|_| spare > 0) {
                Some(settled) => {
                    spare -= 1;
                    // One that was lost has its end now.
                    *forgotten = (*forgotten).max(if settled == LOST { 0 } else { settled });
                    false
                }
                None => true,
            });
        }
    }

    /// Whether a read that began at `time` (at that moment of the clock) may have missed a change that matters to what it was to find out.
    pub fn may_have_missed(&self, time: u64, moment: Instant, scope: &Scope) -> bool {
        let missed = |announcement: &&Arc<Announcement>| {
            announcement.may_be_missed(time) && !announcement.changes.are_seen_by(moment)
        };
        let matters = |announcement: &Arc<Announcement>| {
            announcement.changes.iter().any(|(namespace, change)| scope.is_affected(namespace, change))
        };
        time <= self.forgotten || self.announcements.iter().rev().filter(missed).any(matters)
    }
}
