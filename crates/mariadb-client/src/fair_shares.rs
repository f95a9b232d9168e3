//! Fair shares of a bounded number of connections: no collection can take all of them.
//!
//! A collection gets one more connection only while it has fewer than are free, with a few set
//! aside. So a single one holds at most half, a second one half of the rest, and so on: a table
//! that a SQL client has locked leaves connections for the others. Requests that name no collection
//! take from all that are free: they belong to work that holds a connection already.

use ahash::AHashMap;
use std::collections::VecDeque;
use tokio::sync::oneshot;

/// One connection in so many is set aside for work that has one already and needs another to go on.
const SET_ASIDE: usize = 16;

/// A collection, by its hash. Two that share one share their connections.
pub type Group = Option<u64>;

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

    /// Takes a connection's place if the group may have one now.
    pub fn take(&mut self, group: Group) -> bool {
        let may = match group {
            None => self.free > 0,
            Some(group) => {
                self.free > 0 && self.held.get(&group).copied().unwrap_or(0) + self.total / SET_ASIDE < self.free
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

    /// Queues a request that could not be met; its answer comes when a place was taken for it.
    pub fn wait(&mut self, group: Group) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        self.waiting.push_back((group, sender));
        receiver
    }

    /// Gives a place back, and passes it on to the first request in the queue that may have it.
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
        // Those that have given up would else be asked again and again.
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

    /// How many connections a group gets.
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
    fn few_connections_are_of_use_all_the_same() {
        for total in 1..4 {
            assert!(take_all(&mut FairShares::new(total), Some(1)) >= 1, "{total}");
        }
    }

    #[test]
    fn who_waits_gets_what_comes_back_in_turn() {
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
