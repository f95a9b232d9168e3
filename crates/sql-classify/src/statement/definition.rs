//! Definitions, and maintenance of tables.

use crate::effects::{Effects, SessionEffect, Writes};
use crate::tokens::{Calls, Tokens};

/// Returns the effects of CREATE, ALTER, DROP and RENAME.
pub fn definition(tokens: &Tokens<'_>) -> Effects {
    let query =
        tokens.as_slice().iter().position(|token| ["SELECT", "WITH", "VALUES"].iter().any(|word| token.is_word(word)));
    if is_temporary(tokens) {
        let effects = match query.map(|at| tokens.skip(at)) {
            Some(query) => Effects::of_reading(query.possible_tables(), query.calls()),
            None => Effects::default(),
        };
        let session = if tokens.begins_with(&["CREATE"]) { SessionEffect::Anything } else { SessionEffect::None };
        return Effects { session: session.max(effects.session), ..effects };
    }
    // A query may call functions, and behind a body there may be other statements.
    let may_do_more = query.is_some() && !tokens.has_word("VIEW") || tokens.has_symbol(";");
    let session = if may_do_more { SessionEffect::Anything } else { SessionEffect::Settings };
    Effects { reads: Vec::new(), writes: Writes::Everything, calls: Calls::default(), session }
}

/// Returns whether a definition is one of a table or sequence of the session alone.
fn is_temporary(tokens: &Tokens<'_>) -> bool {
    ["TABLE", "SEQUENCE"].iter().any(|object| {
        tokens.begins_with(&["CREATE", "TEMPORARY", object])
            || tokens.begins_with(&["CREATE", "OR", "REPLACE", "TEMPORARY", object])
            || tokens.begins_with(&["DROP", "TEMPORARY", object])
    })
}

/// Returns the effects of ANALYZE TABLE and its like. `None`: it may change anything.
pub fn maintenance(tokens: &Tokens<'_>) -> Option<Effects> {
    let options = ["NO_WRITE_TO_BINLOG", "LOCAL"];
    let object = tokens.as_slice().iter().skip(1).find(|token| !options.iter().any(|option| token.is_word(option)))?;
    let is_table = object.is_word("TABLE") || object.is_word("TABLES");
    match is_table {
        true if tokens.begins_with(&["REPAIR"]) => Some(super::write::by_tokens(tokens).1),
        true => Some(Effects::default()),
        false => None,
    }
}
