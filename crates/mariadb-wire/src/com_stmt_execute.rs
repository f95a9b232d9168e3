//! COM_STMT_EXECUTE: a prepared statement with one set of parameters.
//!
//! Source: <https://mariadb.com/kb/en/com_stmt_execute/>

use crate::Param;

/// Appends the payload. Types are sent each time, so that the same statement may take other types.
pub fn encode(statement: u32, params: &[Param<'_>], out: &mut Vec<u8>) {
    out.push(0x17);
    out.extend_from_slice(&statement.to_le_bytes());
    // No server-side cursor, one iteration.
    out.extend_from_slice(&[0, 1, 0, 0, 0]);
    if params.is_empty() {
        return;
    }
    let bitmap = out.len();
    out.resize(bitmap + params.len().div_ceil(8), 0);
    for (index, _) in params.iter().enumerate().filter(|(_, param)| matches!(param, Param::Null)) {
        out[bitmap + index / 8] |= 1 << (index % 8);
    }
    out.push(1);
    for param in params {
        out.extend_from_slice(&param.type_bytes());
    }
    for param in params {
        param.encode(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_follow_nulls_and_types() {
        let mut out = Vec::new();
        encode(5, &[Param::Unsigned(1), Param::Null, Param::Text(b"ab")], &mut out);
        assert_eq!(
            out,
            [&[0x17, 5, 0, 0, 0, 0, 1, 0, 0, 0, 0b10, 1, 8, 0x80, 6, 0, 253, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2][..], b"ab"]
                .concat()
        );
    }
}
