//! The whole cache: its shards, the logical time they share, and its change observer.

use crate::changed_fields::ChangedFields;
use crate::dependencies::Dependencies;
use crate::in_flight_writes::InFlightWrites;
use crate::key_directory::{self, KeyDirectory};
use crate::settings::CacheSettings;
use crate::shard::{FlightGuard, NewEntry, Shard, ShardLookup};
use crate::statistics::{NotCached, Statistics};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use store::{ChangeObserver, Changes, InFlightWrite, Namespace};
use tokio::sync::watch;

/// Numbers threads in the order of their first lookup.
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static THREAD: usize = THREADS.fetch_add(1, Ordering::Relaxed);
}

/// A cache of replies of one kind.
pub struct Cache<A> {
    settings: CacheSettings,
    shards: Box<[Mutex<Shard<A>>]>,
    /// One for several shards.
    directories: Box<[Arc<KeyDirectory>]>,
    in_flight: Arc<InFlightWrites>,
    hasher: ahash::RandomState,
    /// Changes that were observed.
    changes: AtomicU64,
    /// Entries that they were checked against.
    examined: AtomicU64,
    /// The time that writes have spent on invalidation, in nanoseconds.
    invalidation_ns: AtomicU64,
    /// External writes cannot be followed: nothing is returned, nothing is stored.
    follower_lost: AtomicBool,
    /// Since when, in milliseconds of the cache's clock; long ago, if nothing was stored before.
    follower_lost_since_ms: AtomicI64,
    born: Instant,
}

/// The outcome of a lookup.
pub enum CacheLookup<A> {
    Hit(Arc<A>),
    /// Another caller is computing the reply: wait, then look it up again.
    Wait(watch::Receiver<()>),
    /// The caller must compute the reply.
    Compute(ComputePermit<A>),
    /// The caller must compute the reply, and cannot store it.
    Bypass,
}

/// A permit to compute and store a reply. If it is dropped, the callers that wait for the reply go
/// on by themselves.
pub struct ComputePermit<A> {
    cache: Arc<Cache<A>>,
    key: Box<[u8]>,
    hash: u64,
    /// The shard in which the computation was begun.
    part: usize,
    /// The cache's time before the store was queried.
    began: u64,
    started: Instant,
    flight: Option<FlightGuard>,
}

