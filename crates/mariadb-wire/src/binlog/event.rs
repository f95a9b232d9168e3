//! The header of every event, and its optional checksum.
//!
//! Source: <https://mariadb.com/kb/en/2-binlog-event-header/>

use super::Checksum;
use crate::{Malformed, Reader};

/// Types of events, as in the header.
pub mod kind {
    pub const QUERY: u8 = 2;
    pub const STOP: u8 = 3;
    pub const ROTATE: u8 = 4;
    pub const FORMAT_DESCRIPTION: u8 = 15;
    pub const XID: u8 = 16;
    pub const TABLE_MAP: u8 = 19;
    pub const WRITE_ROWS_V1: u8 = 23;
    pub const UPDATE_ROWS_V1: u8 = 24;
    pub const DELETE_ROWS_V1: u8 = 25;
    pub const INCIDENT: u8 = 26;
    pub const HEARTBEAT: u8 = 27;
    pub const WRITE_ROWS: u8 = 30;
    pub const UPDATE_ROWS: u8 = 31;
    pub const DELETE_ROWS: u8 = 32;
    pub const XA_PREPARE: u8 = 38;
    pub const ANNOTATE_ROWS: u8 = 160;
    pub const BINLOG_CHECKPOINT: u8 = 161;
    pub const GTID: u8 = 162;
    pub const GTID_LIST: u8 = 163;
    pub const START_ENCRYPTION: u8 = 164;
    pub const QUERY_COMPRESSED: u8 = 165;
    pub const WRITE_ROWS_COMPRESSED_V1: u8 = 166;
    pub const UPDATE_ROWS_COMPRESSED_V1: u8 = 167;
    pub const DELETE_ROWS_COMPRESSED_V1: u8 = 168;
    pub const WRITE_ROWS_COMPRESSED: u8 = 169;
    pub const UPDATE_ROWS_COMPRESSED: u8 = 170;
    pub const DELETE_ROWS_COMPRESSED: u8 = 171;
}

pub const HEADER_BYTES: usize = 19;

const CHECKSUM_BYTES: usize = 4;

/// The offset of the flags in the header.
const FLAGS_AT: usize = 17;

/// The file is still being written. Excluded from the checksum.
const FLAG_IN_USE: u8 = 1;

/// The server made up the event for this replica; no file has it.
pub const FLAG_ARTIFICIAL: u16 = 0x20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Seconds since 1970 by the server's clock.
    pub timestamp: u32,
    /// One of [`kind`], or another number.
    pub kind: u8,
    pub server: u32,
    /// The position after the event in its file, modulo 2³²; 0 for events that no file has.
    pub end: u32,
    pub flags: u16,
}

/// An event; `body` is the part between header and checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    pub header: Header,
    pub body: &'a [u8],
}

impl<'a> Event<'a> {
    /// Parses an event. `checksum`: that of the last [`super::FormatDescription`], an event that
    /// describes itself. Fails with `Malformed("binlog checksum")` if the bytes are damaged.
    pub fn decode(bytes: &'a [u8], checksum: Checksum) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes, "binlog event");
        let timestamp = reader.u32()?;
        let kind = reader.u8()?;
        let server = reader.u32()?;
        let length = reader.u32()?;
        let header = Header { timestamp, kind, server, end: reader.u32()?, flags: reader.u16()? };
        if length as usize != bytes.len() {
            return Err(reader.malformed());
        }
        let body = reader.rest();
        if kind == kind::FORMAT_DESCRIPTION {
            if Checksum::of_format_description(body)? == Checksum::Crc32 {
                verify(bytes)?;
            }
            return Ok(Event { header, body });
        }
        let body = match checksum {
            Checksum::None => body,
            Checksum::Crc32 => {
                let without = body.len().checked_sub(CHECKSUM_BYTES).ok_or(Malformed("binlog event"))?;
                verify(bytes)?;
                &body[..without]
            }
        };
        Ok(Event { header, body })
    }
}

/// Compares the last four bytes with the checksum of those before them.
fn verify(bytes: &[u8]) -> Result<(), Malformed> {
    let (covered, stored) = bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or(Malformed("binlog event"))?;
    let mut crc = flate2::Crc::new();
    match covered.split_at_checked(FLAGS_AT) {
        Some((front, [flags, tail @ ..])) => {
            crc.update(front);
            crc.update(&[flags & !FLAG_IN_USE]);
            crc.update(tail);
        }
        _ => crc.update(covered),
    }
    if crc.sum() == u32::from_le_bytes(*stored) { Ok(()) } else { Err(Malformed("binlog checksum")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check_truncations;

    /// An event with a header and a checksum around a body.
    fn wrap(kind: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![1, 0, 0, 0, kind, 7, 0, 0, 0];
        bytes.extend_from_slice(&((HEADER_BYTES + body.len() + CHECKSUM_BYTES) as u32).to_le_bytes());
        bytes.extend_from_slice(&[0x99, 0, 0, 0, 0, 0]);
        bytes.extend_from_slice(body);
        let mut crc = flate2::Crc::new();
        crc.update(&bytes);
        bytes.extend_from_slice(&crc.sum().to_le_bytes());
        bytes
    }

    #[test]
    fn bodies_are_between_header_and_checksum() {
        let sample = wrap(kind::XID, b"12345678");
        let event = Event::decode(&sample, Checksum::Crc32).unwrap();
        assert_eq!((event.header.kind, event.header.server, event.header.end), (kind::XID, 7, 0x99));
        assert_eq!(event.body, b"12345678");
        assert_eq!(Event::decode(&sample, Checksum::None).unwrap().body.len(), 12);
        check_truncations(&sample, |bytes| assert!(Event::decode(bytes, Checksum::Crc32).is_err()));
    }

    #[test]
    fn damage_is_detected() {
        let sample = wrap(kind::XID, b"12345678");
        for at in [0, 6, 20, sample.len() - 1] {
            let mut damaged = sample.clone();
            damaged[at] ^= 4;
            assert_eq!(Event::decode(&damaged, Checksum::Crc32), Err(Malformed("binlog checksum")), "{at}");
        }
    }
}
