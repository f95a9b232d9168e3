//! Counters of the router `read-write-split`, of one service.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The counters of a service.
#[derive(Debug, Default)]
pub struct SplitStatistics {
    /// Statements that the primary has executed.
    pub to_primary: Counter,
    /// Statements that replicas have executed.
    pub to_replicas: Counter,
    /// Reads that were repeated on another server, because theirs was lost.
    pub reads_retried: Counter,
    /// Reads that waited on a replica for writes before them.
    pub causal_waits: Counter,
    /// Of these, those that waited too long, and went to the primary.
    pub causal_timeouts: Counter,
    /// Connections of sessions that went over to another primary.
    pub primary_changes: Counter,
    /// Transactions that were executed again, and those whose replies were not the same then.
    pub transactions_replayed: Counter,
    pub replays_failed: Counter,
    /// Sessions that use the primary alone, because Selkie cannot log in elsewhere for them.
    pub sessions_on_primary: Counter,
}

/// A counter with many writers.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn increment(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
