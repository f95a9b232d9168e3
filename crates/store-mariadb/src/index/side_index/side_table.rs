//! The tables of a side index: their names, the record of how far they are, and what their rows are.

use mariadb_client::quote;
use std::sync::Arc;

/// Begin the names of the tables.
pub(crate) const KEYS: &str = "~keys~";
pub(crate) const PENDING: &str = "~pending~";
pub(crate) const CLAIMS: &str = "~claims~";

/// How far the tables are.
pub(crate) const BEGUN: &str = "begun";
pub(crate) const FILLING: &str = "filling";
pub(crate) const READY: &str = "ready";

/// Bytes of a key that are kept. What lies behind them is found among others that begin the same.
pub(crate) const KEY_BYTES_MAX: usize = 750;

/// In front of a key.
pub(crate) const KEY: u8 = 1;

/// In front of the parts of the index's paths, as bits, that have met an array in this document.
pub(crate) const ARRAYS: u8 = 0;

/// In place of them, for a document whose keys are not known: every lookup reads it.
pub(crate) const UNKNOWN: [u8; 9] = [ARRAYS, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF];

/// A read that finds more rows pending has some of them drained first.
const PENDING_MAX: u64 = 100;

/// The tables of an index, as they are remembered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SideTable {
    /// What their names end with.
    pub hash: String,
    /// Documents are found by them: each has its keys there, or is pending.
    pub ready: bool,
    /// Every document has been entered. Of a unique index, no two had a key in common then.
    pub filled: bool,
    /// The parts of the index's paths in which gateways have met arrays, as bits. It decides which way is the shorter one, not what is found.
    pub arrays: u64,
}

impl SideTable {
    pub fn new() -> SideTable {
        SideTable { hash: format!("{:016x}", rand::random::<u64>()), ready: false, filled: false, arrays: 0 }
    }

    /// Reads what [`SideTable::remembered`] spells.
    pub fn read(text: &str) -> Option<SideTable> {
        let mut words = text.strip_prefix(KEYS)?.split(' ');
        let (hash, state, arrays) = (words.next()?, words.next()?, words.next()?);
        let arrays = u64::from_str_radix(arrays, 16).unwrap_or(u64::MAX);
        Some(SideTable { hash: hash.to_owned(), ready: state != BEGUN, filled: state == READY, arrays })
    }

    pub fn remembered(&self) -> String {
        format!("{}{:x}", self.remembered_state(), self.arrays)
    }

    /// What the remembered text begins with, unless the index has been made anew or is further on.
    pub fn remembered_state(&self) -> String {
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

    /// The query that gives a row if more rows are pending than a read should look at.
    pub fn probe(&self, schema: &str) -> Arc<str> {
        format!("SELECT seq FROM {} LIMIT 1 OFFSET {PENDING_MAX}", self.pending(schema)).into()
    }
}

/// Whether a table's name is that of one of these tables: what is written there is written beside a document, or says no more than one does.
pub(crate) fn is_name(table: &str) -> bool {
    let hash = [KEYS, PENDING, CLAIMS].iter().find_map(|prefix| table.strip_prefix(prefix));
    hash.is_some_and(|hash| hash.len() == 16)
}

/// What becomes of two documents with one key, as the tables of a unique index are filled.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Duplicates {
    /// The statement fails with 1062.
    Refused,
    /// The second document has the key without a claim to it: SQL has written it.
    Kept,
}

/// A key as the table has it.
pub(crate) fn kept(key: &[u8]) -> Vec<u8> {
    [&[KEY][..], &key[..key.len().min(KEY_BYTES_MAX)]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_remembered() {
        let keys = SideTable { arrays: 5, ..SideTable::new() };
        assert_eq!(SideTable::read(&keys.remembered()), Some(keys.clone()));
        let keys = SideTable { ready: true, ..keys };
        assert_eq!(SideTable::read(&keys.remembered()), Some(keys.clone()));
        let keys = SideTable { filled: true, ..keys };
        assert_eq!(SideTable::read(&keys.remembered()), Some(keys.clone()));
        assert!(keys.remembered().len() <= 64);
        assert!(is_name(&keys.name()));
        assert_eq!(SideTable::read("~elements~0123456789abcdef 1"), None);
    }
}
