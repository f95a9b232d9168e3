//! Values in the format of MongoDB's error messages: `{ a: 1, b: [ "x" ] }`.
//!
//! The format is neither JSON nor the shell's. Clients and test suites compare messages, so it is
//! preserved in every detail (`1.0`, `nan.0`, strings truncated to 160 bytes). It is used by error
//! paths only.

use document::{Doc, Element, Kind, Texts, Value};
use std::fmt::{self, Display, Write};
use steps::Counted;

/// Strings longer than this are truncated to [`STRING_BYTES_KEPT`].
const STRING_BYTES_MAX: usize = 160;
const STRING_BYTES_KEPT: usize = 150;

/// Binary values longer than this are truncated to [`BINARY_BYTES_KEPT`].
const BINARY_BYTES_MAX: usize = 80;
const BINARY_BYTES_KEPT: usize = 70;

/// Nested values below this level are omitted, so that a message about a deep document stays short.
const DEPTH_MAX: usize = 200;

/// Formats a value: `5`, `"x"`, `{ a: 1 }`.
pub fn value(value: Value<'_>) -> impl Display + '_ {
    Spelled { value, depth: 0 }
}

/// Formats a document: `{ a: 1 }`.
pub fn document(document: Doc<'_>) -> impl Display + '_ {
    value(Value::Document(document))
}

/// Formats an element with its name: `a: 1`.
pub fn element<'a>(name: &'a str, value: Value<'a>) -> impl Display + 'a {
    Named { name, value }
}

struct Named<'a> {
    name: &'a str,
    value: Value<'a>,
}

impl Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, value(self.value))
    }
}

struct Spelled<'a> {
    value: Value<'a>,
    depth: usize,
}

impl Display for Spelled<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value {
            Value::Double(number) => double(number, f),
            Value::String(text) | Value::Symbol(text) => string(text, f),
            Value::Document(document) => self.nested(document, true, f),
            Value::Array(array) => self.nested(array, false, f),
            Value::Binary { subtype, bytes } => binary(subtype, bytes, f),
            Value::Undefined => f.write_str("undefined"),
            Value::ObjectId(id) => write!(f, "ObjectId('{id}')"),
            Value::Boolean(flag) => write!(f, "{flag}"),
            Value::DateTime(milliseconds) => write!(f, "new Date({milliseconds})"),
            Value::Null => f.write_str("null"),
            Value::Regex { pattern, options } => write!(f, "/{pattern}/{options}"),
            Value::DbPointer { namespace, id } => write!(f, "DBRef('{namespace}',{id})"),
            Value::Code(code) => f.write_str(code),
            Value::CodeWithScope { code, scope } => write!(f, "CodeWScope( {code}, {})", document(scope)),
            Value::Int32(number) => write!(f, "{number}"),
            Value::Int64(number) => write!(f, "{number}"),
            Value::Timestamp { time, increment } => write!(f, "Timestamp({time}, {increment})"),
            Value::Decimal128(number) => write!(f, "{number}"),
            Value::MaxKey => f.write_str("MaxKey"),
            Value::MinKey => f.write_str("MinKey"),
            Value::IllFormed { kind, .. } => ill_formed(kind, self.value, f),
        }
    }
}

/// Formats like other values of the type, with U+FFFD in place of bytes that are not UTF-8.
fn ill_formed(kind: Kind, value: Value<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Some(Texts { text, options, id, scope }) = value.texts() else { return Ok(()) };
    let (text, options) = (String::from_utf8_lossy(text), String::from_utf8_lossy(options));
    let value = match kind {
        Kind::Regex => Value::Regex { pattern: &text, options: &options },
        Kind::DbPointer => Value::DbPointer { namespace: &text, id },
        Kind::Code => Value::Code(&text),
        Kind::CodeWithScope => Value::CodeWithScope { code: &text, scope },
        _ => Value::String(&text),
    };
    self::value(value).fmt(f)
}

impl Spelled<'_> {
    fn nested(&self, document: Doc<'_>, named: bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (open, close) = if named { ('{', '}') } else { ('[', ']') };
        f.write_char(open)?;
        for (index, element) in document.elements().enumerate() {
            steps::step();
            f.write_str(if index == 0 { " " } else { ", " })?;
            self.member(element, named, f)?;
        }
        if !document.is_empty() {
            f.write_char(' ')?;
        }
        f.write_char(close)
    }

    fn member(&self, element: Element<'_>, named: bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if named {
            write!(f, "{}: ", element.key())?;
        }
        if self.depth >= DEPTH_MAX {
            return f.write_str("...");
        }
        Spelled { value: element.value(), depth: self.depth + 1 }.fmt(f)
    }
}

