//! SELECT: the tables that it reads, and whether its result depends on nothing but their rows.

use super::kind::{ParseContext, StatementKind, parsed};
use crate::effects::Effects;
use crate::scanner::TokenKind;
use crate::table_name::{TableName, is_plain_name};
use crate::tokens::{ListedToken, Tokens};
use crate::words::{WordLists, lists_with};
use sqlparser::ast::{Statement, visit_relations};
use std::ops::ControlFlow;

/// A SELECT from more tables than this is not classified as pure.
const TABLES_MAX: usize = 8;

pub fn select(text: &str, tokens: &Tokens<'_>, context: ParseContext) -> (StatementKind, Effects) {
    let calls = tokens.calls();
    if !calls.is_empty() {
        return (StatementKind::Read, Effects::of_reading(tokens.possible_tables(), calls));
    }
    let functions = if context.assume_pure { WordLists::PURE.or(WordLists::VOLATILE) } else { WordLists::PURE };
    let depends_on_more = context.is_refused
        || tokens.as_slice().iter().any(|token| is_impure(token, context))
        || !tokens.calls_only(functions);
    let read = |tables| (StatementKind::Read, Effects::of_reading(tables, calls.clone()));
    if depends_on_more && !tokens.has_word("FROM") {
        return read(Some(Vec::new()));
    }
    let parsed = parsed(text, tokens);
    let Some([Statement::Query(query)]) = parsed.as_deref() else { return read(tokens.possible_tables()) };
    match (&query.with, tables(query)) {
        (None, Some(tables)) if !depends_on_more && (1..=TABLES_MAX).contains(&tables.len()) => {
            (StatementKind::PureSelect, Effects { reads: tables, ..Effects::default() })
        }
        (_, tables) => read(tables.or_else(|| tokens.possible_tables())),
    }
}

/// Returns whether a token makes the result depend on more than rows.
fn is_impure(listed: &ListedToken<'_>, context: ParseContext) -> bool {
    let assume_pure = context.assume_pure;
    match listed.token.kind {
        TokenKind::Word => {
            // A sequence's value may be qualified by its name.
            let lists = lists_with(listed.token.text);
            lists.has(WordLists::UNCACHEABLE) || !assume_pure && lists.has(WordLists::NONDETERMINISTIC)
        }
        TokenKind::Variable => !assume_pure,
        TokenKind::Symbol => listed.token.text == ":=",
        _ => false,
    }
}

/// Returns the tables that a part of a statement names. `None`: a name needs escapes.
pub fn tables(node: &impl sqlparser::ast::Visit) -> Option<Vec<TableName>> {
    let mut tables = Vec::new();
    let unclear = visit_relations(node, |name| match table(name) {
        Some(table) => {
            if !tables.contains(&table) {
                tables.push(table);
            }
            ControlFlow::Continue(())
        }
        None => ControlFlow::Break(()),
    });
    unclear.is_continue().then_some(tables)
}

pub fn table(name: &sqlparser::ast::ObjectName) -> Option<TableName> {
    let parts: Option<Vec<&str>> =
        name.0.iter().map(|part| part.as_ident().map(|identifier| identifier.value.as_str())).collect();
    let (schema, name) = match parts?.as_slice() {
        [name] => (None, (*name).to_owned()),
        [schema, name] => (Some((*schema).to_owned()), (*name).to_owned()),
        _ => return None,
    };
    (is_plain_name(&name) && schema.as_deref().is_none_or(is_plain_name)).then_some(TableName { schema, name })
}
