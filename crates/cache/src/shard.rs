//! One part of the cache, behind one lock: the answers whose keys' hashes fall to it.

use crate::cache::CacheSettings;
use crate::changed_fields::Changed;
use crate::dependencies::{Dependencies, DocumentSet};
use crate::eviction_queues::{Queues, Standing, Standings, Ticket, Verdict};
use crate::in_flight_writes::Recent;
use crate::invalidation_index::Place;
use crate::key_directory::{self, Directory, SLOTS_MAX};
use crate::statistics::{NotCached, Statistics};
use ahash::AHashMap;
use hashbrown::HashTable;
use std::sync::Arc;
use std::time::Instant;
use store::{Change, Changes, Namespace};
use tokio::sync::watch;

/// What an answer takes beside its key, its scope and itself: its place in the tables here.
const OVERHEAD_BYTES: usize = 320;

/// An answer that takes so many microseconds per kilobyte to make is worth more than most.
const DEAR_US_PER_KB: u64 = 200;

/// Questions whose answers were not kept are remembered up to this number, so that nobody waits for them.
const REFUSED_MAX: usize = 4096;

/// What is found for a question.
pub enum Found<A> {
    Answer(Arc<A>),
    /// Somebody else is asking the same.
    UnderWay(watch::Receiver<()>),
    Nothing,
}

/// Somebody asks the store, and others wait for it. Dropped when that is over.
pub type Flight = watch::Sender<()>;

pub struct Shard<A> {
    slots: Vec<Option<Slot<A>>>,
    generations: Vec<u32>,
    free: Vec<u32>,
    by_key: HashTable<u32>,
    /// Which part of the cache it is.
    part: usize,
    /// Where its answers are found by what they depend on.
    directory: Arc<Directory>,
    recent: Arc<Recent>,
    queues: Queues,
    flights: AHashMap<Box<[u8]>, watch::Receiver<()>>,
    refused: AHashMap<u64, NotCached>,
    bytes: usize,
    statistics: Statistics,
}

struct Slot<A> {
    key: Box<[u8]>,
    hash: u64,
    answer: Arc<A>,
    scope: Dependencies,
    place: Place,
    standing: Standing,
    bytes: usize,
    stored_ms: i64,
    took_us: u64,
    /// When it was asked for.
    started: Instant,
    /// Somebody makes a newer one.
    refreshed: bool,
    /// Given since the list that it may be in was full the last time.
    given: bool,
}

/// Why an answer goes.
#[derive(Clone, Copy)]
enum Reason {
    Changed,
    Memory,
    Age,
    Replaced,
}

/// A new answer.
pub struct New<A> {
    pub key: Box<[u8]>,
    pub hash: u64,
    pub answer: Arc<A>,
    pub answer_bytes: usize,
    pub scope: Dependencies,
    pub began: u64,
    pub started: Instant,
    pub now_ms: i64,
}

impl<A> Shard<A> {
    pub fn new(part: usize, directory: Arc<Directory>, recent: Arc<Recent>) -> Shard<A> {
        Shard {
            slots: Vec::new(),
            generations: Vec::new(),
            free: Vec::new(),
            by_key: HashTable::new(),
            part,
            directory,
            recent,
            queues: Queues::default(),
            flights: AHashMap::default(),
            refused: AHashMap::default(),
            bytes: 0,
            statistics: Statistics::default(),
        }
    }

