//! Encodes documents as the JSON text in which they are stored, by the rules of [`document::json`],
//! and decodes it.

use document::{Doc, Value};
use error::{Code, Error, Result};

/// Bytes of work that count as one step.
const BYTES_PER_STEP: usize = 16;

/// Appends a document's JSON text.
pub(crate) fn encode(document: Doc<'_>, out: &mut Vec<u8>) {
    steps::steps(document.as_bytes().len() / BYTES_PER_STEP);
    document::json::bson_to_json(document, out);
}

/// Returns the JSON text of a value.
pub(crate) fn encode_value(value: Value<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(48);
    document::json::value_to_json(value, &mut out);
    out
}

/// Decodes JSON text and appends the document. Fails with 22 if the text is no document.
pub(crate) fn decode(json: &[u8], out: &mut Vec<u8>) -> Result<()> {
    steps::steps(json.len() / BYTES_PER_STEP);
    document::json::json_to_bson(json, out).map_err(|reason| {
        Error::new(Code::INVALID_BSON, format!("a row's doc cannot be decoded as a document: {reason}"))
    })
}
