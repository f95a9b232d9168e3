//! One part of the cache, behind one lock: the answers whose keys' hashes fall to it.

use crate::cache::Settings;
use crate::changed::Changed;
use crate::figures::{Figures, Refusal};
use crate::filed::{Filed, Place};
use crate::queues::{Queues, Standing, Standings, Ticket, Verdict};
use crate::recent::{Announcement, Recent};
use crate::scope::{Answer, Reach, Scope, covers};
use crate::ways;
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

/// Answers of a collection that every change is held against, in all parts of the cache: each costs a write a quarter of a microsecond.
const LISTED_MAX: usize = 64;

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
    collections: hashbrown::HashMap<Namespace, Filed, ahash::RandomState>,
    recent: Recent,
    queues: Queues,
    flights: AHashMap<Box<[u8]>, watch::Receiver<()>>,
    refused: AHashMap<u64, Refusal>,
    bytes: usize,
    figures: Figures,
    found: Vec<u32>,
}

struct Slot<A> {
    key: Box<[u8]>,
    hash: u64,
    answer: Arc<A>,
    scope: Scope,
    place: Place,
    standing: Standing,
    bytes: usize,
    stored_ms: i64,
    took_us: u64,
    /// When it was asked for.
    started: Instant,
    /// Somebody makes a newer one.
    refreshed: bool,
    /// Given since the list that it may be in was full.
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
    pub scope: Scope,
    pub began: u64,
    pub started: Instant,
    pub now_ms: i64,
}

impl<A> Default for Shard<A> {
    fn default() -> Self {
        Shard {
            slots: Vec::new(),
            generations: Vec::new(),
            free: Vec::new(),
            by_key: HashTable::new(),
            collections: hashbrown::HashMap::default(),
            recent: Recent::default(),
            queues: Queues::default(),
            flights: AHashMap::default(),
            refused: AHashMap::default(),
            bytes: 0,
            figures: Figures::default(),
            found: Vec::new(),
        }
    }
}

