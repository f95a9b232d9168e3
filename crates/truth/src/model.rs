//! The versions that a document may have: acknowledged and started ones, shared by all threads.
//!
//! A writer claims a block of documents, calls [`Model::begin`] before it sends, and
//! [`Model::acknowledge`] when the reply has arrived. A reader takes [`Model::oldest_visible`]
//! before it sends and [`Model::newest_visible`] once the reply has arrived. The version in the
//! reply must be between the two; otherwise it is stale or was never written.
//! [`Model::record_seen`] acknowledges the versions that a finished read has seen: no later read
//! may return older ones.
//!
//! Each path of writes (a gateway, or SQL) is a *source*. With a tolerance, a source may lag behind
//! the writes of others by that time. It sees its own writes at once.

use super::layout::{BLOCK, Id, Layout, Version};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

pub type Source = usize;

pub struct Model {
    pub layout: Layout,
    started: Vec<AtomicU32>,
    /// The version that must be visible, per source and document.
    acknowledged: Vec<Vec<AtomicU32>>,
    /// The time at which the last write of each document was acknowledged, in microseconds since
    /// the start.
    acknowledged_us: Vec<AtomicU64>,
    claimed: Vec<AtomicBool>,
    /// Documents that were written last, which reads prefer.
    recent: [AtomicU32; RECENT],
    recent_end: AtomicUsize,
    tolerance: Duration,
    /// A version that a read has seen need not be visible to others before it is acknowledged.
    acknowledged_only: bool,
    start: Instant,
}

const RECENT: usize = 32;

/// Versions that must become visible to other sources later: when, except to which source, what.
#[derive(Default)]
pub struct Propagations(VecDeque<(Instant, Source, Id, Version)>);

impl Model {
    /// Creates a model in which all documents are at the version that `first` returns.
    pub fn new(layout: Layout, sources: usize, tolerance: Duration, first: impl Fn(Id) -> Version) -> Model {
        let versions = || (0..layout.count()).map(|id| AtomicU32::new(first(id))).collect::<Vec<_>>();
        Model {
            layout,
            started: versions(),
            acknowledged: (0..sources).map(|_| versions()).collect(),
            acknowledged_us: (0..layout.count()).map(|_| AtomicU64::new(0)).collect(),
            claimed: (0..layout.blocks()).map(|_| AtomicBool::new(false)).collect(),
            recent: std::array::from_fn(|_| AtomicU32::new(0)),
            recent_end: AtomicUsize::new(0),
            tolerance,
            acknowledged_only: false,
            start: Instant::now(),
        }
    }

    /// Requires acknowledged versions only, not those that reads have seen before.
    pub fn set_acknowledged_only(&mut self) {
        self.acknowledged_only = true;
    }

    /// Claims the block of this document; returns false if another writer has it.
    pub fn claim(&self, id: Id) -> bool {
        !self.claimed[(id / BLOCK) as usize].swap(true, SeqCst)
    }

    pub fn release(&self, id: Id) {
        self.claimed[(id / BLOCK) as usize].store(false, SeqCst);
    }

    /// Returns the version of a document that the caller has claimed.
    pub fn current(&self, id: Id) -> Version {
        self.started[id as usize].load(SeqCst)
    }

    /// Must be called before a write of the next version is sent.
    pub fn begin(&self, id: Id) {
        self.started[id as usize].fetch_add(1, SeqCst);
        self.remember(id);
    }

    /// Must be called when the write of the current version is acknowledged to a client of
    /// `source`.
    pub fn acknowledge(&self, id: Id, source: Source, propagations: &mut Propagations) {
        let version = self.current(id);
        self.acknowledged_us[id as usize].store(self.start.elapsed().as_micros() as u64, SeqCst);
        if self.tolerance.is_zero() {
            self.acknowledged.iter().for_each(|floors| raise(&floors[id as usize], version));
        } else {
            let own = &self.acknowledged[source][id as usize];
            // If the source need not see the version before yet, it may still return one before
            // both.
            let source = if own.load(SeqCst) + 1 >= version { source } else { Source::MAX };
            if source != Source::MAX {
                raise(own, version);
            }
            let due = Instant::now() + self.tolerance;
            propagations.0.push_back((due, source, id, version));
        }
        self.remember(id);
    }

    /// Records that a finished read has seen this version. Has no effect with a tolerance, because
    /// other sources may lag.
    pub fn record_seen(&self, id: Id, version: Version) {
        if self.tolerance.is_zero() && !self.acknowledged_only {
            self.acknowledged.iter().for_each(|floors| raise(&floors[id as usize], version));
        }
    }

    /// Makes the versions whose tolerance has passed visible to the other sources.
    pub fn propagate_due(&self, propagations: &mut Propagations) {
        if propagations.0.is_empty() {
            return;
        }
        let now = Instant::now();
        while let Some(&(due, source, id, version)) = propagations.0.front() {
            if due > now {
                return;
            }
            propagations.0.pop_front();
            let others = self.acknowledged.iter().enumerate().filter(|(number, _)| *number != source);
            others.for_each(|(_, floors)| raise(&floors[id as usize], version));
        }
    }

    /// Returns the oldest version that a read through this source may see if it begins now.
    pub fn oldest_visible(&self, id: Id, source: Source) -> Version {
        self.acknowledged[source][id as usize].load(SeqCst)
    }

    /// Returns the newest version that a read may have seen if it has ended.
    pub fn newest_visible(&self, id: Id) -> Version {
        self.started[id as usize].load(SeqCst)
    }

    /// Returns one of the documents that were written last.
    pub fn recent(&self, random: u64) -> Id {
        self.recent[random as usize % RECENT].load(SeqCst)
    }

    fn remember(&self, id: Id) {
        let at = self.recent_end.fetch_add(1, SeqCst);
        self.recent[at % RECENT].store(id, SeqCst);
    }

    /// Describes how long ago a document was written.
    pub fn age(&self, id: Id) -> String {
        let at = Duration::from_micros(self.acknowledged_us[id as usize].load(SeqCst));
        let ago = self.start.elapsed().saturating_sub(at);
        format!("last acknowledged {:.3} ms before the reply was checked", ago.as_secs_f64() * 1e3)
    }
}

fn raise(floor: &AtomicU32, version: Version) {
    if floor.load(SeqCst) < version {
        floor.fetch_max(version, SeqCst);
    }
}
