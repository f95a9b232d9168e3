//! Which versions a document may have: what has been acknowledged and what has been started, shared by all threads.
//!
//! A writer claims a block of documents, says [`Model::begin`] before it sends, and [`Model::acknowledge`] when the reply is there. A reader takes
//! [`Model::low`] before it sends and [`Model::high`] once the reply is there; what it was shown lies between, or the server has
//! given a stale or a made-up answer. What a finished read has seen is acknowledged as well, by [`Model::saw`]: nobody who starts
//! later may see less.
//!
//! Every way in (a gateway, or SQL) is a *source*. With a tolerance, a source may be so far behind what came in by another, and sees
//! its own writes at once.

use super::layout::{BLOCK, Id, Layout, Version};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

pub type Source = usize;

pub struct Model {
    pub layout: Layout,
    started: Vec<AtomicU32>,
    /// Per source and document, what it has to know of.
    acknowledged: Vec<Vec<AtomicU32>>,
    /// When the last write of each document was acknowledged, in microseconds since the beginning.
    acknowledged_us: Vec<AtomicU64>,
    claimed: Vec<AtomicBool>,
    /// Documents that were written last: whom it is worth to ask.
    recent: [AtomicU32; RECENT],
    recent_end: AtomicUsize,
    tolerance: Duration,
    /// What a read has shown need not be known to all before its writer has been told.
    told_only: bool,
    begun: Instant,
}

const RECENT: usize = 32;

/// What other sources have to know later.
#[derive(Default)]
pub struct Later(VecDeque<(Instant, Source, Id, Version)>);

impl Model {
    /// All documents are at the version that `first` tells.
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
            told_only: false,
            begun: Instant::now(),
        }
    }

    /// Counts what writers have been told, and not what reads have shown before that.
    pub fn count_told_only(&mut self) {
        self.told_only = true;
    }

    /// Takes the block of this document, if nobody has it.
    pub fn claim(&self, id: Id) -> bool {
        !self.claimed[(id / BLOCK) as usize].swap(true, SeqCst)
    }

    pub fn release(&self, id: Id) {
        self.claimed[(id / BLOCK) as usize].store(false, SeqCst);
    }

    /// The version of a document that the caller has claimed.
    pub fn current(&self, id: Id) -> Version {
        self.started[id as usize].load(SeqCst)
    }

    /// A write of the next version is about to be sent.
    pub fn begin(&self, id: Id) {
        self.started[id as usize].fetch_add(1, SeqCst);
        self.remember(id);
    }

    /// The write of the current version has been acknowledged to a client of `source`.
    pub fn acknowledge(&self, id: Id, source: Source, later: &mut Later) {
        let version = self.current(id);
        self.acknowledged_us[id as usize].store(self.begun.elapsed().as_micros() as u64, SeqCst);
        if self.tolerance.is_zero() {
            self.acknowledged.iter().for_each(|floors| raise(&floors[id as usize], version));
        } else {
            let own = &self.acknowledged[source][id as usize];
            // On top of a version that the source need not know yet, it may still show the one before both.
            let source = if own.load(SeqCst) + 1 >= version { source } else { Source::MAX };
            if source != Source::MAX {
                raise(own, version);
            }
            let due = Instant::now() + self.tolerance;
            later.0.push_back((due, source, id, version));
        }
        self.remember(id);
    }

    /// A finished read has seen this version. Where sources may be behind one another it says nothing about later ones.
    pub fn saw(&self, id: Id, version: Version) {
        if self.tolerance.is_zero() && !self.told_only {
            self.acknowledged.iter().for_each(|floors| raise(&floors[id as usize], version));
        }
    }

    /// Tells the other sources what they have to know by now.
    pub fn settle(&self, later: &mut Later) {
        if later.0.is_empty() {
            return;
        }
        let now = Instant::now();
        while let Some(&(due, source, id, version)) = later.0.front() {
            if due > now {
                return;
            }
            later.0.pop_front();
            let others = self.acknowledged.iter().enumerate().filter(|(number, _)| *number != source);
            others.for_each(|(_, floors)| raise(&floors[id as usize], version));
        }
    }

    /// The oldest version that a read by this source may see which begins now.
    pub fn low(&self, id: Id, source: Source) -> Version {
        self.acknowledged[source][id as usize].load(SeqCst)
    }

    /// The newest version that a read may have seen which has ended.
    pub fn high(&self, id: Id) -> Version {
        self.started[id as usize].load(SeqCst)
    }

    /// One of the documents that were written last.
    pub fn recent(&self, random: u64) -> Id {
        self.recent[random as usize % RECENT].load(SeqCst)
    }

    fn remember(&self, id: Id) {
        let at = self.recent_end.fetch_add(1, SeqCst);
        self.recent[at % RECENT].store(id, SeqCst);
    }

    /// How long ago a document was written, in words.
    pub fn age(&self, id: Id) -> String {
        let at = Duration::from_micros(self.acknowledged_us[id as usize].load(SeqCst));
        let ago = self.begun.elapsed().saturating_sub(at);
        format!("last acknowledged {:.3} ms before the answer was judged", ago.as_secs_f64() * 1e3)
    }
}

fn raise(floor: &AtomicU32, version: Version) {
    if floor.load(SeqCst) < version {
        floor.fetch_max(version, SeqCst);
    }
}
