//! One shard of the cache, behind one lock.

use crate::changed_fields::ChangedFields;
use crate::dependencies::{Dependencies, DocumentSet};
use crate::eviction_queues::{EntryState, EvictionQueues, QueuePosition, QueuedEntries, Ticket};
use crate::in_flight_writes::InFlightWrites;
use crate::invalidation_index::Placement;
use crate::key_directory::{self, KeyDirectory, SLOTS_MAX};
use crate::settings::CacheSettings;
use crate::statistics::{NotCached, Statistics};
use ahash::AHashMap;
use hashbrown::HashTable;
use std::sync::Arc;
use std::time::Instant;
use store::{Change, Changes, Namespace};
use tokio::sync::watch;

/// What an entry takes beside its key, its dependencies and its reply: its place in the tables
/// here.
const OVERHEAD_BYTES: usize = 320;

/// An entry that takes more microseconds per kilobyte to compute counts as hit once.
const COSTLY_US_PER_KB: u64 = 200;

/// Keys whose replies could not be cached, remembered so that no caller waits for them.
const REFUSED_MAX: usize = 4096;

/// The outcome of a lookup in a shard.
pub enum ShardLookup<A> {
    Hit(Arc<A>),
    /// Another caller is computing the reply.
    InFlight(watch::Receiver<()>),
    Miss,
}

/// Single-flight: held by the caller that computes a reply; callers that wait are woken when it is
/// dropped.
pub type FlightGuard = watch::Sender<()>;

pub struct Shard<A> {
    slots: Vec<Option<Slot<A>>>,
    generations: Vec<u32>,
    free: Vec<u32>,
    by_key: HashTable<u32>,
    /// The shard's number.
    part: usize,
    /// Finds the shard's entries by what they depend on.
    directory: Arc<KeyDirectory>,
    in_flight: Arc<InFlightWrites>,
    queues: EvictionQueues,
    flights: AHashMap<Box<[u8]>, watch::Receiver<()>>,
    refused: AHashMap<u64, NotCached>,
    bytes: usize,
    statistics: Statistics,
}

struct Slot<A> {
    key: Box<[u8]>,
    hash: u64,
    reply: Arc<A>,
    dependencies: Dependencies,
    placement: Placement,
    position: QueuePosition,
    bytes: usize,
    stored_ms: i64,
    computed_us: u64,
    /// When the computation began.
    started: Instant,
    /// A caller is computing a newer reply.
    is_being_refreshed: bool,
    /// Hit since the last [`Shard::evict_unindexed`].
    is_recently_hit: bool,
}

/// Why an entry is removed.
#[derive(Clone, Copy)]
enum RemovalReason {
    Invalidated,
    Evicted,
    Expired,
    Replaced,
}

/// A new entry.
pub struct NewEntry<A> {
    pub key: Box<[u8]>,
    pub hash: u64,
    pub reply: Arc<A>,
    pub reply_bytes: usize,
    pub dependencies: Dependencies,
    pub began: u64,
    pub started: Instant,
    pub now_ms: i64,
}

impl<A> Shard<A> {
    pub fn new(part: usize, directory: Arc<KeyDirectory>, in_flight: Arc<InFlightWrites>) -> Shard<A> {
        Shard {
            slots: Vec::new(),
            generations: Vec::new(),
            free: Vec::new(),
            by_key: HashTable::new(),
            part,
            directory,
            in_flight,
            queues: EvictionQueues::default(),
            flights: AHashMap::default(),
            refused: AHashMap::default(),
            bytes: 0,
            statistics: Statistics::default(),
        }
    }

    /// Returns the cached reply. `makes`: if it is due to be recomputed, the caller will do so.
    pub fn look_up(
        &mut self,
        key: &[u8],
        hash: u64,
        now_ms: i64,
        makes: bool,
        settings: &CacheSettings,
    ) -> Option<Arc<A>> {
        let number = *self.by_key.find(hash, |&number| self.has_key(number, key))?;
        let slot = self.slots.get_mut(number as usize)?.as_mut()?;
        let age_ms = now_ms.saturating_sub(slot.stored_ms);
        if settings.hard_ttl_ms.is_some_and(|limit| age_ms >= limit) {
            self.remove(number, RemovalReason::Expired);
            return None;
        }
        if settings.soft_ttl_ms.is_some_and(|limit| age_ms >= limit) {
            if !slot.is_being_refreshed {
                // The first reader to notice computes a newer reply.
                slot.is_being_refreshed = makes;
                return None;
            }
            self.statistics.stale_hits += 1;
        }
        slot.position.record_hit();
        slot.is_recently_hit = true;
        self.statistics.hits += 1;
        self.statistics.saved_us += slot.computed_us;
        Some(slot.reply.clone())
    }

