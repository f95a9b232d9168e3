//! COM_STMT_BULK_EXECUTE: a prepared statement with many sets of parameters, in one command.
//!
//! Source: <https://mariadb.com/kb/en/com_stmt_bulk_execute/>

use crate::{ColumnType, Malformed, Param, Reader};

const SEND_TYPES: u16 = 128;
const VALUE_FOLLOWS: u8 = 0;
const NULL_INDICATOR: u8 = 1;

/// Begins the payload; `types` are the parameters' types. ParameterRows follow by [`push`].
pub fn begin(statement: u32, types: &[ColumnType], out: &mut Vec<u8>) {
    out.push(0xFA);
    out.extend_from_slice(&statement.to_le_bytes());
    out.extend_from_slice(&SEND_TYPES.to_le_bytes());
    for column_type in types {
        out.extend_from_slice(&[column_type.0, 0]);
    }
}

/// Appends the next parameter of a row.
pub fn push(param: Param<'_>, out: &mut Vec<u8>) {
    if matches!(param, Param::Null) {
        out.push(NULL_INDICATOR);
    } else {
        out.push(VALUE_FOLLOWS);
        param.encode(out);
    }
}

/// Decodes rows that [`push`] has appended.
#[derive(Clone, Debug)]
pub struct ParameterRows<'a> {
    values: Reader<'a>,
    types: &'a [ColumnType],
}

impl<'a> ParameterRows<'a> {
    pub fn new(bytes: &'a [u8], types: &'a [ColumnType]) -> Self {
        ParameterRows { values: Reader::new(bytes, "bulk rows"), types }
    }

    /// Returns the parameters of the next row; `None` after the last.
    pub fn next_row<C: FromIterator<Param<'a>>>(&mut self) -> Result<Option<C>, Malformed> {
        if self.values.is_empty() || self.types.is_empty() {
            return Ok(None);
        }
        let types = self.types;
        types.iter().map(|column_type| self.next_param(*column_type)).collect::<Result<C, _>>().map(Some)
    }

    fn next_param(&mut self, column_type: ColumnType) -> Result<Param<'a>, Malformed> {
        if self.values.u8()? == NULL_INDICATOR {
            return Ok(Param::Null);
        }
        Ok(match column_type {
            ColumnType::LONG_LONG => Param::Unsigned(self.values.u64()?),
            ColumnType::DOUBLE => Param::Double(f64::from_bits(self.values.u64()?)),
            ColumnType::BLOB => Param::Bytes(self.values.length_encoded_bytes()?),
            _ => Param::Text(self.values.length_encoded_bytes()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check_truncations;

    #[test]
    fn rows_are_decoded_as_encoded() {
        let types = [ColumnType::LONG_LONG, ColumnType::VAR_STRING, ColumnType::DOUBLE, ColumnType::BLOB];
        let sent = [
            [Param::Unsigned(7), Param::Text(b"a"), Param::Double(-0.5), Param::Bytes(&[0, 1])],
            [Param::Null, Param::Text(b""), Param::Null, Param::Null],
        ];
        let mut bytes = Vec::new();
        sent.iter().flatten().for_each(|param| push(*param, &mut bytes));
        let mut rows = ParameterRows::new(&bytes, &types);
        for row in &sent {
            assert_eq!(rows.next_row::<Vec<_>>().unwrap().unwrap(), row);
        }
        assert_eq!(rows.next_row::<Vec<_>>(), Ok(None));
        check_truncations(&bytes, |bytes| {
            let mut rows = ParameterRows::new(bytes, &types);
            while let Ok(Some(row)) = rows.next_row::<Vec<_>>() {
                assert_eq!(row.len(), 4);
            }
        });
    }

    #[test]
    fn rows_follow_the_types() {
        let mut out = Vec::new();
        begin(9, &[ColumnType::VAR_STRING], &mut out);
        push(Param::Text(b"a"), &mut out);
        push(Param::Null, &mut out);
        assert_eq!(out, [0xFA, 9, 0, 0, 0, 128, 0, 253, 0, 0, 1, b'a', 1]);
    }
}
