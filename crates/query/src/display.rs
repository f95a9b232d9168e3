//! Values as MongoDB spells them in its error messages.

use document::{Doc, Value};
use std::fmt::{self, Write};

/// Writes a value the way the server does: `{ a: 1, b: [ "x" ] }`.
pub struct Shell<'a>(pub Value<'a>);

/// Writes `name: value`, as the server names an element it complains about.
pub(crate) fn element_text(name: &str, value: Value<'_>) -> String {
    format!("{name}: {}", Shell(value))
}

impl fmt::Display for Shell<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Double(number) => f.write_str(&double_text(number)),
            Value::String(text) | Value::Symbol(text) => write!(f, "\"{text}\""),
            Value::Document(document) => write_document(f, document),
            Value::Array(array) => write_array(f, array),
            Value::Binary { subtype, bytes } => {
                write!(f, "BinData({subtype}, ")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02X}"))?;
                f.write_char(')')
            }
            Value::Undefined => f.write_str("undefined"),
            Value::ObjectId(id) => write!(f, "ObjectId('{id}')"),
            Value::Boolean(flag) => write!(f, "{flag}"),
            Value::DateTime(milliseconds) => write!(f, "new Date({milliseconds})"),
            Value::Null => f.write_str("null"),
            Value::Regex { pattern, options } => write!(f, "/{pattern}/{options}"),
            Value::DbPointer { namespace, id } => write!(f, "DBRef('{namespace}', {id})"),
            Value::Code(code) => f.write_str(code),
            Value::CodeWithScope { code, scope } => {
                write!(f, "CodeWScope( {code}, ")?;
                write_document(f, scope)?;
                f.write_char(')')
            }
            Value::Int32(number) => write!(f, "{number}"),
            Value::Timestamp { time, increment } => write!(f, "Timestamp({time}, {increment})"),
            Value::Int64(number) => write!(f, "{number}"),
            Value::Decimal128(number) => f.write_str(&crate::expression::decimal::text(number)),
            Value::MaxKey => f.write_str("MaxKey"),
            Value::MinKey => f.write_str("MinKey"),
        }
    }
}

fn write_document(f: &mut fmt::Formatter<'_>, document: Doc<'_>) -> fmt::Result {
    if document.is_empty() {
        return f.write_str("{}");
    }
    for (index, (key, value)) in document.iter().enumerate() {
        write!(f, "{}{key}: {}", if index == 0 { "{ " } else { ", " }, Shell(value))?;
    }
    f.write_str(" }")
}

fn write_array(f: &mut fmt::Formatter<'_>, array: Doc<'_>) -> fmt::Result {
    if array.is_empty() {
        return f.write_str("[]");
    }
    for (index, value) in array.values().enumerate() {
        write!(f, "{}{}", if index == 0 { "[ " } else { ", " }, Shell(value))?;
    }
    f.write_str(" ]")
}

/// A double with at least one digit behind the point: `1.0`, `0.5`, `1e+30.0`.
fn double_text(number: f64) -> String {
    if number.is_nan() {
        return "nan.0".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf.0" } else { "-inf.0" }.to_owned();
    }
    let text = document_double(number);
    if text.contains('.') { text } else { format!("{text}.0") }
}

/// A double with up to 15 significant digits, in C's `%.15g`, or 17 where 15 do not bring it back.
pub(crate) fn document_double(number: f64) -> String {
    let short = general(number, 15);
    if short.parse() == Ok(number) { short } else { general(number, 17) }
}

/// C's `%.{digits}g`.
pub(crate) fn general(number: f64, digits: usize) -> String {
    if number == 0.0 {
        return if number.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    let scientific = format!("{number:.*e}", digits - 1);
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
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
