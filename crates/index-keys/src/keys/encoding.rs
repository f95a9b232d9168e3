//! Encoding of values as parts of keys.

use crate::IndexField;
use document::{Collation, Doc, Value};
use smallvec::SmallVec;

pub type Key = SmallVec<[u8; 40]>;

/// Greater than every key.
pub const KEY_END: &[u8] = &[0xFF; 48];

/// Appends a value's key: equal keys for values that compare as equal, in the values' order.
pub fn encode(value: Value<'_>, out: &mut Vec<u8>) {
    document::key::encode(value, out);
}

/// Writes the key of a document's `_id`, by the collection's collation; that of null for a document
/// without one.
pub fn id_key(document: Doc<'_>, collation: &Collation, out: &mut Vec<u8>) {
    out.clear();
    collation.encode_key(document.get("_id").unwrap_or(Value::Null), out);
}

/// Returns the least byte string greater than every string that begins with `prefix`.
pub fn end_of_prefix(mut prefix: Vec<u8>) -> Vec<u8> {
    while let Some(last) = prefix.pop() {
        if last < u8::MAX {
            prefix.push(last + 1);
            return prefix;
        }
    }
    KEY_END.to_vec()
}

/// Appends one field's part of a key.
pub fn encode_field(value: Value<'_>, field: &IndexField, out: &mut Vec<u8>) {
    encode_directed(value, field.ascending, &field.collation, out);
}

/// Appends a value's part of a key.
pub fn encode_directed(value: Value<'_>, ascending: bool, collation: &Collation, out: &mut Vec<u8>) {
    let start = out.len();
    collation.encode_key(value, out);
    if !ascending {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}
