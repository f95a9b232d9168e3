//! Counts of the keys and documents that the execution of a plan has examined.
//!
//! A scan counts in plain integers and adds them here when it stops; a command or `explain` reads
//! the sums.

use std::ops::{Add, Sub};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts of keys, documents and seeks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Examined {
    /// Index keys.
    pub keys: u64,
    /// Keys that were not skipped: each led to a document, or was counted.
    pub entries: u64,
    pub documents: u64,
    /// Searches in index trees.
    pub seeks: u64,
}

impl Add for Examined {
    type Output = Examined;

    fn add(self, other: Examined) -> Examined {
        Examined {
            keys: self.keys.wrapping_add(other.keys),
            entries: self.entries.wrapping_add(other.entries),
            documents: self.documents.wrapping_add(other.documents),
            seeks: self.seeks.wrapping_add(other.seeks),
        }
    }
}

impl Sub for Examined {
    type Output = Examined;

    fn sub(self, other: Examined) -> Examined {
        Examined {
            keys: self.keys.wrapping_sub(other.keys),
            entries: self.entries.wrapping_sub(other.entries),
            documents: self.documents.wrapping_sub(other.documents),
            seeks: self.seeks.wrapping_sub(other.seeks),
        }
    }
}

/// The sums of a plan, or of a part of it. Only one scan at a time adds to them, so that adding is
/// a load and a store.
#[derive(Debug, Default)]
pub struct ExaminedCounter {
    keys: AtomicU64,
    entries: AtomicU64,
    documents: AtomicU64,
    seeks: AtomicU64,
}

impl ExaminedCounter {
    #[inline]
    pub fn add(&self, more: Examined) {
        let sum = self.get() + more;
        self.keys.store(sum.keys, Relaxed);
        self.entries.store(sum.entries, Relaxed);
        self.documents.store(sum.documents, Relaxed);
        self.seeks.store(sum.seeks, Relaxed);
    }

    pub fn get(&self) -> Examined {
        Examined {
            keys: self.keys.load(Relaxed),
            entries: self.entries.load(Relaxed),
            documents: self.documents.load(Relaxed),
            seeks: self.seeks.load(Relaxed),
        }
    }
}

/// A copy of a plan starts with counts of zero.
impl Clone for ExaminedCounter {
    fn clone(&self) -> ExaminedCounter {
        ExaminedCounter::default()
    }
}
