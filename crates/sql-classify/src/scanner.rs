//! Splits SQL text into tokens in one pass, as MariaDB's lexer does.
//!
//! The server's lexer depends on the session's `sql_mode` and character set, and on the server's
//! version ([`Lexis`]). Text on which they could disagree with this scanner is an error
//! ([`Unclear`]).

mod comment;
mod literal;

use crate::hint::Hint;
use std::fmt;

/// The meaning of text in double quotes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DoubleQuotes {
    /// A string, as in the default `sql_mode`.
    #[default]
    Strings,
    /// A name, with ANSI_QUOTES.
    Names,
    /// The session's `sql_mode` is not known.
    Unknown,
}

/// The character set in which a client writes its statements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Charset {
    #[default]
    Utf8,
    /// A character set with one byte a character, a superset of ASCII.
    SingleByte,
    /// Not known, or one in which a byte of a character may look like ASCII.
    Other,
}

/// The settings that the server's lexer depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Lexis {
    pub double_quotes: DoubleQuotes,
    /// A backslash in a string is no escape (NO_BACKSLASH_ESCAPES).
    pub plain_backslashes: bool,
    pub charset: Charset,
    /// The server's version, as 101106 for 10.11.6; 0 if it is not known.
    pub server_version: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// An unquoted name or keyword.
    Word,
    /// A name in backticks, or in double quotes with ANSI_QUOTES.
    Name,
    /// Text in double quotes, where the `sql_mode` is not known.
    NameOrString,
    String,
    /// A number, or a hexadecimal or binary literal.
    Number,
    /// A question mark.
    Parameter,
    /// `@name` or `@@name`.
    Variable,
    Symbol,
}

impl TokenKind {
    pub fn is_literal(self) -> bool {
        matches!(self, TokenKind::String | TokenKind::Number)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    pub kind: TokenKind,
    pub text: &'a str,
    /// White space or a comment precedes it.
    pub is_spaced: bool,
    /// The word follows a period or precedes one, so it is no keyword.
    pub is_qualified: bool,
}

/// Why a text cannot be split as the server splits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unclear {
    /// A string, a name or a comment does not end.
    Unterminated,
    /// A control character, which the server may treat as an end.
    ControlCharacter,
    /// A character outside of ASCII, in a character set that is not UTF-8 or not known.
    Charset,
    /// Text in double quotes with a backslash, where the `sql_mode` is not known.
    DoubleQuotes,
    /// A version comment, where the server's version is not known.
    VersionComment,
    /// A hexadecimal or binary literal with other characters.
    Literal,
}

impl fmt::Display for Unclear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unclear::Unterminated => "a string, a quoted name or a comment does not end",
            Unclear::ControlCharacter => "it contains a control character",
            Unclear::Charset => "it is not ASCII, and the client's character set is not UTF-8 or not known",
            Unclear::DoubleQuotes => "it contains a backslash in double quotes, and the sql_mode is not known",
            Unclear::VersionComment => "it has a version comment, and the server's version is not known",
            Unclear::Literal => "a hexadecimal or binary literal contains other characters",
        })
    }
}

/// The tokens of a text, from its beginning to its end or to the first [`Unclear`] part.
#[derive(Clone, Debug)]
pub struct Scanner<'a> {
    text: &'a str,
    at: usize,
    lexis: Lexis,
    /// Within `/*! … */`, whose text the server executes.
    is_in_executable_comment: bool,
    /// The last token was a word, and nothing has followed it.
    follows_word: bool,
    /// The last token was a period, and nothing has followed it.
    follows_period: bool,
    hint: Option<Hint<'a>>,
}

impl<'a> Scanner<'a> {
    pub fn new(text: &'a str, lexis: Lexis) -> Scanner<'a> {
        Scanner {
            text,
            at: 0,
            lexis,
            is_in_executable_comment: false,
            follows_word: false,
            follows_period: false,
            hint: None,
        }
    }

    /// Returns how many bytes have been scanned.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Returns the routing hint of the comments scanned so far; of several, the last.
    pub fn hint(&self) -> Option<&Hint<'a>> {
        self.hint.as_ref()
    }

