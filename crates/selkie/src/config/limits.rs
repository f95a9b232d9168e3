//! Limits of memory, cursors and connections. The default of the memory depends on the machine.

use super::defaults;
use super::setting::{ConfigError, Setting};
use selkie_runtime::{ConnectionLimits, ConnectionRate};
use server::LoginLimits;
use std::time::Duration;

const MIB: i64 = 1 << 20;

/// Limits of one source; `None`: not set there.
#[derive(Clone, Debug, Default)]
pub struct Written {
    pub memory_mb: Option<Setting<i64>>,
    pub request_memory_mb: Option<Setting<i64>>,
    pub session_memory_mb: Option<Setting<i64>>,
    pub cursor_memory_mb: Option<Setting<i64>>,
    pub cursors: Option<Setting<i64>>,
    pub session_cursors: Option<Setting<i64>>,
    pub user_cursors: Option<Setting<i64>>,
    pub login_failures: Option<Setting<u32>>,
    pub login_delay_seconds: Option<Setting<u64>>,
    pub connections: Option<Setting<usize>>,
    pub address_connections: Option<Setting<usize>>,
    pub connection_rate: Option<Setting<u32>>,
    pub connection_queue: Option<Setting<u32>>,
    pub request_rate: Option<Setting<u32>>,
    pub burst_seconds: Option<Setting<u64>>,
    pub handshake_seconds: Option<Setting<u64>>,
    pub stalled_seconds: Option<Setting<u64>>,
    pub idle_seconds: Option<Setting<u64>>,
}

/// Limits in effect. Memory is in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    pub memory: steps::memory::Limits,
    pub cursors: server::CursorLimits,
    pub logins: LoginLimits,
    pub connections: ConnectionLimits,
    /// The most requests per second; `None`: no limit.
    pub requests: Option<RequestRate>,
    /// How long a client may take from its connection to its first message; `None`: forever.
    pub handshake: Option<Duration>,
    /// How long a client may pause within a message, or leave its reply unread.
    pub stalled: Duration,
    /// How long a client may be idle; `None`: forever.
    pub idle: Option<Duration>,
}

/// A limit on requests per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRate {
    pub per_second: u32,
    pub burst: Duration,
}

impl Written {
    /// Merges two sources: these limits take precedence over `beneath`.
    pub fn over(self, beneath: Written) -> Written {
        Written {
            memory_mb: self.memory_mb.or(beneath.memory_mb),
            request_memory_mb: self.request_memory_mb.or(beneath.request_memory_mb),
            session_memory_mb: self.session_memory_mb.or(beneath.session_memory_mb),
            cursor_memory_mb: self.cursor_memory_mb.or(beneath.cursor_memory_mb),
            cursors: self.cursors.or(beneath.cursors),
            session_cursors: self.session_cursors.or(beneath.session_cursors),
            user_cursors: self.user_cursors.or(beneath.user_cursors),
            login_failures: self.login_failures.or(beneath.login_failures),
            login_delay_seconds: self.login_delay_seconds.or(beneath.login_delay_seconds),
            connections: self.connections.or(beneath.connections),
            address_connections: self.address_connections.or(beneath.address_connections),
            connection_rate: self.connection_rate.or(beneath.connection_rate),
            connection_queue: self.connection_queue.or(beneath.connection_queue),
            request_rate: self.request_rate.or(beneath.request_rate),
            burst_seconds: self.burst_seconds.or(beneath.burst_seconds),
            handshake_seconds: self.handshake_seconds.or(beneath.handshake_seconds),
            stalled_seconds: self.stalled_seconds.or(beneath.stalled_seconds),
            idle_seconds: self.idle_seconds.or(beneath.idle_seconds),
        }
    }

