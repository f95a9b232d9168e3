//! Classifies a statement by its text: what it reads and writes, and what it does to its session.
//!
//! Everything that is not certain is [`StatementKind::Unknown`], which may change anything.

mod definition;
mod dynamic;
mod kind;
mod select;
mod setting;
mod write;

use crate::canonical::{CANONICAL_LEXIS, Canonical, canonical, collapsed};
use crate::diagnostics::{DiagnosticsKept, DiagnosticsUse};
use crate::effects::{Effects, SessionEffect, Writes};
use crate::routine_name::RoutineKind;
use crate::scanner::{Lexis, Unclear};
use crate::tokens::Tokens;
use crate::write_effects::body_effects;

use kind::{evaluation, with_session};

pub use kind::{ParseContext, StatementKind};
pub use setting::CacheSwitch;

/// Longer statements are not classified.
pub const STATEMENT_BYTES_MAX: usize = 256 << 10;

/// What a text does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    pub kind: StatementKind,
    pub effects: Effects,
    pub diagnostics_use: DiagnosticsUse,
    /// It may set FOUND_ROWS() although it is a write.
    pub may_set_found_rows: bool,
    /// It may be acknowledged before its rows are visible.
    pub is_delayed: bool,
    /// The server reloads the session's privileges: USE chooses a schema, SET ROLE a role.
    pub reloads_privileges: bool,
    /// It ends the transaction.
    pub ends_transaction: bool,
    /// `SET @selkie_cache = …`
    pub cache_switch: Option<CacheSwitch>,
}

impl Statement {
    /// Classifies a text: in canonical form, or with its literals if its effects depend on them.
    pub fn classify(text: &str, lexis: Lexis, context: ParseContext) -> Statement {
        let Ok(tokens) = Tokens::of(text, lexis) else { return Statement::unknown() };
        let mut statements = tokens.statements();
        let is_one = statements.len() == 1 || is_compound(&tokens);
        if !is_one {
            return Statement::several(text, &statements, lexis, context);
        }
        let tokens = if statements.len() == 1 { statements.remove(0) } else { tokens };
        let text = text.trim_end_matches([';', ' ']);
        let (kind, effects) = classify_one(text, &tokens, lexis, context).unwrap_or_else(unknown);
        Statement::new(text, &tokens, kind, effects)
    }

    /// A statement that may do anything.
    pub fn unknown() -> Statement {
        let (kind, effects) = unknown();
        Statement {
            kind,
            effects,
            diagnostics_use: DiagnosticsUse::Anything,
            may_set_found_rows: true,
            is_delayed: false,
            reloads_privileges: true,
            ends_transaction: false,
            cache_switch: None,
        }
    }

    fn new(text: &str, tokens: &Tokens<'_>, kind: StatementKind, effects: Effects) -> Statement {
        Statement {
            diagnostics_use: DiagnosticsUse::of(text, &kind, &effects),
            may_set_found_rows: may_set_found_rows(tokens, &effects),
            is_delayed: is_delayed(text),
            reloads_privileges: tokens.has_any_word(&["USE", "ROLE"]),
            ends_transaction: kind == StatementKind::Transaction && ends_transaction(tokens),
            cache_switch: setting::cache_switch(tokens),
            kind,
            effects,
        }
    }

