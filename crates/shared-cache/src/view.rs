//! The changes that this gateway knows of, and whether a reply that another gateway stored includes
//! them.
//!
//! A stored reply has the log position up to which its gateway had read before it queried the
//! store. All transactions up to there were visible then, so the reply includes them. This gateway
//! knows the last transaction that changed each collection. A reply is right if it includes that
//! one, and if no change is in flight that the log has not reported yet. A write of this gateway
//! counts from before it is visible until the log has been read beyond it. External writes are
//! known when the log reports them, as for the gateway's own cache.

use ahash::AHashMap;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use store::change_observer::{ChangeOrigin, LogPosition};
use store::{ChangeObserver, Changes, InFlightWrite, Namespace};

/// A position in the log: the last transaction's number for each domain.
pub type Position = BTreeMap<u32, u64>;

/// How long a write with unknown outcome may still commit.
const LOST_FOR: Duration = Duration::from_secs(240);

/// Returns how far the log follower is behind; `None` if that is not known.
type Behind = Box<dyn Fn() -> Option<Duration> + Send + Sync>;

#[derive(Default)]
pub struct View {
    known: Mutex<KnownChanges>,
    behind: OnceLock<Behind>,
}

#[derive(Default)]
struct KnownChanges {
    /// The log's identity; `None` before it is read.
    log: Option<Arc<str>>,
    /// The position up to which it has been read, and is visible to readers of the store.
    read: Position,
    /// The position from which it has been read. Changes before it are not known.
    since: Position,
    /// The last transaction that changed a collection. A namespace without a collection stands for
    /// its whole database, one without a database for everything.
    changed: AHashMap<Namespace, Position>,
    /// Writes of this gateway.
    own: AHashMap<Namespace, Own>,
    /// The log is not followed at the moment.
    follower_lost: bool,
    /// An event of the log has no position.
    is_unordered: bool,
}

#[derive(Default)]
struct Own {
    under_way: usize,
    settled: Option<Instant>,
}

impl View {
    /// Sets the function that returns how far the log follower is behind.
    pub fn set_behind(&self, behind: impl Fn() -> Option<Duration> + Send + Sync + 'static) {
        let _ = self.behind.set(Box::new(behind));
    }

    pub fn set_follower_lost(&self, follower_lost: bool) {
        self.known().follower_lost = follower_lost;
    }

    /// Returns the position up to which the log has been read; `None` while replies cannot be
    /// shared.
    pub fn position(&self) -> Option<Position> {
        let known = self.known();
        (!known.follower_lost && !known.is_unordered && known.log.is_some()).then(|| known.read.clone())
    }

    pub fn log(&self) -> Option<Arc<str>> {
        self.known().log.clone()
    }

    /// Returns whether a reply computed from collections at a log position includes all changes
    /// known here.
    pub fn accepts(&self, namespaces: &[Namespace], position: &Position) -> bool {
        let known_until = self.behind.get().and_then(|behind| Instant::now().checked_sub(behind()?));
        let known = self.known();
        let has = |other: &Position| {
            other.iter().all(|(domain, number)| position.get(domain).is_some_and(|reached| reached >= number))
        };
        let is_quiet = |own: &Own| {
            own.under_way == 0 && own.settled.is_none_or(|settled| known_until.is_some_and(|until| until > settled))
        };
        let is_right = |namespace: &Namespace| {
            known.changed.get(namespace).is_none_or(has) && known.own.get(namespace).is_none_or(is_quiet)
        };
        let with_wider = |namespace: &Namespace| {
            let wider = [Namespace::new(&namespace.database, ""), Namespace::new("", "")];
            is_right(namespace) && wider.iter().all(is_right)
        };
        !known.follower_lost && !known.is_unordered && has(&known.since) && namespaces.iter().all(with_wider)
    }

    fn known(&self) -> MutexGuard<'_, KnownChanges> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, namespaces: &[Namespace], moment: Instant) {
        let mut known = self.known();
        for namespace in namespaces {
            if let Some(own) = known.own.get_mut(namespace) {
                own.under_way = own.under_way.saturating_sub(1);
                own.settled = own.settled.max(Some(moment));
            }
        }
    }
}

fn raise(position: &mut Position, place: LogPosition) {
    let number = position.entry(place.domain).or_default();
    *number = place.sequence.max(*number);
}

/// A view as an observer of a store's changes.
pub struct SharedCacheObserver(pub Arc<View>);

impl ChangeObserver for SharedCacheObserver {
    fn wants_images(&self, _: &Namespace) -> bool {
        false
    }

    fn begin_write(&self, changes: Changes) -> Box<dyn InFlightWrite> {
        let mut known = self.0.known();
        let mut own = Vec::new();
        for (namespace, _) in changes.iter() {
            match changes.origin() {
                ChangeOrigin::Writer if own.contains(namespace) => {}
                ChangeOrigin::Writer => {
                    known.own.entry(namespace.clone()).or_default().under_way += 1;
                    own.push(namespace.clone());
                }
                ChangeOrigin::Log(Some(place)) => raise(known.changed.entry(namespace.clone()).or_default(), place),
                ChangeOrigin::Log(None) => known.is_unordered = true,
            }
        }
        drop(known);
        Box::new(Noted { view: self.0.clone(), own })
    }