impl<A> Shard<A> {
    /// The answer that is kept, if it may be given. `makes`: where it is to be made anew, the caller is ready to do so.
    pub fn look_up(&mut self, key: &[u8], hash: u64, now_ms: i64, makes: bool, settings: &Settings) -> Option<Arc<A>> {
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
            self.figures.stale += 1;
        }
        slot.standing.note_use();
        slot.given = true;
        self.figures.hits += 1;
        self.figures.saved_us += slot.took_us;
        Some(slot.answer.clone())
    }

    /// As [`Shard::look_up`]; where there is nothing, the caller has to ask the store or wait for somebody who does.
    pub fn find(&mut self, key: &[u8], hash: u64, now_ms: i64, settings: &Settings) -> Found<A> {
        if let Some(answer) = self.look_up(key, hash, now_ms, true, settings) {
            return Found::Answer(answer);
        }
        match self.flights.get(key).filter(|flight| flight.has_changed().is_ok()) {
            Some(flight) => {
                self.figures.waits += 1;
                Found::UnderWay(flight.clone())
            }
            None => {
                self.figures.misses += 1;
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

    /// Keeps an answer, or says why not.
    pub fn store(&mut self, mut new: New<A>, settings: &Settings) -> Result<(), Refusal> {
        if settings.by_collection {
            new.scope.reach = Reach::Everything;
        }
        let limit = settings.bytes / settings.shards;
        let bytes = OVERHEAD_BYTES + 2 * new.key.len() + new.scope.bytes() + new.answer_bytes;
        if bytes > limit {
            self.refuse(Refusal::TooLarge, new.hash);
            return Err(Refusal::TooLarge);
        }
        if !settings.ignores_overtaking && self.recent.may_have_missed(new.began, new.started, &new.scope) {
            self.refuse(Refusal::Overtaken, new.hash);
            return Err(Refusal::Overtaken);
        }
        self.refused.remove(&new.hash);
        if let Some(&old) = self.by_key.find(new.hash, |&number| self.has_key(number, &new.key)) {
            self.remove(old, Reason::Replaced);
        }
        let New { key, hash, answer, scope, now_ms, started, .. } = new;
        let took_us = started.elapsed().as_micros() as u64;
        let number = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.generations.push(0);
            self.slots.len() as u32 - 1
        });
        let is_dear = took_us * 1024 >= DEAR_US_PER_KB * bytes as u64;
        let generation = self.generations.get(number as usize).copied().unwrap_or_default();
        let standing = self.queues.enter((number, generation), hash, bytes, is_dear);
        let place = self.file(number, &scope, settings);
        self.bytes += bytes;
        self.figures.stored += 1;
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
        self.make_room(limit);
        Ok(())
    }

    /// Files an answer by what it depends on.
    fn file(&mut self, number: u32, scope: &Scope, settings: &Settings) -> Place {
        let listed_max = (LISTED_MAX / settings.shards).max(4);
        let filed = self.collections.entry_ref(&scope.namespace).or_default();
        let place = match &scope.reach {
            Reach::Everything => Place::Everything,
            Reach::Matching { predicate, answer } => {
                filed.choose(ways::of(predicate), matches!(answer, Answer::Documents), listed_max)
            }
        };
        if matches!(place, Place::List) && filed.listed().len() >= listed_max {
            self.make_room_in_list(&scope.namespace);
        }
        let predicate = match &scope.reach {
            Reach::Matching { predicate, .. } => Some(&**predicate),
            Reach::Everything => None,
        };
        self.collections.entry_ref(&scope.namespace).or_default().add(number, &place, predicate);
        for other in &scope.others {
            self.collections.entry_ref(other).or_default().add(number, &Place::Everything, None);
        }
        place
    }

    /// The answer goes that has been in the list longest, of those that nobody was given since it was full the last time.
    fn make_room_in_list(&mut self, namespace: &Namespace) {
        let Some(filed) = self.collections.get_mut(namespace) else { return };
        for _ in 0..=filed.listed().len() {
            let Some(oldest) = filed.listed().turn() else { return };
            match self.slots.get_mut(oldest as usize) {
                Some(Some(slot)) if slot.given => slot.given = false,
                _ => return self.remove(oldest, Reason::Memory),
            }
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
        self.unfile(number, &slot.scope.namespace, &slot.place);
        for other in &slot.scope.others {
            self.unfile(number, other, &Place::Everything);
        }
        self.queues.leave(slot.standing, slot.bytes);
        self.bytes -= slot.bytes;
        if let Some(generation) = self.generations.get_mut(number as usize) {
            *generation = generation.wrapping_add(1);
        }
        self.free.push(number);
        let count = match reason {
            Reason::Changed => &mut self.figures.invalidated,
            Reason::Memory => &mut self.figures.evicted,
            Reason::Age => &mut self.figures.expired,
            Reason::Replaced => &mut self.figures.replaced,
        };
        *count += 1;
    }

    fn unfile(&mut self, number: u32, namespace: &Namespace, place: &Place) {
        if let Some(filed) = self.collections.get_mut(namespace) {
            filed.remove(number, place);
            if filed.is_empty() {
                self.collections.remove(namespace);
            }
        }
    }

    /// Throws out what changes can have made wrong, and remembers them for answers that are being made. `changed`: what each is about.
    pub fn take_note(&mut self, announcement: &Announcement, changed: &[Changed<'_>], kept: &Arc<Announcement>) {
        for ((namespace, change), changed) in announcement.changes.iter().zip(changed) {
            self.invalidate(namespace, change, changed, &announcement.changes);
        }
        self.recent.push(kept.clone());
    }

    fn invalidate(&mut self, namespace: &Namespace, change: &Change, changed: &Changed<'_>, changes: &Changes) {
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        if namespace.collection.is_empty() {
            let named = self.collections.iter().filter(|(collection, _)| covers(namespace, collection));
            named.for_each(|(_, filed)| filed.all(&mut found));
        } else if let Some(filed) = self.collections.get(namespace) {
            match change {
                Change::Document { before, after } => {
                    let [before, after] = [before, after].map(|image| image.as_ref().map(document::DocBuf::as_doc));
                    filed.of_images(before, after, changed, &mut found);
                }
                Change::Id(id) => filed.of_id(id.as_value(), &mut found),
                Change::Anything => filed.all(&mut found),
            }
        }
        // Found by its document as it was, and again as it is.
        found.sort_unstable();
        found.dedup();
        // Names are not compared where the answer was found by its only one.
        let is_one = !namespace.collection.is_empty();
        for &number in &found {
            let slot = self.slots.get(number as usize).and_then(Option::as_ref);
            let is_affected = |scope: &Scope| match is_one && scope.others.is_empty() {
                true => scope.is_affected_at_home(change, changed),
                false => scope.is_affected(namespace, change),
            };
            let is_wrong = |slot: &Slot<A>| !changes.are_seen_by(slot.started) && is_affected(&slot.scope);
            if slot.is_some_and(is_wrong) {
                self.remove(number, Reason::Changed);
            }
        }
        self.figures.examined += found.len() as u64;
        self.found = found;
    }

    /// Whether answers are kept that were made from this collection.
    pub fn knows(&self, namespace: &Namespace) -> bool {
        self.collections.contains_key(namespace)
    }

    /// Whether an answer is kept, or why it was not when it was made last.
    pub fn why(&self, key: &[u8], hash: u64, now_ms: i64, settings: &Settings) -> Result<(), Option<Refusal>> {
        let number = self.by_key.find(hash, |&number| self.has_key(number, key));
        let slot = number.and_then(|&number| self.slots.get(number as usize)?.as_ref());
        match slot {
            Some(slot) if settings.hard_ttl_ms.is_none_or(|limit| now_ms - slot.stored_ms < limit) => Ok(()),
            _ => Err(self.refused.get(&hash).copied()),
        }
    }

    pub fn count_refusal(&mut self, why: Refusal) {
        self.figures.refuse(why);
    }

    /// Notes that an answer is not kept.
    pub fn refuse(&mut self, why: Refusal, hash: u64) {
        self.figures.refuse(why);
        // What was overtaken once need not be the next time.
        if why != Refusal::Overtaken {
            if self.refused.len() >= REFUSED_MAX {
                self.refused.clear();
            }
            self.refused.insert(hash, why);
        }
    }

    pub fn figures(&self) -> Figures {
        let (answers, bytes) = (self.by_key.len() as u64, self.bytes as u64);
        Figures { answers, bytes, ..self.figures.clone() }
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
