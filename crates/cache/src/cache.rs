//! The whole cache: its parts, the time they share, and what the store tells it.

use crate::changed_fields::Changed;
use crate::dependencies::Dependencies;
use crate::in_flight_writes::Recent;
use crate::key_directory::{self, Directory};
use crate::shard::{Flight, Found, New, Shard};
use crate::statistics::{NotCached, Statistics};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use store::{ChangeObserver, Changes, InFlightWrite, Namespace};
use tokio::sync::watch;

/// How much is kept and for how long.
#[derive(Clone, Debug)]
pub struct CacheSettings {
    /// Memory for answers, keys and what they depend on.
    pub bytes: usize,
    /// Parts of the cache, each with a lock of its own.
    pub shards: usize,
    /// Each thread that asks has a part of its own, in which it alone looks and keeps; else a question belongs to one part, whoever asks.
    pub by_thread: bool,
    /// Older answers are made anew by one of those who ask; the others get the old one meanwhile.
    pub soft_ttl_ms: Option<i64>,
    /// Older answers are not given.
    pub hard_ttl_ms: Option<i64>,
    /// While writes from elsewhere cannot be followed, what was kept before is given for so long.
    pub stale_ms: Option<i64>,
    /// A change takes all answers of its collection: for comparison.
    pub by_collection: bool,
    /// Keeps answers that a change has overtaken: wrong, and there for tests that are to find it out.
    pub ignores_overtaking: bool,
}

/// Answers of a collection that every change is held against: each costs a write a quarter of a microsecond.
const LISTED_MAX: usize = 64;

impl CacheSettings {
    fn directories(&self) -> usize {
        self.shards.div_ceil(key_directory::PARTS)
    }

    /// How many of those answers each directory has.
    pub(crate) fn listed_max(&self) -> usize {
        (LISTED_MAX / self.directories()).max(4)
    }
}

/// Threads in the order in which they first asked.
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static THREAD: usize = THREADS.fetch_add(1, Ordering::Relaxed);
}

/// Answers of one kind.
pub struct Cache<A> {
    settings: CacheSettings,
    shards: Box<[Mutex<Shard<A>>]>,
    /// One for some parts each.
    directories: Box<[Arc<Directory>]>,
    recent: Arc<Recent>,
    hasher: ahash::RandomState,
    /// Changes that were announced.
    changes: AtomicU64,
    /// Answers that they were held against.
    examined: AtomicU64,
    /// The time that writes have spent on throwing answers out, in nanoseconds.
    noting_ns: AtomicU64,
    /// Writes from elsewhere cannot be followed: nothing is given, nothing is kept.
    blind: AtomicBool,
    /// Since when, in milliseconds of the cache's own clock; with nothing from before, long ago.
    blind_since_ms: AtomicI64,
    born: Instant,
}

/// What is found for a question.
pub enum CacheLookup<A> {
    Hit(Arc<A>),
    /// Somebody else is asking the same: worth waiting for, and looking again then.
    Wait(watch::Receiver<()>),
    /// The caller is to ask the store.
    Compute(ComputePermit<A>),
    /// The caller is to ask the store, and to keep the answer for itself.
    Bypass,
}

/// An answer that is being made. Dropped without an answer, those who wait for it go on by themselves.
pub struct ComputePermit<A> {
    cache: Arc<Cache<A>>,
    key: Box<[u8]>,
    hash: u64,
    /// The part of the cache that it was begun in.
    part: usize,
    /// When the store was asked, at the earliest.
    began: u64,
    started: Instant,
    flight: Option<Flight>,
}

