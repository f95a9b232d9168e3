//! The tokens of a statement, the functions they call and the tables they may name.

use crate::table_name::{TableName, is_plain_name};
use crate::words::{BEFORE_PARENTHESES, SPACE_SENSITIVE, WordList};
use sqlparser::dialect::MySqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer, Whitespace, Word};

/// The tokens of a text, without white space and comments.
pub struct Tokens {
    list: Vec<Token>,
    /// For each token, whether white space or a comment precedes it.
    spaced: Vec<bool>,
}

impl Tokens {
    /// Tokenizes one statement. Returns `None` for several, and for text that cannot be tokenized.
    pub fn of_statement(text: &str) -> Option<Tokens> {
        let mut tokens = Tokens::of_body(text)?;
        while tokens.list.last() == Some(&Token::SemiColon) {
            tokens.list.pop();
        }
        (!tokens.list.contains(&Token::SemiColon)).then_some(tokens)
    }

    /// Tokenizes the body of a trigger or a view, which may have several statements.
    pub fn of_body(text: &str) -> Option<Tokens> {
        let all = Tokenizer::new(&MySqlDialect {}, text).tokenize().ok()?;
        let mut tokens = Tokens { list: Vec::with_capacity(all.len()), spaced: Vec::with_capacity(all.len()) };
        let mut is_spaced = false;
        for token in all {
            match token {
                // The server executes the text of a version comment.
                Token::Whitespace(Whitespace::MultiLineComment(text)) if text.starts_with(['!', 'M']) => return None,
                Token::Whitespace(_) => is_spaced = true,
                Token::EOF => {}
                token => {
                    tokens.list.push(token);
                    tokens.spaced.push(std::mem::take(&mut is_spaced));
                }
            }
        }
        Some(tokens)
    }

    pub fn as_slice(&self) -> &[Token] {
        &self.list
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn contains(&self, token: &Token) -> bool {
        self.list.contains(token)
    }

    /// Returns whether they include an unquoted word, given in upper case.
    pub fn has_word(&self, wanted: &str) -> bool {
        self.list.iter().any(|token| is_word(token, wanted))
    }

    /// Returns whether everything that looks like a call calls one of these built-in functions.
    ///
    /// A stored function may have the name of a built-in one. It is called where the name is quoted
    /// or qualified, and for some names where white space precedes the parenthesis.
    pub fn calls_only(&self, known: &[&WordList]) -> bool {
        (1..self.list.len()).all(|at| {
            self.list[at] != Token::LParen
                || match &self.list[at - 1] {
                    Token::Word(word) => {
                        let name = word.value.to_ascii_uppercase();
                        let before = at.checked_sub(2).and_then(|before| self.list.get(before));
                        let is_builtin = known.iter().any(|functions| functions.contains(&name))
                            && (!self.spaced[at] || !SPACE_SENSITIVE.contains(&name));
                        word.quote_style.is_none()
                            && before != Some(&Token::Period)
                            && (is_builtin
                                || BEFORE_PARENTHESES.contains(&name)
                                || name == "AGAINST" && before == Some(&Token::RParen))
                    }
                    // With ANSI_QUOTES, a text in double quotes may name a stored function.
                    Token::DoubleQuotedString(_) => false,
                    _ => true,
                }
        })
    }

    /// Returns whether a name of [`SPACE_SENSITIVE`] is followed by white space and a parenthesis:
    /// a stored function is called, or a table has such a name.
    pub fn may_call_with_space(&self) -> bool {
        (1..self.list.len()).any(|at| {
            self.list[at] == Token::LParen
                && self.spaced[at]
                && word(&self.list[at - 1]).is_some_and(|name| SPACE_SENSITIVE.contains(&name))
        })
    }

    /// Returns everything that may name a table: each word, and of words joined by periods the
    /// first two.
    pub fn possible_tables(&self) -> Vec<TableName> {
        let mut names = Vec::new();
        let mut chain: Vec<&str> = Vec::new();
        let mut is_joined = false;
        for token in self.list.iter().chain([&Token::EOF]) {
            let joins = std::mem::replace(&mut is_joined, *token == Token::Period);
            if is_joined {
                continue;
            }
            if !joins {
                names.extend(possible_table(&chain).filter(|name| !names.contains(name)));
                chain.clear();
            }
            // With ANSI_QUOTES, a text in double quotes is a name.
            if let Token::Word(Word { value, .. }) | Token::DoubleQuotedString(value) = token {
                chain.push(value);
            }
        }
        names
    }
}

/// Returns the table that names joined by periods may mean.
fn possible_table(chain: &[&str]) -> Option<TableName> {
    let (schema, name) = match *chain {
        [] => return None,
        [name] => (None, name),
        [schema, name, ..] => (Some(schema), name),
    };
    let is_row = schema.is_some_and(|row| ["NEW", "OLD"].iter().any(|name| row.eq_ignore_ascii_case(name)));
    let is_reserved = schema.is_none() && RESERVED.contains(&name.to_ascii_uppercase());
    let is_name = is_plain_name(name) && schema.is_none_or(is_plain_name) && !name.starts_with('~');
    (is_name && !is_row && !is_reserved).then(|| TableName { schema: schema.map(str::to_owned), name: name.to_owned() })
}

/// Reserved words, which cannot name a table unquoted.
static RESERVED: WordList = WordList::new(
    "\
    SELECT INSERT INTO VALUES UPDATE SET DELETE FROM WHERE REPLACE IF THEN ELSE ELSEIF AND OR NOT NULL ON KEY AS BY ORDER \
    GROUP LIMIT IS IN CASE WHEN JOIN LEFT DECLARE DEFAULT FOR EACH WHILE DIV MOD LIKE UNION ALL DISTINCT EXISTS BETWEEN INT \
    VARCHAR WITH LOCK TABLE ASC DESC HAVING USING INNER OUTER RIGHT CROSS",
);

/// Returns an unquoted word in upper case.
pub fn word(token: &Token) -> Option<String> {
    match token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_ascii_uppercase()),
        _ => None,
    }
}

/// Returns whether a token is this unquoted word, given in upper case.
pub fn is_word(token: &Token, wanted: &str) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::{PURE, SIDE_EFFECT, VOLATILE};

    fn calls_only_known(text: &str) -> bool {
        Tokens::of_statement(text).unwrap().calls_only(&[&PURE, &VOLATILE, &SIDE_EFFECT])
    }

    #[test]
    fn stored_functions_with_names_of_builtin_ones() {
        for text in
            ["SELECT mid(a, 1)", "SELECT concat (a)", "SELECT left (a, 1)", "SELECT a IN (1)", "SELECT COUNT(*)"]
        {
            assert!(calls_only_known(text), "{text}");
        }
        for text in [
            "SELECT mid (7)",
            "SELECT mid/* */(7)",
            "SELECT mid\n(7)",
            "SELECT `left`(7)",
            "SELECT `mid` (7)",
            "SELECT d.mid(7)",
            "SELECT `d`.`left`(7)",
            "SELECT count (a) FROM t",
            "SELECT against(7)",
            "SELECT f(7)",
        ] {
            assert!(!calls_only_known(text), "{text}");
        }
    }
}
