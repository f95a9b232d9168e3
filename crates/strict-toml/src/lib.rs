//! Strict parsing of TOML files: an error has its line, and the probable intention.
//!
//! A file's text becomes a table whose keys and values have their positions. For a value that it
//! refuses, the reader makes a [`TomlError`] with the line. The reader defines the
//! keys.

mod suggest;

pub use suggest::nearest;

use std::borrow::Cow;
use std::fmt;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub type Key<'t> = Spanned<Cow<'t, str>>;
pub type Value<'t> = Spanned<DeValue<'t>>;

/// A file's text, with which positions become lines.
#[derive(Clone, Copy)]
pub struct Source<'t> {
    text: &'t str,
}

/// An error of a file, with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TomlError {
    pub line: usize,
    pub message: String,
}

impl fmt::Display for TomlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.message)
    }
}

impl std::error::Error for TomlError {}

impl<'t> Source<'t> {
    pub fn new(text: &'t str) -> Source<'t> {
        Source { text }
    }

    /// Parses the text as TOML.
    pub fn parse(self) -> Result<DeTable<'t>, TomlError> {
        let parsed = DeTable::parse(self.text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            self.refuse(at, format!("this is not TOML: {}", error.message()))
        })?;
        Ok(parsed.into_inner())
    }

    /// Returns the line of the byte at an offset, counted from 1.
    pub fn line(self, at: usize) -> usize {
        self.text.get(..at).map_or(1, |before| before.matches('\n').count() + 1)
    }

    /// Returns an error at an offset.
    pub fn refuse(self, at: usize, message: impl Into<String>) -> TomlError {
        TomlError { line: self.line(at), message: message.into() }
    }
}

/// Returns an integer's value; `None` if it is not an integer or out of range.
pub fn integer(value: &DeValue<'_>) -> Option<i64> {
    let integer = value.as_integer()?;
    i64::from_str_radix(integer.as_str(), integer.radix()).ok()
}
