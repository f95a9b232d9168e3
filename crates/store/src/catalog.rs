//! Collections, indexes and their statistics.

use document::{Collation, Doc, DocBuf, Value};
use error::Result;

#[derive(Clone, Debug)]
pub struct CollectionInfo {
    pub name: String,
    /// The options of `create`, as `listCollections` shows them.
    pub options: DocBuf,
    pub uuid: [u8; 16],
}

/// Returns a new UUID of version 4.
pub fn random_uuid() -> [u8; 16] {
    let mut uuid: [u8; 16] = rand::random();
    uuid[6] = uuid[6] & 0x0F | 0x40;
    uuid[8] = uuid[8] & 0x3F | 0x80;
    uuid
}

/// Returns the collation among a collection's or an index's options.
pub fn default_collation(options: Doc<'_>) -> Result<Collation> {
    match options.get("collation") {
        Some(Value::Document(collation)) => Collation::parse(collation, ""),
        _ => Ok(Collation::SIMPLE),
    }
}

#[derive(Clone, Debug)]
pub struct DatabaseInfo {
    pub name: String,
    pub size_on_disk_bytes: u64,
    pub empty: bool,
}

/// An index as `createIndexes` accepts it and `listIndexes` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexSpec {
    pub name: String,
    /// The key pattern: `{a: 1, b: -1}`.
    pub key: DocBuf,
    pub unique: bool,
    pub sparse: bool,
    /// The whole specification as shown (`v`, `key`, `name`, options).
    pub spec: DocBuf,
}

/// The indexes that `dropIndexes` selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexSelection {
    /// `"*"`: all but `_id_`.
    All,
    Names(Vec<String>),
    Key(DocBuf),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CreateIndexesOutcome {
    pub indexes_before: usize,
    pub indexes_after: usize,
    pub created_collection: bool,
}

#[derive(Clone, Debug, Default)]
pub struct CollectionStats {
    pub documents: u64,
    /// Bytes of the documents as BSON (MariaDB: of the stored JSON text).
    pub data_bytes: u64,
    pub storage_bytes: u64,
    /// Name and bytes of each index.
    pub indexes: Vec<(String, u64)>,
}

/// A collection's estimated size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeEstimate {
    pub documents: u64,
    pub data_bytes: u64,
}

/// The result of `validate`.
#[derive(Clone, Debug, Default)]
pub struct Validation {
    /// One sentence per finding.
    pub findings: Vec<String>,
    /// The number of keys of each index, by name, if the store can count them all.
    pub keys: Vec<(String, u64)>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct DatabaseStats {
    pub collections: u64,
    pub documents: u64,
    pub data_bytes: u64,
    pub storage_bytes: u64,
    pub indexes: u64,
    pub index_bytes: u64,
}
