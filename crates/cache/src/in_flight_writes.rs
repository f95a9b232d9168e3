//! Changes under way and just over: what answers that are being made may have missed.

use crate::dependencies::Dependencies;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use store::Changes;

/// Changes that are over are remembered up to this number, while answers are being made. A read that takes longer than they reach back is not kept.
const REMEMBERED_MAX: usize = 512;

/// How long changes of which nobody knows what has become are taken to be under way: they may still happen in half of it.
const LOST_FOR: Duration = Duration::from_secs(240);

/// The time, which goes up with each change that is settled, and the changes.
pub struct Recent {
    time: AtomicU64,
    /// Answers that are being made.
    reads: AtomicU64,
    /// Announcements so far.
    announced: AtomicU64,
    changes: Mutex<Remembered>,
}

#[derive(Default)]
struct Remembered {
    under_way: Vec<UnderWay>,
    /// With the time at which they could be seen by everybody, the latest last.
    settled: VecDeque<(u64, Announcement)>,
    /// Changes up to this time are not remembered any more.
    forgotten: u64,
}

/// Changes announced together.
#[derive(Clone)]
struct Announcement {
    /// Which one it was, from 1.
    number: u64,
    changes: Arc<Changes>,
}

struct UnderWay {
    announcement: Announcement,
    lost: Option<Instant>,
}

impl Recent {
    pub fn new() -> Recent {
        let (reads, announced) = (AtomicU64::new(0), AtomicU64::new(0));
        Recent { time: AtomicU64::new(1), reads, announced, changes: Mutex::default() }
    }

    /// Begins a read, which [`Recent::end_read`] ends. Gives the time.
    pub fn begin_read(&self) -> u64 {
        // Counted first: whoever settles a change and counts no reads has moved the time past it before.
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.time.load(Ordering::SeqCst)
    }

    pub fn end_read(&self) {
        self.reads.fetch_sub(1, Ordering::SeqCst);
    }

    /// Notes changes that are about to happen. Gives a number for [`Recent::settle`] and [`Recent::lose`].
    pub fn announce(&self, changes: Arc<Changes>) -> u64 {
        let mut remembered = self.lock();
        remembered.under_way.retain(|one| one.lost.is_none_or(|since| since.elapsed() < LOST_FOR));
        let number = self.announced.fetch_add(1, Ordering::SeqCst) + 1;
        remembered.under_way.push(UnderWay { announcement: Announcement { number, changes }, lost: None });
        number
    }

    /// They can be seen by everybody, or will never happen; unless they are lost.
    pub fn settle(&self, number: u64) {
        let mut remembered = self.lock();
        let is_it = |one: &UnderWay| one.announcement.number == number && one.lost.is_none();
        let Some(at) = remembered.under_way.iter().position(is_it) else { return };
        let UnderWay { announcement, .. } = remembered.under_way.swap_remove(at);
        let time = self.time.fetch_add(1, Ordering::SeqCst);
        if self.reads.load(Ordering::SeqCst) == 0 {
            // Nobody may have missed it, nor any before. Writers that meet no readers have their memory again at once.
            remembered.settled.clear();
            remembered.forgotten = time;
            return;
        }
        remembered.settled.push_back((time, announcement));
        if remembered.settled.len() > REMEMBERED_MAX
            && let Some((time, _)) = remembered.settled.pop_front()
        {
            remembered.forgotten = time;
        }
    }

    /// Nobody knows what has become of them.
    pub fn lose(&self, number: u64) {
        let mut remembered = self.lock();
        let found = remembered.under_way.iter_mut().find(|one| one.announcement.number == number);
        found.into_iter().for_each(|one| one.lost = Some(Instant::now()));
    }

