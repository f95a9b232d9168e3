//! Errors: one sentence that names the file and says what to do.

use std::fmt;

/// Why certificates, keys or settings cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsError(String);

impl TlsError {
    pub fn new(sentence: impl Into<String>) -> TlsError {
        TlsError(sentence.into())
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TlsError {}
