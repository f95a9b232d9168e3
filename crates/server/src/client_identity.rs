//! The client of an operation.

use bytes::Bytes;
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

/// The client of a connection, as `currentOp` and the profiler show it.
#[derive(Debug)]
pub struct ClientIdentity {
    pub connection_id: u64,
    pub client: Option<SocketAddr>,
    /// The `client` document of the handshake.
    pub metadata: OnceLock<Bytes>,
    /// Whether a handshake has succeeded: the client must not send its metadata again.
    pub is_introduced: AtomicBool,
}
