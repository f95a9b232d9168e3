//! Field names that are not UTF-8.
//!
//! MongoDB stores field names of any bytes. Within Selkie a name is text: paths, projections, index
//! keys and JSON are made of names in a hundred places. So such names are escaped on arrival
//! ([`escape_document`]) and restored in replies ([`restore_reply`]), and no code in between knows
//! of them. A byte that is not part of UTF-8 is escaped as [`MARK`] and the character with the
//! byte's number (U+0180 to U+019F for bytes below A0): `n\xE9` is `n`, U+10FFFF, `é`. U+10FFFF,
//! which is no character and occurs in no text, is itself escaped byte by byte, so that no two
//! names of clients become equal.
//!
//! Code that turns a name into a string, or a string into a name, must restore or escape it
//! ([`restore`], [`escape`]). The order of names is that of the restored names.
//!
//! Replies are searched for escaped names only if there may be any ([`may_be_escaped`]): after a
//! client has sent one, or if the store may have some.

use crate::raw::{Doc, find_zero, read_length};
use crate::validate::Invalid;
use crate::value::{Kind, Value};
use crate::{DEPTH_MAX, DocWriter, Element};
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

/// In front of an escaped byte: U+10FFFF in UTF-8.
pub const MARK: &str = "\u{10FFFF}";

/// Whether this process has received an escaped name, or the store may have one.
static MAY_BE_ESCAPED: AtomicBool = AtomicBool::new(false);

/// Returns whether there may be escaped names.
#[inline]
pub fn may_be_escaped() -> bool {
    MAY_BE_ESCAPED.load(Ordering::Relaxed)
}

/// Records that there may be escaped names from now on.
pub fn note_escaped() {
    MAY_BE_ESCAPED.store(true, Ordering::Relaxed);
}

/// Returns whether bytes may contain an escape.
pub fn has_mark(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, MARK.as_bytes()).is_some()
}

/// Returns the name as text.
pub fn escape(name: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(name) {
        Ok(text) if !text.contains(MARK) => Cow::Borrowed(text),
        _ => {
            let mut text = String::with_capacity(2 * name.len());
            escape_to(name, &mut text);
            note_escaped();
            Cow::Owned(text)
        }
    }
}

fn escape_to(name: &[u8], text: &mut String) {
    let escape_all = |bytes: &[u8], text: &mut String| {
        for byte in bytes {
            text.push_str(MARK);
            text.push(character(*byte));
        }
    };
    for chunk in name.utf8_chunks() {
        for (index, part) in chunk.valid().split(MARK).enumerate() {
            if index > 0 {
                escape_all(MARK.as_bytes(), text);
            }
            text.push_str(part);
        }
        escape_all(chunk.invalid(), text);
    }
}

/// Returns the character for a byte. Bytes that would be control characters get letters of another
/// block: an index on MariaDB cannot have control characters in its paths.
fn character(byte: u8) -> char {
    match byte {
        0x80..0xA0 => char::from_u32(0x100 + u32::from(byte)).unwrap_or(char::REPLACEMENT_CHARACTER),
        byte => char::from(byte),
    }
}

/// Returns the name that a text was escaped from.
pub fn restore(text: &str) -> Cow<'_, [u8]> {
    restore_bytes(text.as_bytes())
}

/// As [`restore`], for the bytes of a name in a document.
pub fn restore_bytes(text: &[u8]) -> Cow<'_, [u8]> {
    // Most names are ASCII, which is checked faster.
    if !may_be_escaped() || text.is_ascii() || !has_mark(text) {
        return Cow::Borrowed(text);
    }
    let mut name = Vec::with_capacity(text.len());
    restore_to(text, &mut name);
    Cow::Owned(name)
}

fn restore_to(mut text: &[u8], name: &mut Vec<u8>) {
    while let Some(at) = memchr::memmem::find(text, MARK.as_bytes()) {
        name.extend_from_slice(&text[..at]);
        let behind = &text[at + MARK.len()..];
        // U+00A0 to U+00FF, and U+0180 to U+019F.
        match behind {
            [first @ 0xC2, second @ 0xA0..=0xBF, rest @ ..]
            | [first @ 0xC3, second, rest @ ..]
            | [first @ 0xC6, second @ 0x80..=0x9F, rest @ ..] => {
                name.push((first & 0b11) << 6 | second & 0b11_1111);
                text = rest;
            }
            // Not an escape of ours.
            rest => {
                name.extend_from_slice(MARK.as_bytes());
                text = rest;
            }
        }
    }
    name.extend_from_slice(text);
}

/// Returns text with U+FFFD in place of each escaped byte, for messages.
fn shown(text: &str) -> String {
    let mut name = Vec::with_capacity(text.len());
    restore_to(text.as_bytes(), &mut name);
    String::from_utf8_lossy(&name).into_owned()
}

/// Appends the document at the front of `bytes` with its names escaped. Returns its size in
/// `bytes`. Checks lengths only as far as needed; the result must be validated like any document.
/// Fails if it would be larger than `bytes_max`.
pub fn escape_document(bytes: &[u8], out: &mut Vec<u8>, bytes_max: usize) -> Result<usize, Invalid> {
    let document = Doc::from_prefix(bytes).ok_or(Invalid::Length)?.as_bytes();
    note_escaped();
    escape_elements(document, out, 1, bytes_max)?;
    Ok(document.len())
}

