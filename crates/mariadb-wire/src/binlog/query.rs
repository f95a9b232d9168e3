//! QUERY: a statement that is not logged as rows, or the end of a transaction.
//!
//! Source: <https://mariadb.com/kb/en/query_event/>

use super::compressed;
use crate::{Malformed, Reader};
use std::borrow::Cow;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryEvent<'a> {
    /// The default database.
    pub database: &'a [u8],
    pub sql: Cow<'a, [u8]>,
}

impl<'a> QueryEvent<'a> {
    /// Parses the event. `is_compressed`: by its type. `limit`: the longest statement to accept, in
    /// bytes.
    pub fn decode(body: &'a [u8], is_compressed: bool, limit: usize) -> Result<Self, Malformed> {
        let mut reader = Reader::new(body, "QUERY");
        // The session's number, the execution time.
        reader.bytes(8)?;
        let database_length = usize::from(reader.u8()?);
        // The error code of the statement.
        reader.u16()?;
        let variables = usize::from(reader.u16()?);
        reader.bytes(variables)?;
        let database = reader.bytes(database_length)?;
        if reader.u8()? != 0 {
            return Err(reader.malformed());
        }
        let sql = reader.rest();
        let sql = if is_compressed { Cow::Owned(compressed::expand(sql, limit)?) } else { Cow::Borrowed(sql) };
        Ok(QueryEvent { database, sql })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check_truncations;

    #[test]
    fn database_and_statement_are_read() {
        let sample = b"\x01\0\0\0\0\0\0\0\x04\0\0\x03\0abctest\0DROP TABLE `x`";
        let query = QueryEvent::decode(sample, false, 1000).unwrap();
        assert_eq!((query.database, &*query.sql), (&b"test"[..], &b"DROP TABLE `x`"[..]));
        check_truncations(sample, |bytes| QueryEvent::decode(bytes, false, 1000).is_ok());
        check_truncations(sample, |bytes| assert!(QueryEvent::decode(bytes, true, 1000).is_err()));
    }
}