impl<A: Send + Sync + 'static> Cache<A> {
    pub fn new(settings: CacheSettings) -> Arc<Cache<A>> {
        let settings = CacheSettings { shards: settings.shards.max(1), ..settings };
        let directories: Box<[Arc<Directory>]> = (0..settings.directories()).map(|_| Arc::default()).collect();
        let recent = Arc::new(Recent::new());
        let shard = |part| Shard::new(part, directories[part / key_directory::PARTS].clone(), recent.clone());
        Arc::new(Cache {
            shards: (0..settings.shards).map(|part| Mutex::new(shard(part))).collect(),
            directories,
            recent,
            settings,
            hasher: ahash::RandomState::new(),
            changes: AtomicU64::new(0),
            examined: AtomicU64::new(0),
            noting_ns: AtomicU64::new(0),
            blind: AtomicBool::new(false),
            blind_since_ms: AtomicI64::new(0),
            born: Instant::now(),
        })
    }

    /// The answer to a question, if there is one that is right and not to be made anew.
    pub fn get(&self, key: &[u8], now_ms: i64) -> Option<Arc<A>> {
        if !self.may_give() {
            return None;
        }
        let hash = self.hasher.hash_one(key);
        self.shard(self.part(hash)).look_up(key, hash, now_ms, false, &self.settings)
    }

    /// The answer, or leave to make it. `alone`: there is no waiting for others who make it.
    pub fn look_up(self: &Arc<Self>, key: &[u8], now_ms: i64, alone: bool) -> CacheLookup<A> {
        if self.is_follower_lost() {
            let stale = self.get(key, now_ms);
            return stale.map_or_else(
                || {
                    self.count_not_cached(NotCached::FollowerLost);
                    CacheLookup::Bypass
                },
                CacheLookup::Hit,
            );
        }
        let hash = self.hasher.hash_one(key);
        let part = self.part(hash);
        let mut shard = self.shard(part);
        let flight = match shard.find(key, hash, now_ms, &self.settings) {
            Found::Answer(answer) => return CacheLookup::Hit(answer),
            Found::UnderWay(_) if alone => None,
            Found::UnderWay(flight) => return CacheLookup::Wait(flight),
            Found::Nothing if alone => None,
            Found::Nothing => shard.take_off(key, hash),
        };
        drop(shard);
        let began = self.recent.begin_read();
        CacheLookup::Compute(ComputePermit {
            cache: self.clone(),
            key: key.into(),
            hash,
            part,
            began,
            started: Instant::now(),
            flight,
        })
    }

    /// Keeps nothing until it is told that writes from elsewhere are followed again, and forgets everything: at once, or then where some of it
    /// may be given for a while.
    pub fn set_follower_lost(&self, blind: bool) {
        if blind && !self.is_follower_lost() {
            self.blind_since_ms.store(self.clock_ms(), Ordering::SeqCst);
        }
        let forgets = !blind || self.settings.stale_ms.is_none();
        let is_news = self.blind.load(Ordering::SeqCst) != blind;
        if blind {
            self.blind.store(true, Ordering::SeqCst);
        }
        if is_news && forgets {
            let mut changes = Changes::default();
            changes.add_unspecified(&Namespace::new("", ""));
            self.recent.settle(self.note(changes));
        }
        self.blind.store(blind, Ordering::SeqCst);
    }

    /// Whether what is kept may be given.
    fn may_give(&self) -> bool {
        let is_recent = |limit: i64| self.clock_ms() - self.blind_since_ms.load(Ordering::SeqCst) < limit;
        !self.is_follower_lost() || self.settings.stale_ms.is_some_and(is_recent)
    }

    fn clock_ms(&self) -> i64 {
        self.born.elapsed().as_millis() as i64
    }

    pub fn is_follower_lost(&self) -> bool {
        self.blind.load(Ordering::SeqCst)
    }

    pub fn settings(&self) -> &CacheSettings {
        &self.settings
    }

    pub fn statistics(&self) -> Statistics {
        let mut sum = Statistics {
            changes: self.changes.load(Ordering::Relaxed),
            changes_us: self.noting_ns.load(Ordering::Relaxed) / 1000,
            examined: self.examined.load(Ordering::Relaxed),
            ..Statistics::default()
        };
        self.shards.iter().for_each(|shard| sum.add(&lock(shard).statistics()));
        sum
    }

    /// Whether the answer to a question is kept, or why it was not when it was made last, if that is known. Counts nothing.
    pub fn explain(&self, key: &[u8], now_ms: i64) -> Result<(), Option<NotCached>> {
        let hash = self.hasher.hash_one(key);
        self.shard(self.part(hash)).explain(key, hash, now_ms, &self.settings)
    }

    /// Notes that an answer was not even looked for.
    pub fn count_not_cached(&self, why: NotCached) {
        if let Some(shard) = self.shards.first() {
            lock(shard).count_refusal(why);
        }
    }

    /// Remembers changes for answers that are being made, then throws out what they can make wrong: in this order, so that an answer that is stored
    /// meanwhile is found, or finds them. Gives the number they are remembered by.
    fn note(&self, changes: Changes) -> u64 {
        steps::unbroken(|| self.note_at_once(changes))
    }

    fn note_at_once(&self, changes: Changes) -> u64 {
        // What is remembered for answers in the making is to be small.
        const IMAGES_BYTES_MAX: usize = 64 << 10;
        let began = Instant::now();
        let small = (changes.bytes() > IMAGES_BYTES_MAX).then(|| Arc::new(changes.without_images()));
        let changes = Arc::new(changes);
        let number = self.recent.announce(small.unwrap_or_else(|| changes.clone()));
        let (mut found, mut examined, mut count) = (Vec::with_capacity(64), 0, 0);
        for (namespace, change) in changes.iter() {
            let changed = Changed::of(change);
            count += 1;
            for (at, directory) in self.directories.iter().enumerate() {
                directory.find(namespace, change, &changed, &mut found);
                examined += found.len() as u64;
                for part in found.chunk_by(|one, other| key_directory::part(*one) == key_directory::part(*other)) {
                    let Some(first) = part.first() else { continue };
                    let mut shard = self.shard(at * key_directory::PARTS + key_directory::part(*first));
                    for &number in part {
                        shard.invalidate(key_directory::slot(number), (namespace, change), &changed, &changes);
                    }
                }
            }
        }
        self.changes.fetch_add(count, Ordering::Relaxed);
        self.examined.fetch_add(examined, Ordering::Relaxed);
        let took = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.noting_ns.fetch_add(took, Ordering::Relaxed);
        number
    }

    /// Lets go of answers of a collection that every change of it is held against, the oldest first, until there are no more than there may be. Those
    /// that somebody was given meanwhile have another turn.
    fn shed(&self, part: usize, namespace: &Namespace) {
        let listed_max = self.settings.listed_max();
        let Some(directory) = self.directories.get(part / key_directory::PARTS) else { return };
        // After one turn of all of them none has been given since.
        for _ in 0..2 * listed_max + 2 {
            let Some(oldest) = directory.turn(namespace, listed_max) else { return };
            let of_oldest = part / key_directory::PARTS * key_directory::PARTS + key_directory::part(oldest);
            self.shard(of_oldest).shed(key_directory::slot(oldest), namespace);
        }
    }

    /// Where a question is looked for.
    fn part(&self, hash: u64) -> usize {
        // The tables inside go by the other bits.
        let number = if self.settings.by_thread { THREAD.with(|number| *number) } else { (hash >> 40) as usize };
        number % self.shards.len()
    }

    fn shard(&self, part: usize) -> MutexGuard<'_, Shard<A>> {
        lock(&self.shards[part])
    }
}

