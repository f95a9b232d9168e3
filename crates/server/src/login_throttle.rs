//! Delays logins after failed ones, so that passwords cannot be guessed quickly.
//!
//! Failures count for the client's address and the user name together, and for the address alone.
//! After the first few, each further attempt must wait for its turn, and the turns grow further
//! apart with each failure. An attempt waits on its own connection, so it delays no other client.
//! Nothing depends on whether the user exists.
//!
//! Attempts from other addresses are not delayed: a stranger could otherwise lock a user out.

use ahash::RandomState;
use hashbrown::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

/// The delay after the first failure that counts; it doubles with each further one.
const DELAY_MIN: Duration = Duration::from_millis(100);

/// An address may fail so many times more often than one of its users before it is delayed: many
/// users may be behind it.
const USERS_PER_ADDRESS: u32 = 10;

/// Failures are forgotten this long after the last one.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(300);

/// The most entries; beyond it, the oldest ones are dropped.
const ENTRIES_MAX: usize = 16_384;

/// The limits in effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoginLimits {
    /// So many failures in a row have no consequence.
    pub free_failures: u32,
    /// The longest delay between two attempts; zero: no attempt is delayed.
    pub delay_max: Duration,
}

impl Default for LoginLimits {
    fn default() -> Self {
        LoginLimits { free_failures: 5, delay_max: Duration::from_secs(10) }
    }
}

/// The recent failures of the process.
#[derive(Debug)]
pub struct LoginThrottle {
    limits: OnceLock<LoginLimits>,
    hasher: RandomState,
    entries: Mutex<HashMap<Key, Entry, RandomState>>,
}

/// An address, and the hash of a user name; `None`: the address alone.
type Key = (IpAddr, Option<u64>);

#[derive(Clone, Copy, Debug)]
struct Entry {
    failures: u32,
    failed_at: Instant,
    /// When the next attempt may be made.
    next_at: Instant,
}

impl LoginThrottle {
    /// `limits`: `None` for the default, or those of [`LoginThrottle::set_limits`].
    pub fn new(limits: Option<LoginLimits>) -> LoginThrottle {
        let (hasher, limits) = (RandomState::new(), limits.map_or_else(OnceLock::new, OnceLock::from));
        LoginThrottle { limits, entries: Mutex::new(HashMap::with_hasher(hasher.clone())), hasher }
    }

    /// Sets the limits, once.
    pub fn set_limits(&self, limits: LoginLimits) {
        let _ = self.limits.set(limits);
    }

    fn limits(&self) -> LoginLimits {
        self.limits.get().copied().unwrap_or_default()
    }

    /// Announces an attempt to log in, before the password is checked. Returns how long it must
    /// wait, or `None` if it must fail unchecked, since too many others of the address wait.
    /// `peer`: `None` for a Unix socket.
    pub fn attempt(&self, peer: Option<IpAddr>, user: &str, now: Instant) -> Option<Duration> {
        self.attempt_within(self.limits().delay_max * 2, peer, user, now)
    }

    /// As [`LoginThrottle::attempt`], but returns `None` if the attempt had to wait longer than
    /// `wait_max`.
    pub fn attempt_within(
        &self,
        wait_max: Duration,
        peer: Option<IpAddr>,
        user: &str,
        now: Instant,
    ) -> Option<Duration> {
        let mut entries = self.lock();
        if entries.is_empty() {
            return Some(Duration::ZERO);
        }
        let mut wait = Duration::ZERO;
        let mut turns = [None, None];
        for ((key, free), turn) in self.keys(peer, user).into_iter().zip(&mut turns) {
            let Some(entry) = entries.get(&key) else { continue };
            if now.saturating_duration_since(entry.failed_at) >= FORGOTTEN_AFTER {
                entries.remove(&key);
                continue;
            }
            let delay = self.delay(entry.failures, free);
            if delay.is_zero() {
                continue;
            }
            let at = entry.next_at.max(now);
            let waits = at.saturating_duration_since(now);
            if waits > wait_max {
                return None;
            }
            *turn = Some((key, at + delay));
            wait = wait.max(waits);
        }
        // An attempt that fails unchecked takes no turn.
        for (key, next_at) in turns.into_iter().flatten() {
            if let Some(entry) = entries.get_mut(&key) {
                entry.next_at = next_at;
            }
        }
        Some(wait)
    }

    /// Records that an attempt failed.
    pub fn failed(&self, peer: Option<IpAddr>, user: &str, now: Instant) {
        if self.limits().delay_max.is_zero() {
            return;
        }
        let mut entries = self.lock();
        for (key, free) in self.keys(peer, user) {
            if entries.len() >= ENTRIES_MAX {
                drop_oldest(&mut entries, now);
            }
            let entry = entries.entry(key).or_insert(Entry { failures: 0, failed_at: now, next_at: now });
            entry.failures = entry.failures.saturating_add(1);
            entry.failed_at = now;
            entry.next_at = entry.next_at.max(now + self.delay(entry.failures, free));
        }
    }