fn escape_elements(document: &[u8], out: &mut Vec<u8>, depth: usize, bytes_max: usize) -> Result<(), Invalid> {
    if depth > DEPTH_MAX {
        return Err(Invalid::Depth);
    }
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    let mut rest = document.get(4..document.len().saturating_sub(1)).ok_or(Invalid::Length)?;
    while let Some((&tag, after_tag)) = rest.split_first() {
        let kind = Kind::from_byte(tag).ok_or(Invalid::Kind(tag))?;
        let name_length = find_zero(after_tag).ok_or(Invalid::Unterminated)?;
        let value = &after_tag[name_length + 1..];
        let length = kind.value_length(value).ok_or(Invalid::Length)?;
        let raw = value.get(..length).ok_or(Invalid::Length)?;
        out.push(tag);
        out.extend_from_slice(escape(&after_tag[..name_length]).as_bytes());
        out.push(0);
        escape_value(kind, raw, out, depth, bytes_max)?;
        if out.len() > bytes_max {
            return Err(Invalid::Length);
        }
        rest = &value[length..];
    }
    out.extend_from_slice(document.last().map(std::slice::from_ref).unwrap_or_default());
    fill_length(out, start)
}

fn escape_value(kind: Kind, raw: &[u8], out: &mut Vec<u8>, depth: usize, bytes_max: usize) -> Result<(), Invalid> {
    match kind {
        Kind::Document | Kind::Array => {
            let inner = Doc::from_bytes(raw).ok_or(Invalid::Length)?;
            escape_elements(inner.as_bytes(), out, depth + 1, bytes_max)
        }
        Kind::CodeWithScope => {
            let start = out.len();
            let body = raw.get(4..).ok_or(Invalid::Length)?;
            let code_length = read_length(body).and_then(|length| length.checked_add(4)).ok_or(Invalid::Length)?;
            let (code, scope) = body.split_at_checked(code_length).ok_or(Invalid::Length)?;
            let scope = Doc::from_bytes(scope).ok_or(Invalid::Length)?;
            out.extend_from_slice(&[0; 4]);
            out.extend_from_slice(code);
            escape_elements(scope.as_bytes(), out, depth + 1, bytes_max)?;
            fill_length(out, start)
        }
        _ => {
            out.extend_from_slice(raw);
            Ok(())
        }
    }
}

fn fill_length(out: &mut [u8], start: usize) -> Result<(), Invalid> {
    let length = i32::try_from(out.len() - start).map_err(|_| Invalid::Length)?;
    out.get_mut(start..start + 4).ok_or(Invalid::Length)?.copy_from_slice(&length.to_le_bytes());
    Ok(())
}

/// Restores the names in a reply, from `start` to the end of `buffer`. In error messages, bytes
/// that are not UTF-8 become U+FFFD.
pub fn restore_reply(buffer: &mut Vec<u8>, start: usize) {
    if !may_be_escaped() || !has_mark(buffer.get(start..).unwrap_or_default()) {
        return;
    }
    let escaped = buffer.split_off(start.min(buffer.len()));
    match Doc::from_bytes(&escaped) {
        Some(reply) => restore_with(reply, buffer, &restore_reply_element),
        None => buffer.extend_from_slice(&escaped),
    }
}

/// Appends the document with its names restored.
pub fn restore_document(document: Doc<'_>, out: &mut Vec<u8>) {
    restore_with(document, out, &restore_element);
}

/// Returns the size of a document with its names restored.
pub fn restored_size(document: Doc<'_>) -> usize {
    if !may_be_escaped() || !has_mark(document.as_bytes()) {
        return document.size();
    }
    let mut restored = Vec::with_capacity(document.size());
    restore_document(document, &mut restored);
    restored.len()
}

fn restore_with(document: Doc<'_>, out: &mut Vec<u8>, element: &dyn Fn(Element<'_>, &mut DocWriter<'_>)) {
    let mut writer = DocWriter::begin(out);
    document.elements().for_each(|it| element(it, &mut writer));
}

fn restore_element(element: Element<'_>, writer: &mut DocWriter<'_>) {
    let mut name = Vec::with_capacity(element.key_bytes().len());
    restore_to(element.key_bytes(), &mut name);
    restore_value(element, &name, writer, &restore_element);
}

fn restore_value(
    element: Element<'_>,
    name: &[u8],
    writer: &mut DocWriter<'_>,
    within: &dyn Fn(Element<'_>, &mut DocWriter<'_>),
) {
    match element.value() {
        Value::Document(inner) | Value::Array(inner) => {
            writer.append_raw(element.kind, name, &[]);
            restore_with(inner, writer.buffer, within);
        }
        value => match value.texts().filter(|_| element.kind == Kind::CodeWithScope) {
            Some(parts) => {
                let mut scope = Vec::with_capacity(parts.scope.size());
                restore_document(parts.scope, &mut scope);
                writer.append_raw(element.kind, name, &code_with_scope(parts.text, &scope));
            }
            None => writer.append_raw(element.kind, name, element.raw_value()),
        },
    }
}

fn code_with_scope(code: &[u8], scope: &[u8]) -> Vec<u8> {
    let total = (4 + 4 + code.len() + 1 + scope.len()) as i32;
    let length = code.len() as i32 + 1;
    [&total.to_le_bytes(), &length.to_le_bytes(), code, &[0], scope].concat()
}

/// `errmsg` may contain names.
fn restore_reply_element(element: Element<'_>, writer: &mut DocWriter<'_>) {
    match (element.key_bytes(), element.value()) {
        (b"errmsg", Value::String(text)) => writer.append("errmsg", shown(text).as_str()),
        (name @ b"writeErrors", Value::Array(_)) => {
            restore_value(element, name, writer, &|error, writer| {
                restore_value(error, error.key_bytes(), writer, &|element, writer| match element.value() {
                    Value::String(text) if element.key_bytes() == b"errmsg" => {
                        writer.append("errmsg", shown(text).as_str());
                    }
                    _ => restore_element(element, writer),
                });
            });
        }
        _ => restore_element(element, writer),
    }
}

#[cfg(test)]
mod tests;
