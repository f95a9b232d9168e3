//! Document validation: a filter that documents must match to be written.
//!
//! [`details`] explains why one does not, in the format of MongoDB's `errInfo`.
//!
//! Source: <https://www.mongodb.com/docs/manual/core/schema-validation/>

mod details;
mod schema;

use document::{Doc, DocBuf, Value};
use error::{Code, Error, Result};
use query::{Context, Predicate};
use std::time::{SystemTime, UNIX_EPOCH};

/// A collection's validator.
#[derive(Debug)]
pub struct Validator {
    source: DocBuf,
    predicate: Predicate,
    /// The filter depends on the time, so it must be parsed again for each document.
    asks_for_time: bool,
    level: Level,
    action: Action,
}

/// Which writes are validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Strict,
    /// As strict, except for updates of documents that are already invalid.
    Moderate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Error,
    /// Write the document anyway, and log a line.
    Warn,
}

impl Validator {
    /// Reads the validator from a collection's options; `None` if there is none or it is off.
    pub fn of(options: Doc<'_>) -> Result<Option<Validator>> {
        let Some(Value::Document(source)) = options.get("validator") else { return Ok(None) };
        let level = match options.get("validationLevel") {
            Some(Value::String("off")) => return Ok(None),
            Some(Value::String("moderate")) => Level::Moderate,
            _ => Level::Strict,
        };
        let action = match options.get("validationAction") {
            Some(Value::String("warn")) => Action::Warn,
            _ => Action::Error,
        };
        let asks_for_time = [b"$$NOW".as_slice(), b"$$CLUSTER_TIME"]
            .iter()
            .any(|variable| source.as_bytes().windows(variable.len()).any(|bytes| bytes == *variable));
        let collation = crate::catalog::default_collation(options)?;
        let predicate = Predicate::parse(source, &Context { collation, ..Context::at(0) })?;
        Ok(Some(Validator { source: source.to_owned(), predicate, asks_for_time, level, action }))
    }

    /// Fails with 121 for a document that may not be inserted.
    pub fn check_insert(&self, document: Doc<'_>) -> Result<()> {
        self.check(document, || Ok(true))
    }

    /// Fails with 121 for a document that may not replace `old`.
    pub fn check_update(&self, old: Doc<'_>, new: Doc<'_>) -> Result<()> {
        self.check(new, || match self.level {
            Level::Strict => Ok(true),
            Level::Moderate => self.matches(old),
        })
    }

    fn check(&self, document: Doc<'_>, concerned: impl FnOnce() -> Result<bool>) -> Result<()> {
        if self.matches(document)? || !concerned()? {
            return Ok(());
        }
        if self.action == Action::Warn {
            let id = document.get("_id").unwrap_or(Value::Null);
            tracing::warn!(?id, "a document would fail validation");
            return Ok(());
        }
        Err(self.failure(document))
    }

    /// Returns whether the document matches. A filter that cannot be evaluated does not match.
    fn matches(&self, document: Doc<'_>) -> Result<bool> {
        if !self.asks_for_time {
            return self.predicate.matches(document);
        }
        Predicate::parse(self.source.as_doc(), &self.context())?.matches(document)
    }

    fn context(&self) -> Context {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Context::at(now.as_millis() as i64)
    }

    fn failure(&self, document: Doc<'_>) -> Error {
        let details = DocBuf::build(|writer| {
            let mut info = writer.document("errInfo");
            info.append("failingDocumentId", document.get("_id").unwrap_or(Value::Null));
            details::write(self.source.as_doc(), document, &self.context(), &mut info);
        });
        Error::new(Code::DOCUMENT_VALIDATION_FAILURE, "Document failed validation").with_details(details.into_vec())
    }
}
