//! Replies that several commands share. Errors become replies here, and nowhere else.

use document::{ArrayWriter, Doc, DocWriter, Kind, Value};
use error::{Code, Error};
use server::logical_session::LogicalSessionId;
use store::Namespace;

/// Appends the reply that reports `error`.
pub fn write_error(error: &Error, reply: &mut Vec<u8>) {
    let mut writer = DocWriter::begin(reply);
    writer.append("ok", 0.0);
    writer.append("errmsg", error.message());
    // A few of MongoDB's errors have no code.
    if error.code() != NO_CODE {
        writer.append("code", error.code().0);
        writer.append("codeName", &*error.code().name());
    }
    append_details(error, &mut writer);
    if !error.labels().is_empty() {
        let mut labels = writer.array("errorLabels");
        error.labels().iter().for_each(|label| labels.push(*label));
    }
}

/// The code of errors that MongoDB reports without one.
pub const NO_CODE: Code = Code(0);

/// Appends an element of `writeErrors`.
pub fn write_write_error(index: usize, error: &Error, errors: &mut ArrayWriter<'_>) {
    let mut writer = errors.document();
    writer.append("index", index as i32);
    writer.append("code", error.code().0);
    writer.append("errmsg", error.message());
    append_details(error, &mut writer);
}

fn append_details(error: &Error, writer: &mut DocWriter<'_>) {
    if let Some(details) = error.details().and_then(Doc::from_bytes) {
        details.elements().for_each(|element| writer.append_element(element));
    }
}

/// Adds the context of an error during execution, in MongoDB's words. Interruptions get none.
pub fn in_executor(error: Error, during: &str) -> Error {
    match error.code() {
        Code::MAX_TIME_MS_EXPIRED | Code::INTERRUPTED => error,
        // A refusal by the planner.
        _ if error.message().starts_with("error processing query") => error,
        _ => error.context(&format!("{during} :: caused by :: ")),
    }
}

/// Appends `ns`: the namespace's full name.
pub fn append_namespace(cursor: &mut DocWriter<'_>, namespace: &Namespace) {
    append_names(cursor, &namespace.database, &namespace.collection);
}

/// Appends `ns`, composed of its two parts.
pub fn append_names(cursor: &mut DocWriter<'_>, database: &str, collection: &str) {
    let (database, collection) = (database.as_bytes(), collection.as_bytes());
    cursor.append_with(Kind::String, "ns", |out| {
        let length = database.len() + collection.len() + 2;
        out.extend_from_slice(&(length as i32).to_le_bytes());
        for part in [database, b".", collection, b"\0"] {
            out.extend_from_slice(part);
        }
    });
}

/// Returns whether a driver may retry a retryable write after this error.
/// Source: <https://github.com/mongodb/specifications/blob/master/source/retryable-writes/retryable-writes.md>
pub fn is_retryable(code: Code) -> bool {
    matches!(code.0, 6 | 7 | 89 | 91 | 189 | 262 | 317 | 9001 | 10107 | 11600 | 11602 | 13435 | 13436)
}

/// Appends a session's UUID and the digest of its user.
pub fn append_session(writer: &mut DocWriter<'_>, name: &str, id: &LogicalSessionId) {
    let mut session = writer.document(name);
    session.append("id", Value::Binary { subtype: 4, bytes: &id.uuid });
    session.append("uid", Value::Binary { subtype: 0, bytes: &id.user });
}