impl<A: Send + Sync + 'static> Cache<A> {
    pub fn new(settings: CacheSettings) -> Arc<Cache<A>> {
        let settings = CacheSettings { shards: settings.shards.max(1), ..settings };
        let directories: Box<[Arc<KeyDirectory>]> = (0..settings.directories()).map(|_| Arc::default()).collect();
        let in_flight = Arc::new(InFlightWrites::new());
        let shard = |part| Shard::new(part, directories[part / key_directory::SHARDS].clone(), in_flight.clone());
        Arc::new(Cache {
            shards: (0..settings.shards).map(|part| Mutex::new(shard(part))).collect(),
            directories,
            in_flight,
            settings,
            hasher: ahash::RandomState::new(),
            changes: AtomicU64::new(0),
            examined: AtomicU64::new(0),
            invalidation_ns: AtomicU64::new(0),
            follower_lost: AtomicBool::new(false),
            follower_lost_since_ms: AtomicI64::new(0),
            born: Instant::now(),
        })
    }

    /// Returns the cached reply, unless it is due to be recomputed.
    pub fn get(&self, key: &[u8], now_ms: i64) -> Option<Arc<A>> {
        if !self.may_serve() {
            return None;
        }
        let hash = self.hasher.hash_one(key);
        self.shard(self.part(hash)).look_up(key, hash, now_ms, false, &self.settings)
    }

    /// Returns the cached reply, or a permit to compute it. `alone` disables single-flight.
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
            ShardLookup::Hit(reply) => return CacheLookup::Hit(reply),
            ShardLookup::InFlight(_) if alone => None,
            ShardLookup::InFlight(flight) => return CacheLookup::Wait(flight),
            ShardLookup::Miss if alone => None,
            ShardLookup::Miss => shard.begin_flight(key, hash),
        };
        drop(shard);
        let began = self.in_flight.begin_read();
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

    /// Stops storing until external writes are followed again. Invalidates everything: at once, or
    /// when they are followed again if stale replies may be returned meanwhile.
    pub fn set_follower_lost(&self, follower_lost: bool) {
        if follower_lost && !self.is_follower_lost() {
            self.follower_lost_since_ms.store(self.clock_ms(), Ordering::SeqCst);
        }
        let forgets = !follower_lost || self.settings.stale_ms.is_none();
        let is_news = self.follower_lost.load(Ordering::SeqCst) != follower_lost;
        if follower_lost {
            self.follower_lost.store(true, Ordering::SeqCst);
        }
        if is_news && forgets {
            let mut changes = Changes::default();
            changes.add_unspecified(&Namespace::new("", ""));
            self.in_flight.finish(self.invalidate(changes));
        }
        self.follower_lost.store(follower_lost, Ordering::SeqCst);
    }

    /// Returns whether cached replies may be returned.
    fn may_serve(&self) -> bool {
        let is_recent = |limit: i64| self.clock_ms() - self.follower_lost_since_ms.load(Ordering::SeqCst) < limit;
        !self.is_follower_lost() || self.settings.stale_ms.is_some_and(is_recent)
    }

    fn clock_ms(&self) -> i64 {
        self.born.elapsed().as_millis() as i64
    }

    pub fn is_follower_lost(&self) -> bool {
        self.follower_lost.load(Ordering::SeqCst)
    }

    pub fn settings(&self) -> &CacheSettings {
        &self.settings
    }

    pub fn statistics(&self) -> Statistics {
        let mut sum = Statistics {
            changes: self.changes.load(Ordering::Relaxed),
            invalidation_us: self.invalidation_ns.load(Ordering::Relaxed) / 1000,
            entries_examined: self.examined.load(Ordering::Relaxed),
            ..Statistics::default()
        };
        self.shards.iter().for_each(|shard| sum.add(&lock(shard).statistics()));
        sum
    }

    /// Returns whether the reply is cached, or the reason why it was not when it was last computed,
    /// if that is known. Counts nothing.
    pub fn explain(&self, key: &[u8], now_ms: i64) -> Result<(), Option<NotCached>> {
        let hash = self.hasher.hash_one(key);
        self.shard(self.part(hash)).explain(key, hash, now_ms, &self.settings)
    }

    /// Counts a reply that was not looked up.
    pub fn count_not_cached(&self, why: NotCached) {
        if let Some(shard) = self.shards.first() {
            lock(shard).count_not_cached(why);
        }
    }

    /// Records changes for replies that are being computed, then invalidates what they affect. In
    /// this order, a reply that is stored meanwhile is found, or finds the changes. Returns the
    /// number of the write.
    fn invalidate(&self, changes: Changes) -> u64 {
        steps::unbroken(|| self.invalidate_unbroken(changes))
    }

    fn invalidate_unbroken(&self, changes: Changes) -> u64 {
        // The record of a write must be small.
        const IMAGES_BYTES_MAX: usize = 64 << 10;
        let began = Instant::now();
        let small = (changes.bytes() > IMAGES_BYTES_MAX).then(|| Arc::new(changes.without_images()));
        let changes = Arc::new(changes);
        let number = self.in_flight.begin(small.unwrap_or_else(|| changes.clone()));
        let (mut found, mut examined, mut count) = (Vec::with_capacity(64), 0, 0);
        for (namespace, change) in changes.iter() {
            let changed = ChangedFields::of(change);
            count += 1;
            for (at, directory) in self.directories.iter().enumerate() {
                directory.find(namespace, change, &changed, &mut found);
                examined += found.len() as u64;
                for part in
                    found.chunk_by(|one, other| key_directory::shard_of(*one) == key_directory::shard_of(*other))
                {
                    let Some(first) = part.first() else { continue };
                    let mut shard = self.shard(at * key_directory::SHARDS + key_directory::shard_of(*first));
                    for &number in part {
                        shard.invalidate(key_directory::slot_of(number), (namespace, change), &changed, &changes);
                    }
                }
            }
        }
        self.changes.fetch_add(count, Ordering::Relaxed);
        self.examined.fetch_add(examined, Ordering::Relaxed);
        let took = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.invalidation_ns.fetch_add(took, Ordering::Relaxed);
        number
    }

    /// Evicts unindexed entries of a collection, the oldest first, until there are no more than
    /// allowed. Those that were hit meanwhile get another turn.
    fn evict_unindexed(&self, part: usize, namespace: &Namespace) {
        let unindexed_max = self.settings.unindexed_max();
        let Some(directory) = self.directories.get(part / key_directory::SHARDS) else { return };
        // After one turn of all entries, none has been hit since.
        for _ in 0..2 * unindexed_max + 2 {
            let Some(oldest) = directory.rotate_unindexed(namespace, unindexed_max) else { return };
            let of_oldest = part / key_directory::SHARDS * key_directory::SHARDS + key_directory::shard_of(oldest);
            self.shard(of_oldest).evict_unindexed(key_directory::slot_of(oldest), namespace);
        }
    }

    /// Returns the shard of a key.
    fn part(&self, hash: u64) -> usize {
        // The hash tables within the shards use the other bits.
        let number = if self.settings.per_thread { THREAD.with(|number| *number) } else { (hash >> 40) as usize };
        number % self.shards.len()
    }

    fn shard(&self, part: usize) -> MutexGuard<'_, Shard<A>> {
        lock(&self.shards[part])
    }
}

