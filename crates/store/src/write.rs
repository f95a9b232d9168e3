//! Writing: one batch of statements in, one outcome per statement out.

use crate::{Examined, Namespace, PlanSummary, Progress};
use bytes::Bytes;
use document::{DocBuf, ObjectId, ValueBuf};
use error::{Code, Error};
use query::{Predicate, Sort};
use smallvec::SmallVec;
use std::sync::Arc;
use update::Update;

/// What one `insert`, `update`, `delete` or `findAndModify` command asks for.
#[derive(Debug)]
pub struct WriteBatch {
    pub namespace: Namespace,
    /// Stop at the first statement that fails.
    pub ordered: bool,
    /// `j: true` or `w: "majority"`: on disk, not just with the operating system, before the batch is acknowledged.
    pub journal: bool,
    /// Documents are written whatever the collection's validator says.
    pub bypass_validation: bool,
    /// Present on retryable writes: a batch with the same key is answered with its first outcome.
    pub retry: Option<RetryKey>,
    pub statements: Statements,
    /// Told to stop when the command is killed or its time is over. The batch then fails with that
    /// reason; documents that were changed before stay changed, and a retryable write goes on
    /// behind them when it is sent again.
    pub progress: Arc<Progress>,
}

impl WriteBatch {
    /// Statements one after the other, of which nothing else is asked.
    pub fn new(namespace: Namespace, statements: Statements) -> WriteBatch {
        WriteBatch {
            namespace,
            ordered: true,
            journal: false,
            bypass_validation: false,
            retry: None,
            statements,
            progress: Arc::default(),
        }
    }
}

/// Identifies a retryable write: the client's session and its counter.
/// Source: <https://github.com/mongodb/specifications/blob/master/source/retryable-writes/retryable-writes.md>
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RetryKey {
    /// The `lsid`'s id, a UUID.
    pub session: [u8; 16],
    pub txn_number: i64,
}

#[derive(Debug)]
pub enum Statements {
    /// Whole BSON documents, checked, `_id` first and present.
    Insert(Vec<Bytes>),
    Update(Vec<UpdateStatement>),
    Delete(Vec<DeleteStatement>),
}

impl Statements {
    /// How many there are; each document that is inserted is one.
    pub fn count(&self) -> usize {
        match self {
            Statements::Insert(documents) => documents.len(),
            Statements::Update(updates) => updates.len(),
            Statements::Delete(deletes) => deletes.len(),
        }
    }
}

#[derive(Debug)]
pub struct UpdateStatement {
    pub predicate: Predicate,
    /// Which document first, where several match (findAndModify).
    pub sort: Option<Sort>,
    pub update: Update,
    pub multi: bool,
    pub upsert: bool,
    /// The `_id` for an upsert that names none.
    pub new_id: ObjectId,
    /// As [`crate::Query::hint`].
    pub hint: Option<ValueBuf>,
    pub image: ReturnImage,
}

impl UpdateStatement {
    /// Whether somebody may ask what a search by words thought of the document.
    pub fn wants_score(&self) -> bool {
        self.image == ReturnImage::After && self.predicate.text_search().is_some()
    }
}

#[derive(Debug)]
pub struct DeleteStatement {
    pub predicate: Predicate,
    pub sort: Option<Sort>,
    /// `limit: 1`, else all that match.
    pub one: bool,
    /// As [`crate::Query::hint`].
    pub hint: Option<ValueBuf>,
    pub image: ReturnImage,
}

impl DeleteStatement {
    /// Whether it deletes all documents of the collection.
    pub fn deletes_everything(&self) -> bool {
        !self.one && self.predicate.matches_everything() && self.hint.is_none()
    }
}

/// Which image of the document a findAndModify returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnImage {
    None,
    Before,
    After,
}

/// One outcome per statement, in their order; after a failure of an ordered batch the rest is missing.
#[derive(Clone, Debug, Default)]
pub struct BatchOutcome {
    pub statements: Vec<Result<StatementOutcome, Error>>,
    /// The outcome was recorded by an earlier attempt of the same retryable write.
    pub retried: bool,
    /// How the documents of each update or delete were found, as far as that is known.
    pub access: SmallVec<[AccessStats; 1]>,
}

/// How documents were found that were to be changed.
#[derive(Clone, Debug, Default)]
pub struct AccessStats {
    pub examined: Examined,
    pub summary: PlanSummary,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatementOutcome {
    /// Inserted, matched or deleted documents; an upsert that inserted counts none.
    pub matched: u64,
    /// Documents an update changed.
    pub modified: u64,
    /// The `_id` of an upserted document.
    pub upserted: Option<ValueBuf>,
    /// The image asked for, if there is one.
    pub image: Option<DocBuf>,
    /// What a search by words thought of the document before it was changed. Not known where an earlier attempt changed it.
    pub text_score: Option<f64>,
}

/// Whether an error of creating the collection is that of each document of an insert, not of the command: there is a view
/// of that name, or a database whose name differs in case only.
pub fn refuses_each_insert(error: &Error) -> bool {
    matches!(error.code(), Code::COMMAND_NOT_SUPPORTED_ON_VIEW | Code::DATABASE_DIFFER_CASE)
}
