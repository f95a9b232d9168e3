//! Types and parameters of the binary protocol.
//!
//! Source: <https://mariadb.com/kb/en/result-set-packets/#field-types>

use crate::reader::write_bytes;

/// A column's or parameter's type byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ColumnType(pub u8);

impl ColumnType {
    pub const TINY: ColumnType = ColumnType(1);
    pub const SHORT: ColumnType = ColumnType(2);
    pub const LONG: ColumnType = ColumnType(3);
    pub const FLOAT: ColumnType = ColumnType(4);
    pub const DOUBLE: ColumnType = ColumnType(5);
    pub const NULL: ColumnType = ColumnType(6);
    pub const TIMESTAMP: ColumnType = ColumnType(7);
    pub const LONG_LONG: ColumnType = ColumnType(8);
    pub const INT24: ColumnType = ColumnType(9);
    pub const DATE: ColumnType = ColumnType(10);
    pub const TIME: ColumnType = ColumnType(11);
    pub const DATETIME: ColumnType = ColumnType(12);
    pub const YEAR: ColumnType = ColumnType(13);
    pub const BLOB: ColumnType = ColumnType(252);
    pub const VAR_STRING: ColumnType = ColumnType(253);

    /// Returns the bytes of a value in a binary row; `None` for types with a length prefix.
    #[inline]
    pub fn fixed_bytes(self) -> Option<usize> {
        match self {
            Self::NULL => Some(0),
            Self::TINY => Some(1),
            Self::SHORT | Self::YEAR => Some(2),
            Self::LONG | Self::INT24 | Self::FLOAT => Some(4),
            Self::LONG_LONG | Self::DOUBLE => Some(8),
            _ => None,
        }
    }
}

/// The value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Param<'a> {
    Null,
    Unsigned(u64),
    Signed(i64),
    Double(f64),
    /// Text in the connection's character set.
    Text(&'a [u8]),
    /// Bytes, of no character set.
    Bytes(&'a [u8]),
}

impl Param<'_> {
    /// Returns the type byte and the byte that marks unsigned integers.
    pub(crate) fn type_bytes(self) -> [u8; 2] {
        match self {
            Param::Null => [ColumnType::NULL.0, 0],
            Param::Unsigned(_) => [ColumnType::LONG_LONG.0, 0x80],
            Param::Signed(_) => [ColumnType::LONG_LONG.0, 0],
            Param::Double(_) => [ColumnType::DOUBLE.0, 0],
            Param::Text(_) => [ColumnType::VAR_STRING.0, 0],
            Param::Bytes(_) => [ColumnType::BLOB.0, 0],
        }
    }

    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        match self {
            Param::Null => {}
            Param::Unsigned(number) => out.extend_from_slice(&number.to_le_bytes()),
            Param::Signed(number) => out.extend_from_slice(&number.to_le_bytes()),
            Param::Double(number) => out.extend_from_slice(&number.to_le_bytes()),
            Param::Text(bytes) | Param::Bytes(bytes) => write_bytes(bytes, out),
        }
    }
}
