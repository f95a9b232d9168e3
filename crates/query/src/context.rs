//! What parsing and evaluation may depend on besides their arguments.

use document::DocBuf;

/// One command's surroundings: the moment it began, its `let` variables.
#[derive(Clone, Debug)]
pub struct Context {
    /// Milliseconds since 1970-01-01 UTC at which the command began (`$$NOW`, `$currentDate`).
    pub now_ms: i64,
    /// The command's `let` document: names and constant values.
    pub variables: DocBuf,
}

impl Context {
    pub fn at(now_ms: i64) -> Self {
        Context { now_ms, variables: DocBuf::new() }
    }
}