    /// Whether a read that began at `time` (at that moment of the clock) may have missed a change that matters to what it was to find out. `seen`:
    /// announcements that have been looked at for it, which are all that there are when this returns.
    pub fn may_have_missed(&self, time: u64, moment: Instant, scope: &Dependencies, seen: &mut u64) -> bool {
        let announced = self.announced.load(Ordering::SeqCst);
        let before = std::mem::replace(seen, announced);
        if announced == before {
            return false;
        }
        let remembered = self.lock();
        if time <= remembered.forgotten {
            return true;
        }
        let settled = remembered.settled.iter().rev().take_while(|(settled, _)| *settled >= time);
        let all = settled.map(|(_, announcement)| announcement);
        let all = all.chain(remembered.under_way.iter().map(|one| &one.announcement));
        let is_news = |one: &&Announcement| one.number > before && !one.changes.are_visible_to(moment);
        let missed: SmallVec<[Arc<Changes>; 8]> = all.filter(is_news).map(|one| one.changes.clone()).collect();
        drop(remembered);
        let matters =
            |changes: &Arc<Changes>| changes.iter().any(|(namespace, change)| scope.is_affected(namespace, change));
        missed.iter().any(matters)
    }

    fn lock(&self) -> MutexGuard<'_, Remembered> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
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

    fn misses(recent: &Recent, time: u64) -> bool {
        let scope = Dependencies::all_documents(Namespace::new("d", "c"), vec![]);
        recent.may_have_missed(time, Instant::now(), &scope, &mut 0)
    }

    #[test]
    fn what_was_not_settled_when_a_read_began_may_be_missed() {
        let recent = Recent::new();
        let before = recent.begin_read();
        assert!(!misses(&recent, before));
        let number = recent.announce(changes("c"));
        assert!(misses(&recent, before));
        recent.settle(number);
        assert!(misses(&recent, before) && !misses(&recent, recent.begin_read()));
        recent.settle(recent.announce(changes("other")));
        assert!(!misses(&recent, recent.begin_read()));
        // Lost, it may happen at any time.
        let number = recent.announce(changes("c"));
        recent.lose(number);
        recent.settle(number);
        assert!(misses(&recent, recent.begin_read()));
    }

    #[test]
    fn what_has_been_looked_at_is_not_looked_at_again() {
        let recent = Recent::new();
        let scope = Dependencies::all_documents(Namespace::new("d", "c"), vec![]);
        let mut seen = 0;
        recent.announce(changes("c"));
        assert!(recent.may_have_missed(1, Instant::now(), &scope, &mut seen));
        assert!(!recent.may_have_missed(1, Instant::now(), &scope, &mut seen));
        recent.announce(changes("other"));
        assert!(!recent.may_have_missed(1, Instant::now(), &scope, &mut seen));
        recent.announce(changes("c"));
        assert!(recent.may_have_missed(1, Instant::now(), &scope, &mut seen));
    }

    #[test]
    fn a_read_that_takes_longer_than_changes_are_remembered_is_not_kept() {
        let recent = Recent::new();
        let before = recent.begin_read();
        for _ in 0..REMEMBERED_MAX {
            recent.settle(recent.announce(changes("other")));
        }
        assert!(!misses(&recent, before));
        recent.settle(recent.announce(changes("other")));
        assert!(misses(&recent, before) && !misses(&recent, recent.begin_read()));
    }

    #[test]
    fn what_nobody_can_have_missed_is_forgotten() {
        let recent = Recent::new();
        let change = || recent.settle(recent.announce(changes("c")));
        let remembered = || recent.lock().settled.len();
        change();
        assert_eq!(remembered(), 0);
        let first = recent.begin_read();
        assert!(!misses(&recent, first));
        change();
        let second = recent.begin_read();
        recent.end_read();
        change();
        assert_eq!(remembered(), 2);
        assert!(misses(&recent, first) && misses(&recent, second));
        recent.end_read();
        change();
        assert_eq!(remembered(), 0);
        assert!(misses(&recent, second), "a read that is not counted any more");
        assert!(!misses(&recent, recent.begin_read()));
    }
}
