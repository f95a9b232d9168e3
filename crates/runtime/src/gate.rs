//! The limits on client connections: in total, for each address, and per second.
//!
//! All workers share the gate. A connection passes it once, when it is accepted, so a lock there
//! costs nothing that can be measured.

use crate::rate_limit::RateLimit;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The shortest interval of log lines about refused connections, and about failures to accept.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// The part of the open files that is not for connections, and the most. The store opens files at
/// any time, and SQL clients need a second connection.
const FILES_PART: u64 = 5;
const FILES_RESERVED_MAX: u64 = 256;

/// Limits on client connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// The most connections.
    pub total: usize,
    /// The most connections of one address; `None`: no limit. The addresses of an IPv6 network of
    /// 64 bits count as one.
    pub per_address: Option<usize>,
    /// The most new connections per second; `None`: no limit.
    pub rate: Option<ConnectionRate>,
}

/// A limit on new connections per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionRate {
    pub per_second: u32,
    /// The connections of this time may come at once.
    pub burst: Duration,
    /// So many connections may wait; more are refused.
    pub queue_max: u32,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        ConnectionLimits { total: usize::MAX, per_address: None, rate: None }
    }
}

/// Why a connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There are too many connections.
    Total,
    /// There are too few file descriptors.
    Files,
    /// There are too many connections of its address.
    Address,
    /// Too many connections came within a short time.
    Rate,
}

/// Admits new connections.
#[derive(Debug)]
pub(crate) struct Gate {
    limits: ConnectionLimits,
    rate: Option<RateLimit>,
    total: AtomicUsize,
    by_address: Mutex<HashMap<IpAddr, usize>>,
    refusals: Mutex<Log>,
    failures: Mutex<Log>,
}

/// Events that are counted, and logged from time to time.
#[derive(Debug, Default)]
struct Log {
    logged: Option<Instant>,
    count: u64,
}

impl Log {
    /// Counts an event. Returns the number of events to log now, or `None`.
    fn note(&mut self, now: Instant) -> Option<u64> {
        self.count += 1;
        if self.logged.is_some_and(|logged| now.saturating_duration_since(logged) < LOG_INTERVAL) {
            return None;
        }
        self.logged = Some(now);
        Some(std::mem::take(&mut self.count))
    }
}

/// The address that a connection counts for, if addresses have a limit. Boxed, since each
/// connection holds it to its end.
pub(crate) type CountedAddress = Option<Box<IpAddr>>;

impl Gate {
    pub fn new(limits: ConnectionLimits, now: Instant) -> Gate {
        let rate = limits.rate.map(|rate| RateLimit::new(rate.per_second, rate.burst, now));
        Gate {
            limits,
            rate,
            total: AtomicUsize::new(0),
            by_address: Mutex::default(),
            refusals: Mutex::default(),
            failures: Mutex::default(),
        }
    }

    /// Admits a connection, which must [`Gate::leave`] at its end. Returns the address that it
    /// counts for, and how long it must wait before it is served. `descriptor`: that of its socket.
    /// `peer`: its address, or `None` for a Unix socket.
    pub fn enter(
        &self,
        descriptor: u64,
        peer: Option<SocketAddr>,
        now: Instant,
    ) -> Result<(CountedAddress, Duration), Refusal> {
        let has_files = descriptor < descriptors_max();
        let entered = if has_files { self.try_enter(peer, now) } else { Err(Refusal::Files) };
        entered.inspect_err(|refusal| self.note_refusal(*refusal, peer, now))
    }

    fn try_enter(&self, peer: Option<SocketAddr>, now: Instant) -> Result<(CountedAddress, Duration), Refusal> {
        if self.total.fetch_add(1, Relaxed) >= self.limits.total {
            self.total.fetch_sub(1, Relaxed);
            return Err(Refusal::Total);
        }
        let mut counted = None;
        if let (Some(limit), Some(peer)) = (self.limits.per_address, peer) {
            let address = network(peer.ip());
            if !self.count_address(address, limit) {
                self.leave(None);
                return Err(Refusal::Address);
            }
            counted = Some(Box::new(address));
        }
        let Some((limit, rate)) = self.rate.as_ref().zip(self.limits.rate) else {
            return Ok((counted, Duration::ZERO));
        };
        match limit.reserve(now, rate.queue_max) {
            Some(wait) => Ok((counted, wait)),
            None => {
                self.leave(counted);
                Err(Refusal::Rate)
            }
        }
    }

    /// Counts one more connection of an address. Returns false if there are too many.
    fn count_address(&self, address: IpAddr, limit: usize) -> bool {
        let mut by_address = lock(&self.by_address);
        let count = by_address.entry(address).or_default();
        let may_enter = *count < limit;
        *count += usize::from(may_enter);
        may_enter
    }

