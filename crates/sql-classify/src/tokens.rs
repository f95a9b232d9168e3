//! The tokens of a statement, the routines that they call and the tables that they may name.

use crate::routine_name::{RoutineKind, RoutineName};
use crate::scanner::{Lexis, Scanner, Token, TokenKind, Unclear};
use crate::table_name::{TableName, is_plain_name};
use crate::words::{WordLists, lists_with};
use std::borrow::Cow;

/// A token, with the lists of words that have it.
#[derive(Clone, Copy, Debug)]
pub struct ListedToken<'a> {
    pub token: Token<'a>,
    pub lists: WordLists,
}

/// The tokens of a text.
#[derive(Clone, Debug, Default)]
pub struct Tokens<'a> {
    list: Vec<ListedToken<'a>>,
}

/// More names than these are not listed.
const NAMES_MAX: usize = 200;

/// Calls of routines that are not built in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    pub routines: Vec<RoutineName>,
    /// There may be others, whose names are not known.
    pub are_more: bool,
}

impl Calls {
    pub fn is_empty(&self) -> bool {
        self.routines.is_empty() && !self.are_more
    }

    pub fn add(&mut self, routine: Option<RoutineName>) {
        match routine {
            Some(routine) if self.routines.contains(&routine) => {}
            Some(routine) if self.routines.len() < NAMES_MAX => self.routines.push(routine),
            _ => self.are_more = true,
        }
    }

    pub fn append(&mut self, other: Calls) {
        self.are_more |= other.are_more;
        other.routines.into_iter().for_each(|routine| self.add(Some(routine)));
    }
}

impl<'a> ListedToken<'a> {
    /// Returns an unquoted word. `None` for other tokens.
    pub fn word(&self) -> Option<&'a str> {
        (self.token.kind == TokenKind::Word).then_some(self.token.text)
    }

    /// Returns whether it is this unquoted word, in upper or lower case.
    pub fn is_word(&self, wanted: &str) -> bool {
        self.token.kind == TokenKind::Word && self.token.text.eq_ignore_ascii_case(wanted)
    }

    pub fn is_symbol(&self, symbol: &str) -> bool {
        self.token.kind == TokenKind::Symbol && self.token.text == symbol
    }

    /// Returns the name that a token may be, without its quotes.
    pub fn name(&self) -> Option<Cow<'a, str>> {
        let text = self.token.text;
        match self.token.kind {
            TokenKind::Word => Some(Cow::Borrowed(text)),
            TokenKind::Name | TokenKind::NameOrString => {
                let quote = &text[..1];
                let inner = &text[1..text.len() - 1];
                Some(match inner.contains(quote) {
                    true => Cow::Owned(inner.replace(&quote.repeat(2), quote)),
                    false => Cow::Borrowed(inner),
                })
            }
            _ => None,
        }
    }
}

impl<'a> Tokens<'a> {
    /// Splits a text into tokens.
    pub fn of(text: &'a str, lexis: Lexis) -> Result<Tokens<'a>, Unclear> {
        let mut scanner = Scanner::new(text, lexis);
        let mut list = Vec::with_capacity(text.len() / 6 + 4);
        while let Some(token) = scanner.next_token()? {
            let is_listed = token.kind == TokenKind::Word && !token.is_qualified;
            let lists = if is_listed { lists_with(token.text) } else { WordLists::default() };
            list.push(ListedToken { token, lists });
        }
        Ok(Tokens { list })
    }

    /// Returns the statements that semicolons separate, without empty ones.
    pub fn statements(&self) -> Vec<Tokens<'a>> {
        let parts = self.list.split(|token| token.is_symbol(";")).filter(|part| !part.is_empty());
        parts.map(|part| Tokens { list: part.to_vec() }).collect()
    }

