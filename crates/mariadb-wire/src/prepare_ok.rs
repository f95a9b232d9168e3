//! The reply to COM_STMT_PREPARE.
//!
//! Source: <https://mariadb.com/kb/en/com_stmt_prepare/#com_stmt_prepare_ok>

use crate::{Malformed, OK, Reader};

/// The head of the reply. One definition per parameter follows, then one per column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrepareOk {
    pub statement: u32,
    pub columns: u16,
    pub params: u16,
    pub warnings: u16,
}

impl PrepareOk {
    pub fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(payload, "PREPARE OK");
        if reader.u8()? != OK {
            return Err(reader.malformed());
        }
        let (statement, columns, params) = (reader.u32()?, reader.u16()?, reader.u16()?);
        reader.u8()?;
        Ok(PrepareOk { statement, columns, params, warnings: reader.u16()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check_truncations;

    #[test]
    fn counts_are_read() {
        let sample = [0, 7, 0, 0, 0, 2, 0, 1, 0, 0, 0, 0];
        let expected = PrepareOk { statement: 7, columns: 2, params: 1, warnings: 0 };
        assert_eq!(PrepareOk::decode(&sample), Ok(expected));
        check_truncations(&sample, |bytes| assert!(PrepareOk::decode(bytes).is_err()));
    }
}
