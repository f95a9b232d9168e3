//! The definition of a column of a result set, or of a parameter.
//!
//! Source: <https://mariadb.com/kb/en/result-set-packets/#column-definition-packet>

use crate::{ColumnType, Malformed, Reader};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnDefinition<'a> {
    pub name: &'a [u8],
    pub column_type: ColumnType,
    pub flags: u16,
}

impl<'a> ColumnDefinition<'a> {
    pub fn decode(payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(payload, "column definition");
        // Catalog, schema, table and its alias.
        for _ in 0..4 {
            reader.length_encoded_bytes()?;
        }
        let name = reader.length_encoded_bytes()?;
        reader.length_encoded_bytes()?;
        // The length of the fixed part, collation, display width.
        reader.length_encoded()?;
        reader.u16()?;
        reader.u32()?;
        Ok(ColumnDefinition { name, column_type: ColumnType(reader.u8()?), flags: reader.u16()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check_truncations;

    #[test]
    fn name_and_type_are_read() {
        let sample = b"\x03def\x01e\x01a\x01a\x03doc\x03doc\x0c\x2d\x00\xff\xff\xff\xff\xfc\x90\x00\x00\x00\x00";
        let column = ColumnDefinition::decode(sample).unwrap();
        assert_eq!((column.name, column.column_type, column.flags), (&b"doc"[..], ColumnType::BLOB, 0x90));
        check_truncations(sample, |bytes| ColumnDefinition::decode(bytes).is_ok());
    }
}
