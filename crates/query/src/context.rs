//! What parsing and evaluation may depend on besides their arguments.

use document::{Collation, DocBuf};

/// One command's surroundings: the moment it began, its `let` variables, how its strings compare.
#[derive(Clone, Debug)]
pub struct Context {
    /// Milliseconds since 1970-01-01 UTC at which the command began (`$$NOW`, `$currentDate`).
    pub now_ms: i64,
    /// The command's `let` document: names and constant values.
    pub variables: DocBuf,
    /// Inside of how many stages with pipelines of their own (`$lookup`) what is parsed stands.
    pub pipelines_around: usize,
    /// Names of variables that have no value.
    pub missing: Vec<Box<str>>,
    /// The command's `collation`, or the collection's.
    pub collation: Collation,
}

impl Context {
    pub fn at(now_ms: i64) -> Self {
        Context {
            now_ms,
            variables: DocBuf::new(),
            missing: Vec::new(),
            pipelines_around: 0,
            collation: Collation::SIMPLE,
        }
    }
}
