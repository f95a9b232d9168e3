//! OK: success, or the end of a result set.
//!
//! Source: <https://mariadb.com/kb/en/ok_packet/>

use crate::{END, Malformed, OK, Reader};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OkPacket {
    pub affected_rows: u64,
    pub last_insert_id: u64,
    pub status: u16,
    pub warnings: u16,
    /// The GTID of the transaction that this packet ends (domain, server, number), if the session
    /// tracks it (`session_track_system_variables = 'last_gtid'`).
    pub transaction: Option<(u32, u32, u64)>,
}

/// Another result follows this one.
pub const STATUS_MORE_RESULTS: u16 = 1 << 3;
pub const STATUS_IN_TRANSACTION: u16 = 1;
/// Autocommit mode.
pub const STATUS_AUTOCOMMIT: u16 = 1 << 1;
/// Changes of the session's state follow the counts.
pub const STATUS_SESSION_CHANGED: u16 = 1 << 14;

/// The type of a change: a variable, with name and value.
const TRACKS_VARIABLE: u8 = 0;

impl OkPacket {
    pub fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(payload, "OK");
        if !matches!(reader.u8()?, OK | END) {
            return Err(reader.malformed());
        }
        let mut ok = OkPacket {
            affected_rows: reader.length_encoded()?,
            last_insert_id: reader.length_encoded()?,
            status: reader.u16()?,
            warnings: reader.u16()?,
            transaction: None,
        };
        if ok.status & STATUS_SESSION_CHANGED != 0 {
            // A message for people precedes them.
            reader.length_encoded_bytes()?;
            ok.transaction = last_transaction(reader.length_encoded_bytes()?)?;
        }
        Ok(ok)
    }
}

/// Returns the value of `last_gtid` among the changes of a session.
fn last_transaction(changes: &[u8]) -> Result<Option<(u32, u32, u64)>, Malformed> {
    let mut reader = Reader::new(changes, "session changes");
    let mut transaction = None;
    while !reader.is_empty() {
        let kind = reader.u8()?;
        let change = reader.length_encoded_bytes()?;
        if kind == TRACKS_VARIABLE {
            let mut variable = Reader::new(change, "session variable");
            while !variable.is_empty() {
                let (name, value) = (variable.length_encoded_bytes()?, variable.length_encoded_bytes()?);
                if name == b"last_gtid" {
                    transaction = parse_gtid(value);
                }
            }
        }
    }
    Ok(transaction)
}

/// Parses `0-1-42`.
fn parse_gtid(text: &[u8]) -> Option<(u32, u32, u64)> {
    let mut parts = std::str::from_utf8(text).ok()?.split('-');
    let gtid = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    parts.next().is_none().then_some(gtid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check_truncations;

    #[test]
    fn counts_are_read() {
        let sample = b"\x00\xfc\x10\x27\x05\x02\x00\x01\x00";
        let ok = OkPacket::decode(sample).unwrap();
        assert_eq!(
            ok,
            OkPacket { affected_rows: 10_000, last_insert_id: 5, status: 2, warnings: 1, transaction: None }
        );
        check_truncations(sample, |bytes| assert!(OkPacket::decode(bytes).is_err()));
        assert!(OkPacket::decode(b"\xff\x00\x00\x00\x00\x00\x00").is_err());
    }

    #[test]
    fn the_gtid_of_a_transaction_is_read() {
        let sample = b"\x00\x01\x00\x02\x40\x00\x00\x00\x15\x00\x13\x09last_gtid\x080-12-345";
        let ok = OkPacket::decode(sample).unwrap();
        assert_eq!(ok.transaction, Some((0, 12, 345)));
        check_truncations(sample, |bytes| assert!(OkPacket::decode(bytes).is_err()));
        assert_eq!(parse_gtid(b""), None);
        assert_eq!(parse_gtid(b"0-1-2-3"), None);
    }
}
