//! Applies a difference to a document.

use document::{Doc, DocWriter, Element, Kind, Value};
use error::{Error, Result};
use std::collections::BTreeMap;

/// Appends the document that results from applying `difference` to `before`. Fails with 1 if the
/// difference is malformed.
pub fn apply(before: Doc<'_>, difference: Doc<'_>, out: &mut Vec<u8>) -> Result<()> {
    let mut writer = DocWriter::begin(out);
    apply_fields(before, difference, &mut writer)
}

/// The change of a field.
#[derive(Clone, Copy)]
enum FieldChange<'d> {
    /// Removed, or removed here and appended.
    Removed,
    Updated(Element<'d>),
    Nested(Doc<'d>),
}

fn apply_fields(before: Doc<'_>, difference: Doc<'_>, writer: &mut DocWriter<'_>) -> Result<()> {
    let mut changes: BTreeMap<&[u8], FieldChange<'_>> = BTreeMap::new();
    let mut inserted = Doc::EMPTY;
    for section in difference.elements() {
        let fields = section.value().as_document().ok_or_else(malformed)?;
        match section.key_bytes() {
            b"d" => changes.extend(fields.elements().map(|field| (field.key_bytes(), FieldChange::Removed))),
            b"u" => changes.extend(fields.elements().map(|field| (field.key_bytes(), FieldChange::Updated(field)))),
            b"i" => {
                inserted = fields;
                changes.extend(fields.elements().map(|field| (field.key_bytes(), FieldChange::Removed)));
            }
            [b's', name @ ..] => drop(changes.insert(name, FieldChange::Nested(fields))),
            _ => return Err(malformed()),
        }
    }
    for element in before.elements() {
        steps::step();
        match changes.remove(element.key_bytes()) {
            None => writer.append_element(element),
            Some(FieldChange::Removed) => {}
            Some(FieldChange::Updated(new)) => writer.append_element(new),
            Some(FieldChange::Nested(nested)) => append_nested(element.key_bytes(), element, nested, writer)?,
        }
    }
    inserted.elements().for_each(|element| writer.append_element(element));
    Ok(())
}

fn append_nested(key: &[u8], element: Element<'_>, difference: Doc<'_>, writer: &mut DocWriter<'_>) -> Result<()> {
    let mut bytes = Vec::new();
    let before = Doc::from_bytes(element.raw_value());
    match (element.kind, before) {
        (Kind::Document, Some(before)) => apply(before, difference, &mut bytes)?,
        (Kind::Array, Some(before)) => apply_elements(before, difference, &mut bytes)?,
        _ => return Err(malformed()),
    }
    writer.append_raw(element.kind, key, &bytes);
    Ok(())
}

fn apply_elements(before: Doc<'_>, difference: Doc<'_>, out: &mut Vec<u8>) -> Result<()> {
    let mut writer = DocWriter::begin(out);
    let mut length_max = usize::MAX;
    let mut old = before.elements();
    let mut next = 0;
    for change in difference.elements() {
        let (kind, rest) = change.key_bytes().split_first().ok_or_else(malformed)?;
        let index = || std::str::from_utf8(rest).ok()?.parse::<usize>().ok();
        match (kind, change.value()) {
            (b'a', _) => {}
            (b'l', length) => {
                length_max = length.to_i64().and_then(|length| usize::try_from(length).ok()).ok_or_else(malformed)?;
            }
            (b'u', _) => {
                let index = index().ok_or_else(malformed)?;
                copy_until(index, &mut next, &mut old, &mut writer);
                old.next();
                writer.append_raw(change.kind, index.to_string().as_bytes(), change.raw_value());
                next += 1;
            }
            (b's', Value::Document(nested)) => {
                let index = index().ok_or_else(malformed)?;
                copy_until(index, &mut next, &mut old, &mut writer);
                let element = old.next().ok_or_else(malformed)?;
                append_nested(index.to_string().as_bytes(), element, nested, &mut writer)?;
                next += 1;
            }
            _ => return Err(malformed()),
        }
    }
    for element in old {
        if next >= length_max {
            break;
        }
        writer.append_raw(element.kind, next.to_string().as_bytes(), element.raw_value());
        next += 1;
    }
    Ok(())
}

/// Copies the elements before `index`, and fills with nulls behind the last.
fn copy_until<'d>(
    index: usize,
    next: &mut usize,
    old: &mut impl Iterator<Item = Element<'d>>,
    writer: &mut DocWriter<'_>,
) {
    while *next < index {
        steps::step();
        match old.next() {
            Some(element) => writer.append_raw(element.kind, next.to_string().as_bytes(), element.raw_value()),
            None => writer.append(&next.to_string(), Value::Null),
        }
        *next += 1;
    }
}

fn malformed() -> Error {
    Error::internal("a logged difference of documents is malformed")
}
