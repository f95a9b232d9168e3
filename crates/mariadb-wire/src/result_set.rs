//! The head of a reply: success, failure, or a result set with its number of columns.
//!
//! Source: <https://mariadb.com/kb/en/result-set-packets/>

use crate::err::ErrPacket;
use crate::ok::OkPacket;
use crate::{Capabilities, END, ERR, Malformed, OK, Reader};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head<'a> {
    Ok(OkPacket),
    Err(ErrPacket<'a>),
    /// Rows follow; before them the column definitions, unless the client must use those it has.
    ResultSet {
        columns: u64,
        definitions_follow: bool,
    },
}

impl<'a> Head<'a> {
    /// Parses the head. `capabilities`: those negotiated.
    pub fn decode(payload: &'a [u8], capabilities: Capabilities) -> Result<Self, Malformed> {
        match payload.first() {
            Some(&OK) => OkPacket::decode(payload).map(Head::Ok),
            Some(&ERR) => ErrPacket::decode(payload).map(Head::Err),
            _ => {
                let mut reader = Reader::new(payload, "result set");
                let columns = reader.length_encoded()?;
                let definitions_follow =
                    !capabilities.contains(Capabilities::CACHE_METADATA) || reader.is_empty() || reader.u8()? != 0;
                Ok(Head::ResultSet { columns, definitions_follow })
            }
        }
    }
}

/// The kind of a packet among the rows of a result set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next<'a> {
    Row(&'a [u8]),
    End(OkPacket),
    Err(ErrPacket<'a>),
}

impl<'a> Next<'a> {
    /// Classifies a packet. With the capability `DEPRECATE_EOF`, an OK packet whose first byte is
    /// 0xFE ends the rows. A text row may begin with that byte too, but only if it is larger than a
    /// frame.
    #[inline]
    pub fn decode(payload: &'a [u8]) -> Result<Self, Malformed> {
        match payload.first() {
            Some(&ERR) => ErrPacket::decode(payload).map(Next::Err),
            Some(&END) if payload.len() < crate::packet::FRAME_BYTES_MAX => OkPacket::decode(payload).map(Next::End),
            _ => Ok(Next::Row(payload)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_classified() {
        let cached = Capabilities::CACHE_METADATA;
        let decode = |bytes: &'static [u8]| Head::decode(bytes, cached).unwrap();
        assert_eq!(decode(&[2, 0]), Head::ResultSet { columns: 2, definitions_follow: false });
        assert_eq!(decode(&[2, 1]), Head::ResultSet { columns: 2, definitions_follow: true });
        assert!(matches!(decode(&[0, 0, 0, 2, 0, 0, 0]), Head::Ok(_)));
        assert!(Head::decode(&[], cached).is_err());
        let plain = Head::decode(&[2], Capabilities::default()).unwrap();
        assert_eq!(plain, Head::ResultSet { columns: 2, definitions_follow: true });
    }

    #[test]
    fn rows_end_with_ok() {
        assert!(matches!(Next::decode(&[0xFE, 0, 0, 2, 0, 0, 0]), Ok(Next::End(_))));
        assert!(matches!(Next::decode(&[0, 0, 0]), Ok(Next::Row(_))));
        assert!(Next::decode(&[0xFE, 0]).is_err());
    }
}
