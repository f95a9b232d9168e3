//! The effect of a command.

use store::Namespace;

/// What a command changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatementEffect {
    Nothing,
    Tables(Vec<Namespace>),
    /// Rows of any table.
    AnyRows,
    /// Rows and definitions of any table.
    Everything,
}
