//! Small events: the position of the stream, and errors.
//!
//! Source: <https://mariadb.com/kb/en/rotate_event/>,
//! <https://mariadb.com/kb/en/heartbeat_log_event/>

use crate::{Malformed, Reader};

/// ROTATE: another file follows. Also sent at the beginning of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotate<'a> {
    pub position: u64,
    pub file: &'a [u8],
}

impl<'a> Rotate<'a> {
    pub fn decode(body: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(body, "ROTATE");
        Ok(Rotate { position: reader.u64()?, file: reader.rest() })
    }
}

/// XID: a transaction is committed. The number is the server's own.
pub fn decode_xid(body: &[u8]) -> Result<u64, Malformed> {
    Reader::new(body, "XID").u64()
}

/// INCIDENT: some changes were not logged. Returns the server's message.
pub fn decode_incident(body: &[u8]) -> Result<&[u8], Malformed> {
    let mut reader = Reader::new(body, "INCIDENT");
    reader.u16()?;
    if reader.is_empty() {
        return Ok(&[]);
    }
    let length = usize::from(reader.u8()?);
    reader.bytes(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check_truncations;

    #[test]
    fn small_events_are_read() {
        let rotate = Rotate::decode(b"\x04\0\0\0\0\0\0\0log.000002").unwrap();
        assert_eq!(rotate, Rotate { position: 4, file: b"log.000002" });
        assert_eq!(decode_xid(&[9, 0, 0, 0, 0, 0, 0, 0]), Ok(9));
        assert_eq!(decode_incident(b"\x01\0\x03odd"), Ok(&b"odd"[..]));
        check_truncations(b"\x04\0\0\0\0\0\0\0", |bytes| assert!(Rotate::decode(bytes).is_err()));
        check_truncations(b"\x01\0\x03odd", |bytes| decode_incident(bytes).is_ok());
    }
}
