//! COM_STMT_BULK_EXECUTE: a prepared statement with many sets of parameters, in one command.
//!
//! Source: <https://mariadb.com/kb/en/com_stmt_bulk_execute/>

use crate::{ColumnType, Param};

const SEND_TYPES: u16 = 128;
const VALUE_FOLLOWS: u8 = 0;
const NULL_INDICATOR: u8 = 1;

/// Begins the payload; `types` are the parameters' types. Rows follow by [`push`].
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_follow_the_types() {
        let mut out = Vec::new();
        begin(9, &[ColumnType::VAR_STRING], &mut out);
        push(Param::Text(b"a"), &mut out);
        push(Param::Null, &mut out);
        assert_eq!(out, [0xFA, 9, 0, 0, 0, 128, 0, 253, 0, 0, 1, b'a', 1]);
    }
}
