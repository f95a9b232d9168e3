//! Writes elements and values of BSON, for the operators.

use document::{Doc, DocWriter, Kind, Value};

/// Writes the type and the key of an element.
pub(super) fn write_header(out: &mut Vec<u8>, kind: Kind, key: &[u8]) {
    out.push(kind as u8);
    out.extend_from_slice(key);
    out.push(0);
}

/// Writes an element.
pub(super) fn write_element(key: &[u8], value: Value<'_>, out: &mut Vec<u8>) {
    write_header(out, value.kind(), key);
    value.write_raw(out);
}

/// Writes `array`, which has `count` elements, followed by more values. The old elements are copied
/// as one run of bytes.
pub(super) fn extend_array<'v>(
    array: Doc<'_>,
    count: usize,
    values: impl Iterator<Item = Value<'v>>,
    out: &mut Vec<u8>,
) {
    let bytes = array.as_bytes();
    let start = out.len();
    steps::bytes(bytes.len());
    out.extend_from_slice(&bytes[..bytes.len() - 1]);
    let mut key = itoa::Buffer::new();
    for (index, value) in (count..).zip(values) {
        steps::step();
        write_element(key.format(index).as_bytes(), value, out);
    }
    out.push(0);
    let length = (out.len() - start) as i32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// Writes `{ name: value }` to `scratch` and returns it.
pub(super) fn wrap_in_document<'s>(name: &str, value: Value<'_>, scratch: &'s mut Vec<u8>) -> Doc<'s> {
    scratch.clear();
    DocWriter::begin(scratch).append(name, value);
    Doc::from_bytes(scratch).unwrap_or(Doc::EMPTY)
}

/// Returns the moment as a timestamp. Increments begin at 1; the milliseconds order those within a
/// second.
pub(super) fn timestamp_of(now_ms: i64) -> Value<'static> {
    let time = u32::try_from(now_ms.div_euclid(1000)).unwrap_or(0);
    Value::Timestamp { time, increment: now_ms.rem_euclid(1000) as u32 + 1 }
}
