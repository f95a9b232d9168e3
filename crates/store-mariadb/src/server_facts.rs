//! Properties of the server.

use error::Error;

/// Properties of the server, read at the start.
#[derive(Clone, Debug)]
pub(crate) struct ServerFacts {
    pub version: String,
    pub ignores_case: bool,
    pub packet_bytes_max: u64,
    /// `auto_increment_increment` is 1, as it is unless several servers of a cluster alternate.
    pub counts_by_one: bool,
    /// It is a node of a Galera cluster.
    pub is_galera: bool,
    /// JSON paths support ranges.
    pub has_ranges: bool,
    /// Why documents cannot be written, if the server is unsuitable but also serves SQL clients.
    pub unsuitable: Option<Error>,
}
