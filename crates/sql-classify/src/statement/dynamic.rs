//! Statements whose text is in a literal or has a name: PREPARE, EXECUTE, DEALLOCATE.

use super::kind::{StatementKind, evaluation};
use crate::effects::Effects;
use crate::scanner::{Lexis, TokenKind};
use crate::tokens::{ListedToken, Tokens};

/// Classifies a statement about prepared statements. Returns `None` if it may change anything.
/// `executed`: returns the effects of executing a text.
pub fn dynamic(
    tokens: &Tokens<'_>,
    lexis: Lexis,
    executed: impl Fn(&str) -> Option<Effects>,
) -> Option<(StatementKind, Effects)> {
    let list = tokens.as_slice();
    let name = |at: usize| Some(list.get(at)?.name()?.to_lowercase());
    if tokens.begins_with(&["EXECUTE", "IMMEDIATE"]) {
        let text = string_value(list.get(2)?, lexis)?;
        if list.get(3).is_some_and(|token| !token.is_word("USING")) {
            return None;
        }
        let mut effects = evaluation(&tokens.skip(3));
        effects.merge(executed(&text)?);
        return Some((StatementKind::Other, effects));
    }
    if tokens.begins_with(&["EXECUTE"]) {
        return Some((StatementKind::Execute { name: name(1)? }, evaluation(&tokens.skip(2))));
    }
    if tokens.begins_with(&["PREPARE"]) {
        let text = list.get(3).filter(|_| list.len() == 4).and_then(|literal| string_value(literal, lexis));
        list.get(2).filter(|from| from.is_word("FROM"))?;
        return Some((StatementKind::Prepare { name: name(1)?, text }, evaluation(&tokens.skip(3))));
    }
    Some((StatementKind::Deallocate { name: name(2)? }, Effects::default()))
}

/// Returns the value of a string literal. `None`: it is another token, or has a prefix.
fn string_value(literal: &ListedToken<'_>, lexis: Lexis) -> Option<String> {
    let text = literal.token.text;
    let quote = text.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
    if literal.token.kind != TokenKind::String {
        return None;
    }
    let mut value = String::with_capacity(text.len());
    let mut letters = text.get(1..text.len() - 1)?.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if !lexis.plain_backslashes => match letters.next()? {
                '0' => value.push('\0'),
                'n' => value.push('\n'),
                'r' => value.push('\r'),
                't' => value.push('\t'),
                'b' => value.push('\x08'),
                'Z' => value.push('\x1A'),
                wildcard @ ('%' | '_') => value.extend(['\\', wildcard]),
                other => value.push(other),
            },
            _ if letter == quote => {
                letters.next()?;
                value.push(quote);
            }
            _ => value.push(letter),
        }
    }
    Some(value)
}