    /// Returns the part of a text that they are from, with the space between them.
    pub fn text<'t>(&self, text: &'t str) -> &'t str {
        let offset =
            |token: &ListedToken<'_>| (token.token.text.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
        let (Some(first), Some(last)) = (self.list.first(), self.list.last()) else { return "" };
        text.get(offset(first)..offset(last) + last.token.text.len()).unwrap_or_default()
    }

    /// Returns the first unquoted words, in upper case, at most three.
    pub fn first_words(&self) -> Vec<String> {
        self.list.iter().map_while(ListedToken::word).take(3).map(str::to_ascii_uppercase).collect()
    }

    /// Returns whether the first token after opening parentheses is this word.
    pub fn is_in_parentheses(&self, wanted: &str) -> bool {
        self.list.iter().find(|token| !token.is_symbol("(")).is_some_and(|token| token.is_word(wanted))
    }

    pub fn first(&self, count: usize) -> Tokens<'a> {
        Tokens { list: self.list.get(..count).unwrap_or_default().to_vec() }
    }

    /// Returns the tokens from a position on.
    pub fn skip(&self, at: usize) -> Tokens<'a> {
        Tokens { list: self.list.get(at..).unwrap_or_default().to_vec() }
    }

    pub fn as_slice(&self) -> &[ListedToken<'a>] {
        &self.list
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn has_symbol(&self, symbol: &str) -> bool {
        self.list.iter().any(|token| token.is_symbol(symbol))
    }

    /// Returns whether they include an unquoted word, given in upper case.
    pub fn has_word(&self, wanted: &str) -> bool {
        self.list.iter().any(|token| token.is_word(wanted))
    }

    pub fn has_any_word(&self, wanted: &[&str]) -> bool {
        wanted.iter().any(|word| self.has_word(word))
    }

    /// Returns whether the words at the beginning are these.
    pub fn begins_with(&self, words: &[&str]) -> bool {
        self.list.len() >= words.len() && self.list.iter().zip(words).all(|(token, word)| token.is_word(word))
    }

    /// Returns the calls of functions that are not built in, or may not be.
    ///
    /// A stored function may have the name of a built-in one. It is called where the name is quoted
    /// or qualified, and for some names where white space precedes the parenthesis.
    pub fn calls(&self) -> Calls {
        let mut calls = Calls::default();
        for at in 1..self.list.len() {
            if self.list[at].is_symbol("(") && self.may_call(at, WordLists::FUNCTIONS) {
                calls.add(self.routine_before(at, RoutineKind::Function));
            }
        }
        calls
    }

    /// Returns the calls in the body of a trigger or a routine.
    pub fn body_calls(&self) -> Calls {
        let mut calls = Calls::default();
        for at in 1..self.list.len() {
            let is_call = self.list[at].is_symbol("(") && self.may_call(at, WordLists::FUNCTIONS);
            if is_call && !self.list[at - 1].lists.has(WordLists::BODY_KEYWORDS) && !self.is_after_call(at - 1) {
                calls.add(self.routine_before(at, RoutineKind::Function));
            }
        }
        calls
    }

    /// Returns whether the name that ends at a token follows CALL.
    fn is_after_call(&self, at: usize) -> bool {
        let start = if at >= 2 && self.list[at - 1].is_symbol(".") { at - 2 } else { at };
        start.checked_sub(1).is_some_and(|before| self.list[before].is_word("CALL"))
    }

    /// Returns whether all calls are of built-in functions in one of these lists.
    pub fn calls_only(&self, known: WordLists) -> bool {
        (1..self.list.len()).all(|at| !self.list[at].is_symbol("(") || !self.may_call(at, known))
    }

    /// Returns whether the parenthesis at a position may begin the arguments of a function that is
    /// not in one of these lists.
    fn may_call(&self, at: usize, known: WordLists) -> bool {
        let ListedToken { token, lists } = &self.list[at - 1];
        match token.kind {
            TokenKind::Word if !token.is_qualified => {
                let is_apart = self.list[at].token.is_spaced && lists.has(WordLists::SPACE_SENSITIVE);
                let is_builtin = lists.has(known) && !is_apart;
                let is_of_match = self.list[at - 1].is_word("AGAINST") && at >= 2 && self.list[at - 2].is_symbol(")");
                let is_keyword = lists.has(WordLists::BEFORE_PARENTHESES)
                    || lists.has(WordLists::RESERVED) && !lists.has(WordLists::FUNCTIONS)
                    || self.list[at - 1].is_word("VALUE");
                !is_builtin && !is_keyword && !is_of_match && !self.is_insert_target(at - 1)
            }
            TokenKind::Word | TokenKind::Name => !self.is_insert_target(at - 1),
            // With ANSI_QUOTES, a text in double quotes may name a stored function.
            TokenKind::NameOrString => true,
            _ => false,
        }
    }

    /// Returns whether the name that ends at a token is the table of an INSERT or REPLACE.
    fn is_insert_target(&self, at: usize) -> bool {
        let start = if at >= 2 && self.list[at - 1].is_symbol(".") { at - 2 } else { at };
        let words = ["INTO", "INSERT", "REPLACE", "IGNORE", "DELAYED", "LOW_PRIORITY", "HIGH_PRIORITY", "TABLE"];
        let is_before = |before: usize| words.iter().any(|word| self.list[before].is_word(word));
        start.checked_sub(1).is_some_and(|before| is_before(before) && !self.list[before].token.is_qualified)
    }

    /// Returns the routine whose name ends before a position. `None`: it is not clear.
    pub fn routine_before(&self, at: usize, kind: RoutineKind) -> Option<RoutineName> {
        let last = at.checked_sub(1)?;
        let is_sure = |token: &&ListedToken<'_>| token.token.kind != TokenKind::NameOrString;
        let name = |at: usize| {
            self.list.get(at).filter(is_sure).and_then(ListedToken::name).filter(|name| is_plain_name(name))
        };
        let before = |back: usize| last.checked_sub(back).and_then(|at| self.list.get(at));
        let schema = match before(1).is_some_and(|token| token.is_symbol(".")) {
            false => None,
            true if before(3).is_some_and(|token| token.is_symbol(".")) => return None,
            true => Some(name(last.checked_sub(2)?)?.into_owned()),
        };
        Some(RoutineName { kind, schema, name: name(last)?.into_owned() })
    }

    /// Returns the routine whose name begins at a position. `None`: it is not clear.
    pub fn routine_after(&self, at: usize, kind: RoutineKind) -> Option<RoutineName> {
        let is_qualified = self.list.get(at + 1).is_some_and(|token| token.is_symbol("."));
        self.routine_before(if is_qualified { at + 3 } else { at + 1 }, kind)
    }

    /// Returns everything that may name a table: each word, and of words joined by periods the
    /// first two. `None`: there are too many.
    pub fn possible_tables(&self) -> Option<Vec<TableName>> {
        let mut names = Vec::new();
        let mut seen = ahash::AHashSet::new();
        let mut chain: Vec<&ListedToken<'a>> = Vec::new();
        let mut is_joined = false;
        for at in 0..=self.list.len() {
            let token = self.list.get(at);
            let joins = std::mem::replace(&mut is_joined, token.is_some_and(|token| token.is_symbol(".")));
            if is_joined {
                continue;
            }
            if !joins {
                let name = possible_table(&chain);
                names.extend(name.filter(|name| seen.insert((name.schema.clone(), name.name.clone()))));
                chain.clear();
            }
            if let Some(token) = token
                && token.name().is_some()
            {
                chain.push(token);
            }
        }
        (names.len() <= NAMES_MAX).then_some(names)
    }
}

