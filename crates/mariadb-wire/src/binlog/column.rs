//! The lengths and the encoding of values in row events.
//!
//! The length of every type that MariaDB writes is known; integers, floating point numbers, texts
//! and blobs are decoded. The formats differ from those of result sets.
//!
//! Source: <https://mariadb.com/kb/en/rows_event_v1v2-rows_compressed_event_v1/>

use crate::{Malformed, Reader};

/// Type codes of TABLE_MAP events.
mod code {
    pub const DECIMAL: u8 = 0;
    pub const TINY: u8 = 1;
    pub const SHORT: u8 = 2;
    pub const LONG: u8 = 3;
    pub const FLOAT: u8 = 4;
    pub const DOUBLE: u8 = 5;
    pub const NULL: u8 = 6;
    pub const TIMESTAMP: u8 = 7;
    pub const LONG_LONG: u8 = 8;
    pub const INT24: u8 = 9;
    pub const DATE: u8 = 10;
    pub const TIME: u8 = 11;
    pub const DATETIME: u8 = 12;
    pub const YEAR: u8 = 13;
    pub const NEW_DATE: u8 = 14;
    pub const VARCHAR: u8 = 15;
    pub const BIT: u8 = 16;
    pub const TIMESTAMP2: u8 = 17;
    pub const DATETIME2: u8 = 18;
    pub const TIME2: u8 = 19;
    pub const BLOB_COMPRESSED: u8 = 140;
    pub const VARCHAR_COMPRESSED: u8 = 141;
    pub const JSON: u8 = 245;
    pub const NEW_DECIMAL: u8 = 246;
    pub const ENUM: u8 = 247;
    pub const SET: u8 = 248;
    pub const TINY_BLOB: u8 = 249;
    pub const MEDIUM_BLOB: u8 = 250;
    pub const LONG_BLOB: u8 = 251;
    pub const BLOB: u8 = 252;
    pub const VAR_STRING: u8 = 253;
    pub const STRING: u8 = 254;
    pub const GEOMETRY: u8 = 255;
}

/// A column's type, as the table was when the event was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    code: u8,
    length: Length,
}

/// How to find the end of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    Fixed(usize),
    /// The value follows its length, which has this many bytes.
    Prefixed(usize),
}