    /// Records that an attempt succeeded: the user's earlier failures no longer count.
    pub fn succeeded(&self, peer: Option<IpAddr>, user: &str) {
        let mut entries = self.lock();
        if entries.is_empty() {
            return;
        }
        let [(of_user, _), (of_address, _)] = self.keys(peer, user);
        let Some(forgiven) = entries.remove(&of_user) else { return };
        if let Some(entry) = entries.get_mut(&of_address) {
            entry.failures = entry.failures.saturating_sub(forgiven.failures);
        }
    }

    /// Returns the two keys of an attempt, each with the failures that have no consequence.
    fn keys(&self, peer: Option<IpAddr>, user: &str) -> [(Key, u32); 2] {
        let address = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), network);
        let free = self.limits().free_failures;
        let user = self.hasher.hash_one(user);
        [((address, Some(user)), free), ((address, None), free.saturating_mul(USERS_PER_ADDRESS))]
    }

    fn delay(&self, failures: u32, free: u32) -> Duration {
        match failures.saturating_sub(free) {
            0 => Duration::ZERO,
            counted => DELAY_MIN.saturating_mul(1 << (counted - 1).min(16)).min(self.limits().delay_max),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Entry, RandomState>> {
        self.entries.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Drops entries that are forgotten, and a quarter of all if that is not enough: those whose last
/// failure is the longest ago.
fn drop_oldest(entries: &mut HashMap<Key, Entry, RandomState>, now: Instant) {
    entries.retain(|_, entry| now.saturating_duration_since(entry.failed_at) < FORGOTTEN_AFTER);
    if entries.len() < ENTRIES_MAX / 4 * 3 {
        return;
    }
    let mut times: Vec<Instant> = entries.values().map(|entry| entry.failed_at).collect();
    let quarter = times.len() / 4;
    let oldest = *times.select_nth_unstable(quarter).1;
    entries.retain(|_, entry| entry.failed_at > oldest);
}

/// Returns the address that a client counts as: for IPv6, its network of 64 bits.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: LoginLimits = LoginLimits { free_failures: 2, delay_max: Duration::from_secs(1) };

    fn address(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn delays_double_up_to_the_longest() {
        let (throttle, start) = (LoginThrottle::new(Some(LIMITS)), Instant::now());
        let mut now = start;
        let mut waits = Vec::new();
        for _ in 0..8 {
            let wait = throttle.attempt(address("10.0.0.1"), "admin.a", now).unwrap();
            waits.push(wait.as_millis());
            now += wait;
            throttle.failed(address("10.0.0.1"), "admin.a", now);
        }
        assert_eq!(waits, [0, 0, 0, 100, 200, 400, 800, 1000]);
        for (peer, user) in [("10.0.0.2", "admin.a"), ("10.0.0.1", "admin.b")] {
            assert_eq!(throttle.attempt(address(peer), user, now), Some(Duration::ZERO));
        }
        assert_eq!(throttle.attempt(address("10.0.0.1"), "admin.a", now + FORGOTTEN_AFTER), Some(Duration::ZERO));
    }

    #[test]
    fn attempts_at_the_same_time_take_turns_and_are_bounded() {
        let (throttle, now) = (LoginThrottle::new(Some(LIMITS)), Instant::now());
        (0..20).for_each(|_| throttle.failed(None, "u", now));
        let waits: Vec<_> = (0..4).map(|_| throttle.attempt(None, "u", now).map(|wait| wait.as_secs())).collect();
        assert_eq!(waits, [Some(1), Some(2), None, None]);
    }

    #[test]
    fn an_attempt_that_may_not_wait_takes_no_turn() {
        let (throttle, now) = (LoginThrottle::new(Some(LIMITS)), Instant::now());
        (0..21).for_each(|_| throttle.failed(None, "u", now));
        let within = |wait_max| throttle.attempt_within(Duration::from_millis(wait_max), None, "u", now);
        assert_eq!([within(900), within(900), within(1000)], [None, None, Some(Duration::from_secs(1))]);
        assert_eq!(within(1900), None);
        assert_eq!(throttle.attempt_within(Duration::ZERO, None, "other", now), None, "by the address");
    }

    #[test]
    fn an_address_that_tries_many_users_is_delayed() {
        let (throttle, now) = (LoginThrottle::new(Some(LIMITS)), Instant::now());
        (0..21).for_each(|user| throttle.failed(address("2001:db8::1"), &user.to_string(), now));
        assert!(throttle.attempt(address("2001:db8::99"), "new", now).unwrap() > Duration::ZERO);
        assert_eq!(throttle.attempt(address("2001:db8:0:1::1"), "new", now), Some(Duration::ZERO));
    }

    #[test]
    fn success_forgives_and_failures_take_bounded_memory() {
        let (throttle, now) = (LoginThrottle::new(Some(LIMITS)), Instant::now());
        (0..4).for_each(|_| throttle.failed(None, "u", now));
        throttle.succeeded(None, "u");
        assert_eq!(throttle.attempt(None, "u", now), Some(Duration::ZERO));
        for number in 0..100_000u32 {
            let peer = Some(IpAddr::V4(Ipv4Addr::from_bits(number)));
            throttle.failed(peer, "u", now + Duration::from_millis(number.into()));
        }
        assert!(throttle.lock().len() <= ENTRIES_MAX);
    }
}
