//! The tables of a side index: their names, the record of their state, and the format of their
//! rows.

use mariadb_client::quote;
use std::sync::Arc;

/// Prefixes of the names of the tables.
pub(crate) const KEYS: &str = "~keys~";
pub(crate) const PENDING: &str = "~pending~";
pub(crate) const CLAIMS: &str = "~claims~";

/// The states of the tables.
pub(crate) const BEGUN: &str = "begun";
pub(crate) const FILLING: &str = "filling";
pub(crate) const READY: &str = "ready";

/// The most bytes stored of a key. Longer keys with the same beginning are found together.
pub(crate) const KEY_BYTES_MAX: usize = 750;

/// Precedes a key.
pub(crate) const KEY: u8 = 1;

/// Precedes the bits of the path components that have met an array in the document.
pub(crate) const ARRAYS: u8 = 0;

/// Stands for a document whose keys are unknown: every lookup reads it.
pub(crate) const UNKNOWN: [u8; 9] = [ARRAYS, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF];

/// If more rows are pending, a read refreshes some of them first.
const PENDING_MAX: u64 = 100;

/// The side table of an index, as recorded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SideTable {
    /// The end of the names of its tables.
    pub hash: String,
    /// It serves queries: each document has its keys there, or is pending.
    pub ready: bool,
    /// All documents were entered; in a unique index, without duplicates.
    pub filled: bool,
    /// The path components in which gateways have met arrays, as bits. It affects the choice of
    /// access paths, not results.
    pub arrays: u64,
}

impl SideTable {
    pub fn new() -> SideTable {
        SideTable { hash: format!("{:016x}", rand::random::<u64>()), ready: false, filled: false, arrays: 0 }
    }

    /// Parses what [`SideTable::record`] formats.
    pub fn read(text: &str) -> Option<SideTable> {
        let mut words = text.strip_prefix(KEYS)?.split(' ');
        let (hash, state, arrays) = (words.next()?, words.next()?, words.next()?);
        let arrays = u64::from_str_radix(arrays, 16).unwrap_or(u64::MAX);
        Some(SideTable { hash: hash.to_owned(), ready: state != BEGUN, filled: state == READY, arrays })
    }

    pub fn record(&self) -> String {
        format!("{}{:x}", self.record_prefix(), self.arrays)
    }

    /// Returns the start of the record, by which an update checks that the index was not recreated
    /// or advanced.
    pub fn record_prefix(&self) -> String {
        let state = match (self.ready, self.filled) {
            (false, _) => BEGUN,
            (true, false) => FILLING,
            (true, true) => READY,
        };
        format!("{KEYS}{} {state} ", self.hash)
    }

    pub fn name(&self) -> String {
        format!("{KEYS}{}", self.hash)
    }

    pub fn keys(&self, schema: &str) -> String {
        format!("{}.{}", quote(schema), quote(&self.name()))
    }

    pub fn pending(&self, schema: &str) -> String {
        format!("{}.{}", quote(schema), quote(&format!("{PENDING}{}", self.hash)))
    }

    pub fn claims(&self, schema: &str) -> String {
        format!("{}.{}", quote(schema), quote(&format!("{CLAIMS}{}", self.hash)))
    }

    pub fn trigger(&self, schema: &str, event: &str) -> String {
        format!("{}.{}", quote(schema), quote(&format!("{KEYS}{}.{event}", self.hash)))
    }

    /// Returns the query that returns a row if more rows are pending than a read should examine.
    pub fn pending_probe(&self, schema: &str) -> Arc<str> {
        format!("SELECT seq FROM {} LIMIT 1 OFFSET {PENDING_MAX}", self.pending(schema)).into()
    }
}

/// Returns whether a table belongs to a side index: its rows are written with a document, or
/// derived from one.
pub(crate) fn is_name(table: &str) -> bool {
    let hash = [KEYS, PENDING, CLAIMS].iter().find_map(|prefix| table.strip_prefix(prefix));
    hash.is_some_and(|hash| hash.len() == 16)
}

/// The treatment of duplicate keys when the claims of a unique index are entered.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Duplicates {
    /// The statement fails with 1062.
    Refused,
    /// The second document, written by SQL, stays without a claim.
    Tolerated,
}

/// Returns a key as stored in the table.
pub(crate) fn stored_key(key: &[u8]) -> Vec<u8> {
    [&[KEY][..], &key[..key.len().min(KEY_BYTES_MAX)]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip() {
        let keys = SideTable { arrays: 5, ..SideTable::new() };
        assert_eq!(SideTable::read(&keys.record()), Some(keys.clone()));
        let keys = SideTable { ready: true, ..keys };
        assert_eq!(SideTable::read(&keys.record()), Some(keys.clone()));
        let keys = SideTable { filled: true, ..keys };
        assert_eq!(SideTable::read(&keys.record()), Some(keys.clone()));
        assert!(keys.record().len() <= 64);
        assert!(is_name(&keys.name()));
        assert_eq!(SideTable::read("~elements~0123456789abcdef 1"), None);
    }
}
