//! Reading the fields of stored documents.

use document::{Doc, Value};
use error::{Code, Error, Result};

/// Returns a required text.
pub fn text<'a>(document: Doc<'a>, key: &str) -> Result<&'a str> {
    document.get(key).and_then(|value| value.as_str()).ok_or_else(|| malformed(key, "a string"))
}

/// Returns the documents of an array; none if the field is missing.
pub fn documents<'a>(document: Doc<'a>, key: &str) -> Result<Vec<Doc<'a>>> {
    let array = match document.get(key) {
        None => return Ok(Vec::new()),
        Some(value) => value.as_array().ok_or_else(|| malformed(key, "an array"))?,
    };
    array.values().map(|value| value.as_document().ok_or_else(|| malformed(key, "an array of objects"))).collect()
}

/// Returns the bytes of the identifier of a user.
pub fn uuid(value: Option<Value<'_>>) -> Option<[u8; 16]> {
    match value? {
        Value::Binary { subtype: 4, bytes } => bytes.try_into().ok(),
        _ => None,
    }
}

pub fn malformed(key: &str, expected: &str) -> Error {
    Error::new(Code::UNSUPPORTED_FORMAT, format!("Malformed user or role document: '{key}' must be {expected}"))
}