    /// Applies the defaults. `cache_bytes`: the cache's part of the process's memory.
    pub fn resolve(self, cache_bytes: usize) -> Result<Limits, ConfigError> {
        let process = self.memory_mb.as_ref().map_or_else(default_memory, |setting| setting.value * MIB);
        let cache_bytes = i64::try_from(cache_bytes).unwrap_or(i64::MAX);
        if let Some(setting) = self.memory_mb.as_ref().filter(|_| cache_bytes > process / 2) {
            return Err(setting.refuse(format!(
                "the cache may take {} MB, which leaves less than half of {} MB for requests; raise memory-mb or lower the \
                 cache's bytes",
                cache_bytes / MIB,
                process / MIB
            )));
        }
        let part = |setting: &Option<Setting<i64>>, default: i64| match setting {
            Some(setting) if setting.value * MIB > process => {
                Err(setting.refuse(format!("it is more than the memory of the process, which is {} MB", process / MIB)))
            }
            Some(setting) => Ok(setting.value * MIB),
            None => Ok(default),
        };
        let burst = Duration::from_secs(self.burst_seconds.map_or(defaults::BURST_SECONDS, |setting| setting.value));
        let queue_max = self.connection_queue.map_or(defaults::CONNECTION_QUEUE, |setting| setting.value);
        let rate = |setting: Option<Setting<u32>>| setting.map(|setting| setting.value).filter(|rate| *rate > 0);
        let handshake = self.handshake_seconds.map_or(defaults::HANDSHAKE_SECONDS, |setting| setting.value);
        let logins = LoginLimits::default();
        let cursors = part(&self.cursor_memory_mb, process / 2)?;
        Ok(Limits {
            memory: steps::memory::Limits { process, request: part(&self.request_memory_mb, process / 4)? },
            cursors: server::CursorLimits {
                bytes: cursors,
                session_bytes: part(&self.session_memory_mb, cursors / 2)?,
                count: self.cursors.map_or(defaults::CURSORS, |setting| setting.value),
                session_count: self.session_cursors.map_or(defaults::SESSION_CURSORS, |setting| setting.value),
                user_count: self.user_cursors.map_or(defaults::USER_CURSORS, |setting| setting.value),
            },
            logins: LoginLimits {
                free_failures: self.login_failures.map_or(logins.free_failures, |setting| setting.value),
                delay_max: self
                    .login_delay_seconds
                    .map_or(logins.delay_max, |setting| Duration::from_secs(setting.value)),
            },
            connections: ConnectionLimits {
                total: self.connections.map_or(defaults::CONNECTIONS, |setting| setting.value),
                per_address: self.address_connections.map(|setting| setting.value).filter(|count| *count > 0),
                rate: rate(self.connection_rate).map(|per_second| ConnectionRate { per_second, burst, queue_max }),
            },
            requests: rate(self.request_rate).map(|per_second| RequestRate { per_second, burst }),
            handshake: Some(handshake).filter(|seconds| *seconds > 0).map(Duration::from_secs),
            stalled: Duration::from_secs(
                self.stalled_seconds.map_or(defaults::STALLED_SECONDS, |setting| setting.value),
            ),
            idle: self.idle_seconds.map(|setting| setting.value).filter(|s| *s > 0).map(Duration::from_secs),
        })
    }
}

/// Returns half of the machine's memory, but no more than three quarters of the control group's,
/// and half of the address space less the part of threads, stacks and files.
fn default_memory() -> i64 {
    let machine = server::host::memory_bytes() / 2;
    let group = server::host::control_group_memory_max().map(|max| max / 4 * 3);
    let addresses = server::host::address_space_max().map(|max| max.saturating_sub(512 << 20) / 2);
    let least = [group, addresses].into_iter().flatten().fold(machine, u64::min);
    i64::try_from(least).unwrap_or(i64::MAX).max(defaults::MEMORY_MB_MIN * MIB)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::setting::Origin;

    fn mb(value: i64) -> Option<Setting<i64>> {
        Some(Setting { value, origin: Origin::Flag("--test") })
    }

    #[test]
    fn default_parts_follow_the_process_limit() {
        let limits = Written { memory_mb: mb(400), ..Written::default() }.resolve(0).unwrap();
        assert_eq!(limits.memory, steps::memory::Limits { process: 400 * MIB, request: 100 * MIB });
        assert_eq!((limits.cursors.bytes, limits.cursors.session_bytes), (200 * MIB, 100 * MIB));
        assert!(Written::default().resolve(0).unwrap().memory.process >= defaults::MEMORY_MB_MIN * MIB);
    }

    #[test]
    fn a_part_larger_than_the_whole_is_refused() {
        let written = Written { memory_mb: mb(400), request_memory_mb: mb(401), ..Written::default() };
        assert!(written.resolve(0).is_err());
        let beside_a_cache = Written { memory_mb: mb(400), ..Written::default() };
        assert!(beside_a_cache.resolve(300 << 20).is_err());
    }
}
