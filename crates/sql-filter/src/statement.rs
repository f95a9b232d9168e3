//! A statement that filters examine: its text, and facts about it that are computed when a filter
//! asks for them.

use sql_classify::canonical::canonical;
use sql_classify::scanner::TokenKind;
use sql_classify::statement::STATEMENT_BYTES_MAX;
use sql_classify::tokens::{ListedToken, Tokens};
use sql_classify::words::WordLists;
use sql_classify::{Class, ClassCache, DoubleQuotes, Lexis, ParseContext, StatementKind, TableName};
use std::cell::OnceCell;
use std::rc::Rc;

/// A statement.
#[derive(Debug)]
pub struct Statement {
    text: Option<Box<str>>,
    lexis: Lexis,
    class: Rc<Class>,
    form: OnceCell<Option<Box<str>>>,
}

/// The text that a statement executes in its turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dynamic {
    None,
    Text(String),
    /// It has one that cannot be known: the value of a variable, for instance.
    Unknown,
}

impl Statement {
    /// A statement with this text, read with these settings of the server's lexer; and its class.
    pub fn new(sql: &[u8], lexis: Lexis, class: Rc<Class>) -> Statement {
        let text = std::str::from_utf8(sql).ok().filter(|text| text.len() <= STATEMENT_BYTES_MAX);
        Statement { text: text.map(Box::from), lexis, class, form: OnceCell::new() }
    }

    /// As [`Statement::new`], for a statement whose class is not known.
    pub fn classify(sql: &str, lexis: Lexis, is_prepared: bool) -> Statement {
        let context = ParseContext { is_prepared, ..ParseContext::default() };
        Statement::new(sql.as_bytes(), lexis, ClassCache::default().class(sql.as_bytes(), lexis, context))
    }

    /// A statement whose text is not known, or too long to be examined.
    pub fn unknown(lexis: Lexis) -> Statement {
        Statement { text: None, ..Statement::classify("", lexis, false) }
    }

    /// Returns its text. `None`: it is too long, not known, or not UTF-8.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    pub fn lexis(&self) -> Lexis {
        self.lexis
    }

    /// Returns its canonical form. `None`: it cannot be read as the server reads it.
    pub fn form(&self) -> Option<&str> {
        let compute = || Some(canonical(self.text()?, self.lexis).ok()?.text.into());
        self.form.get_or_init(compute).as_deref()
    }

    /// Returns its canonical form without any literal, even where it is not known whether text in
    /// double quotes is one.
    pub fn redacted(&self) -> Option<String> {
        let is_unclear = self.lexis.double_quotes == DoubleQuotes::Unknown;
        match self.text() {
            Some(text) if is_unclear && text.contains('"') => {
                let lexis = Lexis { double_quotes: DoubleQuotes::Strings, ..self.lexis };
                canonical(text, lexis).ok().map(|form| form.text)
            }
            _ => self.form().map(str::to_owned),
        }
    }

    /// Returns its tokens. `None`: it cannot be read as the server reads it.
    pub fn tokens(&self) -> Option<Tokens<'_>> {
        Tokens::of(self.text()?, self.lexis).ok()
    }

    /// Returns what it does.
    pub fn classified(&self) -> &sql_classify::Statement {
        self.class.statement()
    }

    /// Returns the tables that it may read or write. `None`: they are not known.
    pub fn tables(&self) -> Option<Vec<TableName>> {
        self.text()?;
        let statement = self.classified();
        if statement.kind == StatementKind::PureSelect {
            return Some(statement.effects.reads.clone());
        }
        self.tokens()?.possible_tables()
    }

    /// Returns the text of its literals and parameters, in their order, with their signs.
    pub fn literals(&self) -> Option<Vec<String>> {
        let tokens = self.tokens()?;
        let list = tokens.as_slice();
        let is_sign = |at: usize| {
            let before = at.checked_sub(1).map(|before| &list[before]);
            let may_precede = before.is_none_or(|before| match before.token.kind {
                TokenKind::Symbol => !before.is_symbol(")") && !before.is_symbol("*"),
                TokenKind::Word => before.lists.has(WordLists::KEYWORDS),
                _ => false,
            });
            may_precede && (list[at].is_symbol("-") || list[at].is_symbol("+"))
        };
        let values = list.iter().enumerate().filter(|(_, listed)| is_value(listed.token.kind));
        let text = |(at, listed): (usize, &ListedToken<'_>)| match at.checked_sub(1).filter(|&sign| is_sign(sign)) {
            Some(sign) => format!("{}{}", list[sign].token.text, listed.token.text),
            None => listed.token.text.to_owned(),
        };
        Some(values.map(text).collect())
    }

    /// Returns the schema that it makes the current one, if it is USE.
    pub fn chosen_schema(&self) -> Option<String> {
        if !self.text()?.trim_start().get(..3)?.eq_ignore_ascii_case("USE") {
            return None;
        }
        let tokens = self.tokens()?.first(2);
        let [_, name] = tokens.as_slice() else { return None };
        Some(name.name()?.into_owned())
    }

    /// Returns the text that it executes: that of PREPARE or EXECUTE IMMEDIATE.
    pub fn dynamic(&self) -> Dynamic {
        let Some(tokens) = self.tokens() else { return Dynamic::Unknown };
        if !tokens.has_any_word(&["PREPARE", "IMMEDIATE"]) || tokens.begins_with(&["DEALLOCATE"]) {
            return Dynamic::None;
        }
        match &self.classified().kind {
            StatementKind::Prepare { text: Some(text), .. } => Dynamic::Text(text.clone()),
            StatementKind::Deallocate { .. } => Dynamic::None,
            _ if !tokens.begins_with(&["PREPARE"]) && is_name_only(&tokens) => Dynamic::None,
            _ => Dynamic::Unknown,
        }
    }
}