    /// Classifies several statements that are sent together.
    fn several(text: &str, statements: &[Tokens<'_>], lexis: Lexis, context: ParseContext) -> Statement {
        let mut all = Effects::default();
        for tokens in statements {
            let part = tokens.text(text);
            let (kind, effects) = classify_one(part, tokens, lexis, context).unwrap_or_else(unknown);
            all.merge(effects);
            let is_listed = match kind {
                // The text of a prepared statement is kept by the session only one at a time.
                StatementKind::Prepare { .. } | StatementKind::Execute { .. } | StatementKind::Unknown => false,
                StatementKind::NextTransaction | StatementKind::Deallocate { .. } => false,
                _ => true,
            };
            if !is_listed || setting::cache_switch(tokens).is_some() {
                return Statement::unknown();
            }
        }
        if statements.is_empty() {
            return Statement::unknown();
        }
        let mut statement = Statement::new(text, &Tokens::default(), StatementKind::Other, all);
        statement.diagnostics_use = DiagnosticsUse::Anything;
        statement.reloads_privileges = true;
        statement
    }

    /// Returns whether the effects are known when the statement is prepared, but for definitions.
    pub fn is_executed_at_once(&self) -> bool {
        let chooses_privileges = self.kind == StatementKind::Settings && self.reloads_privileges;
        let is_known = !matches!(
            self.kind,
            StatementKind::Unknown
                | StatementKind::NextTransaction
                | StatementKind::Prepare { .. }
                | StatementKind::Execute { .. }
                | StatementKind::Deallocate { .. }
        );
        is_known && !chooses_privileges
    }

    /// Returns whether the statement clears the warnings when it begins.
    pub fn resets_warnings(&self) -> bool {
        match self.kind {
            StatementKind::PureSelect => true,
            StatementKind::Read => self.effects.calls.is_empty() && !self.effects.reads.is_empty(),
            StatementKind::Write => self.effects.calls.is_empty() && self.effects.are_known(),
            _ => false,
        }
    }

    /// As [`diagnostics_kept`](Self::diagnostics_kept), for a prepared statement.
    pub fn diagnostics_kept_when_executed(&self) -> DiagnosticsKept {
        match self.diagnostics_kept(true) {
            kept @ (DiagnosticsKept::Nothing | DiagnosticsKept::MaybeFoundRows | DiagnosticsKept::FoundRows) => kept,
            _ => DiagnosticsKept::All,
        }
    }

    /// Returns the diagnostics that remain after the statement. `has_warnings`: SHOW WARNINGS may
    /// return rows before it.
    pub fn diagnostics_kept(&self, has_warnings: bool) -> DiagnosticsKept {
        DiagnosticsKept::after(&self.kind, &self.effects, self.may_set_found_rows, has_warnings)
    }
}

/// Returns whether semicolons may be within the first statement: it has a body.
fn is_compound(tokens: &Tokens<'_>) -> bool {
    let has_body = ["PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE"];
    let is_block =
        ["IF", "CASE", "LOOP", "WHILE", "REPEAT", "FOR", "DECLARE"].iter().any(|word| tokens.begins_with(&[word]));
    let is_labelled = tokens.as_slice().get(1).is_some_and(|token| token.is_symbol(":"));
    tokens.begins_with(&["CREATE"]) && tokens.has_any_word(&has_body)
        || tokens.begins_with(&["BEGIN", "NOT", "ATOMIC"])
        || is_block
        || is_labelled
}

fn unknown() -> (StatementKind, Effects) {
    (StatementKind::Unknown, Effects::unknown())
}

/// Classifies one statement. Returns `None` if it may change anything.
fn classify_one(
    text: &str,
    tokens: &Tokens<'_>,
    lexis: Lexis,
    context: ParseContext,
) -> Option<(StatementKind, Effects)> {
    let other = |effects: Effects| Some((StatementKind::Other, effects));
    let words = tokens.first_words();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["SELECT", ..] => Some(select::select(text, tokens, context)),
        [] if tokens.is_in_parentheses("SELECT") => Some(select::select(text, tokens, context)),
        ["WITH", ..] => {
            let writes = tokens.has_any_word(&["INSERT", "UPDATE", "DELETE", "REPLACE"]);
            let effects = Effects::of_reading(tokens.possible_tables(), tokens.calls());
            Some(if writes { write::by_tokens(tokens) } else { (StatementKind::Read, effects) })
        }
        ["VALUES", ..] | ["DO", ..] | ["SIGNAL" | "RESIGNAL" | "GET", ..] => other(evaluation(tokens)),
        ["SHOW" | "DESC" | "DESCRIBE" | "EXPLAIN", ..] => {
            Some((StatementKind::Show, Effects { calls: tokens.calls(), ..Effects::default() }))
        }
        ["USE", ..] if tokens.len() <= 2 => {
            Some((StatementKind::Settings, with_session(Effects::default(), SessionEffect::Settings)))
        }
        ["SET", ..] => setting::set(tokens, |inner| classify_one(inner.text(text), inner, lexis, context)),
        ["BEGIN"] | ["BEGIN", "WORK"] | ["START", "TRANSACTION", ..] | ["COMMIT" | "ROLLBACK" | "SAVEPOINT", ..] => {
            Some((StatementKind::Transaction, Effects::default()))
        }
        ["RELEASE", "SAVEPOINT", ..] => Some((StatementKind::Transaction, Effects::default())),
        ["INSERT" | "REPLACE" | "UPDATE" | "DELETE" | "TRUNCATE", ..] => Some(write::write(text, tokens)),
        ["LOAD", "DATA" | "XML", ..] => Some(write::by_tokens(tokens)),
        ["CALL", ..] => {
            let arguments = tokens.as_slice().iter().position(|token| token.is_symbol("(")).unwrap_or(tokens.len());
            let mut effects = evaluation(&tokens.skip(arguments));
            effects.calls.add(tokens.routine_after(1, RoutineKind::Procedure));
            other(effects)
        }
        ["BEGIN", "NOT", "ATOMIC"] => other(body_effects(&tokens.skip(3))),
        ["PREPARE" | "EXECUTE" | "DEALLOCATE", ..] | ["DROP", "PREPARE", ..] => {
            dynamic::dynamic(tokens, lexis, |text| executed(text, lexis, context))
        }
        ["CREATE" | "DROP" | "ALTER" | "RENAME", ..] => other(definition::definition(tokens)),
        ["ANALYZE" | "OPTIMIZE" | "CHECK" | "CHECKSUM" | "REPAIR", ..] => {
            definition::maintenance(tokens).map(|effects| (StatementKind::Other, effects))
        }
        ["LOCK", "TABLE" | "TABLES", ..] => other(with_session(Effects::default(), SessionEffect::Anything)),
        ["FLUSH" | "UNLOCK" | "HANDLER" | "HELP" | "KILL" | "BACKUP", ..] => other(evaluation(tokens)),
        _ => None,
    }
}

