//! The transactions of this process, by the names that the binary log has for them: who follows the log knows since when they are seen.

use ahash::AHashMap;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// A transaction's name in the binary log: domain, server, number.
pub type TransactionId = (u32, u32, u64);

/// So many are remembered; one that is forgotten is taken for somebody else's, which does no harm.
const REMEMBERED_MAX: usize = 8192;

/// Transactions that have been acknowledged and not yet been met in the log.
#[derive(Default)]
pub struct OwnWrites(Mutex<Remembered>);

#[derive(Default)]
struct Remembered {
    acknowledged: AHashMap<TransactionId, Instant>,
    order: VecDeque<TransactionId>,
}

impl OwnWrites {
    pub fn note(&self, id: TransactionId) {
        let mut remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.acknowledged.insert(id, Instant::now()).is_none() {
            remembered.order.push_back(id);
        }
        while remembered.order.len() > REMEMBERED_MAX {
            if let Some(oldest) = remembered.order.pop_front() {
                remembered.acknowledged.remove(&oldest);
            }
        }
    }

    /// When the transaction was acknowledged, if it is one of them; asked once.
    pub fn take(&self, id: TransactionId) -> Option<Instant> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).acknowledged.remove(&id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten() {
        let own = OwnWrites::default();
        (0..10_000).for_each(|number| own.note((0, 1, number)));
        assert!(own.take((0, 1, 0)).is_none());
        assert!(own.take((0, 1, 9_999)).is_some());
        assert!(own.take((0, 1, 9_999)).is_none());
    }
}