/// Formats like C's `%.16g`, and appends `.0` if there is no point.
fn double(number: f64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let text = general(number, 16);
    f.write_str(&text)?;
    if text.contains('.') { Ok(()) } else { f.write_str(".0") }
}

/// Formats like C's `%.<digits>g`.
pub fn general(number: f64, digits: usize) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{:.*e}", digits - 1, number);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", without_trailing_zeros(mantissa), exponent.abs());
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    without_trailing_zeros(&format!("{number:.decimals$}")).to_owned()
}

fn without_trailing_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

fn string(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if text.len() < STRING_BYTES_MAX {
        return write!(f, "\"{text}\"");
    }
    let end = (0..=STRING_BYTES_KEPT).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    write!(f, "\"{}...\"", &text[..end])
}

fn binary(subtype: u8, bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if subtype == 4 && bytes.len() == 16 {
        f.write_str("UUID(\"")?;
        for (index, byte) in bytes.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                f.write_char('-')?;
            }
            write!(f, "{byte:02x}")?;
        }
        return f.write_str("\")");
    }
    write!(f, "BinData({subtype}, ")?;
    let shown = if bytes.len() > BINARY_BYTES_MAX { BINARY_BYTES_KEPT } else { bytes.len() };
    bytes[..shown].iter().try_for_each(|byte| write!(f, "{byte:02X}"))?;
    f.write_str(if shown < bytes.len() { "...)" } else { ")" })
}

/// Formats a value as evaluation errors do: `"x"`, `[1, 2]`, `{a: 1}`.
pub fn display(value: Value<'_>) -> String {
    let mut text = String::new();
    write_display(value, &mut text);
    text
}

fn write_display(value: Value<'_>, out: &mut String) {
    let written = match value {
        Value::Double(number) => write!(out, "{}", general(number, 6)),
        Value::String(text) => write!(out, "\"{text}\""),
        Value::Document(document) => return write_document(document, out),
        Value::Array(array) => return write_array(array, out),
        Value::DateTime(milliseconds) => write!(out, "{}", crate::calendar::iso_text(milliseconds)),
        value => write!(out, "{}", self::value(value)),
    };
    // Writing to a string cannot fail.
    debug_assert!(written.is_ok());
}

fn write_document(document: Doc<'_>, out: &mut String) {
    out.push('{');
    for (index, (name, value)) in document.iter().counted().enumerate() {
        out.push_str(if index == 0 { "" } else { ", " });
        out.push_str(name);
        out.push_str(": ");
        write_display(value, out);
    }
    out.push('}');
}

fn write_array(array: Doc<'_>, out: &mut String) {
    out.push('[');
    for (index, value) in array.values().counted().enumerate() {
        out.push_str(if index == 0 { "" } else { ", " });
        write_display(value, out);
    }
    out.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{array, doc};

    fn check(input: Value<'_>, expected: &str) {
        assert_eq!(value(input).to_string(), expected);
    }

    #[test]
    fn spells_values_as_the_server_does() {
        check(1.0.into(), "1.0");
        check(1e20.into(), "1e+20.0");
        check(1e-7.into(), "1e-07.0");
        check(0.1.into(), "0.1");
        check((-0.0).into(), "-0.0");
        check(f64::NAN.into(), "nan.0");
        check(123456789.123.into(), "123456789.123");
        check((&doc! {}).into(), "{}");
        check((&doc! { "a": 1, "b": &array!["x", 2.5] }).into(), "{ a: 1, b: [ \"x\", 2.5 ] }");
        check(Value::Binary { subtype: 5, bytes: b"abc" }, "BinData(5, 616263)");
        check(Value::Timestamp { time: 5, increment: 1 }, "Timestamp(5, 1)");
    }

    #[test]
    fn text_that_is_not_utf8_has_replacement_characters() {
        let text = document::ValueBuf::from_string_bytes(b"a\xE9b");
        check(text.as_value(), "\"a\u{FFFD}b\"");
        check(Value::IllFormed { kind: Kind::Code, raw: text.raw_value() }, "a\u{FFFD}b");
        check(Value::IllFormed { kind: Kind::Regex, raw: b"\xE9\0i\0" }, "/\u{FFFD}/i");
    }
}