impl<A: Send + Sync + 'static> ComputePermit<A> {
    /// Keeps the answer, if it is still right and worth it. `bytes`: what it takes in memory.
    pub fn store(mut self, answer: Arc<A>, bytes: usize, scope: Dependencies, now_ms: i64) -> Result<(), NotCached> {
        let new = New {
            key: std::mem::take(&mut self.key),
            hash: self.hash,
            answer,
            answer_bytes: bytes,
            scope,
            began: self.began,
            started: self.started,
            now_ms,
        };
        let listed = steps::unbroken(|| self.insert(new))?;
        listed.into_iter().for_each(|namespace| self.cache.shed(self.part, &namespace));
        Ok(())
    }

    fn insert(&self, new: New<A>) -> Result<Option<Namespace>, NotCached> {
        let mut shard = self.cache.shard(self.part);
        if let Some(flight) = &self.flight {
            shard.land(&new.key, flight);
        }
        if self.cache.is_follower_lost() {
            return Err(NotCached::FollowerLost);
        }
        shard.store(new, &self.cache.settings)
    }

    /// Gives up: the answer is not to be kept.
    pub fn discard(self, why: NotCached) {
        self.cache.shard(self.part).refuse(why, self.hash);
    }
}

impl<A> Drop for ComputePermit<A> {
    fn drop(&mut self) {
        self.cache.recent.end_read();
        if let Some(flight) = self.flight.take()
            && !self.key.is_empty()
        {
            lock(&self.cache.shards[self.part]).land(&self.key, &flight);
        }
    }
}

fn lock<A>(shard: &Mutex<Shard<A>>) -> MutexGuard<'_, Shard<A>> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Changes that a store has announced to this cache.
struct Noted<A: Send + Sync + 'static> {
    cache: Arc<Cache<A>>,
    number: u64,
}

/// A cache as stores know it.
pub struct CacheObserver<A>(pub Arc<Cache<A>>);

impl<A: Send + Sync + 'static> ChangeObserver for CacheObserver<A> {
    fn wants_images(&self, namespace: &Namespace) -> bool {
        self.0.directories.iter().any(|directory| directory.knows(namespace))
    }

    fn begin_write(&self, changes: Changes) -> Box<dyn InFlightWrite> {
        Box::new(Noted { cache: self.0.clone(), number: self.0.note(changes) })
    }
}

impl<A: Send + Sync + 'static> InFlightWrite for Noted<A> {
    fn outcome_unknown(self: Box<Self>) {
        // What is lost is not settled when it is dropped.
        self.cache.recent.lose(self.number);
    }
}

impl<A: Send + Sync + 'static> Drop for Noted<A> {
    fn drop(&mut self) {
        self.cache.recent.settle(self.number);
    }
}
