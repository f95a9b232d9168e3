//! Chooses the worker for a new connection.
//!
//! SO_REUSEPORT spreads connections by a hash of their addresses. That is even for thousands and
//! poor for a few: of sixteen connections on two workers, 12 to 4 is common, and an application's
//! pool has that size. So the worker that accepts hands a new connection to the one with the
//! fewest, before a byte of it is read. From then on the connection never moves. The counts change
//! when connections open and close, never with requests.

use crate::gate::{ConnectionLimits, CountedAddress, Gate, Refusal};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A count on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Count(AtomicUsize);

/// The number of connections of each worker, and the gate that all of them pass.
#[derive(Clone, Debug)]
pub(crate) struct Balance(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    gate: Gate,
    counts: Box<[Count]>,
}

/// A connection's place within the limits and in the count of its worker, released when dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    balance: Balance,
    worker: Option<u32>,
    address: CountedAddress,
}

impl Balance {
    /// `now`: the current time.
    pub fn new(workers: usize, limits: ConnectionLimits, now: Instant) -> Self {
        let counts = (0..workers).map(|_| Count::default()).collect();
        Balance(Arc::new(Shared { gate: Gate::new(limits, now), counts }))
    }

    pub fn gate(&self) -> &Gate {
        &self.0.gate
    }

    /// Admits a connection. Returns its seat, with no worker yet, and how long it must wait. See
    /// [`Gate::enter`].
    pub fn admit(&self, descriptor: u64, peer: Option<SocketAddr>, now: Instant) -> Result<(Seat, Duration), Refusal> {
        let (address, wait) = self.0.gate.enter(descriptor, peer, now)?;
        Ok((Seat { balance: self.clone(), worker: None, address }, wait))
    }

    fn count(&self, worker: usize) -> Option<&AtomicUsize> {
        self.0.counts.get(worker).map(|count| &count.0)
    }
}

impl Seat {
    /// Seats the connection with the worker that has the fewest; with `accepting` itself if it is
    /// among them. Returns the worker.
    pub fn choose_worker(&mut self, accepting: usize) -> usize {
        let balance = &self.balance;
        let load = |index: usize| balance.count(index).map_or(usize::MAX, |count| count.load(Ordering::Relaxed));
        let worker =
            (0..balance.0.counts.len()).min_by_key(|&index| (load(index), index != accepting)).unwrap_or(accepting);
        if let Some(count) = balance.count(worker) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.worker = u32::try_from(worker).ok();
        worker
    }

    /// Returns the worker that was chosen, or `accepting`.
    pub fn worker_or(&self, accepting: usize) -> usize {
        self.worker.map_or(accepting, |worker| worker as usize)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(count) = self.worker.and_then(|worker| self.balance.count(worker as usize)) {
            count.fetch_sub(1, Ordering::Relaxed);
        }
        self.balance.0.gate.leave(self.address.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_spread_evenly() {
        let balance = Balance::new(3, ConnectionLimits::default(), Instant::now());
        let seat = |accepting| {
            let (mut seat, _) = balance.admit(3, None, Instant::now()).unwrap();
            seat.choose_worker(accepting);
            seat
        };
        let mut seats: Vec<Seat> = (0..16).map(|n| seat(n * n % 3)).collect();
        let taken = |seats: &[Seat], worker| seats.iter().filter(|seat| seat.worker == Some(worker)).count();
        for worker in 0..3 {
            assert!((5..=6).contains(&taken(&seats, worker)), "worker {worker}");
        }
        seats.retain(|seat| seat.worker != Some(1));
        let next: Vec<usize> = (0..5)
            .map(|_| {
                let seat = seat(0);
                let worker = seat.worker_or(0);
                seats.push(seat);
                worker
            })
            .collect();
        assert_eq!(next, [1; 5]);
    }

    #[test]
    fn the_accepting_worker_is_preferred() {
        let balance = Balance::new(4, ConnectionLimits::default(), Instant::now());
        let (mut seat, _) = balance.admit(3, None, Instant::now()).unwrap();
        assert_eq!(seat.choose_worker(2), 2);
    }
}
