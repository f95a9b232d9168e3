//! SET, in its many forms.

use super::kind::{StatementKind, evaluation, with_session};
use crate::effects::{Effects, SessionEffect};
use crate::tokens::Tokens;

/// `SET @selkie_cache = …`, by which a session switches its use of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheSwitch {
    On,
    Off,
    /// The value is neither 0 nor 1.
    Invalid,
}

/// Reads the switch of the cache. Returns `None` for other statements.
pub fn cache_switch(tokens: &Tokens<'_>) -> Option<CacheSwitch> {
    let [set, variable, sign, value @ ..] = tokens.as_slice() else { return None };
    let is_switch = set.is_word("SET")
        && variable.token.text.eq_ignore_ascii_case("@selkie_cache")
        && (sign.is_symbol("=") || sign.is_symbol(":="));
    let value = match value {
        [value] => value.token.text.trim_matches(['\'', '"']).to_ascii_uppercase(),
        _ => String::new(),
    };
    let switch = match value.as_str() {
        "0" | "OFF" | "FALSE" => CacheSwitch::Off,
        "1" | "ON" | "TRUE" | "NULL" => CacheSwitch::On,
        _ => CacheSwitch::Invalid,
    };
    is_switch.then_some(switch)
}

/// Classifies SET. Returns `None` if it may change anything. `classify`: classifies a statement in
/// it.
pub fn set(
    tokens: &Tokens<'_>,
    classify: impl Fn(&Tokens<'_>) -> Option<(StatementKind, Effects)>,
) -> Option<(StatementKind, Effects)> {
    if tokens.begins_with(&["SET", "STATEMENT"]) {
        return set_for_statement(tokens, classify);
    }
    let kind = if is_for_next_transaction(tokens) { StatementKind::NextTransaction } else { StatementKind::Settings };
    Some((kind, with_session(evaluation(tokens), SessionEffect::Settings)))
}

/// Classifies `SET STATEMENT variable = value FOR statement`.
fn set_for_statement(
    tokens: &Tokens<'_>,
    classify: impl Fn(&Tokens<'_>) -> Option<(StatementKind, Effects)>,
) -> Option<(StatementKind, Effects)> {
    let mut depth = 0_usize;
    let at = tokens.as_slice().iter().position(|token| {
        if token.is_symbol("(") {
            depth += 1;
        } else if token.is_symbol(")") {
            depth = depth.saturating_sub(1);
        }
        depth == 0 && token.is_word("FOR")
    })?;
    let (settings, statement) = (tokens.first(at), tokens.skip(at + 1));
    // With these the statement is read in another way.
    if settings.has_any_word(&["SQL_MODE", "CHARACTER_SET_CLIENT", "OLD_MODE"]) {
        return None;
    }
    let mut effects = evaluation(&settings);
    match classify(&statement)? {
        (StatementKind::PureSelect | StatementKind::Read | StatementKind::Write | StatementKind::Other, inner) => {
            effects.merge(inner);
            Some((StatementKind::Other, effects))
        }
        _ => None,
    }
}

/// Returns whether SET is for the next transaction alone.
fn is_for_next_transaction(tokens: &Tokens<'_>) -> bool {
    let names = tokens.as_slice().iter().any(|token| {
        let upper = token.token.text.to_ascii_uppercase();
        ["ISOLATION", "READ_ONLY", "TRANSACTION"].iter().any(|word| upper.contains(word))
    });
    let scopes = ["SESSION", "LOCAL", "GLOBAL"];
    let is_for_longer = scopes.iter().any(|scope| tokens.begins_with(&["SET", scope]));
    names && (!is_for_longer || tokens.has_symbol(","))
}