/// Returns the table that names joined by periods may mean.
fn possible_table(chain: &[&ListedToken<'_>]) -> Option<TableName> {
    let (schema, last) = match chain {
        [] => return None,
        [name] => (None, *name),
        [schema, name, ..] => (Some(*schema), *name),
    };
    let is_row = schema.is_some_and(|row| row.is_word("NEW") || row.is_word("OLD"));
    let is_reserved = schema.is_none() && last.lists.has(WordLists::RESERVED);
    let name = last.name()?.into_owned();
    let is_text = last.token.kind == TokenKind::NameOrString && !is_plain_name(&name);
    let schema = schema.and_then(ListedToken::name).map(Cow::into_owned);
    (!is_row && !is_reserved && !is_text && !name.is_empty()).then_some(TableName { schema, name })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical::CANONICAL_LEXIS;

    fn calls(text: &str) -> Calls {
        Tokens::of(text, CANONICAL_LEXIS).unwrap().calls()
    }

    #[test]
    fn stored_functions_with_names_of_builtin_ones() {
        for text in [
            "SELECT mid(a, 1)",
            "SELECT concat (a)",
            "SELECT left (a, 1)",
            "SELECT a IN (1)",
            "SELECT COUNT(*)",
            "INSERT INTO f (a) VALUES (1)",
            "INSERT d.f(a) VALUE (now())",
            "SELECT MATCH(a) AGAINST ('x')",
        ] {
            assert!(calls(text).is_empty(), "{text}");
        }
        for (text, schema, name) in [
            ("SELECT mid (7)", None, "mid"),
            ("SELECT mid/* */(7)", None, "mid"),
            ("SELECT mid\n(7)", None, "mid"),
            ("SELECT `left`(7)", None, "left"),
            ("SELECT `mid` (7)", None, "mid"),
            ("SELECT d.mid(7)", Some("d"), "mid"),
            ("SELECT `d`.`left`(7)", Some("d"), "left"),
            ("SELECT count (a) FROM t", None, "count"),
            ("SELECT against(7)", None, "against"),
            ("SELECT f(7)", None, "f"),
        ] {
            let routine =
                RoutineName { kind: RoutineKind::Function, schema: schema.map(str::to_owned), name: name.into() };
            assert_eq!(calls(text), Calls { routines: vec![routine], are_more: false }, "{text}");
        }
        for text in ["SELECT \"f\"(7)", "SELECT `a.b`(7)", "SELECT a.b.c(7)"] {
            assert!(calls(text).are_more, "{text}");
        }
    }

    #[test]
    fn every_name_may_be_a_table() {
        let tables = |text: &str| {
            let tables = Tokens::of(text, CANONICAL_LEXIS).unwrap().possible_tables()?;
            Some(
                tables
                    .into_iter()
                    .map(|it| it.schema.map_or(String::new(), |it| it + ".") + &it.name)
                    .collect::<Vec<_>>(),
            )
        };
        let found =
            tables("DELETE x.* FROM d.t AS x JOIN `u v` USING (a) WHERE b.c.d = NEW.a AND \"q r\" AND @w").unwrap();
        assert_eq!(found, ["x", "d.t", "u v", "a", "b.c", "q r"]);
        assert_eq!(tables("SELECT a FROM `b.c`.d").unwrap(), ["a", "b.c.d"]);
        assert_eq!(
            tables("SELECT \"a.b\" FROM t"),
            Some(vec!["t".to_owned()]),
            "a string, or a name that needs escapes"
        );
        let many: String = (0..300).map(|number| format!("t{number}, ")).collect();
        assert_eq!(tables(&many), None);
    }
}
