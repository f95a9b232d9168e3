//! Replacement: a whole new document that keeps the old `_id`.

use super::target;
use super::write::{timestamp_of, write_element};
use document::compare::equal;
use document::{Doc, DocBuf, DocWriter, Kind, Value, ValueBuf};
use error::{Code, Error, Result};
use steps::Counted;
use values::text;

#[derive(Clone, Debug)]
pub(super) struct Replacement {
    /// All fields but `_id`.
    fields: DocBuf,
    id: Option<ValueBuf>,
    /// A top-level field that no replacement may have.
    dollar_field: Option<Box<str>>,
    /// Whether a top-level field is `Timestamp(0, 0)`, which is replaced by the current time.
    has_zero_timestamp: bool,
}

impl Replacement {
    pub fn new(document: Doc<'_>) -> Self {
        let others = || document.elements().counted().filter(|element| element.key_bytes() != b"_id");
        let dollar = others().find(|element| element.key_bytes().starts_with(b"$"));
        Replacement {
            fields: DocBuf::build(|writer| others().for_each(|element| writer.append_element(element))),
            id: document.get("_id").map(Value::to_owned),
            dollar_field: dollar.map(|element| element.key().into()),
            has_zero_timestamp: others().any(|element| is_zero_timestamp(element.value())),
        }
    }

    /// Writes the document of an upsert. Like inserted documents, it may have fields that begin
    /// with `$`.
    pub fn write_upsert(&self, base: Doc<'_>, now_ms: i64, out: &mut Vec<u8>) -> Result<bool> {
        check_new_id(base.get("_id"), self.id.as_ref().map(ValueBuf::as_value))?;
        let inserted = Replacement { dollar_field: None, ..self.clone() };
        inserted.apply(base, now_ms, out)
    }

    /// Writes the new document, `_id` first; returns `false` if the replacement, `_id` included,
    /// equals the old document byte by byte.
    pub fn apply(&self, old: Doc<'_>, now_ms: i64, out: &mut Vec<u8>) -> Result<bool> {
        if let Some(name) = &self.dollar_field {
            return Err(dollar_field_error(name));
        }
        let old_id = old.get("_id");
        let new_id = self.id.as_ref().map(ValueBuf::as_value);
        check_same_id(old_id, new_id)?;
        target::check_document_depth(self.fields.as_doc())?;
        let start = out.len();
        self.write(new_id.or(old_id), now_ms, out);
        Ok(new_id.is_none() || &out[start..] != old.as_bytes())
    }

    fn write(&self, id: Option<Value<'_>>, now_ms: i64, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        if let Some(id) = id {
            write_element(b"_id", id, out);
        }
        if self.has_zero_timestamp {
            for element in self.fields.as_doc().elements().counted() {
                let value = element.value();
                let value = if is_zero_timestamp(value) { timestamp_of(now_ms) } else { value };
                write_element(element.key_bytes(), value, out);
            }
        } else {
            let bytes = self.fields.as_bytes();
            out.extend_from_slice(&bytes[4..bytes.len() - 1]);
        }
        out.push(0);
        let length = (out.len() - start) as i32;
        out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    }
}

fn is_zero_timestamp(value: Value<'_>) -> bool {
    value == Value::Timestamp { time: 0, increment: 0 }
}

fn array_id_error() -> Error {
    Error::new(
        Code::NOT_SINGLE_VALUE_FIELD,
        "After applying the update to the document, the (immutable) field '_id' was found to be an array or array descendant.",
    )
}

/// Checks the `_id` of a new document: fails if it is an array, if it differs from the filter's
/// (`old`), and then like [`check_id`].
pub(super) fn check_new_id(old: Option<Value<'_>>, new: Option<Value<'_>>) -> Result<()> {
    match (old, new) {
        (_, Some(Value::Array(_))) | (Some(Value::Array(_)), None) => Err(array_id_error()),
        (Some(old), Some(new)) if !equal(old, new) => Err(changed_id_error(new)),
        _ => Ok(()),
    }
}

/// Fails if the `_id` differs from the old one, and like [`check_id`].
pub(super) fn check_same_id(old: Option<Value<'_>>, new: Option<Value<'_>>) -> Result<()> {
    let (Some(old), Some(new)) = (old, new) else {
        return Ok(());
    };
    check_id(new)?;
    if equal(old, new) {
        return Ok(());
    }
    Err(changed_id_error(new))
}

fn changed_id_error(new: Value<'_>) -> Error {
    let new = text::element("_id", new);
    let message =
        format!("After applying the update, the (immutable) field '_id' was found to have been altered to {new}");
    Error::new(Code::IMMUTABLE_FIELD, message)
}

/// Fails if a value is not allowed as an `_id`.
pub fn check_id(id: Value<'_>) -> Result<()> {
    match id {
        Value::Array(_) | Value::Regex { .. } | Value::IllFormed { kind: Kind::Regex, .. } | Value::Undefined => {
            Err(Error::new(Code::INVALID_ID_FIELD, format!("The '_id' value cannot be of type {}", id.kind().alias())))
        }
        Value::Document(document) => check_id_fields(document),
        _ => Ok(()),
    }
}

fn check_id_fields(document: Doc<'_>) -> Result<()> {
    for element in document.elements().counted() {
        if element.key_bytes().starts_with(b"$") {
            return Err(Error::new(
                Code::DOLLAR_PREFIXED_FIELD_NAME,
                format!("_id fields may not contain '$'-prefixed fields: {} is not valid for storage.", element.key()),
            ));
        }
        if let Value::Document(nested) | Value::Array(nested) = element.value() {
            check_id_fields(nested)?;
        }
    }
    Ok(())
}

pub(super) fn dollar_field_error(name: &str) -> Error {
    Error::new(
        Code::DOLLAR_PREFIXED_FIELD_NAME,
        format!(
            "The dollar ($) prefixed field '{name}' in '{name}' is not allowed in the context of an update's replacement \
             document. Consider using an aggregation pipeline with $replaceWith."
        ),
    )
}

/// Writes `document` with its `_id` first; adds `id` if it has none.
pub(super) fn write_id_first(document: Doc<'_>, id: Value<'_>, out: &mut Vec<u8>) {
    let mut writer = DocWriter::begin(out);
    writer.append("_id", document.get("_id").unwrap_or(id));
    let others = document.elements().counted().filter(|element| element.key_bytes() != b"_id");
    others.for_each(|element| writer.append_element(element));
}
