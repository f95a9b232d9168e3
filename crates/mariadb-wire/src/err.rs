//! ERR: a failure.
//!
//! Source: <https://mariadb.com/kb/en/err_packet/>, error codes:
//! <https://mariadb.com/kb/en/mariadb-error-codes/>

use crate::{ERR, Malformed, Reader};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrPacket<'a> {
    pub code: u16,
    /// The SQLSTATE: five letters and digits; empty before the handshake is complete.
    pub sql_state: &'a [u8],
    pub message: &'a [u8],
}

impl<'a> ErrPacket<'a> {
    pub fn decode(payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(payload, "ERR");
        if reader.u8()? != ERR {
            return Err(reader.malformed());
        }
        let code = reader.u16()?;
        let rest = reader.rest();
        let (sql_state, message) = match rest.split_first() {
            Some((b'#', tail)) => tail.split_at_checked(5).ok_or(Malformed("ERR"))?,
            _ => (&rest[..0], rest),
        };
        Ok(ErrPacket { code, sql_state, message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check_truncations;

    #[test]
    fn the_reason_is_read() {
        let sample = b"\xff\x26\x04#23000Duplicate entry '1' for key 'id'";
        let err = ErrPacket::decode(sample).unwrap();
        assert_eq!((err.code, err.sql_state), (1062, &b"23000"[..]));
        assert_eq!(err.message, b"Duplicate entry '1' for key 'id'");
        check_truncations(sample, |bytes| ErrPacket::decode(bytes).is_ok());
        assert_eq!(ErrPacket::decode(b"\xff\x10\x04Too many connections").unwrap().message, b"Too many connections");
    }
}