    /// Returns the next token, or `None` at the end.
    pub fn next_token(&mut self) -> Result<Option<Token<'a>>, Unclear> {
        let is_spaced = self.skip_space()?;
        let start = self.at;
        let Some(first) = self.peek(0) else {
            return if self.is_in_executable_comment { Err(Unclear::Unterminated) } else { Ok(None) };
        };
        let (follows_word, follows_period) = (self.follows_word && !is_spaced, self.follows_period && !is_spaced);
        (self.follows_word, self.follows_period) = (false, false);
        let kind = self.scan_token(first, follows_word, follows_period)?;
        let is_word = kind == TokenKind::Word;
        self.follows_word = is_word;
        self.follows_period = kind == TokenKind::Symbol && first == b'.';
        let precedes_period = is_word && self.peek(0) == Some(b'.') && self.peek(1).is_some_and(is_name_byte);
        let is_qualified = is_word && (follows_period || precedes_period);
        Ok(Some(Token { kind, text: &self.text[start..self.at], is_spaced, is_qualified }))
    }

    fn scan_token(&mut self, first: u8, follows_word: bool, follows_period: bool) -> Result<TokenKind, Unclear> {
        match first {
            _ if follows_period && is_name_byte(first) => self.scan_word(),
            b'\'' => self.scan_string(b'\''),
            b'"' => self.scan_double_quoted(),
            b'`' => self.scan_name(b'`'),
            b'0'..=b'9' => self.scan_number_or_word(),
            b'n' | b'N' | b'x' | b'X' | b'b' | b'B' if self.peek(1) == Some(b'\'') => self.scan_prefixed_string(first),
            _ if is_name_byte(first) => self.scan_word(),
            b'.' if !follows_word && self.peek(1).is_some_and(|next| next.is_ascii_digit()) => {
                self.scan_fraction();
                Ok(TokenKind::Number)
            }
            b'@' => self.scan_variable(),
            b'\\' if self.peek(1) == Some(b'N') => {
                self.at += 2;
                Ok(TokenKind::Number)
            }
            b'?' => {
                self.at += 1;
                Ok(TokenKind::Parameter)
            }
            _ => {
                self.at += symbol_length(&self.text.as_bytes()[self.at..]);
                Ok(TokenKind::Symbol)
            }
        }
    }

    fn scan_word(&mut self) -> Result<TokenKind, Unclear> {
        let bytes = self.text.as_bytes();
        let rest = &bytes[self.at..];
        let length = rest.iter().position(|&byte| !is_name_byte(byte)).unwrap_or(rest.len());
        if self.lexis.charset != Charset::Utf8 && !rest[..length].is_ascii() {
            return Err(Unclear::Charset);
        }
        self.at += length;
        Ok(TokenKind::Word)
    }

    /// Scans `@name`, `@'name'`, `@@name`. An at sign may also stand alone.
    fn scan_variable(&mut self) -> Result<TokenKind, Unclear> {
        self.at += 1;
        match self.peek(0) {
            Some(b'\'') => self.scan_string(b'\'').map(drop)?,
            Some(b'"') => self.scan_double_quoted().map(drop)?,
            Some(b'`') => self.scan_name(b'`').map(drop)?,
            Some(b'@') => {
                self.at += 1;
                match self.peek(0) {
                    Some(b'`') => self.scan_name(b'`').map(drop)?,
                    _ => self.scan_word().map(drop)?,
                }
            }
            _ => {
                let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'$');
                self.at += self.text.as_bytes()[self.at..].iter().take_while(|&&byte| is_part(byte)).count();
            }
        }
        Ok(TokenKind::Variable)
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }
}

/// Returns whether a byte may be part of an unquoted name. Characters outside of ASCII may.
pub fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

fn symbol_length(bytes: &[u8]) -> usize {
    match bytes {
        [b'<', b'=', b'>', ..] => 3,
        [b'<', b'=' | b'>' | b'<', ..] | [b'>', b'=' | b'>', ..] | [b'!' | b':', b'=', ..] => 2,
        [b'|', b'|', ..] | [b'&', b'&', ..] => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests;
