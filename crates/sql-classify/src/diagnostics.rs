//! What a statement uses, and what it keeps, of the diagnostics of the statements before it:
//! FOUND_ROWS(), ROW_COUNT(), SHOW WARNINGS.

use crate::effects::{Effects, Writes};
use crate::statement::StatementKind;

/// The diagnostics that remain as they were after a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiagnosticsKept {
    /// Any of them may remain.
    All,
    /// The statement replaces all of them.
    Nothing,
    Warnings,
    FoundRows,
    /// FOUND_ROWS() may or may not remain.
    MaybeFoundRows,
    FoundRowsAndWarnings,
}

/// The diagnostics of earlier statements that a statement uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiagnosticsUse {
    Nothing,
    /// Warnings, ROW_COUNT().
    Other,
    FoundRows,
    FoundRowsAndOther,
    /// It may use any, in functions and procedures.
    Anything,
}

impl DiagnosticsUse {
    /// Returns the use that a statement makes of them, by its text, its kind and its effects.
    pub fn of(text: &str, kind: &StatementKind, effects: &Effects) -> DiagnosticsUse {
        let upper = text.to_ascii_uppercase();
        let has = |word: &str| memchr::memmem::find(upper.as_bytes(), word.as_bytes()).is_some();
        let others = ["ROW_COUNT", "WARNING", "ERROR", "DIAGNOSTICS"].into_iter().any(has);
        let may_use_more = !effects.are_known() || !effects.calls.is_empty();
        match (has("FOUND_ROWS"), others, kind) {
            (true, false, _) => DiagnosticsUse::FoundRows,
            (true, true, _) => DiagnosticsUse::FoundRowsAndOther,
            (false, true, _) => DiagnosticsUse::Other,
            (false, false, StatementKind::PureSelect | StatementKind::Read | StatementKind::Write) if !may_use_more => {
                DiagnosticsUse::Nothing
            }
            (false, false, StatementKind::Settings | StatementKind::NextTransaction) if !may_use_more => {
                DiagnosticsUse::Nothing
            }
            (false, false, StatementKind::Transaction) => DiagnosticsUse::Nothing,
            _ => DiagnosticsUse::Anything,
        }
    }

    /// Returns whether the statement uses FOUND_ROWS(), or warnings or counts, and says which.
    pub fn is_explicit(self) -> bool {
        !matches!(self, DiagnosticsUse::Nothing | DiagnosticsUse::Anything)
    }

    /// Returns whether FOUND_ROWS() has to be right, at the price of the warnings.
    pub fn needs_found_rows(self, has_warnings: bool) -> bool {
        match self {
            DiagnosticsUse::Nothing | DiagnosticsUse::Other => false,
            DiagnosticsUse::FoundRows | DiagnosticsUse::FoundRowsAndOther => true,
            DiagnosticsUse::Anything => !has_warnings,
        }
    }
}

impl DiagnosticsKept {
    /// `has_warnings`: SHOW WARNINGS may return rows before the statement.
    pub fn after(
        kind: &StatementKind,
        effects: &Effects,
        may_set_found_rows: bool,
        has_warnings: bool,
    ) -> DiagnosticsKept {
        if !effects.calls.is_empty() || matches!(effects.writes, Writes::AnyRows | Writes::Everything) {
            return DiagnosticsKept::All;
        }
        match kind {
            StatementKind::PureSelect => DiagnosticsKept::Nothing,
            StatementKind::Read if !effects.reads.is_empty() => DiagnosticsKept::Nothing,
            StatementKind::Read => DiagnosticsKept::Warnings,
            StatementKind::Write if may_set_found_rows => DiagnosticsKept::MaybeFoundRows,
            StatementKind::Write => DiagnosticsKept::FoundRows,
            StatementKind::Settings | StatementKind::NextTransaction if !effects.reads.is_empty() => {
                DiagnosticsKept::All
            }
            StatementKind::Settings | StatementKind::NextTransaction | StatementKind::Transaction => {
                DiagnosticsKept::FoundRowsAndWarnings
            }
            // Most kinds of SHOW select rows. SHOW WARNINGS must see the warnings, so nothing that
            // resets them may come before it.
            StatementKind::Show if !has_warnings => DiagnosticsKept::MaybeFoundRows,
            _ => DiagnosticsKept::All,
        }
    }
}
