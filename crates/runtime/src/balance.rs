//! Chooses the worker for a new connection.
//!
//! SO_REUSEPORT spreads connections by a hash of their addresses. That is even for thousands and
//! poor for a few: of sixteen connections on two workers, 12 to 4 is common, and an application's
//! pool has that size. So the worker that accepts hands a new connection to the one with the
//! fewest, before a byte of it is read. From then on the connection never moves. The counts change
//! when connections open and close, never with requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A count on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Count(AtomicUsize);

/// The number of connections of each worker.
#[derive(Clone, Debug)]
pub(crate) struct Balance(Arc<[Count]>);

/// A connection's place in the count of its worker, released when dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    balance: Balance,
    pub worker: usize,
}

impl Balance {
    pub fn new(workers: usize) -> Self {
        Balance((0..workers).map(|_| Count::default()).collect())
    }

    /// Returns the number of all connections.
    pub fn total(&self) -> usize {
        self.0.iter().map(|count| count.0.load(Ordering::Relaxed)).sum()
    }

    /// Takes a seat with the worker that has the fewest connections; with `accepting` itself if it
    /// is among them.
    pub fn seat(&self, accepting: usize) -> Seat {
        let load = |index: usize| self.0.get(index).map_or(usize::MAX, |count| count.0.load(Ordering::Relaxed));
        let worker = (0..self.0.len()).min_by_key(|&index| (load(index), index != accepting)).unwrap_or(accepting);
        if let Some(count) = self.0.get(worker) {
            count.0.fetch_add(1, Ordering::Relaxed);
        }
        Seat { balance: self.clone(), worker }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(count) = self.balance.0.get(self.worker) {
            count.0.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_spread_evenly() {
        let balance = Balance::new(3);
        let mut seats: Vec<Seat> = (0..16).map(|n| balance.seat(n * n % 3)).collect();
        let taken = |seats: &[Seat], worker| seats.iter().filter(|seat| seat.worker == worker).count();
        for worker in 0..3 {
            assert!((5..=6).contains(&taken(&seats, worker)), "worker {worker}");
        }
        seats.retain(|seat| seat.worker != 1);
        let next: Vec<usize> = (0..5)
            .map(|_| {
                let seat = balance.seat(0);
                let worker = seat.worker;
                seats.push(seat);
                worker
            })
            .collect();
        assert_eq!(next, [1; 5]);
    }

    #[test]
    fn the_accepting_worker_is_preferred() {
        assert_eq!(Balance::new(4).seat(2).worker, 2);
    }
}
