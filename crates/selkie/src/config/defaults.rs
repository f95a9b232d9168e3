//! Defaults, and the limits of accepted values.

use mongo_wire::Compressor;
use selkie_runtime::ListenAddress;
use std::net::{Ipv4Addr, SocketAddr};

pub const DATA: &str = "selkie-data";
pub const LOG: &str = "info";
pub const REPLICA_SET: &str = "selkie";
pub const DRAIN_SECONDS: u64 = 10;
pub const CURSOR_TIMEOUT_SECONDS: u64 = 600;
pub const OPLOG_MB: u64 = 256;
pub const SLOW_MS: i64 = 100;
pub const MARIADB_CONNECTIONS: usize = 32;
pub const MARIADB_TRANSACTIONS: usize = 64;
pub const MARIADB_WAIT_SECONDS: u64 = 30;
pub const COMPRESSORS: [Compressor; 3] = [Compressor::Snappy, Compressor::Zstd, Compressor::Zlib];

/// More threads than this are taken for a typing error.
pub const THREADS_MAX: i64 = 1024;
/// In a longer wait, the time of a wake-up does not matter.
pub const BUSY_POLL_US_MAX: i64 = 1000;
pub const DAY_SECONDS: i64 = 86_400;
/// Less could not hold the replies of one page.
pub const CACHE_BYTES_MIN: i64 = 1 << 20;
/// Less could not hold one message, its reply, and what the process needs from the start.
pub const MEMORY_MB_MIN: i64 = 128;
pub const MEMORY_MB_MAX: i64 = 1 << 30;
pub const CURSORS: i64 = 100_000;
pub const SESSION_CURSORS: i64 = 10_000;
pub const USER_CURSORS: i64 = 50_000;
pub const CONNECTIONS: usize = 65_536;
pub const CONNECTION_QUEUE: u32 = 1000;
pub const BURST_SECONDS: u64 = 1;
/// Drivers send their first message at once. MariaDB waits ten seconds, which are few for a client
/// behind a slow line.
pub const HANDSHAKE_SECONDS: u64 = 30;
pub const STALLED_SECONDS: u64 = 300;
pub const STORAGE_TIMEOUT_MS: i64 = 50;
pub const CACHE_BYTES: usize = 256 << 20;

/// The listener without a configuration.
pub fn default_listen() -> ListenAddress {
    ListenAddress::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 27017)))
}