    /// As [`Shard::look_up`]; on a miss the caller must compute the reply or wait for another
    /// caller.
    pub fn find(&mut self, key: &[u8], hash: u64, now_ms: i64, settings: &CacheSettings) -> ShardLookup<A> {
        if let Some(reply) = self.look_up(key, hash, now_ms, true, settings) {
            return ShardLookup::Hit(reply);
        }
        match self.flights.get(key).filter(|flight| flight.has_changed().is_ok()) {
            Some(flight) => {
                self.statistics.waits += 1;
                ShardLookup::InFlight(flight.clone())
            }
            None => {
                self.statistics.misses += 1;
                ShardLookup::Miss
            }
        }
    }

    /// Registers the caller as the one that computes the reply. Returns `None` if it is known not
    /// to be cacheable, so that no caller waits.
    pub fn begin_flight(&mut self, key: &[u8], hash: u64) -> Option<FlightGuard> {
        if self.refused.contains_key(&hash) {
            return None;
        }
        let (flight, waiting) = watch::channel(());
        self.flights.insert(key.into(), waiting);
        Some(flight)
    }

    /// Ends a flight. Callers that wait look the reply up again when the guard is dropped, which
    /// must be after this.
    pub fn end_flight(&mut self, key: &[u8], flight: &FlightGuard) {
        if self.flights.get(key).is_some_and(|waiting| waiting.same_channel(&flight.subscribe())) {
            self.flights.remove(key);
        }
    }

