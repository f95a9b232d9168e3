//! BSON to JSON text. The rules are in the description of [`super`].

use super::{LEVELS_MAX, date, scan::unescaped_length};
use crate::raw::{Doc, Element};
use crate::value::{Kind, Value};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends a document as JSON text.
pub fn bson_to_json(document: Doc<'_>, out: &mut Vec<u8>) {
    out.reserve(document.size() + document.size() / 2);
    write_document(document, out, 1);
}

/// Appends a single value as in the text of a document, behind its name at the top level.
pub fn value_to_json(value: Value<'_>, out: &mut Vec<u8>) {
    write_value(value, out, 1);
}

/// Appends the result of `JSON_COMPACT(JSON_EXTRACT(doc, '$._id'))` for a document with this `_id`:
/// its text in the document. Numbers keep the notation of their type (`1`, `1e0` and `1.0` are
/// three texts).
pub fn id_text(id: Value<'_>, out: &mut Vec<u8>) {
    value_to_json(id, out);
}

/// `level` counts the documents and arrays, this one included.
fn write_document(document: Doc<'_>, out: &mut Vec<u8>, level: usize) {
    out.push(b'{');
    let mut first = true;
    for element in document.elements() {
        if !first {
            out.push(b',');
        }
        first = false;
        write_name(element.key_bytes(), out);
        write_element(element, out, level);
    }
    out.push(b'}');
}

fn write_array(array: Doc<'_>, out: &mut Vec<u8>, level: usize) {
    out.push(b'[');
    let mut first = true;
    for element in array.elements() {
        if !first {
            out.push(b',');
        }
        first = false;
        write_element(element, out, level);
    }
    out.push(b']');
}

/// Appends a field's name in its encoding, with its quotes.
pub fn name_to_json(name: &str, out: &mut Vec<u8>) {
    write_name(name.as_bytes(), out);
    // The colon.
    out.pop();
}

/// Appends a field's name with its quotes and the colon.
#[inline]
fn write_name(name: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    if name.first() == Some(&b'$') {
        out.push(b'$');
    }
    write_escaped(name, out);
    out.extend_from_slice(b"\":");
}

#[inline]
fn write_element(element: Element<'_>, out: &mut Vec<u8>, level: usize) {
    match element.value() {
        // A malformed value is read as undefined, which a valid document has only with that type.
        Value::Undefined if element.kind != Kind::Undefined => write_raw(element.kind, element.raw_value(), out),
        value => write_value(value, out, level),
    }
}

/// `level` counts the documents and arrays around the value.
#[inline]
fn write_value(value: Value<'_>, out: &mut Vec<u8>, level: usize) {
    match value {
        Value::String(text) => write_string(text, out),
        Value::Int32(number) => out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes()),
        Value::Double(number) => write_double(number, out),
        Value::Int64(number) => write_int64(number, out),
        Value::ObjectId(id) => {
            out.extend_from_slice(b"{\"$oid\":\"");
            write_hex(&id.0, out);
            out.extend_from_slice(b"\"}");
        }
        Value::Boolean(true) => out.extend_from_slice(b"true"),
        Value::Boolean(false) => out.extend_from_slice(b"false"),
        Value::Null => out.extend_from_slice(b"null"),
        Value::DateTime(milliseconds) => write_date(milliseconds, out),
        Value::Document(document) if level < LEVELS_MAX => write_document(document, out, level + 1),
        Value::Array(array) if level < LEVELS_MAX && has_plain_keys(array) => write_array(array, out, level + 1),
        Value::Document(document) => write_raw(Kind::Document, document.as_bytes(), out),
        Value::Array(array) => write_raw(Kind::Array, array.as_bytes(), out),
        _ => write_rare(value, out, level),
    }
}

/// Writes the types that applications seldom use.
fn write_rare(value: Value<'_>, out: &mut Vec<u8>, level: usize) {
    match value {
        Value::Decimal128(number) if number.has_exact_text() => {
            write_wrapped("$numberDecimal", &number.to_string(), out);
        }
        Value::Decimal128(number) => write_raw(Kind::Decimal128, &number.0, out),
        Value::Binary { subtype, bytes } => {
            out.extend_from_slice(b"{\"$binary\":{\"base64\":\"");
            write_base64(bytes, out);
            out.extend_from_slice(b"\",\"subType\":\"");
            write_hex(&[subtype], out);
            out.extend_from_slice(b"\"}}");
        }
        Value::Timestamp { time, increment } => {
            out.extend_from_slice(b"{\"$timestamp\":{\"t\":");
            out.extend_from_slice(itoa::Buffer::new().format(time).as_bytes());
            out.extend_from_slice(b",\"i\":");
            out.extend_from_slice(itoa::Buffer::new().format(increment).as_bytes());
            out.extend_from_slice(b"}}");
        }
        Value::Regex { pattern, options } => {
            out.extend_from_slice(b"{\"$regularExpression\":{\"pattern\":");
            write_string(pattern, out);
            out.extend_from_slice(b",\"options\":");
            write_string(options, out);
            out.extend_from_slice(b"}}");
        }
        Value::DbPointer { namespace, id } => {
            out.extend_from_slice(b"{\"$dbPointer\":{\"$ref\":");
            write_string(namespace, out);
            out.extend_from_slice(b",\"$id\":{\"$oid\":\"");
            write_hex(&id.0, out);
            out.extend_from_slice(b"\"}}}");
        }
        Value::Code(code) => write_wrapped("$code", code, out),
        Value::Symbol(symbol) => write_wrapped("$symbol", symbol, out),
        Value::CodeWithScope { code, scope } => {
            out.extend_from_slice(b"{\"$code\":");
            write_string(code, out);
            out.extend_from_slice(b",\"$scope\":");
            // Two levels: the wrapper is one.
            write_value(Value::Document(scope), out, level + 1);
            out.push(b'}');
        }
        Value::Undefined => out.extend_from_slice(b"{\"$undefined\":true}"),
        Value::MinKey => out.extend_from_slice(b"{\"$minKey\":1}"),
        Value::MaxKey => out.extend_from_slice(b"{\"$maxKey\":1}"),
        Value::IllFormed { kind, raw } => write_raw(kind, raw, out),
        // Written by `write_value`.
        _ => {}
    }
}

