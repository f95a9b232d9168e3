//! The `projection` of a command, parsed: which fields a document is returned with.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/operator/projection/>

use crate::{Context, MatchDetails, Predicate};
use document::Doc;
use error::{Code, Error, Result};

#[derive(Clone, Debug)]
pub struct Projection {}

impl Projection {
    /// `predicate` is the filter beside it, which the positional operator `$` refers to.
    pub fn parse(_spec: Doc<'_>, _predicate: &Predicate, _context: &Context) -> Result<Projection> {
        Err(Error::new(Code::NOT_IMPLEMENTED, "projection"))
    }

    /// Whether [`Projection::apply`] wants details from [`Predicate::matches_with`].
    pub fn needs_match_details(&self) -> bool {
        false
    }

    /// Writes the projected document at the end of `out`. On an error `out` may hold part of it.
    pub fn apply(&self, _document: Doc<'_>, _details: &MatchDetails, _out: &mut Vec<u8>) -> Result<()> {
        Err(Error::new(Code::NOT_IMPLEMENTED, "projection"))
    }
}
