//! Capabilities of client and server. The upper 32 bits are MariaDB's own.
//!
//! Source: <https://mariadb.com/kb/en/connection/#capabilities>

use std::ops::{BitAnd, BitOr};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(pub u64);

impl Capabilities {
    /// Set by servers other than MariaDB 10.2 and later. If it is missing, the extended
    /// capabilities follow.
    pub const CLIENT_MYSQL: Capabilities = Capabilities(1);
    /// `affected rows` counts the rows found, not those changed.
    pub const FOUND_ROWS: Capabilities = Capabilities(1 << 1);
    pub const CONNECT_WITH_DB: Capabilities = Capabilities(1 << 3);
    /// Packets travel in compressed frames after the login.
    pub const COMPRESS: Capabilities = Capabilities(1 << 5);
    /// The client may be asked for a file (LOAD DATA LOCAL).
    pub const LOCAL_FILES: Capabilities = Capabilities(1 << 7);
    pub const PROTOCOL_41: Capabilities = Capabilities(1 << 9);
    pub const TLS: Capabilities = Capabilities(1 << 11);
    pub const TRANSACTIONS: Capabilities = Capabilities(1 << 13);
    pub const SECURE_CONNECTION: Capabilities = Capabilities(1 << 15);
    pub const PS_MULTI_RESULTS: Capabilities = Capabilities(1 << 18);
    pub const PLUGIN_AUTH: Capabilities = Capabilities(1 << 19);
    pub const CONNECT_ATTRIBUTES: Capabilities = Capabilities(1 << 20);
    pub const PLUGIN_AUTH_LENGTH_ENCODED: Capabilities = Capabilities(1 << 21);
    pub const SESSION_TRACK: Capabilities = Capabilities(1 << 23);
    /// Result sets end with an OK packet instead of EOF packets.
    pub const DEPRECATE_EOF: Capabilities = Capabilities(1 << 24);
    /// COM_STMT_BULK_EXECUTE.
    pub const STMT_BULK_OPERATIONS: Capabilities = Capabilities(1 << 34);
    /// Prepared statements leave out column definitions that have not changed.
    pub const CACHE_METADATA: Capabilities = Capabilities(1 << 36);

    pub fn contains(self, other: Capabilities) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the capabilities that MySQL knows too.
    pub fn low(self) -> u32 {
        self.0 as u32
    }

    /// Returns MariaDB's own capabilities.
    pub fn extended(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

impl BitOr for Capabilities {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Capabilities(self.0 | other.0)
    }
}

impl BitAnd for Capabilities {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Capabilities(self.0 & other.0)
    }
}
