//! Defaults, and the least and most that is accepted.

use mongo_wire::Compressor;
use selkie_runtime::ListenAddress;
use std::net::{Ipv4Addr, SocketAddr};

pub const DEFAULT_DATA: &str = "selkie-data";
pub const DEFAULT_LOG: &str = "info";
pub const DEFAULT_REPLICA_SET: &str = "selkie";
pub const DEFAULT_DRAIN_SECONDS: u64 = 10;
pub const DEFAULT_CURSOR_TIMEOUT_SECONDS: u64 = 600;
pub const DEFAULT_SLOW_MS: i64 = 100;
pub const DEFAULT_MARIADB_CONNECTIONS: usize = 32;
pub const DEFAULT_MARIADB_WAIT_SECONDS: u64 = 30;
pub const DEFAULT_COMPRESSORS: [Compressor; 3] = [Compressor::Snappy, Compressor::Zstd, Compressor::Zlib];

/// More threads than this are a slip of the finger.
pub const THREADS_MAX: i64 = 1024;
/// Whoever waits for longer than that does not notice being woken.
pub const BUSY_POLL_US_MAX: i64 = 1000;
pub const DAY_SECONDS: i64 = 86_400;
/// Less would not hold the answers of one page.
pub const CACHE_BYTES_MIN: i64 = 1 << 20;
/// Less would not hold one message, the reply to it, and what the process has from the start.
pub const MEMORY_MB_MIN: i64 = 128;
pub const MEMORY_MB_MAX: i64 = 1 << 30;
pub const DEFAULT_CURSORS: i64 = 100_000;
pub const DEFAULT_SESSION_CURSORS: i64 = 10_000;
pub const DEFAULT_CONNECTIONS: usize = 65_536;
pub const DEFAULT_STALLED_SECONDS: u64 = 300;
pub const DEFAULT_STORAGE_TIMEOUT_MS: i64 = 50;
pub const DEFAULT_CACHE_BYTES: usize = 256 << 20;

pub fn default_listen() -> ListenAddress {
    ListenAddress::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 27017)))
}