    fn log_started(&self, log: &str, position: &[LogPosition]) {
        let mut known = self.0.known();
        let read: Position = position.iter().map(|place| (place.domain, place.sequence)).collect();
        let (own, follower_lost) = (std::mem::take(&mut known.own), known.follower_lost);
        let changed = AHashMap::default();
        *known = KnownChanges {
            log: Some(log.into()),
            since: read.clone(),
            read,
            changed,
            own,
            follower_lost,
            is_unordered: false,
        };
    }

    fn log_advanced(&self, position: &[LogPosition]) {
        let mut known = self.0.known();
        for place in position {
            // If numbers decrease, the position does not show how much was read.
            known.is_unordered |= known.read.get(&place.domain).is_some_and(|number| *number > place.sequence);
            raise(&mut known.read, *place);
        }
    }
}

/// In-flight writes of this gateway.
struct Noted {
    view: Arc<View>,
    own: Vec<Namespace>,
}

impl InFlightWrite for Noted {
    fn outcome_unknown(mut self: Box<Self>) {
        let own = std::mem::take(&mut self.own);
        self.view.settle(&own, Instant::now() + LOST_FOR);
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        self.view.settle(&self.own, Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(domain: u32, sequence: u64) -> LogPosition {
        LogPosition { domain, sequence }
    }

    fn position(places: &[(u32, u64)]) -> Position {
        places.iter().copied().collect()
    }

    fn collection() -> Vec<Namespace> {
        vec![Namespace::new("d", "c")]
    }

    /// A view that has read up to 10, with a follower that is not behind.
    fn view() -> (Arc<View>, SharedCacheObserver) {
        let view = Arc::new(View::default());
        view.set_behind(|| Some(Duration::ZERO));
        let observer = SharedCacheObserver(view.clone());
        observer.log_started("log", &[place(0, 10)]);
        (view, observer)
    }

    fn report(observer: &SharedCacheObserver, namespace: &Namespace, by: Option<LogPosition>) {
        let mut changes = Changes::default();
        changes.add_unspecified(namespace);
        changes.set_read_from_log(by);
        drop(observer.begin_write(changes));
    }

    #[test]
    fn a_reply_must_include_the_logged_changes_of_its_collections() {
        let (view, observer) = view();
        assert!(view.accepts(&collection(), &position(&[(0, 10)])));
        assert!(!view.accepts(&collection(), &position(&[(0, 9)])), "of what was before, nothing is known");
        assert!(!view.accepts(&collection(), &position(&[(1, 10)])), "another log");
        report(&observer, &Namespace::new("d", "c"), Some(place(0, 12)));
        report(&observer, &Namespace::new("d", "other"), Some(place(0, 14)));
        observer.log_advanced(&[place(0, 14)]);
        assert_eq!(view.position(), Some(position(&[(0, 14)])));
        assert!(!view.accepts(&collection(), &position(&[(0, 11)])));
        assert!(view.accepts(&collection(), &position(&[(0, 12)])));
        report(&observer, &Namespace::new("d", ""), Some(place(0, 15)));
        assert!(!view.accepts(&collection(), &position(&[(0, 14)])));
        report(&observer, &Namespace::new("", ""), Some(place(1, 3)));
        assert!(!view.accepts(&collection(), &position(&[(0, 15)])));
        assert!(view.accepts(&collection(), &position(&[(0, 15), (1, 3)])));
    }

    #[test]
    fn own_writes_block_replies_until_the_log_has_passed_them() {
        let view = Arc::new(View::default());
        let behind = Arc::new(Mutex::new(Duration::from_secs(3600)));
        let asked = behind.clone();
        view.set_behind(move || Some(*asked.lock().unwrap()));
        let observer = SharedCacheObserver(view.clone());
        observer.log_started("log", &[place(0, 10)]);
        let reply = position(&[(0, 10)]);
        let mut changes = Changes::default();
        changes.add_unspecified(&collection()[0]);
        let under_way = observer.begin_write(changes.clone());
        *behind.lock().unwrap() = Duration::ZERO;
        assert!(!view.accepts(&collection(), &reply));
        drop(under_way);
        *behind.lock().unwrap() = Duration::from_secs(3600);
        assert!(!view.accepts(&collection(), &reply));
        *behind.lock().unwrap() = Duration::ZERO;
        std::thread::sleep(Duration::from_millis(2));
        assert!(view.accepts(&collection(), &reply), "it has changed nothing, for the log does not tell of it");
        observer.begin_write(changes).outcome_unknown();
        assert!(!view.accepts(&collection(), &reply));
    }

    #[test]
    fn nothing_is_shared_while_the_log_is_not_followed() {
        let (view, observer) = view();
        let reply = position(&[(0, 10)]);
        view.set_follower_lost(true);
        assert!(!view.accepts(&collection(), &reply) && view.position().is_none());
        view.set_follower_lost(false);
        assert!(view.accepts(&collection(), &reply));
        observer.log_advanced(&[place(0, 9)]);
        assert!(!view.accepts(&collection(), &reply), "numbers go back");
        observer.log_started("log", &[place(0, 10)]);
        assert!(view.accepts(&collection(), &reply));
        report(&observer, &collection()[0], None);
        assert!(!view.accepts(&collection(), &reply) && view.position().is_none());
        assert!(View::default().position().is_none());
    }
}