/// Writes a number with a point in it.
fn write_double(number: f64, out: &mut Vec<u8>) {
    if !number.is_finite() {
        let text = match number {
            f64::INFINITY => "Infinity",
            f64::NEG_INFINITY => "-Infinity",
            _ if number.to_bits() == f64::NAN.to_bits() => "NaN",
            _ => return write_raw(Kind::Double, &number.to_le_bytes(), out),
        };
        return write_wrapped("$numberDouble", text, out);
    }
    let mut buffer = ryu::Buffer::new();
    let text = buffer.format_finite(number);
    match text.split_once('e') {
        Some((mantissa, exponent)) if !mantissa.contains('.') => {
            out.extend_from_slice(mantissa.as_bytes());
            out.extend_from_slice(b".0e");
            out.extend_from_slice(exponent.as_bytes());
        }
        _ => out.extend_from_slice(text.as_bytes()),
    }
}

#[inline]
fn write_int64(number: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    if i32::try_from(number).is_ok() {
        out.extend_from_slice(b"e0");
    }
}

fn write_date(milliseconds: i64, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(b"{\"$date\":\"");
    if date::write_iso(milliseconds, out) {
        out.extend_from_slice(b"\"}");
    } else {
        out.truncate(start);
        out.extend_from_slice(b"{\"$date\":{\"$numberLong\":\"");
        out.extend_from_slice(itoa::Buffer::new().format(milliseconds).as_bytes());
        out.extend_from_slice(b"\"}}");
    }
}

/// Writes a wrapper around one string.
fn write_wrapped(name: &str, text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    write_string(text, out);
    out.push(b'}');
}

/// Writes the wrapper for a value without an encoding of its own.
fn write_raw(kind: Kind, raw: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"$bson\":\"");
    write_base64(raw, out);
    out.extend_from_slice(b"\",\"$type\":\"");
    write_hex(&[kind as u8], out);
    out.extend_from_slice(b"\"}");
}

#[inline]
fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    write_escaped(text.as_bytes(), out);
    out.push(b'"');
}

#[inline]
fn write_escaped(mut bytes: &[u8], out: &mut Vec<u8>) {
    loop {
        let plain = unescaped_length(bytes);
        let (before, rest) = bytes.split_at(plain);
        out.extend_from_slice(before);
        let Some((&special, rest)) = rest.split_first() else {
            return;
        };
        write_escape(special, out);
        bytes = rest;
    }
}

#[cold]
fn write_escape(byte: u8, out: &mut Vec<u8>) {
    let letter = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0C => b'f',
        _ => {
            out.extend_from_slice(b"\\u00");
            return write_hex(&[byte], out);
        }
    };
    out.extend_from_slice(&[b'\\', letter]);
}

#[inline]
fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
    }
}

fn write_base64(bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    // The buffer has exactly the encoding's size.
    let written = STANDARD.encode_slice(bytes, &mut out[start..]).unwrap_or_default();
    out.truncate(start + written);
}

/// Returns whether an array's keys are `0`, `1`, `2` … and need not be written.
fn has_plain_keys(array: Doc<'_>) -> bool {
    let mut expected = Counter::default();
    array.elements().all(|element| {
        let plain = element.key_bytes() == expected.digits();
        expected.increment();
        plain
    })
}

/// A counter in decimal digits.
pub(super) struct Counter {
    digits: [u8; 10],
    start: usize,
}

impl Default for Counter {
    fn default() -> Self {
        Counter { digits: [b'0'; 10], start: 9 }
    }
}

impl Counter {
    #[inline]
    pub(super) fn digits(&self) -> &[u8] {
        &self.digits[self.start..]
    }

    #[inline]
    pub(super) fn increment(&mut self) {
        for at in (0..self.digits.len()).rev() {
            self.start = self.start.min(at);
            if self.digits[at] < b'9' {
                self.digits[at] += 1;
                return;
            }
            self.digits[at] = b'0';
        }
    }
}
