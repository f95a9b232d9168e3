//! Options of a follower.

use std::time::Duration;

/// Options of a follower; the defaults suit most servers.
#[derive(Clone, Debug)]
pub struct FollowOptions {
    /// The server id of this replica, which must be unique. By default a large random number.
    pub server_id: Option<u32>,
    /// Heartbeat period; a lost stream is noticed after about twice this time.
    pub heartbeat: Duration,
    /// If changes arrive later than this, the stream counts as cut until it has caught up. Must be
    /// several times `heartbeat`, at which it is measured.
    pub behind_max: Duration,
    /// Makes writers wait until their changes have been delivered. Needs settings of the server,
    /// see `docs/mariadb/external-writes.md`.
    pub semi_sync: bool,
    /// A transaction with more bytes of rows is delivered as its tables.
    pub transaction_bytes_max: usize,
    pub connect_timeout: Duration,
    /// Pauses between attempts to connect: the first, and the longest, up to which it doubles.
    pub retry: (Duration, Duration),
}

impl Default for FollowOptions {
    fn default() -> Self {
        FollowOptions {
            server_id: None,
            heartbeat: Duration::from_millis(500),
            behind_max: Duration::from_secs(2),
            semi_sync: false,
            transaction_bytes_max: 16 << 20,
            connect_timeout: Duration::from_secs(10),
            retry: (Duration::from_millis(100), Duration::from_secs(5)),
        }
    }
}
