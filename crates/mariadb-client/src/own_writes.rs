//! Transactions that this process has committed, by GTID. The follower of the binary log learns
//! from it when a transaction was acknowledged.

use ahash::AHashMap;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// A transaction's GTID in the binary log: domain, server, sequence number.
pub type TransactionId = (u32, u32, u64);

/// Entries kept. An evicted entry is treated as an external write, which is harmless.
const REMEMBERED_MAX: usize = 8192;

/// Transactions that were acknowledged and not yet read from the log.
#[derive(Default)]
pub struct OwnWrites(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    acknowledged: AHashMap<TransactionId, Instant>,
    order: VecDeque<TransactionId>,
}

impl OwnWrites {
    /// Records a transaction that was acknowledged now.
    pub fn record(&self, id: TransactionId) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.acknowledged.insert(id, Instant::now()).is_none() {
            entries.order.push_back(id);
        }
        while entries.order.len() > REMEMBERED_MAX {
            if let Some(oldest) = entries.order.pop_front() {
                entries.acknowledged.remove(&oldest);
            }
        }
    }

    /// Removes a transaction; returns when it was acknowledged, if this process committed it.
    pub fn take(&self, id: TransactionId) -> Option<Instant> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).acknowledged.remove(&id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entries_are_evicted() {
        let own = OwnWrites::default();
        (0..10_000).for_each(|number| own.record((0, 1, number)));
        assert!(own.take((0, 1, 0)).is_none());
        assert!(own.take((0, 1, 9_999)).is_some());
        assert!(own.take((0, 1, 9_999)).is_none());
    }
}