    /// Releases the place of a connection.
    pub fn leave(&self, counted: CountedAddress) {
        self.total.fetch_sub(1, Relaxed);
        let Some(address) = counted else { return };
        let mut by_address = lock(&self.by_address);
        let Some(count) = by_address.get_mut(&*address) else { return };
        *count -= 1;
        if *count == 0 {
            by_address.remove(&*address);
            if by_address.is_empty() {
                // A storm from many addresses leaves no memory behind.
                by_address.shrink_to_fit();
            }
        }
    }

    fn note_refusal(&self, refusal: Refusal, peer: Option<SocketAddr>, now: Instant) {
        let Some(refused) = lock(&self.refusals).note(now) else { return };
        let from = peer.map_or_else(|| "a local socket".to_owned(), |peer| peer.to_string());
        let (reason, key) = match refusal {
            Refusal::Total => ("there are too many", "connections"),
            Refusal::Files => ("there are too few file descriptors (ulimit -n)", "connections"),
            Refusal::Address => ("there are too many from one address", "address-connections"),
            Refusal::Rate => ("too many came within a short time", "connection-rate"),
        };
        tracing::warn!(refused, last = from, "refused connections: {reason}; see `{key}` in [limits]");
    }

    /// Logs that a connection cannot be accepted, at most once in [`LOG_INTERVAL`].
    pub fn note_failure(&self, error: &std::io::Error, now: Instant) {
        if let Some(failures) = lock(&self.failures).note(now) {
            tracing::error!(
                %error, failures,
                "cannot accept connections; raise the limit of open files (ulimit -n) if it is that"
            );
        }
    }
}

/// Returns the descriptor from which on descriptors are not for connections. The system gives the
/// lowest one that is free, so it also says how many are in use.
fn descriptors_max() -> u64 {
    let open_files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    open_files - (open_files / FILES_PART).min(FILES_RESERVED_MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Returns the address that a client counts as. A host on IPv6 usually has a network of 64 bits, so
/// it could otherwise have as many addresses as it likes.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> Option<SocketAddr> {
        Some(SocketAddr::new(text.parse().unwrap(), 1234))
    }

    #[test]
    fn the_total_and_each_address_are_limited() {
        let now = Instant::now();
        let gate = Gate::new(ConnectionLimits { total: 4, per_address: Some(2), rate: None }, now);
        let enter = |peer| gate.enter(3, peer, now).map_err(|refusal| (refusal, gate.total.load(Relaxed)));
        let first = [enter(peer("10.0.0.1")).unwrap(), enter(peer("::ffff:10.0.0.1")).unwrap()];
        assert_eq!(enter(peer("10.0.0.1")).unwrap_err(), (Refusal::Address, 2));
        let _second = [enter(peer("2001:db8::1")).unwrap(), enter(peer("2001:db8::2:1")).unwrap()];
        assert_eq!(enter(peer("10.0.0.2")).unwrap_err(), (Refusal::Total, 4));
        assert_eq!(enter(None).unwrap_err(), (Refusal::Total, 4));
        first.into_iter().for_each(|(counted, _)| gate.leave(counted));
        assert_eq!(enter(peer("2001:db8::3")).unwrap_err(), (Refusal::Address, 2));
        assert!(enter(peer("2001:db8:0:1::3")).is_ok() && enter(None).is_ok());
        assert_eq!(lock(&gate.by_address).len(), 2);
    }

    #[test]
    fn connections_beyond_the_rate_wait_and_then_are_refused() {
        let now = Instant::now();
        let rate = ConnectionRate { per_second: 10, burst: Duration::from_millis(100), queue_max: 1 };
        let gate = Gate::new(ConnectionLimits { rate: Some(rate), ..Default::default() }, now);
        assert_eq!(gate.enter(3, None, now).unwrap().1, Duration::ZERO);
        assert_eq!(gate.enter(3, None, now).unwrap().1, Duration::from_millis(100));
        assert_eq!(gate.enter(3, None, now).unwrap_err(), Refusal::Rate);
        assert_eq!(gate.total.load(Relaxed), 2);
    }

    #[test]
    fn some_file_descriptors_are_not_for_connections() {
        let gate = Gate::new(ConnectionLimits::default(), Instant::now());
        let enter = |descriptor| gate.enter(descriptor, None, Instant::now());
        assert!(enter(descriptors_max() - 1).is_ok());
        assert_eq!(enter(descriptors_max()).unwrap_err(), Refusal::Files);
    }

    #[test]
    fn a_flood_logs_one_line_per_interval() {
        let mut log = Log::default();
        let now = Instant::now();
        let logged = |log: &mut Log, at| (0..100).filter_map(|_| log.note(at)).collect::<Vec<_>>();
        assert_eq!(logged(&mut log, now), [1]);
        assert_eq!(logged(&mut log, now + LOG_INTERVAL), [100]);
    }
}
