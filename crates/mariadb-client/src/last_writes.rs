//! The last transactions that this process has committed: the position that a replica must reach
//! to have them.

use crate::own_writes::TransactionId;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The last acknowledged transaction of each domain.
#[derive(Default)]
pub struct LastWrites(Mutex<BTreeMap<u32, (u32, u64)>>);

impl LastWrites {
    /// Records a transaction that was acknowledged.
    pub fn record(&self, (domain, server, sequence): TransactionId) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = last.entry(domain).or_insert((server, sequence));
        if known.1 < sequence {
            *known = (server, sequence);
        }
    }

    /// Returns the position that MASTER_GTID_WAIT() takes; empty if nothing was written.
    pub fn position(&self) -> String {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ids = last.iter().map(|(domain, (server, sequence))| format!("{domain}-{server}-{sequence}"));
        ids.collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_each_domain_counts() {
        let last = LastWrites::default();
        assert_eq!(last.position(), "");
        for id in [(0, 1, 7), (1, 2, 3), (0, 1, 5), (0, 2, 8)] {
            last.record(id);
        }
        assert_eq!(last.position(), "0-2-8,1-2-3");
    }
}
