//! The `sort` of a command, parsed, and sorting itself.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/method/cursor.sort/>

use crate::Context;
use document::{Doc, DocBuf};
use error::{Code, Error, Result};

#[derive(Clone, Debug)]
pub struct Sort {
    parts: Vec<SortPart>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortPart {
    pub path: String,
    pub ascending: bool,
}

impl Sort {
    pub fn parse(_spec: Doc<'_>, _context: &Context) -> Result<Sort> {
        Err(Error::new(Code::NOT_IMPLEMENTED, "sort"))
    }

    pub fn parts(&self) -> &[SortPart] {
        &self.parts
    }

    /// Appends the document's sort key: byte strings that compare (memcmp) as the documents sort.
    pub fn key(&self, _document: Doc<'_>, _out: &mut Vec<u8>) -> Result<()> {
        Err(Error::new(Code::NOT_IMPLEMENTED, "sort"))
    }
}

/// A blocking sort: takes documents one by one, gives them back in order. Stable.
#[derive(Debug)]
pub struct Sorter {}

impl Sorter {
    /// `limit`: how many documents will be asked for at the most, so that no more are kept.
    /// `memory_bytes_max`: past it, [`Sorter::push`] fails with error 292.
    pub fn new(_sort: Sort, _limit: Option<usize>, _memory_bytes_max: usize) -> Sorter {
        Sorter {}
    }

    pub fn push(&mut self, _document: Doc<'_>) -> Result<()> {
        Err(Error::new(Code::NOT_IMPLEMENTED, "sort"))
    }

    pub fn finish(self) -> std::collections::VecDeque<DocBuf> {
        Default::default()
    }
}