    /// Stores an entry, or fails with the reason why it is not cached. Returns its collection if
    /// the entry is unindexed.
    pub fn store(&mut self, mut new: NewEntry<A>, settings: &CacheSettings) -> Result<Option<Namespace>, NotCached> {
        if settings.invalidate_by_collection {
            new.dependencies.documents = DocumentSet::All;
        }
        let limit = settings.bytes / settings.shards;
        let bytes = OVERHEAD_BYTES + 2 * new.key.len() + new.dependencies.bytes() + new.reply_bytes;
        if bytes > limit || self.slots.len() >= SLOTS_MAX && self.free.is_empty() {
            self.refuse(NotCached::TooLarge, new.hash);
            return Err(NotCached::TooLarge);
        }
        let (in_flight, began, started, mut seen) = (self.in_flight.clone(), new.began, new.started, 0);
        let mut missed_write = |dependencies: &Dependencies| {
            !settings.ignore_concurrent_writes && in_flight.may_have_missed(began, started, dependencies, &mut seen)
        };
        if missed_write(&new.dependencies) {
            self.refuse(NotCached::ConcurrentWrite, new.hash);
            return Err(NotCached::ConcurrentWrite);
        }
        self.refused.remove(&new.hash);
        if let Some(&old) = self.by_key.find(new.hash, |&number| self.has_key(number, &new.key)) {
            self.remove(old, RemovalReason::Replaced);
        }
        let NewEntry { key, hash, reply, dependencies, now_ms, .. } = new;
        let computed_us = started.elapsed().as_micros() as u64;
        let number = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.generations.push(0);
            self.slots.len() as u32 - 1
        });
        let is_costly = computed_us * 1024 >= COSTLY_US_PER_KB * bytes as u64;
        let generation = self.generations.get(number as usize).copied().unwrap_or_default();
        let position = self.queues.add((number, generation), hash, bytes, is_costly);
        let placement =
            self.directory.add(key_directory::entry_number(self.part, number), &dependencies, settings.unindexed_max());
        // A write that begins from now on finds the entry; one that began meanwhile may have looked
        // for it too early.
        let missed_write = missed_write(&dependencies);
        let listed = matches!(placement, Placement::Unindexed).then(|| dependencies.namespace.clone());
        self.bytes += bytes;
        self.statistics.stored += 1;
        if let Some(slot) = self.slots.get_mut(number as usize) {
            let stored_ms = now_ms;
            *slot = Some(Slot {
                key,
                hash,
                reply,
                dependencies,
                placement,
                position,
                bytes,
                stored_ms,
                computed_us,
                started,
                is_being_refreshed: false,
                is_recently_hit: false,
            });
        }
        let slots = &self.slots;
        let hash_of = |&number: &u32| slots.get(number as usize).and_then(Option::as_ref).map_or(0, |slot| slot.hash);
        self.by_key.insert_unique(hash, number, hash_of);
        if missed_write {
            self.remove(number, RemovalReason::Invalidated);
            self.refuse(NotCached::ConcurrentWrite, hash);
            return Err(NotCached::ConcurrentWrite);
        }
        self.make_room(limit);
        Ok(listed)
    }

    /// Evicts an unindexed entry, unless it was hit since the last call.
    pub fn evict_unindexed(&mut self, number: u32, namespace: &Namespace) {
        let Some(Some(slot)) = self.slots.get_mut(number as usize) else { return };
        let is_listed = matches!(slot.placement, Placement::Unindexed) && slot.dependencies.namespace == *namespace;
        if is_listed && !std::mem::take(&mut slot.is_recently_hit) {
            self.remove(number, RemovalReason::Evicted);
        }
    }

    fn make_room(&mut self, limit: usize) {
        while self.bytes > limit {
            let mut entries = Slots { slots: &mut self.slots, generations: &self.generations };
            match self.queues.choose_victim(limit, &mut entries) {
                Some((number, _)) => self.remove(number, RemovalReason::Evicted),
                None => break,
            }
        }
        let entries = Slots { slots: &mut self.slots, generations: &self.generations };
        self.queues.compact(self.by_key.len(), |ticket| entries.state(ticket));
    }

    fn remove(&mut self, number: u32, reason: RemovalReason) {
        let Some(slot) = self.slots.get_mut(number as usize).and_then(Option::take) else { return };
        if let Ok(entry) = self.by_key.find_entry(slot.hash, |&other| other == number) {
            entry.remove();
        }
        self.directory.remove(key_directory::entry_number(self.part, number), &slot.dependencies, &slot.placement);
        self.queues.note_removal(slot.position, slot.bytes);
        self.bytes -= slot.bytes;
        if let Some(generation) = self.generations.get_mut(number as usize) {
            *generation = generation.wrapping_add(1);
        }
        self.free.push(number);
        let count = match reason {
            RemovalReason::Invalidated => &mut self.statistics.invalidations,
            RemovalReason::Evicted => &mut self.statistics.evictions,
            RemovalReason::Expired => &mut self.statistics.expirations,
            RemovalReason::Replaced => &mut self.statistics.replacements,
        };
        *count += 1;
    }

    /// Removes an entry if a change affects it. The slot may hold another entry than the one that
    /// was found for the change.
    pub fn invalidate(
        &mut self,
        number: u32,
        (namespace, change): (&Namespace, &Change),
        changed: &ChangedFields<'_>,
        changes: &Changes,
    ) {
        let Some(slot) = self.slots.get(number as usize).and_then(Option::as_ref) else { return };
        // The collections are compared only if the entry depends on several.
        let is_affected = || match !namespace.collection.is_empty() && slot.dependencies.others.is_empty() {
            true => slot.dependencies.is_affected_in_own_namespace(change, changed),
            false => slot.dependencies.is_affected(namespace, change),
        };
        if !changes.are_visible_to(slot.started) && is_affected() {
            self.remove(number, RemovalReason::Invalidated);
        }
    }

    /// Returns whether a reply is cached, or why it was not when it was last computed.
    pub fn explain(
        &self,
        key: &[u8],
        hash: u64,
        now_ms: i64,
        settings: &CacheSettings,
    ) -> Result<(), Option<NotCached>> {
        let number = self.by_key.find(hash, |&number| self.has_key(number, key));
        let slot = number.and_then(|&number| self.slots.get(number as usize)?.as_ref());
        match slot {
            Some(slot) if settings.hard_ttl_ms.is_none_or(|limit| now_ms - slot.stored_ms < limit) => Ok(()),
            _ => Err(self.refused.get(&hash).copied()),
        }
    }

    pub fn count_not_cached(&mut self, why: NotCached) {
        self.statistics.count_not_cached(why);
    }

    /// Counts a reply that is not cached, and remembers the reason.
    pub fn refuse(&mut self, why: NotCached, hash: u64) {
        self.statistics.count_not_cached(why);
        // A concurrent write need not happen again.
        if why != NotCached::ConcurrentWrite {
            if self.refused.len() >= REFUSED_MAX {
                self.refused.clear();
            }
            self.refused.insert(hash, why);
        }
    }

    pub fn statistics(&self) -> Statistics {
        let (entries, bytes) = (self.by_key.len() as u64, self.bytes as u64);
        Statistics { entries, bytes, ..self.statistics.clone() }
    }

    fn has_key(&self, number: u32, key: &[u8]) -> bool {
        self.slots.get(number as usize).and_then(Option::as_ref).is_some_and(|slot| *slot.key == *key)
    }
}

/// The slots as the eviction queues use them.
struct Slots<'s, A> {
    slots: &'s mut [Option<Slot<A>>],
    generations: &'s [u32],
}

impl<A> QueuedEntries for Slots<'_, A> {
    fn state(&self, (number, generation): Ticket) -> EntryState {
        match self.slots.get(number as usize).and_then(Option::as_ref) {
            Some(slot) if self.generations.get(number as usize) == Some(&generation) => {
                EntryState::Present { position: slot.position, bytes: slot.bytes, hash: slot.hash }
            }
            _ => EntryState::Removed,
        }
    }

    fn set_position(&mut self, (number, _): Ticket, position: QueuePosition) {
        if let Some(Some(slot)) = self.slots.get_mut(number as usize) {
            slot.position = position;
        }
    }
}
