//! Success, and the end of a result set.
//!
//! Source: <https://mariadb.com/kb/en/ok_packet/>

use crate::{END, Malformed, OK, Reader};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OkPacket {
    pub affected_rows: u64,
    pub last_insert_id: u64,
    pub status: u16,
    pub warnings: u16,
}

/// Another result follows this one.
pub const STATUS_MORE_RESULTS: u16 = 1 << 3;
pub const STATUS_IN_TRANSACTION: u16 = 1;

impl OkPacket {
    pub fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(payload, "OK");
        if !matches!(reader.u8()?, OK | END) {
            return Err(reader.malformed());
        }
        Ok(OkPacket {
            affected_rows: reader.length_encoded()?,
            last_insert_id: reader.length_encoded()?,
            status: reader.u16()?,
            warnings: reader.u16()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check_truncations;

    #[test]
    fn counts_are_read() {
        let sample = b"\x00\xfc\x10\x27\x05\x02\x00\x01\x00";
        let ok = OkPacket::decode(sample).unwrap();
        assert_eq!(ok, OkPacket { affected_rows: 10_000, last_insert_id: 5, status: 2, warnings: 1 });
        check_truncations(sample, |bytes| assert!(OkPacket::decode(bytes).is_err()));
        assert!(OkPacket::decode(b"\xff\x00\x00\x00\x00\x00\x00").is_err());
    }
}
