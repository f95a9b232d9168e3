//! Kinds of statements, and helpers of their classification.

use crate::bounded_parse;
use crate::effects::{Effects, SessionEffect};
use crate::sample::sample;
use crate::tokens::Tokens;

/// Longer texts are not parsed; only their tokens are examined.
const PARSED_BYTES_MAX: usize = 16 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatementKind {
    /// A SELECT whose result depends on nothing but the rows of the tables that it reads.
    PureSelect,
    /// Another SELECT.
    Read,
    /// Describes the server or a statement: SHOW, EXPLAIN.
    Show,
    /// Changes a setting of the session: SET, USE.
    Settings,
    /// Sets a characteristic of the next transaction alone, which the session's settings do not
    /// show.
    NextTransaction,
    /// Begins or ends a transaction.
    Transaction,
    /// Changes rows of tables.
    Write,
    /// `PREPARE name FROM text`; no text if it is not a literal.
    Prepare { name: String, text: Option<String> },
    /// `EXECUTE name`
    Execute { name: String },
    /// `DEALLOCATE PREPARE name`
    Deallocate { name: String },
    /// Has its [`Effects`] and nothing besides; also several statements.
    Other,
    /// May change anything, including definitions.
    Unknown,
}

/// The context in which a statement is parsed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ParseContext {
    /// The statement is prepared: question marks are parameters.
    pub is_prepared: bool,
    /// Variables and functions of the clock, of chance and of the session count as pure.
    pub assume_pure: bool,
    /// The text has question marks, but is not prepared: the server refuses one of its statements.
    pub is_refused: bool,
}

/// A statement without effects but those of the functions in its expressions, and of the views that
/// its subqueries read.
pub fn evaluation(tokens: &Tokens<'_>) -> Effects {
    let reads = if tokens.has_word("SELECT") { tokens.possible_tables() } else { Some(Vec::new()) };
    Effects::of_reading(reads, tokens.calls())
}

pub fn with_session(effects: Effects, session: SessionEffect) -> Effects {
    Effects { session: effects.session.max(session), ..effects }
}

/// Parses a statement, unless its text is long. Returns `None` if that fails.
pub fn parsed(text: &str, tokens: &Tokens<'_>) -> Option<Vec<sqlparser::ast::Statement>> {
    if text.len() > PARSED_BYTES_MAX {
        return None;
    }
    bounded_parse::parse(&sample(text, tokens), tokens.len())
}
