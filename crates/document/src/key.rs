//! Values as byte strings that compare (memcmp) as the values do in [`crate::compare`].
//!
//! Two values give the same bytes exactly if they are equal in MongoDB's order: `1`, `1.0`,
//! `NumberLong(1)` and the decimal `1.00` share one key. Keys are prefix-free, so the keys of
//! several values in a row order as the tuple does; each of them may be ascending ([`encode`]) or
//! descending ([`encode_descending`]). Keys are for comparison: the types of numbers and the signs
//! of their zeros cannot be decoded.
//!
//! The first byte is the type, or for numbers the class of magnitude. Then:
//!
//! | value | bytes |
//! |---|---|
//! | string, symbol, code | escaped bytes, `00` (escapes: `00` → `01 01`, `01` → `01 02`) |
//! | document | per field: type rank + 1, name, `00`, value; then `00` |
//! | array | the values; then `00` |
//! | binary | length (4 bytes), subtype, bytes |
//! | ObjectId, boolean, date, timestamp | big-endian, fixed width, sign bit flipped |
//! | regular expression | pattern, `00`, options, `00` |
//! | DBPointer | length of the namespace (4 bytes), its bytes, id |
//! | code with scope | as code, then as document |
//! | number | class of magnitude, then whole part and fraction; see `key/number.rs` |
//!
//! Changing any of this makes stored keys worthless: the format is part of the embedded store's
//! files.

mod number;
mod read;
mod split;

use crate::collation::Collator;
use crate::compare::kind_rank;
use crate::names::restore_bytes;
use crate::raw::Doc;
use crate::value::{Kind, Value};
use crate::{DEPTH_MAX, ObjectId};
use number::{encode_decimal, encode_double, encode_integer};

pub use read::{DecodedKey, is_decodable, read};
pub use split::split;

/// First bytes of keys. `00` and `FF` are unused, so that only the empty key and `FF` sort outside
/// of all keys.
mod lead {
    pub const MIN_KEY: u8 = 0x05;
    pub const UNDEFINED: u8 = 0x0A;
    pub const NULL: u8 = 0x10;
    pub const NAN: u8 = 0x20;
    /// Numbers other than NaN have up to 11 classes below and above zero: 0x21 to 0x37.
    pub const ZERO: u8 = 0x2C;
    pub const NUMBER_FIRST: u8 = ZERO - 11;
    pub const NUMBER_LAST: u8 = ZERO + 11;
    pub const STRING: u8 = 0x40;
    pub const DOCUMENT: u8 = 0x48;
    pub const ARRAY: u8 = 0x50;
    pub const BINARY: u8 = 0x58;
    pub const OBJECT_ID: u8 = 0x60;
    pub const FALSE: u8 = 0x68;
    pub const TRUE: u8 = 0x69;
    pub const DATE: u8 = 0x70;
    pub const TIMESTAMP: u8 = 0x78;
    pub const REGEX: u8 = 0x80;
    pub const DB_POINTER: u8 = 0x88;
    pub const CODE: u8 = 0x90;
    pub const CODE_WITH_SCOPE: u8 = 0x98;
    pub const MAX_KEY: u8 = 0xF0;
}

/// Ends strings, documents and arrays. Less than everything that can follow in its place.
const END: u8 = 0x00;

/// Appends the value's key.
#[inline]
pub fn encode(value: Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Int32(number) => encode_integer(number.into(), out),
        Value::Int64(number) => encode_integer(number, out),
        Value::ObjectId(id) => encode_object_id(id, out),
        Value::String(text) => encode_text(lead::STRING, text.as_bytes(), out),
        _ => encode_nested(value, out, 0, None),
    }
}

/// Appends the value's key with inverted bytes, for a column in descending order.
pub fn encode_descending(value: Value<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    encode(value, out);
    out[start..].iter_mut().for_each(|byte| *byte = !*byte);
}

/// Appends the key of a value, or of a missing one (which sorts as null).
pub fn encode_field(value: Option<Value<'_>>, ascending: bool, out: &mut Vec<u8>) {
    let value = value.unwrap_or(Value::Null);
    if ascending { encode(value, out) } else { encode_descending(value, out) }
}

fn encode_object_id(id: ObjectId, out: &mut Vec<u8>) {
    let mut bytes = [lead::OBJECT_ID; 13];
    bytes[1..].copy_from_slice(&id.0);
    out.extend_from_slice(&bytes);
}

