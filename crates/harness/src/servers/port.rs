//! Free ports.

use anyhow::{Result, bail};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::TcpListener;
use std::ops::Range;

/// Returns a port on which nothing listens. It is below the ports that systems give to outgoing
/// connections (32768 and up, 49152 and up); one of those could take the port before the server
/// has it.
pub fn free_port() -> Result<u16> {
    const PORTS: Range<u16> = 20_000..32_000;
    for _ in 0..100 {
        let random = RandomState::new().build_hasher().finish();
        let port = PORTS.start + (random % PORTS.len() as u64) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("a hundred ports of {PORTS:?} are all in use")
}
