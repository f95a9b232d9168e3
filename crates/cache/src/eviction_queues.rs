//! The eviction policy: which entry goes when memory is full.
//!
//! Three queues, as in S3-FIFO (Yang et al., "FIFO queues are all you need for cache eviction",
//! SOSP 2023). A new entry enters a small queue, and is evicted at its end unless it was hit; then
//! it moves to the main queue, where each hit gives it another round. The hashes of entries evicted
//! from the small queue are remembered (ghosts): an entry that returns enters the main queue at
//! once. So a scan over everything passes through the small queue and leaves the other entries
//! alone.

use ahash::AHashSet;
use std::collections::VecDeque;

/// The small queue's share of the memory: a tenth.
const SMALL_SHARE: usize = 10;

/// The most hits that count for an entry: each gives it a round in the main queue.
const HITS_MAX: u8 = 3;

/// An entry's queue, and its hits since it entered or came around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuePosition {
    in_main: bool,
    hits: u8,
}

impl QueuePosition {
    pub fn record_hit(&mut self) {
        self.hits = (self.hits + 1).min(HITS_MAX);
    }
}

/// An entry in a queue: its slot and the slot's generation, as it may have been removed otherwise.
pub type Ticket = (u32, u32);

#[derive(Default)]
pub struct EvictionQueues {
    small: VecDeque<Ticket>,
    main: VecDeque<Ticket>,
    small_bytes: usize,
    main_bytes: usize,
    ghosts: VecDeque<u64>,
    ghost_hashes: AHashSet<u64>,
}

/// Access to the entries of the queues.
pub trait QueuedEntries {
    fn state(&self, ticket: Ticket) -> EntryState;
    fn set_position(&mut self, ticket: Ticket, position: QueuePosition);
}

/// The state of a ticket's entry.
pub enum EntryState {
    /// It was removed otherwise.
    Removed,
    Present {
        position: QueuePosition,
        bytes: usize,
        hash: u64,
    },
}

impl EvictionQueues {
    /// Adds a new entry. `is_costly`: it took long to compute for its size, which counts as a hit.
    pub fn add(&mut self, ticket: Ticket, hash: u64, bytes: usize, is_costly: bool) -> QueuePosition {
        let in_main = self.ghost_hashes.remove(&hash);
        if in_main {
            self.main.push_back(ticket);
            self.main_bytes += bytes;
        } else {
            self.small.push_back(ticket);
            self.small_bytes += bytes;
        }
        QueuePosition { in_main, hits: is_costly.into() }
    }

    /// Notes that an entry was removed, for any reason.
    pub fn note_removal(&mut self, position: QueuePosition, bytes: usize) {
        let queue = if position.in_main { &mut self.main_bytes } else { &mut self.small_bytes };
        *queue = queue.saturating_sub(bytes);
    }

    /// Returns the entry to evict; `None` when there is none.
    pub fn choose_victim(&mut self, limit: usize, entries: &mut impl QueuedEntries) -> Option<Ticket> {
        loop {
            let from_small = self.small_bytes > limit / SMALL_SHARE || self.main.is_empty();
            let ticket = if from_small { self.small.pop_front() } else { self.main.pop_front() };
            let ticket = match ticket {
                Some(ticket) => ticket,
                None if self.small.is_empty() && self.main.is_empty() => return None,
                // The bytes still counted belong to entries that were removed otherwise.
                None => {
                    let bytes = if from_small { &mut self.small_bytes } else { &mut self.main_bytes };
                    *bytes = 0;
                    continue;
                }
            };
            let EntryState::Present { position, bytes, hash } = entries.state(ticket) else { continue };
            if position.hits == 0 {
                if from_small {
                    self.add_ghost(hash);
                }
                return Some(ticket);
            }
            if from_small {
                self.small_bytes = self.small_bytes.saturating_sub(bytes);
                self.main_bytes += bytes;
            }
            self.main.push_back(ticket);
            let hits = if from_small { 0 } else { position.hits - 1 };
            entries.set_position(ticket, QueuePosition { in_main: true, hits });
        }
    }

    /// Drops the tickets of removed entries once there are many. `entries`: how many are present.
    pub fn compact(&mut self, entries: usize, state: impl Fn(Ticket) -> EntryState) {
        if self.small.len() + self.main.len() > 2 * entries + 1024 {
            let is_present = |ticket: &Ticket| matches!(state(*ticket), EntryState::Present { .. });
            self.small.retain(is_present);
            self.main.retain(is_present);
        }
    }

    /// Remembers as many evicted entries as there are entries, for longer does not pay.
    fn add_ghost(&mut self, hash: u64) {
        if self.ghost_hashes.insert(hash) {
            self.ghosts.push_back(hash);
        }
        while self.ghosts.len() > self.small.len() + self.main.len() + 64 {
            if let Some(oldest) = self.ghosts.pop_front() {
                self.ghost_hashes.remove(&oldest);
            }
        }
    }
}
