//! Registering as a replica, and the packets that contain events.
//!
//! Source: <https://mariadb.com/kb/en/com_register_slave/>,
//! <https://mariadb.com/kb/en/com_binlog_dump/>,
//! <https://mariadb.com/kb/en/semi-synchronous-replication-protocol/>

use crate::err::ErrPacket;
use crate::{END, ERR, Malformed, OK, Reader};

/// Precedes events for semi-synchronous replicas, and their replies.
const SEMI_SYNC: u8 = 0xEF;

/// COM_REGISTER_SLAVE: the server lists the replica by this number and host. The reply is OK.
pub fn register(server: u32, host: &str, out: &mut Vec<u8>) {
    out.push(0x15);
    out.extend_from_slice(&server.to_le_bytes());
    let host = host.as_bytes().get(..60).unwrap_or(host.as_bytes());
    out.push(host.len() as u8);
    out.extend_from_slice(host);
    // No user, password, port, rank, or source's number.
    out.extend_from_slice(&[0; 2 + 2 + 4 + 4]);
}

/// A flag of COM_BINLOG_DUMP.
const SEND_ANNOTATE_ROWS: u16 = 0x02;

/// COM_BINLOG_DUMP, from the beginning of a file; without one, from the position in the session's
/// `@slave_connect_state`. The reply is an endless stream of [`Dump`] packets. `annotated`: with
/// the texts of statements, where the log has them.
pub fn dump(server: u32, file: Option<&str>, annotated: bool, out: &mut Vec<u8>) {
    out.push(0x12);
    // The position in the file, and flags.
    out.extend_from_slice(&4u32.to_le_bytes());
    let flags = if annotated { SEND_ANNOTATE_ROWS } else { 0 };
    out.extend_from_slice(&flags.to_le_bytes());
    out.extend_from_slice(&server.to_le_bytes());
    out.extend_from_slice(file.unwrap_or_default().as_bytes());
}

/// Acknowledges everything up to a position to a semi-synchronous source, in a packet of its own.
pub fn acknowledge(file: &[u8], end: u64, out: &mut Vec<u8>) {
    out.push(SEMI_SYNC);
    out.extend_from_slice(&end.to_le_bytes());
    out.extend_from_slice(file);
}

/// A packet of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dump<'a> {
    Event {
        event: &'a [u8],
        /// The source waits for [`acknowledge`].
        wants_answer: bool,
    },
    Err(ErrPacket<'a>),
    /// The server ends the stream.
    End,
}

impl<'a> Dump<'a> {
    /// Parses a packet. `semi_sync`: the replica has requested semi-synchronous replication, and
    /// the server uses it.
    pub fn decode(payload: &'a [u8], semi_sync: bool) -> Result<Self, Malformed> {
        let mut reader = Reader::new(payload, "binlog");
        match payload.first() {
            Some(&OK) => reader.u8()?,
            Some(&ERR) => return ErrPacket::decode(payload).map(Dump::Err),
            Some(&END) if payload.len() < 9 => return Ok(Dump::End),
            _ => return Err(reader.malformed()),
        };
        let mut wants_answer = false;
        if semi_sync {
            if reader.u8()? != SEMI_SYNC {
                return Err(reader.malformed());
            }
            wants_answer = reader.u8()? & 1 != 0;
        }
        Ok(Dump::Event { event: reader.rest(), wants_answer })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_the_stream_are_classified() {
        assert_eq!(Dump::decode(b"\0abc", false), Ok(Dump::Event { event: b"abc", wants_answer: false }));
        assert_eq!(Dump::decode(b"\0\xef\x01abc", true), Ok(Dump::Event { event: b"abc", wants_answer: true }));
        assert_eq!(Dump::decode(b"\0\xef\x00abc", true), Ok(Dump::Event { event: b"abc", wants_answer: false }));
        assert!(Dump::decode(b"\0abc", true).is_err());
        assert!(matches!(Dump::decode(b"\xff\xd4\x04#HY000Could not find", false), Ok(Dump::Err(_))));
        assert_eq!(Dump::decode(b"\xfe\0\0\x02\0", false), Ok(Dump::End));
        assert!(Dump::decode(b"", false).is_err() && Dump::decode(b"\x01", true).is_err());
    }

    #[test]
    fn requests_have_their_fields() {
        let mut out = Vec::new();
        register(0x0102, "h", &mut out);
        assert_eq!(out, [&[0x15, 2, 1, 0, 0, 1, b'h'][..], &[0; 12]].concat());
        out.clear();
        dump(3, None, false, &mut out);
        assert_eq!(out, [0x12, 4, 0, 0, 0, 0, 0, 3, 0, 0, 0]);
        out.clear();
        dump(3, Some("log.1"), true, &mut out);
        assert_eq!(out, [&[0x12, 4, 0, 0, 0, 2, 0, 3, 0, 0, 0], &b"log.1"[..]].concat());
        out.clear();
        acknowledge(b"f", 258, &mut out);
        assert_eq!(out, [0xEF, 2, 1, 0, 0, 0, 0, 0, 0, b'f']);
    }
}
