//! The sink of a scan's rows.

use store::Flow;

/// Receives a row: its row key and its document's JSON text.
pub(crate) type RowSink<'t> = dyn FnMut(&[u8], &[u8]) -> error::Result<Flow> + 't;

/// Decodes a numeric row key as the server sends it.
pub(crate) fn row_number(key: &[u8]) -> i64 {
    key.iter().rev().fold(0, |number, byte| number << 8 | i64::from(*byte))
}
