//! The check that bytes from outside must pass before any other code reads them.

use crate::raw::{Doc, find_zero, read_length};
use crate::value::{Kind, Value};
use crate::{DEPTH_MAX, names};
use std::fmt;

/// The reason why bytes are not a BSON document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// A length prefix reaches past the end, or ends before it.
    Length,
    /// A type byte that BSON does not define.
    Kind(u8),
    /// A field name that is not UTF-8.
    Utf8,
    /// A string without its closing zero.
    Unterminated,
    /// A boolean that is neither 0 nor 1.
    Boolean,
    /// More than [`DEPTH_MAX`] levels.
    Depth,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Invalid::Length => write!(f, "a length does not fit the bytes that follow"),
            Invalid::Kind(byte) => write!(f, "unrecognized BSON type {byte:#04x}"),
            Invalid::Utf8 => write!(f, "a field name is not valid UTF-8"),
            Invalid::Unterminated => write!(f, "a string is not terminated"),
            Invalid::Boolean => write!(f, "a boolean is neither 0 nor 1"),
            Invalid::Depth => write!(f, "more than {DEPTH_MAX} levels of nesting"),
        }
    }
}

impl std::error::Error for Invalid {}

/// Checks the document at the front of `bytes` completely: lengths, types, names in UTF-8, depth.
/// Text in values may have any bytes: reading it distinguishes [`Value::String`] from
/// [`Value::IllFormed`]. Bytes behind the document are left to the caller.
pub fn check(bytes: &[u8]) -> Result<Doc<'_>, Invalid> {
    let document = Doc::from_prefix(bytes).ok_or(Invalid::Length)?;
    check_elements::<false>(document.as_bytes(), 1)?;
    Ok(document)
}

/// As [`check`], for a document as clients send it: also fails with [`Invalid::Utf8`] for a name
/// that must be escaped (see [`crate::names`]).
pub fn check_sent(bytes: &[u8]) -> Result<Doc<'_>, Invalid> {
    let document = Doc::from_prefix(bytes).ok_or(Invalid::Length)?;
    check_elements::<true>(document.as_bytes(), 1)?;
    Ok(document)
}

fn check_elements<const SENT: bool>(document: &[u8], depth: usize) -> Result<(), Invalid> {
    if depth > DEPTH_MAX {
        return Err(Invalid::Depth);
    }
    let (&last, _) = document.split_last().ok_or(Invalid::Length)?;
    if last != 0 {
        return Err(Invalid::Length);
    }
    let mut rest = document.get(4..document.len() - 1).ok_or(Invalid::Length)?;
    while let Some((&tag, after_tag)) = rest.split_first() {
        let kind = Kind::from_byte(tag).ok_or(Invalid::Kind(tag))?;
        let key_length = find_zero(after_tag).ok_or(Invalid::Unterminated)?;
        check_name::<SENT>(&after_tag[..key_length])?;
        let value = &after_tag[key_length + 1..];
        let length = kind.value_length(value).ok_or(Invalid::Length)?;
        let raw = value.get(..length).ok_or(Invalid::Length)?;
        check_within::<SENT>(kind, raw, depth)?;
        rest = &value[length..];
    }
    Ok(())
}

/// Returns whether a document has more than `levels` levels of documents and arrays, itself being
/// the first. Inserts and updates check [`crate::DEPTH_STORED_MAX`]; fast for small documents.
pub fn is_deeper_than(document: Doc<'_>, levels: usize) -> bool {
    /// Type, an empty key's zero, length and the closing zero.
    const LEVEL_BYTES_MIN: usize = 7;
    if document.size() / LEVEL_BYTES_MIN < levels {
        return false;
    }
    levels == 0
        || document.elements().any(|element| match element.value() {
            Value::Document(inner) | Value::Array(inner) | Value::CodeWithScope { scope: inner, .. } => {
                is_deeper_than(inner, levels - 1)
            }
            Value::IllFormed { .. } => {
                element.value().texts().is_some_and(|parts| is_deeper_than(parts.scope, levels - 1))
            }
            _ => false,
        })
}

/// Returns the dotted path to the value that is nested too deep, in a document that [`check`]
/// refuses with [`Invalid::Depth`].
pub fn path_beyond_depth(document: Doc<'_>) -> Option<String> {
    let mut names = Vec::with_capacity(DEPTH_MAX);
    is_beyond_depth(document, 1, &mut names).then(|| names.join("."))
}

fn is_beyond_depth(document: Doc<'_>, depth: usize, names: &mut Vec<String>) -> bool {
    depth > DEPTH_MAX
        || document.elements().any(|element| {
            let inner = match element.value() {
                Value::Document(inner) | Value::Array(inner) | Value::CodeWithScope { scope: inner, .. } => inner,
                value => value.texts().map_or(Doc::EMPTY, |parts| parts.scope),
            };
            if inner.is_empty() && !matches!(element.kind, Kind::Document | Kind::Array | Kind::CodeWithScope) {
                return false;
            }
            names.push(String::from_utf8_lossy(element.key_bytes()).into_owned());
            let found = is_beyond_depth(inner, depth + 1, names);
            if !found {
                names.pop();
            }
            found
        })
}

/// Checks a value's bytes, which must be all of `raw`. `depth` counts the documents around it.
pub fn check_value(kind: Kind, raw: &[u8], depth: usize) -> Result<(), Invalid> {
    match kind.value_length(raw) {
        Some(length) if length == raw.len() => check_within::<false>(kind, raw, depth),
        _ => Err(Invalid::Length),
    }
}

/// `raw` has the length that the type requires.
fn check_within<const SENT: bool>(kind: Kind, raw: &[u8], depth: usize) -> Result<(), Invalid> {
    match kind {
        Kind::String | Kind::Code | Kind::Symbol => check_string(raw),
        Kind::Document | Kind::Array => {
            exact_length(raw)?;
            check_elements::<SENT>(raw, depth + 1)
        }
        Kind::Boolean if raw.first() > Some(&1) => Err(Invalid::Boolean),
        Kind::DbPointer => {
            let length = raw.len().checked_sub(12).ok_or(Invalid::Length)?;
            check_string(raw.get(..length).ok_or(Invalid::Length)?)
        }
        Kind::CodeWithScope => {
            let body = raw.get(4..).ok_or(Invalid::Length)?;
            let code_length = read_length(body).and_then(|length| length.checked_add(4)).ok_or(Invalid::Length)?;
            check_string(body.get(..code_length).ok_or(Invalid::Length)?)?;
            let scope = body.get(code_length..).ok_or(Invalid::Length)?;
            exact_length(scope)?;
            check_elements::<SENT>(scope, depth + 1)
        }
        _ => Ok(()),
    }
}

fn exact_length(raw: &[u8]) -> Result<(), Invalid> {
    if raw.len() < 5 || read_length(raw) != Some(raw.len()) { Err(Invalid::Length) } else { Ok(()) }
}

fn check_string(raw: &[u8]) -> Result<(), Invalid> {
    let body = raw.get(4..).ok_or(Invalid::Length)?;
    match body.last() {
        None => Err(Invalid::Length),
        Some(0) => Ok(()),
        Some(_) => Err(Invalid::Unterminated),
    }
}

/// Most names are ASCII, which is checked faster.
#[inline]
fn check_name<const SENT: bool>(name: &[u8]) -> Result<(), Invalid> {
    let is_text = |name| std::str::from_utf8(name).is_ok_and(|text| !SENT || !text.contains(names::MARK));
    if name.is_ascii() || is_text(name) { Ok(()) } else { Err(Invalid::Utf8) }
}

#[cfg(test)]
mod tests;