/// A value in a row event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    Signed(i64),
    Unsigned(u64),
    Float(f32),
    Double(f64),
    /// Texts in the column's character set, and blobs.
    Bytes(&'a [u8]),
    /// Any other value (decimals, times, bits, enumerations, compressed columns), as the server
    /// encodes it.
    Packed(&'a [u8]),
}

impl Column {
    /// Parses `code` and the part of `metadata` about it, which is consumed.
    pub(super) fn decode(code: u8, metadata: &mut Reader<'_>) -> Result<Column, Malformed> {
        let fixed = |bytes| Ok(Column { code, length: Length::Fixed(bytes) });
        let prefixed = |bytes| Ok(Column { code, length: Length::Prefixed(bytes) });
        match code {
            code::NULL => fixed(0),
            code::TINY | code::YEAR => fixed(1),
            code::SHORT => fixed(2),
            code::INT24 | code::DATE | code::NEW_DATE | code::TIME => fixed(3),
            code::LONG | code::TIMESTAMP => fixed(4),
            code::LONG_LONG | code::DATETIME => fixed(8),
            code::FLOAT | code::DOUBLE => match metadata.u8()? {
                bytes @ (4 | 8) => fixed(usize::from(bytes)),
                _ => Err(metadata.malformed()),
            },
            code::TIMESTAMP2 => fixed(4 + fraction_bytes(metadata)?),
            code::DATETIME2 => fixed(5 + fraction_bytes(metadata)?),
            code::TIME2 => fixed(3 + fraction_bytes(metadata)?),
            code::NEW_DECIMAL => {
                let (precision, scale) = (metadata.u8()?, metadata.u8()?);
                fixed(decimal_bytes(precision, scale).ok_or(metadata.malformed())?)
            }
            code::BIT => {
                let (bits, bytes) = (metadata.u8()?, metadata.u8()?);
                fixed(usize::from(bytes) + usize::from(bits > 0))
            }
            code::VARCHAR | code::VARCHAR_COMPRESSED => prefixed(if metadata.u16()? > 255 { 2 } else { 1 }),
            code::TINY_BLOB
            | code::BLOB
            | code::MEDIUM_BLOB
            | code::LONG_BLOB
            | code::BLOB_COMPRESSED
            | code::GEOMETRY
            | code::JSON => match metadata.u8()? {
                bytes @ 1..=4 => prefixed(usize::from(bytes)),
                _ => Err(metadata.malformed()),
            },
            code::STRING | code::VAR_STRING | code::ENUM | code::SET => Column::of_string(metadata),
            // code::DECIMAL was last written by MySQL 4.
            _ => Err(metadata.malformed()),
        }
    }

    /// The actual type is in the first byte, of which two bits may belong to the length.
    fn of_string(metadata: &mut Reader<'_>) -> Result<Column, Malformed> {
        let (first, second) = (metadata.u8()?, metadata.u8()?);
        let (code, high) = (first | 0x30, u16::from(!first & 0x30) << 4);
        let declared = high | u16::from(second);
        let length = match code {
            code::ENUM | code::SET => Length::Fixed(usize::from(second)),
            code::STRING | code::VAR_STRING => Length::Prefixed(if declared > 255 { 2 } else { 1 }),
            _ => return Err(metadata.malformed()),
        };
        Ok(Column { code, length })
    }

    /// Takes a value off the front of a row.
    pub(super) fn take<'a>(self, row: &mut Reader<'a>) -> Result<&'a [u8], Malformed> {
        let length = match self.length {
            Length::Fixed(bytes) => bytes,
            Length::Prefixed(1) => usize::from(row.u8()?),
            Length::Prefixed(2) => usize::from(row.u16()?),
            Length::Prefixed(3) => row.u24()? as usize,
            Length::Prefixed(_) => row.u32()? as usize,
        };
        row.bytes(length)
    }

    pub fn is_varchar(self) -> bool {
        self.code == code::VARCHAR
    }

    /// Returns whether it holds blobs or long texts.
    pub fn is_blob(self) -> bool {
        matches!(self.code, code::TINY_BLOB | code::BLOB | code::MEDIUM_BLOB | code::LONG_BLOB)
    }

    /// Returns whether TABLE_MAP has a sign bit for this column.
    pub fn is_numeric(self) -> bool {
        matches!(
            self.code,
            code::TINY
                | code::SHORT
                | code::INT24
                | code::LONG
                | code::LONG_LONG
                | code::FLOAT
                | code::DOUBLE
                | code::DECIMAL
                | code::NEW_DECIMAL
        )
    }

    /// Decodes the bytes of [`super::rows::Field::Value`]. `unsigned`: the column's declaration.
    pub fn value(self, bytes: &[u8], unsigned: bool) -> Value<'_> {
        match self.code {
            code::TINY | code::SHORT | code::INT24 | code::LONG | code::LONG_LONG => integer(bytes, unsigned),
            code::FLOAT => bytes.try_into().map_or(Value::Packed(bytes), |it| Value::Float(f32::from_le_bytes(it))),
            code::DOUBLE => bytes.try_into().map_or(Value::Packed(bytes), |it| Value::Double(f64::from_le_bytes(it))),
            code::VARCHAR
            | code::STRING
            | code::VAR_STRING
            | code::TINY_BLOB
            | code::BLOB
            | code::MEDIUM_BLOB
            | code::LONG_BLOB
            | code::JSON => Value::Bytes(bytes),
            _ => Value::Packed(bytes),
        }
    }
}

fn integer(bytes: &[u8], unsigned: bool) -> Value<'_> {
    let mut wide = [0; 8];
    let Some(room) = wide.get_mut(..bytes.len()) else { return Value::Packed(bytes) };
    room.copy_from_slice(bytes);
    let number = u64::from_le_bytes(wide);
    if unsigned {
        return Value::Unsigned(number);
    }
    let spare = 64 - 8 * bytes.len() as u32;
    Value::Signed((number.checked_shl(spare).unwrap_or(0) as i64).checked_shr(spare).unwrap_or(0))
}

