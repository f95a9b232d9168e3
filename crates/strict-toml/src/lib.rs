//! TOML files that people write, read strictly: whatever is wrong is told with its line, and with what was probably meant.
//!
//! What comes in is a file's text; what goes out is a table of which every key and value knows where it stands, and for what the reader
//! does not like a [`Refusal`] that names the line. What keys there are is the reader's business.

mod suggest;

pub use suggest::nearest;

use std::borrow::Cow;
use std::fmt;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub type Key<'t> = Spanned<Cow<'t, str>>;
pub type Value<'t> = Spanned<DeValue<'t>>;

/// A file's text, to find lines in.
#[derive(Clone, Copy)]
pub struct Source<'t> {
    text: &'t str,
}

/// What is wrong with a file, and in which line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub line: usize,
    pub message: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.message)
    }
}

impl std::error::Error for Refusal {}

impl<'t> Source<'t> {
    pub fn new(text: &'t str) -> Source<'t> {
        Source { text }
    }

    /// Reads the text as TOML.
    pub fn parse(self) -> Result<DeTable<'t>, Refusal> {
        let parsed = DeTable::parse(self.text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            self.refuse(at, format!("this is not TOML: {}", error.message()))
        })?;
        Ok(parsed.into_inner())
    }

    /// The line of the byte at this place, from 1.
    pub fn line(self, at: usize) -> usize {
        self.text.get(..at).map_or(1, |before| before.matches('\n').count() + 1)
    }

    /// Says what is wrong at this place.
    pub fn refuse(self, at: usize, message: impl Into<String>) -> Refusal {
        Refusal { line: self.line(at), message: message.into() }
    }
}

/// An integer as it is spelled; `None` when it is none, or out of range.
pub fn integer(value: &DeValue<'_>) -> Option<i64> {
    let integer = value.as_integer()?;
    i64::from_str_radix(integer.as_str(), integer.radix()).ok()
}
