//! The keys of a text index: one per term of the document, with the term's score.
//!
//! The term follows the values of the fields before it; the score and the values of the fields
//! after it follow. Terms are in descending order, so that a backward scan finds them in ascending
//! order, with the best document of each first.

use super::{encode_directed, encode_field};
use crate::{IndexField, IndexShape};
use document::{Collation, Doc, Value};
use error::Result;
use md5::{Digest, Md5};
use std::borrow::Cow;

/// Longer terms (in bytes) are stored as their beginning and a hash.
const TERM_BYTES_MAX: usize = 256;
const TERM_BYTES_KEPT: usize = 224;

pub fn for_each_key(document: Doc<'_>, index: &IndexShape, give: &mut dyn FnMut(&[u8], &[Value<'_>])) -> Result<()> {
    let Some(text) = &index.text else { return Ok(()) };
    let (before, behind) = text.key_values(document)?;
    let mut front = Vec::with_capacity(40);
    encode_all(&index.fields, &before, &mut front);
    let mut back = Vec::new();
    encode_all(index.fields.get(before.len() + 2..).unwrap_or_default(), &behind, &mut back);
    let mut key = Vec::with_capacity(front.len() + back.len() + 40);
    for (term, score) in text.scores(document)? {
        key.clear();
        key.extend_from_slice(&front);
        encode_term(&term, &mut key);
        encode_directed(Value::Double(score), true, &Collation::SIMPLE, &mut key);
        key.extend_from_slice(&back);
        let around = before.iter().copied().chain([Value::String(&term), Value::Double(score)]);
        let values: Vec<Value<'_>> = around.chain(behind.iter().copied()).collect();
        give(&key, &values);
    }
    Ok(())
}

fn encode_all(fields: &[IndexField], values: &[Value<'_>], out: &mut Vec<u8>) {
    values.iter().zip(fields).for_each(|(value, field)| encode_field(*value, field, out));
}

/// Appends a term's part of a key.
pub fn encode_term(term: &str, out: &mut Vec<u8>) {
    encode_directed(Value::String(&shortened(term)), false, &Collation::SIMPLE, out);
}

/// Returns whether a term's part of a key identifies the term.
pub fn is_whole(term: &str) -> bool {
    term.len() <= TERM_BYTES_MAX
}

fn shortened(term: &str) -> Cow<'_, str> {
    if is_whole(term) {
        return Cow::Borrowed(term);
    }
    let end = (0..=TERM_BYTES_KEPT).rev().find(|&end| term.is_char_boundary(end)).unwrap_or(0);
    let mut short = term[..end].to_owned();
    for byte in Md5::digest(term.as_bytes()) {
        short.push_str(&format!("{byte:02x}"));
    }
    Cow::Owned(short)
}
