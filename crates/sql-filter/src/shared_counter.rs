//! A counter of the process that many threads change.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A counter with many writers.
#[derive(Debug, Default)]
pub struct SharedCounter(AtomicU64);

impl SharedCounter {
    pub fn increment(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    pub fn decrement(&self) {
        self.0.fetch_sub(1, Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
