//! What goes when memory is full.
//!
//! Three queues, as in S3-FIFO (Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023): what is new waits in a small
//! queue, and goes from its end unless it was asked for; then it moves to the main queue, where it gets another round for each time it
//! is asked for. What went from the small queue is remembered by its hash: when it comes again, it goes to the main queue at once. So a scan
//! over everything passes through the small queue and leaves the rest alone.

use ahash::AHashSet;
use std::collections::VecDeque;

/// The small queue's share of the memory: a tenth.
const SMALL_SHARE: usize = 10;

/// Rounds that an answer can have ahead of it at the most.
const USES_MAX: u8 = 3;

/// An answer's place in its queue, and how often it was asked for since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    in_main: bool,
    uses: u8,
}

impl Standing {
    pub fn note_use(&mut self) {
        self.uses = (self.uses + 1).min(USES_MAX);
    }
}

/// An answer in a queue: by its number, and the number's generation, for it may have gone by other ways.
pub type Ticket = (u32, u32);

#[derive(Default)]
pub struct Queues {
    small: VecDeque<Ticket>,
    main: VecDeque<Ticket>,
    small_bytes: usize,
    main_bytes: usize,
    gone: VecDeque<u64>,
    gone_hashes: AHashSet<u64>,
}

/// Where the answers in the queues stand.
pub trait Standings {
    fn look(&self, ticket: Ticket) -> Verdict;
    fn keep(&mut self, ticket: Ticket, standing: Standing);
}

/// What to do with the answer at the end of a queue.
pub enum Verdict {
    /// It is there no more.
    Gone,
    Standing {
        standing: Standing,
        bytes: usize,
        hash: u64,
    },
}

impl Queues {
    /// Enters a new answer. `is_dear`: it took long to make, for its size.
    pub fn enter(&mut self, ticket: Ticket, hash: u64, bytes: usize, is_dear: bool) -> Standing {
        let in_main = self.gone_hashes.remove(&hash);
        if in_main {
            self.main.push_back(ticket);
            self.main_bytes += bytes;
        } else {
            self.small.push_back(ticket);
            self.small_bytes += bytes;
        }
        Standing { in_main, uses: is_dear.into() }
    }

    /// Notes that an answer has gone, by whatever way.
    pub fn leave(&mut self, standing: Standing, bytes: usize) {
        let queue = if standing.in_main { &mut self.main_bytes } else { &mut self.small_bytes };
        *queue = queue.saturating_sub(bytes);
    }

    /// Finds the answer that is to go; `None` when there is none.
    pub fn choose(&mut self, limit: usize, standings: &mut impl Standings) -> Option<Ticket> {
        loop {
            let from_small = self.small_bytes > limit / SMALL_SHARE || self.main.is_empty();
            let ticket = if from_small { self.small.pop_front() } else { self.main.pop_front() };
            let ticket = match ticket {
                Some(ticket) => ticket,
                None if self.small.is_empty() && self.main.is_empty() => return None,
                // What is counted there has gone by other ways.
                None => {
                    let bytes = if from_small { &mut self.small_bytes } else { &mut self.main_bytes };
                    *bytes = 0;
                    continue;
                }
            };
            let Verdict::Standing { standing, bytes, hash } = standings.look(ticket) else { continue };
            if standing.uses == 0 {
                if from_small {
                    self.remember(hash);
                }
                return Some(ticket);
            }
            if from_small {
                self.small_bytes = self.small_bytes.saturating_sub(bytes);
                self.main_bytes += bytes;
            }
            self.main.push_back(ticket);
            standings.keep(ticket, Standing { in_main: true, uses: if from_small { 0 } else { standing.uses - 1 } });
        }
    }

    /// Drops the tickets of answers that are gone, when they have become many.
    pub fn tidy(&mut self, answers: usize, look: impl Fn(Ticket) -> Verdict) {
        if self.small.len() + self.main.len() > 2 * answers + 1024 {
            let is_there = |ticket: &Ticket| matches!(look(*ticket), Verdict::Standing { .. });
            self.small.retain(is_there);
            self.main.retain(is_there);
        }
    }

    /// As many as there are answers, for that is how long it pays.
    fn remember(&mut self, hash: u64) {
        if self.gone_hashes.insert(hash) {
            self.gone.push_back(hash);
        }
        while self.gone.len() > self.small.len() + self.main.len() + 64 {
            if let Some(oldest) = self.gone.pop_front() {
                self.gone_hashes.remove(&oldest);
            }
        }
    }
}
