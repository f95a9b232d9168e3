//! Where a scan delivers its rows.

use store::Flow;

/// Takes a row: its key and its document's text.
pub(crate) type Take<'t> = dyn FnMut(&[u8], &[u8]) -> error::Result<Flow> + 't;

/// A row key as the server sends it.
pub(crate) fn number(key: &[u8]) -> i64 {
    key.iter().rev().fold(0, |number, byte| number << 8 | i64::from(*byte))
}
