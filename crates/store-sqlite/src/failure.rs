//! SQLite's errors in MongoDB's terms.

use error::{Code, Error};
use rusqlite::ffi;
use store::Namespace;

/// The reason why an attempt failed.
#[derive(Debug)]
pub enum Failure {
    /// The request is at fault: it gets this error, and nothing else is affected.
    Refused(Error),
    /// SQLite failed: the transaction is lost.
    Engine(rusqlite::Error),
    /// It takes so long that others would wait for the writer: the worker must do it.
    TooSlow(SlowPart),
}

/// The slow part of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowPart {
    /// Finding the documents.
    Search,
    /// The work on a document.
    Work,
    /// Waiting for a transaction that has changed a document.
    Transaction,
}

pub type Attempt<T> = std::result::Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Refused(error)
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Failure::Engine(error)
    }
}

impl From<steps::TooLong> for Failure {
    fn from(_: steps::TooLong) -> Self {
        Failure::TooSlow(SlowPart::Work)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(error) => error,
            Failure::Engine(error) => engine_error(error),
            Failure::TooSlow(_) => {
                Error::internal("the writer left a slow operation to the worker, which did not carry it out")
            }
        }
    }
}

/// Returns the client's error for a failure of SQLite.
pub fn engine_error(error: rusqlite::Error) -> Error {
    if is_damage(&error) {
        return Error::new(Code::INTERNAL_ERROR, format!("the embedded store's file is damaged ({error}): {ADVICE}"));
    }
    let code = match error.sqlite_error().map(|error| error.extended_code & 0xFF) {
        Some(ffi::SQLITE_FULL) => Code::OUT_OF_DISK_SPACE,
        Some(ffi::SQLITE_NOMEM) => Code::EXCEEDED_MEMORY_LIMIT,
        Some(ffi::SQLITE_TOOBIG) => Code::BSON_OBJECT_TOO_LARGE,
        Some(ffi::SQLITE_INTERRUPT) => Code::INTERRUPTED,
        _ => Code::INTERNAL_ERROR,
    };
    Error::new(code, format!("the embedded store failed: {error}"))
}

/// Advice on damage.
pub const ADVICE: &str = "run validate or `selkie verify`, and restore it from a backup";

/// Returns whether the error means that the file does not have the content that was written.
pub fn is_damage(error: &rusqlite::Error) -> bool {
    let Some(code) = error.sqlite_error().map(|error| error.extended_code) else {
        // A column of a type that was never written, or text that is not UTF-8.
        return matches!(
            error,
            rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::Utf8Error(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
        );
    };
    matches!(code & 0xFF, ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB) || code == ffi::SQLITE_IOERR_DATA
}

/// Adds the collection's name to an error of damage.
pub fn in_collection(failure: Failure, namespace: &Namespace) -> Failure {
    match failure {
        Failure::Engine(error) if is_damage(&error) => Failure::Refused(damaged(namespace, &error)),
        failure => failure,
    }
}

/// Returns the client's error for a collection that cannot be read completely.
pub fn damaged(namespace: &Namespace, error: &rusqlite::Error) -> Error {
    Error::internal(format!("{namespace} is damaged ({error}): {ADVICE}"))
}

/// Returns whether the error means that a row with this key exists.
pub fn is_duplicate(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|error| error.extended_code);
    matches!(code, Some(ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY))
}

/// Returns whether the error means that a table does not exist: the collection or index was dropped
/// since the catalog was read.
pub fn is_missing_table(error: &rusqlite::Error) -> bool {
    let plain = error.sqlite_error().is_some_and(|error| error.extended_code == ffi::SQLITE_ERROR);
    plain && error.to_string().contains("no such table")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_distinguished() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        connection
            .execute_batch("CREATE TABLE t(a INTEGER PRIMARY KEY, b UNIQUE); INSERT INTO t VALUES(1, 1)")
            .unwrap();
        let fails = |sql: &str| connection.execute(sql, []).unwrap_err();
        assert!(is_duplicate(&fails("INSERT INTO t VALUES(1, 2)")));
        assert!(is_duplicate(&fails("INSERT INTO t VALUES(2, 1)")));
        assert!(is_missing_table(&fails("INSERT INTO missing VALUES(2, 1)")));
        assert!(!is_missing_table(&fails("INSERT INTO t VALUES(1, 2)")));
        let full = rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_FULL), None);
        assert_eq!(engine_error(full).code(), Code::OUT_OF_DISK_SPACE);
        let damage = || rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_IOERR_DATA), None);
        assert!(is_damage(&damage()));
        let named = Error::from(in_collection(damage().into(), &Namespace::new("shop", "cars")));
        assert!(named.message().contains("shop.cars"), "{}", named.message());
    }
}
