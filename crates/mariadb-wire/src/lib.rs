//! The MariaDB client/server protocol as bytes: packets, the handshake, commands, results.
//!
//! Bytes from a socket (in a [`packet::PacketReader`]) are decoded to packets that borrow from its
//! buffer; packets to send are appended to an output buffer. Nothing here does I/O, waits, reads a
//! clock or draws random numbers. Decoders read untrusted bytes: they never index or allocate by an
//! unchecked length.
//!
//! One file per packet, in the order in which a connection uses them: [`packet`] (framing),
//! [`compressed`] (the frames of connections that compress), [`handshake`] and
//! [`handshake_response`] (with [`capabilities`]; [`client_login`] decodes the latter for
//! gateways), [`auth`] and [`auth_switch`],
//! the commands [`com`], [`com_stmt_execute`] and [`com_stmt_bulk_execute`], and the replies
//! [`ok`], [`err`], [`prepare_ok`], [`column_definition`], [`result_set`], [`row`]. [`binlog`] has
//! the packets of replication.
//!
//! Source: <https://mariadb.com/kb/en/clientserver-protocol/>

pub mod auth;
pub mod auth_switch;
pub mod binlog;
pub mod capabilities;
pub mod client_login;
pub mod column_definition;
pub mod com;
pub mod com_stmt_bulk_execute;
pub mod com_stmt_execute;
pub mod compressed;
pub mod err;
pub mod handshake;
pub mod handshake_response;
pub mod ok;
pub mod packet;
pub mod prepare_ok;
pub mod reader;
pub mod result_set;
pub mod row;
pub mod value;

pub use capabilities::Capabilities;
pub use reader::{Malformed, Reader};
pub use value::{ColumnType, Param};

/// The first byte of an error packet.
pub const ERR: u8 = 0xFF;
/// The first byte of an OK packet, and of a binary row.
pub const OK: u8 = 0x00;
/// The first byte of the packet that ends a result set.
pub const END: u8 = 0xFE;

#[cfg(test)]
pub(crate) mod testing {
    /// Calls `decode` with every proper prefix of `sample`; a decoder must refuse or accept each
    /// without a panic.
    pub fn check_truncations<T>(sample: &[u8], decode: impl Fn(&[u8]) -> T) {
        for length in 0..sample.len() {
            decode(&sample[..length]);
        }
    }
}
