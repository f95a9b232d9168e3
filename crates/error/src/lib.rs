//! The error of a command's reply: MongoDB's code, its name and a message.
//!
//! Every layer that can refuse a request (parsers of the query language, stores, commands)
//! describes the refusal with [`Error`]. Only `commands` turns it into reply bytes.

mod code;

pub use code::Code;
use std::fmt;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A refusal in MongoDB's terms.
///
/// The struct is one pointer wide, so that `Result<(), Error>` stays cheap on the paths where
/// nothing fails.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    code: Code,
    message: String,
    labels: &'static [&'static str],
    details: Vec<u8>,
}

impl Error {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Error(Box::new(Inner { code, message: message.into(), labels: &[], details: Vec::new() }))
    }

    pub fn bad_value(message: impl Into<String>) -> Self {
        Self::new(Code::BAD_VALUE, message)
    }

    pub fn failed_to_parse(message: impl Into<String>) -> Self {
        Self::new(Code::FAILED_TO_PARSE, message)
    }

    pub fn type_mismatch(message: impl Into<String>) -> Self {
        Self::new(Code::TYPE_MISMATCH, message)
    }

    /// Returns an error for a condition that the program itself should have prevented; the message
    /// goes to the client and the log.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Code::INTERNAL_ERROR, message)
    }

    /// Adds error labels such as `RetryableWriteError`, written to the reply's `errorLabels`.
    pub fn with_labels(mut self, labels: &'static [&'static str]) -> Self {
        self.0.labels = labels;
        self
    }

    /// Adds a raw BSON document whose fields are added to the reply (`keyPattern`, `keyValue`,
    /// `errInfo` …).
    pub fn with_details(mut self, document: Vec<u8>) -> Self {
        self.0.details = document;
        self
    }

    pub fn code(&self) -> Code {
        self.0.code
    }

    pub fn message(&self) -> &str {
        &self.0.message
    }

    pub fn labels(&self) -> &'static [&'static str] {
        self.0.labels
    }

    /// Returns the document given to [`Error::with_details`], if any.
    pub fn details(&self) -> Option<&[u8]> {
        (!self.0.details.is_empty()).then_some(&self.0.details)
    }

    /// Adds a prefix to the message, to say where the error arose.
    pub fn context(mut self, prefix: &str) -> Self {
        self.0.message = format!("{prefix}{}", self.0.message);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.0.code.name(), self.0.code.0, self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}
