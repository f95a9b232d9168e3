//! The effect of a command.

use sql_classify::DiagnosticsKept;
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

impl StatementEffect {
    /// Returns this effect together with another.
    pub fn and(self, other: StatementEffect) -> StatementEffect {
        match (self, other) {
            (StatementEffect::Everything, _) | (_, StatementEffect::Everything) => StatementEffect::Everything,
            (StatementEffect::AnyRows, _) | (_, StatementEffect::AnyRows) => StatementEffect::AnyRows,
            (StatementEffect::Nothing, effect) | (effect, StatementEffect::Nothing) => effect,
            (StatementEffect::Tables(mut tables), StatementEffect::Tables(more)) => {
                tables.extend(more);
                StatementEffect::Tables(tables)
            }
        }
    }

    /// Returns the diagnostics that remain after a write with this effect, if by its text they
    /// would be `kept`. A write to more than one table may change FOUND_ROWS(): an UPDATE of a view
    /// that joins tables, or a statement that fires triggers.
    pub fn refine(&self, kept: DiagnosticsKept) -> DiagnosticsKept {
        match (self, kept) {
            (StatementEffect::Nothing, kept) => kept,
            (StatementEffect::Tables(tables), kept) if tables.len() <= 1 => kept,
            (_, DiagnosticsKept::FoundRows) => DiagnosticsKept::MaybeFoundRows,
            (_, kept) => kept,
        }
    }
}
