//! Documents as the JSON text they are stored in. The rules are those of [`document::json`]; failures are put in words here.

use document::{Doc, Value};
use error::{Code, Error, Result};

/// Work that is counted as one step.
const BYTES_PER_STEP: usize = 16;

/// Appends a document's text.
pub(crate) fn write(document: Doc<'_>, out: &mut Vec<u8>) {
    steps::steps(document.as_bytes().len() / BYTES_PER_STEP);
    document::json::bson_to_json(document, out);
}

/// A single value's text.
pub(crate) fn value(value: Value<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(48);
    document::json::value_to_json(value, &mut out);
    out
}

/// Appends the document that a text spells.
pub(crate) fn read(json: &[u8], out: &mut Vec<u8>) -> Result<()> {
    steps::steps(json.len() / BYTES_PER_STEP);
    document::json::json_to_bson(json, out)
        .map_err(|reason| Error::new(Code::INVALID_BSON, format!("a row's doc cannot be read as a document: {reason}")))
}