/// Returns the effects of executing a text. `None`: it may change anything.
fn executed(text: &str, lexis: Lexis, context: ParseContext) -> Option<Effects> {
    let statement = classify_text(text, lexis, ParseContext { is_prepared: true, ..context });
    statement.is_executed_at_once().then_some(statement.effects)
}

/// Classifies a text without a cache.
pub fn classify_text(text: &str, lexis: Lexis, context: ParseContext) -> Statement {
    classify_by_form(text, lexis, context).unwrap_or_else(|_| Statement::unknown())
}

fn classify_by_form(text: &str, lexis: Lexis, context: ParseContext) -> Result<Statement, Unclear> {
    let form = canonical(text, lexis)?;
    let context = context.of_form(&form);
    Ok(match form.depends_on_literals {
        true => Statement::classify(&collapsed(text, lexis)?, lexis, context),
        false => Statement::classify(&form.text, CANONICAL_LEXIS, context),
    })
}

impl ParseContext {
    /// Returns the context for the canonical form of a text.
    pub fn of_form(self, form: &Canonical<'_>) -> ParseContext {
        ParseContext { is_refused: form.has_parameters && !self.is_prepared, ..self }
    }
}

/// Returns whether a write may change FOUND_ROWS(): one that selects rows, as INSERT … SELECT does,
/// or that joins tables.
fn may_set_found_rows(tokens: &Tokens<'_>, effects: &Effects) -> bool {
    let is_one_table = matches!(&effects.writes, Writes::Tables(tables) if tables.len() == 1);
    !is_one_table || tokens.has_any_word(&["SELECT", "JOIN", "USING", "TABLE", "WITH"])
}

/// Returns whether a text may have INSERT DELAYED.
pub fn is_delayed(text: &str) -> bool {
    memchr::memmem::find(text.to_ascii_uppercase().as_bytes(), b"DELAYED").is_some()
}

fn ends_transaction(tokens: &Tokens<'_>) -> bool {
    tokens.begins_with(&["COMMIT"]) || tokens.begins_with(&["ROLLBACK"]) && !tokens.has_word("TO")
}

#[cfg(test)]
mod tests;