/// Returns the bytes for this many fractional digits of seconds.
fn fraction_bytes(metadata: &mut Reader<'_>) -> Result<usize, Malformed> {
    match metadata.u8()? {
        digits @ 0..=6 => Ok(usize::from(digits).div_ceil(2)),
        _ => Err(metadata.malformed()),
    }
}

/// Nine digits take four bytes, on either side of the point; the remaining digits take fewer.
fn decimal_bytes(precision: u8, scale: u8) -> Option<usize> {
    const LEFT_OVER: [usize; 9] = [0, 1, 1, 2, 2, 3, 3, 4, 4];
    let bytes = |digits: u8| usize::from(digits / 9) * 4 + LEFT_OVER[usize::from(digits % 9)];
    Some(bytes(precision.checked_sub(scale)?) + bytes(scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(code: u8, metadata: &[u8], row: &[u8], expected: &[u8]) -> Column {
        let mut metadata = Reader::new(metadata, "t");
        let column = Column::decode(code, &mut metadata).unwrap();
        assert!(metadata.is_empty(), "{code}");
        let mut reader = Reader::new(row, "t");
        assert_eq!(column.take(&mut reader), Ok(expected), "{code}");
        assert!(reader.is_empty(), "{code}");
        column
    }

    #[test]
    fn every_type_is_measured() {
        for (code, bytes) in
            [(1, 1), (2, 2), (3, 4), (6, 0), (7, 4), (8, 8), (9, 3), (10, 3), (11, 3), (12, 8), (13, 1), (14, 3)]
        {
            let row = vec![7; bytes];
            check(code, &[], &row, &row);
        }
        for (code, metadata, bytes) in [
            (4, &[4][..], 4),
            (5, &[8], 8),
            (17, &[0], 4),
            (17, &[6], 7),
            (18, &[3], 7),
            (19, &[1], 4),
            (246, &[10, 2], 5),
            (246, &[65, 38], 29),
            (16, &[3, 2], 3),
            (16, &[0, 8], 8),
            (254, &[247, 2], 2),
            (254, &[248, 8], 8),
        ] {
            let row = vec![7; bytes];
            check(code, metadata, &row, &row);
        }
        check(15, &[255, 0], b"\x01a", b"a");
        check(15, &[0, 1], b"\x01\x00a", b"a");
        check(252, &[1], b"\x01a", b"a");
        check(252, &[4], b"\x01\0\0\0a", b"a");
        check(140, &[3], b"\x01\0\0a", b"a");
        check(255, &[4], b"\x01\0\0\0a", b"a");
        check(254, &[254, 255], b"\x01a", b"a");
        // CHAR(255) of four bytes each: 1020 = 0x3FC.
        check(254, &[254 ^ 0x30, 0xFC], b"\x01\0a", b"a");
    }

    #[test]
    fn unknown_types_and_impossible_metadata_are_refused() {
        for (code, metadata) in [
            (0, &[][..]),
            (20, &[]),
            (4, &[5]),
            (252, &[0]),
            (252, &[5]),
            (18, &[7]),
            (246, &[2, 3]),
            (254, &[1, 1]),
            (15, &[1]),
        ] {
            assert!(Column::decode(code, &mut Reader::new(metadata, "t")).is_err(), "{code}");
        }
    }

    #[test]
    fn numbers_have_their_sign() {
        let int24 = check(9, &[], &[0xFF; 3], &[0xFF; 3]);
        assert_eq!(int24.value(&[0xFF; 3], false), Value::Signed(-1));
        assert_eq!(int24.value(&[0xFF; 3], true), Value::Unsigned(0xFF_FFFF));
        let long = check(8, &[], &[0xFE; 8], &[0xFE; 8]);
        assert_eq!(long.value(&i64::MIN.to_le_bytes(), false), Value::Signed(i64::MIN));
        assert_eq!(long.value(&[], false), Value::Signed(0));
        assert_eq!(long.value(&[0; 9], false), Value::Packed(&[0; 9]));
    }
}
