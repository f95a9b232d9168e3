//! The `u` of an update, parsed: operators, a replacement or a pipeline, and applying it to a document.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/operator/update/>

use crate::{Context, MatchDetails, Predicate};
use document::{Doc, ObjectId, Value};
use error::{Code, Error, Result};

#[derive(Clone, Debug)]
pub struct Update {}

/// What applying an update came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// The document is as it was (`nModified` does not count it); nothing was written.
    Unchanged,
    /// The new document was written.
    Changed,
}

impl Update {
    /// `update`: the statement's `u` (document or array), `array_filters`: its `arrayFilters` (an array), if any.
    pub fn parse(_update: Value<'_>, _array_filters: Option<Doc<'_>>, _context: &Context) -> Result<Update> {
        Err(Error::new(Code::NOT_IMPLEMENTED, "update"))
    }

    /// Whether this is a whole document rather than operators or a pipeline; such an update cannot be `multi`.
    pub fn is_replacement(&self) -> bool {
        false
    }

    /// Whether [`Update::apply`] wants details from [`Predicate::matches_with`].
    pub fn needs_match_details(&self) -> bool {
        false
    }

    /// Writes the updated document at the end of `out`, `_id` unchanged. On an error `out` may hold part of it.
    pub fn apply(&self, _document: Doc<'_>, _details: &MatchDetails, _out: &mut Vec<u8>) -> Result<Applied> {
        Err(Error::new(Code::NOT_IMPLEMENTED, "update"))
    }

    /// Writes the document an upsert inserts: the predicate's equalities, then the update, `$setOnInsert` included.
    /// `new_id` gives the `_id` where neither names one.
    pub fn upsert(&self, _predicate: &Predicate, _new_id: ObjectId, _out: &mut Vec<u8>) -> Result<()> {
        Err(Error::new(Code::NOT_IMPLEMENTED, "update"))
    }
}