/// Appends a key; `depth` counts the documents around the value. With a collator, the bytes of a
/// string are its sort key.
pub(crate) fn encode_nested(value: Value<'_>, out: &mut Vec<u8>, depth: usize, collator: Option<&Collator>) {
    match value {
        Value::MinKey => out.push(lead::MIN_KEY),
        Value::Undefined => out.push(lead::UNDEFINED),
        Value::Null => out.push(lead::NULL),
        Value::Double(number) => encode_double(number, out),
        Value::Int32(number) => encode_integer(number.into(), out),
        Value::Int64(number) => encode_integer(number, out),
        Value::Decimal128(number) => encode_decimal(number, out),
        Value::String(text) | Value::Symbol(text) => match collator {
            None => encode_text(lead::STRING, text.as_bytes(), out),
            Some(collator) => {
                out.push(lead::STRING);
                encode_escaped(&collator.sort_key(text), out);
            }
        },
        Value::Document(document) => {
            out.push(lead::DOCUMENT);
            encode_fields(document, out, depth + 1, collator);
        }
        Value::Array(array) => {
            out.push(lead::ARRAY);
            encode_items(array, out, depth + 1, collator);
        }
        Value::Binary { subtype, bytes } => {
            out.push(lead::BINARY);
            out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
            out.push(subtype);
            steps::bytes(bytes.len());
            out.extend_from_slice(bytes);
        }
        Value::ObjectId(id) => encode_object_id(id, out),
        Value::Boolean(flag) => out.push(if flag { lead::TRUE } else { lead::FALSE }),
        Value::DateTime(milliseconds) => {
            out.push(lead::DATE);
            out.extend_from_slice(&(milliseconds as u64 ^ 1 << 63).to_be_bytes());
        }
        Value::Timestamp { time, increment } => {
            out.push(lead::TIMESTAMP);
            out.extend_from_slice(&time.to_be_bytes());
            out.extend_from_slice(&increment.to_be_bytes());
        }
        Value::Regex { pattern, options } => encode_regex(pattern.as_bytes(), options.as_bytes(), out),
        Value::DbPointer { namespace, id } => encode_db_pointer(namespace.as_bytes(), id, out),
        Value::Code(code) => encode_text(lead::CODE, code.as_bytes(), out),
        Value::CodeWithScope { code, scope } => {
            encode_text(lead::CODE_WITH_SCOPE, code.as_bytes(), out);
            encode_fields(scope, out, depth + 1, collator);
        }
        Value::MaxKey => out.push(lead::MAX_KEY),
        Value::IllFormed { kind, .. } => encode_ill_formed(kind, value, out, depth, collator),
    }
}

/// As for other values of the type. A collator gets U+FFFD in place of bytes that it could not
/// read.
#[cold]
fn encode_ill_formed(kind: Kind, value: Value<'_>, out: &mut Vec<u8>, depth: usize, collator: Option<&Collator>) {
    let Some(parts) = value.texts() else { return out.push(lead::UNDEFINED) };
    match (kind, collator) {
        (Kind::String | Kind::Symbol, Some(collator)) => {
            out.push(lead::STRING);
            encode_escaped(&collator.sort_key(&String::from_utf8_lossy(parts.text)), out);
        }
        (Kind::Code, _) => encode_text(lead::CODE, parts.text, out),
        (Kind::CodeWithScope, _) => {
            encode_text(lead::CODE_WITH_SCOPE, parts.text, out);
            encode_fields(parts.scope, out, depth + 1, collator);
        }
        (Kind::Regex, _) => encode_regex(parts.text, parts.options, out),
        (Kind::DbPointer, _) => encode_db_pointer(parts.text, parts.id, out),
        _ => encode_text(lead::STRING, parts.text, out),
    }
}

fn encode_regex(pattern: &[u8], options: &[u8], out: &mut Vec<u8>) {
    out.push(lead::REGEX);
    for part in [pattern, options] {
        out.extend_from_slice(part);
        out.push(END);
    }
}

fn encode_db_pointer(namespace: &[u8], id: ObjectId, out: &mut Vec<u8>) {
    out.push(lead::DB_POINTER);
    out.extend_from_slice(&(namespace.len() as u32).to_be_bytes());
    out.extend_from_slice(namespace);
    out.extend_from_slice(&id.0);
}

fn encode_fields(document: Doc<'_>, out: &mut Vec<u8>, depth: usize, collator: Option<&Collator>) {
    if depth > DEPTH_MAX {
        return encode_escaped(document.as_bytes(), out);
    }
    for element in document.elements() {
        steps::step();
        out.push(kind_rank(element.kind) + 1);
        out.extend_from_slice(&restore_bytes(element.key_bytes()));
        out.push(END);
        encode_nested(element.value(), out, depth, collator);
    }
    out.push(END);
}

fn encode_items(array: Doc<'_>, out: &mut Vec<u8>, depth: usize, collator: Option<&Collator>) {
    if depth > DEPTH_MAX {
        return encode_escaped(array.as_bytes(), out);
    }
    for value in array.values() {
        steps::step();
        encode_nested(value, out, depth, collator);
    }
    out.push(END);
}

fn encode_text(lead: u8, text: &[u8], out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    out.push(lead);
    encode_escaped(text, out);
}

fn encode_escaped(mut bytes: &[u8], out: &mut Vec<u8>) {
    steps::bytes(bytes.len());
    while let Some(at) = memchr::memchr2(0, 1, bytes) {
        out.extend_from_slice(&bytes[..at]);
        out.extend_from_slice(&[1, bytes[at] + 1]);
        bytes = &bytes[at + 1..];
    }
    out.extend_from_slice(bytes);
    out.push(END);
}

#[cfg(test)]
mod tests;
