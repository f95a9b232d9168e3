//! Statements that change rows.

use super::kind::{StatementKind, parsed};
use super::select::{table, tables};
use crate::effects::{Effects, SessionEffect, Writes};
use crate::table_name::{TableName, is_plain_name};
use crate::tokens::Tokens;
use sqlparser::ast::{Statement, TableObject};

/// Classifies a write: by its parse, or by its tokens if it does not parse.
pub fn write(text: &str, tokens: &Tokens<'_>) -> (StatementKind, Effects) {
    match written(text, tokens) {
        Some(tables) => {
            let writes = Writes::Tables(tables);
            (StatementKind::Write, Effects { writes, calls: tokens.calls(), ..Effects::default() })
        }
        None => by_tokens(tokens),
    }
}

/// Classifies a write by its tokens: it may change each table that it may name.
pub fn by_tokens(tokens: &Tokens<'_>) -> (StatementKind, Effects) {
    let is_plain = |table: &TableName| is_plain_name(&table.name) && table.schema.as_deref().is_none_or(is_plain_name);
    let tables = tokens.possible_tables().filter(|tables| !tables.is_empty() && tables.iter().all(is_plain));
    let (writes, session) = match tables {
        Some(tables) => (Writes::Tables(tables), SessionEffect::None),
        None => (Writes::AnyRows, SessionEffect::Anything),
    };
    (StatementKind::Write, Effects { writes, session, calls: tokens.calls(), ..Effects::default() })
}

/// Returns the tables of a write, read or changed. `None`: it does not parse, or some may be named
/// by their aliases.
fn written(text: &str, tokens: &Tokens<'_>) -> Option<Vec<TableName>> {
    let statements = parsed(text, tokens)?;
    let [statement] = statements.as_slice() else { return None };
    let mut targets = Vec::new();
    match statement {
        Statement::Insert(insert) => match &insert.table {
            TableObject::TableName(name) => targets.push(table(name)?),
            _ => return None,
        },
        Statement::Truncate(truncate) => {
            for target in &truncate.table_names {
                targets.push(table(&target.name)?);
            }
        }
        Statement::Delete(delete) if delete.tables.is_empty() => {}
        Statement::Update(_) => {}
        _ => return None,
    }
    let mut named = tables(statement)?;
    targets.retain(|table| !named.contains(table));
    named.append(&mut targets);
    (!named.is_empty()).then_some(named)
}
