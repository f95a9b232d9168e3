//! Global transaction ids, and the events that contain them.
//!
//! Source: <https://mariadb.com/kb/en/gtid_event/>, <https://mariadb.com/kb/en/gtid_list_event/>

use crate::{Malformed, Reader};
use std::fmt;

/// MariaDB's form: `domain-server-sequence`. Within a domain, transactions are totally ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gtid {
    pub domain: u32,
    pub server: u32,
    pub sequence: u64,
}

impl fmt::Display for Gtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.domain, self.server, self.sequence)
    }
}

impl Gtid {
    /// Parses a position of `@@gtid_binlog_pos`: ids separated by commas, or an empty text.
    pub fn parse_list(text: &str) -> Result<Vec<Gtid>, Malformed> {
        text.split(',').map(str::trim).filter(|id| !id.is_empty()).map(Gtid::parse).collect()
    }

    fn parse(text: &str) -> Result<Gtid, Malformed> {
        let malformed = || Malformed("GTID");
        let mut parts = text.split('-');
        let mut part = || parts.next().ok_or_else(malformed);
        let (domain, server, sequence) = (part()?, part()?, part()?);
        if parts.next().is_some() {
            return Err(malformed());
        }
        Ok(Gtid {
            domain: domain.parse().map_err(|_| malformed())?,
            server: server.parse().map_err(|_| malformed())?,
            sequence: sequence.parse().map_err(|_| malformed())?,
        })
    }
}

/// Begins a group of events: a transaction, or one statement outside of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GtidEvent<'a> {
    pub gtid: Gtid,
    flags: u8,
    /// The XA transaction that this group prepares or completes, as bytes to compare.
    pub xa: Option<&'a [u8]>,
}

impl<'a> GtidEvent<'a> {
    const STANDALONE: u8 = 1;
    const GROUP_COMMIT: u8 = 2;
    const TRANSACTIONAL: u8 = 4;
    const DDL: u8 = 32;
    const PREPARED_XA: u8 = 64;
    const COMPLETED_XA: u8 = 128;

    /// Parses the event. `server`: from the event's header.
    pub fn decode(body: &'a [u8], server: u32) -> Result<Self, Malformed> {
        let mut reader = Reader::new(body, "GTID");
        let sequence = reader.u64()?;
        let domain = reader.u32()?;
        let flags = reader.u8()?;
        if flags & Self::GROUP_COMMIT != 0 {
            reader.u64()?;
        }
        let xa = if flags & (Self::PREPARED_XA | Self::COMPLETED_XA) != 0 {
            let tail = reader.rest();
            let mut head = Reader::new(tail, "GTID");
            head.u32()?;
            let length = usize::from(head.u8()?) + usize::from(head.u8()?);
            Some(tail.get(..6 + length).ok_or(Malformed("GTID"))?)
        } else {
            None
        };
        Ok(GtidEvent { gtid: Gtid { domain, server, sequence }, flags, xa })
    }

    /// Returns whether the group has one more event; otherwise it lasts until COMMIT, ROLLBACK, XID
    /// or XA PREPARE.
    pub fn is_standalone(&self) -> bool {
        self.flags & Self::STANDALONE != 0
    }

    /// Returns whether all of its tables have a transactional engine.
    pub fn is_transactional(&self) -> bool {
        self.flags & Self::TRANSACTIONAL != 0
    }

    pub fn is_ddl(&self) -> bool {
        self.flags & Self::DDL != 0
    }

    pub fn prepares_xa(&self) -> bool {
        self.flags & Self::PREPARED_XA != 0
    }

    pub fn completes_xa(&self) -> bool {
        self.flags & Self::COMPLETED_XA != 0
    }
}

/// GTID_LIST: the position at which a file begins.
pub fn decode_list(body: &[u8]) -> Result<Vec<Gtid>, Malformed> {
    let mut reader = Reader::new(body, "GTID_LIST");
    // The upper four bits are flags.
    let count = reader.u32()? & 0x0FFF_FFFF;
    let mut list = Vec::new();
    for _ in 0..count {
        let (domain, server) = (reader.u32()?, reader.u32()?);
        list.push(Gtid { domain, server, sequence: reader.u64()? });
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check_truncations;

    #[test]
    fn positions_are_read_and_written() {
        let text = "0-1-5,4294967295-2-18446744073709551615";
        let list = Gtid::parse_list(text).unwrap();
        assert_eq!(list.iter().map(Gtid::to_string).collect::<Vec<_>>().join(","), text);
        assert_eq!(Gtid::parse_list(""), Ok(vec![]));
        for wrong in ["0-1", "0-1-2-3", "a-1-2", "0-1--2", "4294967296-1-1"] {
            assert!(Gtid::parse_list(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_end_of_a_group_is_known() {
        let sample = [5, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0x21, 0, 0, 0, 0, 0, 0];
        let event = GtidEvent::decode(&sample, 3).unwrap();
        assert_eq!(event.gtid, Gtid { domain: 9, server: 3, sequence: 5 });
        assert!(event.is_standalone() && event.is_ddl() && !event.is_transactional() && event.xa.is_none());
        check_truncations(&sample, |bytes| GtidEvent::decode(bytes, 3).is_ok());
    }

    #[test]
    fn xa_transactions_are_distinguished() {
        let sample =
            [5, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0x82, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 2, 1, b'a', b'b', b'c'];
        let event = GtidEvent::decode(&sample, 3).unwrap();
        assert!(event.completes_xa() && !event.prepares_xa());
        assert_eq!(event.xa, Some(&sample[21..]));
        check_truncations(&sample, |bytes| assert!(GtidEvent::decode(bytes, 3).is_err()));
    }

    #[test]
    fn lists_are_read() {
        let mut sample = vec![2, 0, 0, 0x10];
        for part in [[0u32, 1, 7, 0], [1, 2, 8, 1]] {
            sample.extend(part.iter().flat_map(|number| number.to_le_bytes()));
        }
        let list = decode_list(&sample).unwrap();
        assert_eq!(list[0].to_string(), "0-1-7");
        assert_eq!(list[1].sequence, 8 + (1 << 32));
        check_truncations(&sample, |bytes| assert!(decode_list(bytes).is_err()));
        assert!(decode_list(&[255, 255, 255, 15]).is_err());
    }
}
