//! The writes of a transaction, in their order, as the commit replays them.

use ahash::AHashSet;
use document::DocBuf;
use error::{Code, Error, Result};
use index_keys::keys::Key;
use store::{IndexSpec, Namespace};

/// Numbers of documents that a transaction has inserted; those of the file are smaller.
pub const FIRST_OWN_NUMBER: i64 = 1 << 62;

/// Ids of collections and indexes that a transaction has created.
const FIRST_OWN_ID: i64 = 1 << 40;

/// The limit of the documents in a transaction's log, before and after each change.
pub const BYTES_MAX: usize = 256 << 20;

/// The writes of a transaction.
#[derive(Debug)]
pub struct Log {
    pub entries: Vec<LogEntry>,
    pub created: Vec<CreatedCollection>,
    bytes: usize,
    next_number: i64,
    next_id: i64,
    /// The collections whose tables the overlay shadows.
    pub shadowed: AHashSet<i64>,
    /// The claimed documents, by collection and key of the `_id`.
    pub claimed: AHashSet<(i64, Key)>,
}

/// A change of one document.
#[derive(Debug)]
pub struct LogEntry {
    pub namespace: Namespace,
    /// The collection's id; one of the transaction's own if it has created the collection.
    pub collection: i64,
    /// The document's number in the transaction.
    pub seq: i64,
    pub old: Option<DocBuf>,
    pub new: Option<DocBuf>,
    /// How the oplog describes the change, if not as the new document.
    pub difference: Option<DocBuf>,
}

/// A collection that the transaction has created.
#[derive(Clone, Debug)]
pub struct CreatedCollection {
    pub namespace: Namespace,
    pub options: DocBuf,
    pub indexes: Vec<IndexSpec>,
    /// How many entries the log had before.
    pub behind: usize,
}

impl Default for Log {
    fn default() -> Log {
        Log {
            entries: Vec::new(),
            created: Vec::new(),
            bytes: 0,
            next_number: FIRST_OWN_NUMBER,
            next_id: FIRST_OWN_ID,
            shadowed: AHashSet::new(),
            claimed: AHashSet::new(),
        }
    }
}

impl Log {
    /// Returns the log of a transaction on a connection that shadows these collections.
    pub fn shadowing(collections: impl Iterator<Item = i64>) -> Log {
        Log { shadowed: collections.collect(), ..Log::default() }
    }

    /// Returns a number for a new document.
    pub fn new_number(&mut self) -> i64 {
        self.next_number += 1;
        self.next_number
    }

    /// Returns an id for a new collection or index.
    pub fn new_id(&mut self) -> i64 {
        self.next_id += 1;
        self.next_id
    }

    /// Adds a change. Fails with 257 if the transaction becomes too large.
    pub fn add(&mut self, entry: LogEntry) -> Result<()> {
        let size = |document: &Option<DocBuf>| document.as_ref().map_or(0, |document| document.as_bytes().len());
        self.bytes += size(&entry.old) + size(&entry.new);
        if self.bytes > BYTES_MAX {
            let message = format!("The documents that a transaction changes are limited to {BYTES_MAX} bytes in total");
            return Err(Error::new(Code::TRANSACTION_TOO_LARGE, message));
        }
        self.entries.push(entry);
        Ok(())
    }

    /// Returns the collection of this name if the transaction has created it.
    pub fn created(&mut self, namespace: &Namespace) -> Option<&mut CreatedCollection> {
        self.created.iter_mut().find(|created| created.namespace == *namespace)
    }
}
