//! Writing: a batch of statements in, one outcome per statement out.

use crate::{Examined, Namespace, PlanSummary, Progress};
use bytes::Bytes;
use document::{DocBuf, ObjectId, ValueBuf};
use error::{Code, Error};
use query::{Predicate, Sort};
use smallvec::SmallVec;
use std::sync::Arc;
use update::Update;

/// The statements of one `insert`, `update`, `delete` or `findAndModify` command.
#[derive(Debug)]
pub struct WriteBatch {
    pub namespace: Namespace,
    /// Stop at the first statement that fails.
    pub ordered: bool,
    /// `j: true` or `w: "majority"`: the batch must be on disk, not just with the operating system,
    /// before it is acknowledged.
    pub journal: bool,
    /// Do not check documents against the collection's validator.
    pub bypass_validation: bool,
    /// Present on retryable writes: a batch with the same key returns its first outcome.
    pub retry: Option<RetryKey>,
    pub statements: Statements,
    /// Set to stop when the command is killed or its time is over. The batch then fails with that
    /// reason. Documents changed before stay changed, and a retryable write that is sent again
    /// continues behind them.
    pub progress: Arc<Progress>,
}

impl WriteBatch {
    /// Returns an ordered batch without further options.
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

/// Identifies a retryable write: the client's session and its counter. Source:
/// <https://github.com/mongodb/specifications/blob/master/source/retryable-writes/retryable-writes.md>
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RetryKey {
    /// The `lsid`'s id, a UUID.
    pub session: [u8; 16],
    pub txn_number: i64,
}

#[derive(Debug)]
pub enum Statements {
    /// Whole, validated BSON documents with `_id` as the first field.
    Insert(Vec<Bytes>),
    Update(Vec<UpdateStatement>),
    Delete(Vec<DeleteStatement>),
}

impl Statements {
    /// Returns how many statements there are; each inserted document is one.
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
    /// Selects the document if several match (findAndModify).
    pub sort: Option<Sort>,
    pub update: Update,
    pub multi: bool,
    pub upsert: bool,
    /// The `_id` for an upsert that specifies none.
    pub new_id: ObjectId,
    /// As [`crate::Query::hint`].
    pub hint: Option<ValueBuf>,
    pub image: ReturnImage,
}

impl UpdateStatement {
    /// Returns whether the reply may include the document's text score.
    pub fn wants_score(&self) -> bool {
        self.image == ReturnImage::After && self.predicate.text_search().is_some()
    }
}

#[derive(Debug)]
pub struct DeleteStatement {
    pub predicate: Predicate,
    pub sort: Option<Sort>,
    /// `limit: 1`; otherwise all matching documents.
    pub one: bool,
    /// As [`crate::Query::hint`].
    pub hint: Option<ValueBuf>,
    pub image: ReturnImage,
}

impl DeleteStatement {
    /// Returns whether the statement deletes all documents of the collection.
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

/// One outcome per statement, in their order. After a failure in an ordered batch, the remaining
/// ones are missing.
#[derive(Clone, Debug, Default)]
pub struct BatchOutcome {
    pub statements: Vec<Result<StatementOutcome, Error>>,
    /// The outcome was recorded by an earlier attempt of the same retryable write.
    pub retried: bool,
    /// How the documents of each update or delete were found, as far as known.
    pub access: SmallVec<[AccessStats; 1]>,
}

/// How a statement found the documents that it changed.
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
    /// The requested image, if there is one.
    pub image: Option<DocBuf>,
    /// The document's text score before it was changed. Unknown if an earlier attempt changed it.
    pub text_score: Option<f64>,
}

/// Returns whether an error of creating the collection concerns each document of an insert instead
/// of the command: the name is a view's, or another database's name differs only in case.
pub fn refuses_each_insert(error: &Error) -> bool {
    matches!(error.code(), Code::COMMAND_NOT_SUPPORTED_ON_VIEW | Code::DATABASE_DIFFER_CASE)
}
