//! The `filter` of a command, parsed: which documents match.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/operator/query/>

use crate::Context;
use document::{Doc, ValueBuf};
use error::{Code, Error, Result};

/// A parsed filter. Cheap to share; evaluation borrows it.
#[derive(Clone, Debug)]
pub struct Predicate {
    root: Node,
}

/// The tree that planners read.
#[derive(Clone, Debug)]
pub enum Node {
    /// All of them; the empty list is "every document".
    And(Vec<Node>),
    Or(Vec<Node>),
    Nor(Vec<Node>),
    /// A condition on the values a dotted path reaches.
    Path {
        path: String,
        test: Test,
    },
}

/// A condition on the values at a path, with MongoDB's array semantics.
#[derive(Clone, Debug)]
pub enum Test {
    Equal(ValueBuf),
    Less(ValueBuf),
    LessOrEqual(ValueBuf),
    Greater(ValueBuf),
    GreaterOrEqual(ValueBuf),
    In(Vec<ValueBuf>),
}

/// What a match leaves behind for the positional operator `$`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatchDetails {
    /// Index of the array element that made the document match.
    pub array_index: Option<usize>,
}

impl Predicate {
    pub fn parse(_filter: Doc<'_>, _context: &Context) -> Result<Predicate> {
        Err(Error::new(Code::NOT_IMPLEMENTED, "predicate"))
    }

    /// The predicate that every document matches.
    pub fn everything() -> Predicate {
        Predicate { root: Node::And(Vec::new()) }
    }

    pub fn matches_everything(&self) -> bool {
        matches!(&self.root, Node::And(all) if all.is_empty())
    }

    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Whether the document matches. Fails only where an expression (`$expr`) fails.
    pub fn matches(&self, _document: Doc<'_>) -> Result<bool> {
        Err(Error::new(Code::NOT_IMPLEMENTED, "predicate"))
    }

    /// As [`Predicate::matches`], and which array element it was, for positional updates and projections.
    pub fn matches_with(&self, _document: Doc<'_>, _details: &mut MatchDetails) -> Result<bool> {
        Err(Error::new(Code::NOT_IMPLEMENTED, "predicate"))
    }
}
