//! Fair shares of a bounded number of connections: no collection can take all of them.
//!
//! A group (a collection) gets one more connection only while it holds fewer than are free, less a
//! reserve. So a single group holds at most half, a second one half of the rest, and so on. A table
//! that an SQL client has locked therefore leaves connections for other collections. Requests
//! without a group may take any free connection: they belong to work that holds one already.

use ahash::AHashMap;
use std::collections::VecDeque;
use tokio::sync::oneshot;

/// One connection in this many is reserved for work that holds one already and needs another.
const RESERVE_DIVISOR: usize = 16;

/// A collection, by its hash. Collections with equal hashes share their connections.
pub type Group = Option<u64>;

/// The connections that may be open, divided among groups.
pub struct FairShares {
    total: usize,
    free: usize,
    held: AHashMap<u64, usize>,
    waiting: VecDeque<(Group, oneshot::Sender<()>)>,
}

impl FairShares {
    pub fn new(total: usize) -> FairShares {
        FairShares { total, free: total, held: AHashMap::default(), waiting: VecDeque::new() }
    }

    pub fn free(&self) -> usize {
        self.free
    }

    /// Takes a share if the group may have one now; returns whether it did.
    pub fn take(&mut self, group: Group) -> bool {
        let may = match group {
            None => self.free > 0,
            Some(group) => {
                self.free > 0 && self.held.get(&group).copied().unwrap_or(0) + self.total / RESERVE_DIVISOR < self.free
            }
        };
        if may {
            self.free -= 1;
            if let Some(group) = group {
                *self.held.entry(group).or_default() += 1;
            }
        }
        may
    }

    /// Queues a request that could not be met. The receiver yields when a share was taken for it.
    pub fn wait(&mut self, group: Group) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        self.waiting.push_back((group, sender));
        receiver
    }

    /// Returns a share, and passes it to the first queued request that may have it.
    pub fn give_back(&mut self, group: Group) {
        self.free += 1;
        if let Some(group) = group
            && let Some(held) = self.held.get_mut(&group)
        {
            *held -= 1;
            if *held == 0 {
                self.held.remove(&group);
            }
        }
        self.pass_on();
    }

    fn pass_on(&mut self) {
        // Remove abandoned requests, which would otherwise be examined each time.
        self.waiting.retain(|(_, sender)| !sender.is_closed());
        let mut at = 0;
        while self.free > 0 && at < self.waiting.len() {
            let group = self.waiting.get(at).and_then(|(group, _)| *group);
            if !self.take(group) {
                at += 1;
                continue;
            }
            let taken = self.waiting.remove(at).is_some_and(|(_, sender)| sender.send(()).is_ok());
            if !taken {
                self.give_back(group);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how many connections a group gets.
    fn take_all(shares: &mut FairShares, group: Group) -> usize {
        std::iter::from_fn(|| shares.take(group).then_some(())).count()
    }

    #[test]
    fn a_collection_leaves_half_for_the_others() {
        let mut shares = FairShares::new(32);
        assert_eq!(take_all(&mut shares, Some(1)), 15);
        assert_eq!(take_all(&mut shares, Some(2)), 8);
        assert_eq!(take_all(&mut shares, Some(3)), 4);
        assert!(shares.take(Some(4)));
        assert!(take_all(&mut shares, None) > 0);
        assert_eq!(shares.free(), 0);
        shares.give_back(Some(1));
        assert!(!shares.take(Some(1)) && shares.take(None));
    }

    #[test]
    fn a_small_pool_still_serves_a_collection() {
        for total in 1..4 {
            assert!(take_all(&mut FairShares::new(total), Some(1)) >= 1, "{total}");
        }
    }

    #[test]
    fn returned_shares_go_to_waiting_requests_in_order() {
        let mut shares = FairShares::new(2);
        assert!(shares.take(Some(1)) && shares.take(None));
        let (mut first, given_up, mut third) = (shares.wait(Some(1)), shares.wait(Some(2)), shares.wait(Some(2)));
        drop(given_up);
        shares.give_back(None);
        // The first one's collection has as many as are free.
        assert!(first.try_recv().is_err() && third.try_recv().is_ok());
        shares.give_back(Some(1));
        assert!(first.try_recv().is_ok());
        assert_eq!(shares.free(), 0);
    }
}