impl<A: Send + Sync + 'static> ComputePermit<A> {
    /// Stores the reply, or fails with the reason why it is not cached. `bytes`: its size in
    /// memory.
    pub fn store(
        mut self,
        reply: Arc<A>,
        bytes: usize,
        dependencies: Dependencies,
        now_ms: i64,
    ) -> Result<(), NotCached> {
        let new = NewEntry {
            key: std::mem::take(&mut self.key),
            hash: self.hash,
            reply,
            reply_bytes: bytes,
            dependencies,
            began: self.began,
            started: self.started,
            now_ms,
        };
        let listed = steps::unbroken(|| self.insert(new))?;
        listed.into_iter().for_each(|namespace| self.cache.evict_unindexed(self.part, &namespace));
        Ok(())
    }

    fn insert(&self, new: NewEntry<A>) -> Result<Option<Namespace>, NotCached> {
        let mut shard = self.cache.shard(self.part);
        if let Some(flight) = &self.flight {
            shard.end_flight(&new.key, flight);
        }
        if self.cache.is_follower_lost() {
            return Err(NotCached::FollowerLost);
        }
        shard.store(new, &self.cache.settings)
    }

    /// Discards the permit: the reply must not be cached.
    pub fn discard(self, why: NotCached) {
        self.cache.shard(self.part).refuse(why, self.hash);
    }
}

impl<A> Drop for ComputePermit<A> {
    fn drop(&mut self) {
        self.cache.in_flight.end_read();
        if let Some(flight) = self.flight.take()
            && !self.key.is_empty()
        {
            lock(&self.cache.shards[self.part]).end_flight(&self.key, &flight);
        }
    }
}

fn lock<A>(shard: &Mutex<Shard<A>>) -> MutexGuard<'_, Shard<A>> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A write that a store has reported to this cache.
struct CacheWrite<A: Send + Sync + 'static> {
    cache: Arc<Cache<A>>,
    number: u64,
}

/// The cache as an observer of a store's changes.
pub struct CacheObserver<A>(pub Arc<Cache<A>>);

impl<A: Send + Sync + 'static> ChangeObserver for CacheObserver<A> {
    fn wants_images(&self, namespace: &Namespace) -> bool {
        self.0.directories.iter().any(|directory| directory.has_entries(namespace))
    }

    fn begin_write(&self, changes: Changes) -> Box<dyn InFlightWrite> {
        Box::new(CacheWrite { cache: self.0.clone(), number: self.0.invalidate(changes) })
    }
}

impl<A: Send + Sync + 'static> InFlightWrite for CacheWrite<A> {
    fn outcome_unknown(self: Box<Self>) {
        // A write with unknown outcome is not finished when it is dropped.
        self.cache.in_flight.outcome_unknown(self.number);
    }
}

impl<A: Send + Sync + 'static> Drop for CacheWrite<A> {
    fn drop(&mut self) {
        self.cache.in_flight.finish(self.number);
    }
}
