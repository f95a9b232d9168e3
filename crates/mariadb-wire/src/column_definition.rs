//! The definition of a column of a result set, or of a parameter.
//!
//! Source: <https://mariadb.com/kb/en/result-set-packets/#column-definition-packet>

use crate::{ColumnType, Malformed, Reader};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnDefinition<'a> {
    /// Always `def`, in the character set of the session's results.
    pub catalog: &'a [u8],
    pub schema: &'a [u8],
    /// The name or alias of the table; empty for an expression.
    pub table: &'a [u8],
    /// The name of the table itself, as far as the server knows it.
    pub original_table: &'a [u8],
    pub name: &'a [u8],
    /// The name of the column of that table.
    pub original_name: &'a [u8],
    pub column_type: ColumnType,
    pub flags: u16,
}

impl<'a> ColumnDefinition<'a> {
    pub fn decode(payload: &'a [u8]) -> Result<Self, Malformed> {
        Self::decode_with(payload, false)
    }

    /// As [`ColumnDefinition::decode`]. `is_extended`: MariaDB's extended metadata was negotiated.
    pub fn decode_with(payload: &'a [u8], is_extended: bool) -> Result<Self, Malformed> {
        let mut reader = Reader::new(payload, "column definition");
        let catalog = reader.length_encoded_bytes()?;
        let schema = reader.length_encoded_bytes()?;
        let table = reader.length_encoded_bytes()?;
        let original_table = reader.length_encoded_bytes()?;
        let name = reader.length_encoded_bytes()?;
        let original_name = reader.length_encoded_bytes()?;
        if is_extended {
            reader.length_encoded_bytes()?;
        }
        // The length of the fixed part, collation, display width.
        reader.length_encoded()?;
        reader.u16()?;
        reader.u32()?;
        let (column_type, flags) = (ColumnType(reader.u8()?), reader.u16()?);
        Ok(ColumnDefinition { catalog, schema, table, original_table, name, original_name, column_type, flags })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check_truncations;

    #[test]
    fn names_and_type_are_read() {
        let sample = b"\x03def\x01e\x01a\x01b\x03doc\x01c\x0c\x2d\x00\xff\xff\xff\xff\xfc\x90\x00\x00\x00\x00";
        let column = ColumnDefinition::decode(sample).unwrap();
        assert_eq!((column.name, column.column_type, column.flags), (&b"doc"[..], ColumnType::BLOB, 0x90));
        assert_eq!(column.catalog, b"def");
        assert_eq!((column.schema, column.table), (&b"e"[..], &b"a"[..]));
        assert_eq!((column.original_table, column.original_name), (&b"b"[..], &b"c"[..]));
        let extended = [&sample[..16], b"\x06\x00\x04json", &sample[16..]].concat();
        assert_eq!(ColumnDefinition::decode_with(&extended, true), Ok(column));
        check_truncations(sample, |bytes| ColumnDefinition::decode(bytes).is_ok());
    }
}