    /// The answer that is kept, if it may be given. `makes`: where it is to be made anew, the caller is ready to do so.
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
            self.remove(number, Reason::Age);
            return None;
        }
        if settings.soft_ttl_ms.is_some_and(|limit| age_ms >= limit) {
            if !slot.refreshed {
                // The first to notice makes a newer one.
                slot.refreshed = makes;
                return None;
            }
            self.statistics.stale += 1;
        }
        slot.standing.note_use();
        slot.given = true;
        self.statistics.hits += 1;
        self.statistics.saved_us += slot.took_us;
        Some(slot.answer.clone())
    }

    /// As [`Shard::look_up`]; where there is nothing, the caller has to ask the store or wait for somebody who does.
    pub fn find(&mut self, key: &[u8], hash: u64, now_ms: i64, settings: &CacheSettings) -> Found<A> {
        if let Some(answer) = self.look_up(key, hash, now_ms, true, settings) {
            return Found::Answer(answer);
        }
        match self.flights.get(key).filter(|flight| flight.has_changed().is_ok()) {
            Some(flight) => {
                self.statistics.waits += 1;
                Found::UnderWay(flight.clone())
            }
            None => {
                self.statistics.misses += 1;
                Found::Nothing
            }
        }
    }

    /// Notes that the caller asks the store, for others to wait; not where it is known that nothing will come of it.
    pub fn take_off(&mut self, key: &[u8], hash: u64) -> Option<Flight> {
        if self.refused.contains_key(&hash) {
            return None;
        }
        let (flight, waiting) = watch::channel(());
        self.flights.insert(key.into(), waiting);
        Some(flight)
    }

    /// Notes that the caller has asked the store. Those who wait look again when the flight is dropped, after this.
    pub fn land(&mut self, key: &[u8], flight: &Flight) {
        if self.flights.get(key).is_some_and(|waiting| waiting.same_channel(&flight.subscribe())) {
            self.flights.remove(key);
        }
    }

    /// Keeps an answer, or says why not. Gives its collection if it is one of those that every change of it is held against.
    pub fn store(&mut self, mut new: New<A>, settings: &CacheSettings) -> Result<Option<Namespace>, NotCached> {
        if settings.by_collection {
            new.scope.documents = DocumentSet::All;
        }
        let limit = settings.bytes / settings.shards;
        let bytes = OVERHEAD_BYTES + 2 * new.key.len() + new.scope.bytes() + new.answer_bytes;
        if bytes > limit || self.slots.len() >= SLOTS_MAX && self.free.is_empty() {
            self.refuse(NotCached::TooLarge, new.hash);
            return Err(NotCached::TooLarge);
        }
        let (recent, began, started, mut seen) = (self.recent.clone(), new.began, new.started, 0);
        let mut is_overtaken = |scope: &Dependencies| {
            !settings.ignores_overtaking && recent.may_have_missed(began, started, scope, &mut seen)
        };
        if is_overtaken(&new.scope) {
            self.refuse(NotCached::ConcurrentWrite, new.hash);
            return Err(NotCached::ConcurrentWrite);
        }
        self.refused.remove(&new.hash);
        if let Some(&old) = self.by_key.find(new.hash, |&number| self.has_key(number, &new.key)) {
            self.remove(old, Reason::Replaced);
        }
        let New { key, hash, answer, scope, now_ms, .. } = new;
        let took_us = started.elapsed().as_micros() as u64;
        let number = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.generations.push(0);
            self.slots.len() as u32 - 1
        });
        let is_dear = took_us * 1024 >= DEAR_US_PER_KB * bytes as u64;
        let generation = self.generations.get(number as usize).copied().unwrap_or_default();
        let standing = self.queues.enter((number, generation), hash, bytes, is_dear);
        let place = self.directory.file(key_directory::number(self.part, number), &scope, settings.listed_max());
        // What is announced from now on finds the answer; what was announced meanwhile may have looked for it too early.
        let is_overtaken = is_overtaken(&scope);
        let listed = matches!(place, Place::List).then(|| scope.namespace.clone());
        self.bytes += bytes;
        self.statistics.stored += 1;
        if let Some(slot) = self.slots.get_mut(number as usize) {
            let stored_ms = now_ms;
            *slot = Some(Slot {
                key,
                hash,
                answer,
                scope,
                place,
                standing,
                bytes,
                stored_ms,
                took_us,
                started,
                refreshed: false,
                given: false,
            });
        }
        let slots = &self.slots;
        let hash_of = |&number: &u32| slots.get(number as usize).and_then(Option::as_ref).map_or(0, |slot| slot.hash);
        self.by_key.insert_unique(hash, number, hash_of);
        if is_overtaken {
            self.remove(number, Reason::Changed);
            self.refuse(NotCached::ConcurrentWrite, hash);
            return Err(NotCached::ConcurrentWrite);
        }
        self.make_room(limit);
        Ok(listed)
    }

    /// Lets go of an answer that every change of its collection is held against, unless somebody was given it since it was asked for this
    /// the last time.
    pub fn shed(&mut self, number: u32, namespace: &Namespace) {
        let Some(Some(slot)) = self.slots.get_mut(number as usize) else { return };
        let is_listed = matches!(slot.place, Place::List) && slot.scope.namespace == *namespace;
        if is_listed && !std::mem::take(&mut slot.given) {
            self.remove(number, Reason::Memory);
        }
    }

    fn make_room(&mut self, limit: usize) {
        while self.bytes > limit {
            let mut standings = Slots { slots: &mut self.slots, generations: &self.generations };
            match self.queues.choose(limit, &mut standings) {
                Some((number, _)) => self.remove(number, Reason::Memory),
                None => break,
            }
        }
        let standings = Slots { slots: &mut self.slots, generations: &self.generations };
        self.queues.tidy(self.by_key.len(), |ticket| standings.look(ticket));
    }

    fn remove(&mut self, number: u32, reason: Reason) {
        let Some(slot) = self.slots.get_mut(number as usize).and_then(Option::take) else { return };
        if let Ok(entry) = self.by_key.find_entry(slot.hash, |&other| other == number) {
            entry.remove();
        }
        self.directory.remove(key_directory::number(self.part, number), &slot.scope, &slot.place);
        self.queues.leave(slot.standing, slot.bytes);
        self.bytes -= slot.bytes;
        if let Some(generation) = self.generations.get_mut(number as usize) {
            *generation = generation.wrapping_add(1);
        }
        self.free.push(number);
        let count = match reason {
            Reason::Changed => &mut self.statistics.invalidated,
            Reason::Memory => &mut self.statistics.evicted,
            Reason::Age => &mut self.statistics.expired,
            Reason::Replaced => &mut self.statistics.replaced,
        };
        *count += 1;
    }

    /// Throws an answer out if a change can have made it wrong. It may be another one than the one that was found for the change.
    pub fn invalidate(
        &mut self,
        number: u32,
        (namespace, change): (&Namespace, &Change),
        changed: &Changed<'_>,
        changes: &Changes,
    ) {
        let Some(slot) = self.slots.get(number as usize).and_then(Option::as_ref) else { return };
        // Names are not compared where the answer was found by its only one.
        let is_affected = || match !namespace.collection.is_empty() && slot.scope.others.is_empty() {
            true => slot.scope.is_affected_at_home(change, changed),
            false => slot.scope.is_affected(namespace, change),
        };
        if !changes.are_visible_to(slot.started) && is_affected() {
            self.remove(number, Reason::Changed);
        }
    }

    /// Whether an answer is kept, or why it was not when it was made last.
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

    pub fn count_refusal(&mut self, why: NotCached) {
        self.statistics.refuse(why);
    }

    /// Notes that an answer is not kept.
    pub fn refuse(&mut self, why: NotCached, hash: u64) {
        self.statistics.refuse(why);
        // What was overtaken once need not be the next time.
        if why != NotCached::ConcurrentWrite {
            if self.refused.len() >= REFUSED_MAX {
                self.refused.clear();
            }
            self.refused.insert(hash, why);
        }
    }

    pub fn statistics(&self) -> Statistics {
        let (answers, bytes) = (self.by_key.len() as u64, self.bytes as u64);
        Statistics { answers, bytes, ..self.statistics.clone() }
    }

    fn has_key(&self, number: u32, key: &[u8]) -> bool {
        self.slots.get(number as usize).and_then(Option::as_ref).is_some_and(|slot| *slot.key == *key)
    }
}

/// The slots as the queues see them.
struct Slots<'s, A> {
    slots: &'s mut [Option<Slot<A>>],
    generations: &'s [u32],
}

impl<A> Standings for Slots<'_, A> {
    fn look(&self, (number, generation): Ticket) -> Verdict {
        match self.slots.get(number as usize).and_then(Option::as_ref) {
            Some(slot) if self.generations.get(number as usize) == Some(&generation) => {
                Verdict::Standing { standing: slot.standing, bytes: slot.bytes, hash: slot.hash }
            }
            _ => Verdict::Gone,
        }
    }

    fn keep(&mut self, (number, _): Ticket, standing: Standing) {
        if let Some(Some(slot)) = self.slots.get_mut(number as usize) {
            slot.standing = standing;
        }
    }
}
