//! Changes that a worker has evaluated, and their outcomes, as they are sent to and from the writer.

use super::entries::IndexEntries;
use crate::catalog::Collection;
use crate::transaction::ending::Ending;
use document::DocBuf;
use error::Error;
use std::sync::Arc;
use store::{BatchOutcome, Namespace, RetryKey};

/// Changes of a collection by one statement.
pub struct ConditionalChanges {
    pub namespace: Namespace,
    /// The collection, with the indexes that the entries belong to. `None`: the collection did not
    /// exist.
    pub collection: Option<Arc<Collection>>,
    pub changes: Vec<Change>,
    /// The record of a retryable write, written with the changes.
    pub record: Option<Record>,
    /// Sync before the reply, including all earlier commits.
    pub journal: bool,
}

/// The record of a retryable write.
pub struct Record {
    pub key: RetryKey,
    /// The number of the statement. Nothing is changed if another attempt has carried it out.
    pub statement: usize,
    /// The outcomes up to this statement's, encoded by [`super::retry::encode`].
    pub outcomes: DocBuf,
}

pub enum Change {
    Insert {
        document: DocBuf,
        entries: IndexEntries,
    },
    Replace {
        seq: i64,
        old: DocBuf,
        old_entries: IndexEntries,
        new: DocBuf,
        new_entries: IndexEntries,
        /// How the change is logged, if not as the new document.
        difference: Option<DocBuf>,
    },
    Delete {
        seq: i64,
        old: DocBuf,
        entries: IndexEntries,
    },
    /// Deletes a document in any state.
    DeleteAny {
        seq: i64,
    },
}

impl Change {
    /// Returns whether the change requires that the collection has the same indexes and rules.
    pub fn has_entries(&self) -> bool {
        !matches!(self, Change::DeleteAny { .. })
    }
}

/// The outcome of changes.
pub enum Applied {
    /// The collection is another one, or has other indexes: nothing was changed.
    Outdated,
    /// Another attempt is ahead, with these outcomes: nothing was changed.
    Recorded(BatchOutcome),
    /// The first change must wait for a transaction: nothing was changed.
    Blocked(Arc<Ending>, Vec<Change>),
    /// The outcomes of the first changes; nothing behind a refused one is changed. All changes and
    /// the record are returned, because memory is charged to the request until its own thread frees
    /// it.
    Outcomes(Vec<Changed>, Vec<Change>, Option<Record>),
}

/// The outcome of one change.
pub enum Changed {
    Done,
    /// The document has been changed or deleted.
    Conflict,
    Refused(Error),
}