fn is_value(kind: TokenKind) -> bool {
    kind.is_literal() || kind == TokenKind::Parameter
}

/// Returns the number of parameters in a text. `None`: it cannot be read as the server reads it.
pub fn parameters(text: &str, lexis: Lexis) -> Option<usize> {
    let tokens = Tokens::of(text, lexis).ok()?;
    Some(tokens.as_slice().iter().filter(|listed| listed.token.kind == TokenKind::Parameter).count())
}

/// Returns whether PREPARE and IMMEDIATE are names here: nothing that precedes them makes them
/// keywords.
fn is_name_only(tokens: &Tokens<'_>) -> bool {
    let list = tokens.as_slice();
    let is_statement = |at: usize| {
        let begins = at == 0 || list[at - 1].is_symbol(";");
        let follows = ["BEGIN", "THEN", "ELSE", "DO", "LOOP", "REPEAT", "ATOMIC", "EXECUTE", "PREPARE", "ROW"];
        begins || follows.iter().any(|word| list[at - 1].is_word(word)) || list[at - 1].is_symbol(":")
    };
    let is_dynamic = |at: usize| {
        let next_is = |word: &str| list.get(at + 1).is_some_and(|next| next.is_word(word));
        list[at].is_word("PREPARE") && (is_statement(at) || list.get(at + 2).is_some_and(|it| it.is_word("FROM")))
            || list[at].is_word("EXECUTE") && next_is("IMMEDIATE")
    };
    !(0..list.len()).any(is_dynamic)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(sql: &str) -> Statement {
        Statement::classify(sql, Lexis::default(), false)
    }

    #[test]
    fn the_text_within_a_statement_is_found() {
        for (sql, expected) in [
            ("SELECT 1", Dynamic::None),
            ("PREPARE s FROM 'SELECT ?'", Dynamic::Text("SELECT ?".into())),
            ("PREPARE s FROM @x", Dynamic::Unknown),
            ("PREPARE s FROM concat('SEL', 'ECT 1')", Dynamic::Unknown),
            ("EXECUTE s", Dynamic::None),
            ("EXECUTE IMMEDIATE 'SELECT 1'", Dynamic::Unknown),
            ("DEALLOCATE PREPARE s", Dynamic::None),
            ("DROP PREPARE s", Dynamic::None),
            ("SELECT 1; PREPARE s FROM 'SELECT 2'", Dynamic::Unknown),
            ("BEGIN NOT ATOMIC EXECUTE IMMEDIATE @x; END", Dynamic::Unknown),
            ("CREATE PROCEDURE p() PREPARE s FROM @x", Dynamic::Unknown),
            ("SELECT prepare FROM t", Dynamic::None),
            ("SELECT 'a", Dynamic::Unknown),
        ] {
            assert_eq!(statement(sql).dynamic(), expected, "{sql}");
        }
    }

    #[test]
    fn no_literal_is_shown() {
        let unclear = Lexis { double_quotes: DoubleQuotes::Unknown, ..Lexis::default() };
        let secret = Statement::classify("SELECT \"secret\", 'other'", unclear, false);
        assert_eq!(secret.redacted().as_deref(), Some("SELECT ?, ?"));
        assert_eq!(secret.form(), Some("SELECT \"secret\", ?"));
        assert_eq!(statement("SET PASSWORD = 'x'").redacted().as_deref(), Some("SET PASSWORD = ?"));
        assert_eq!(statement("SELECT 'a").redacted(), None);
    }

    #[test]
    fn long_texts_are_not_examined() {
        let long = format!("SELECT '{}'", "x".repeat(STATEMENT_BYTES_MAX));
        assert!(statement(&long).text().is_none() && statement(&long).form().is_none());
        assert_eq!(statement(&long).tables(), None);
    }
}
