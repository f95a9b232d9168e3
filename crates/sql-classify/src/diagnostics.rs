//! What a statement uses, and what it keeps, of the diagnostics of the statements before it:
//! FOUND_ROWS(), ROW_COUNT(), SHOW WARNINGS.

use crate::statement::StatementKind;
use crate::table_name::TableName;

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
    pub fn of(sql: &[u8], kind: &StatementKind) -> DiagnosticsUse {
        let upper = sql.to_ascii_uppercase();
        let has = |word: &[u8]| memchr::memmem::find(&upper, word).is_some();
        let others = [&b"ROW_COUNT"[..], b"WARNING", b"ERROR", b"DIAGNOSTICS"].into_iter().any(has);
        match (has(b"FOUND_ROWS"), others, kind) {
            (true, false, _) => DiagnosticsUse::FoundRows,
            (true, true, _) => DiagnosticsUse::FoundRowsAndOther,
            (false, true, _) => DiagnosticsUse::Other,
            (false, false, StatementKind::Unknown | StatementKind::CallsUnknown | StatementKind::Show) => {
                DiagnosticsUse::Anything
            }
            (false, false, _) => DiagnosticsUse::Nothing,
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
    pub fn after(kind: &StatementKind, sql: &[u8], has_warnings: bool) -> DiagnosticsKept {
        match kind {
            StatementKind::PureSelect(_) => DiagnosticsKept::Nothing,
            StatementKind::Read(tables) if !tables.is_empty() => DiagnosticsKept::Nothing,
            StatementKind::Read(_) => DiagnosticsKept::Warnings,
            StatementKind::Write(tables) if may_set_found_rows(sql, tables) => DiagnosticsKept::MaybeFoundRows,
            StatementKind::Write(_) => DiagnosticsKept::FoundRows,
            StatementKind::Settings | StatementKind::NextTransaction | StatementKind::Transaction => {
                DiagnosticsKept::FoundRowsAndWarnings
            }
            // Most kinds of SHOW select rows. SHOW WARNINGS must see the warnings, so nothing that
            // resets them may come before it.
            StatementKind::Show if !has_warnings => DiagnosticsKept::MaybeFoundRows,
            StatementKind::Show | StatementKind::CallsUnknown | StatementKind::Unknown => DiagnosticsKept::All,
        }
    }
}

/// Returns whether a write may change FOUND_ROWS(): one that selects rows, as INSERT … SELECT does,
/// or that joins tables.
pub fn may_set_found_rows(sql: &[u8], tables: &[TableName]) -> bool {
    let upper = sql.to_ascii_uppercase();
    let has = |word: &[u8]| memchr::memmem::find(&upper, word).is_some();
    tables.len() > 1 || [&b"SELECT"[..], b"JOIN", b"USING", b"TABLE", b"WITH"].into_iter().any(has)
}
