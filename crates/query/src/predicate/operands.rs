//! Operands of filters, below any operator: names, values, types, counts.

use super::type_set::TypeSet;
use crate::limits::check_texts;
use document::{Doc, Element, Kind, Value, ValueBuf};
use error::{Error, Result};
use steps::Counted;
use values::integer::as_i64_exact;
use values::text;

/// Returns whether a document as a value contains operators: its first name begins with `$` and it
/// is no DBRef.
pub(super) fn is_operator_document(document: Doc<'_>) -> bool {
    document.first().is_some_and(|first| first.key_bytes().starts_with(b"$")) && !is_db_ref(document)
}

/// Returns whether a name with `$` is one of a DBRef's: a field, not an operator.
pub(super) fn is_reference_field(name: &str) -> bool {
    matches!(name, "$ref" | "$id" | "$db")
}

/// Returns whether a document may be a part of a DBRef.
pub(super) fn has_reference_field(document: Doc<'_>) -> bool {
    document.elements().counted().any(|element| is_reference_field(element.key()))
}

fn is_db_ref(document: Doc<'_>) -> bool {
    document.element("$ref").is_some() && document.element("$id").is_some()
}

/// Parses the operand of a comparison.
pub(super) fn comparable(value: Value<'_>) -> Result<ValueBuf> {
    match value {
        Value::Undefined => Err(Error::bad_value("cannot compare to undefined")),
        value => {
            check_texts(value)?;
            let value = ValueBuf::from(value);
            steps::bytes(value.raw_value().len());
            Ok(value)
        }
    }
}

/// Returns whether `$name` belongs to the top level of a filter rather than to a field.
pub(super) fn is_pathless(name: &str) -> bool {
    matches!(
        name,
        "and"
            | "or"
            | "nor"
            | "expr"
            | "comment"
            | "where"
            | "text"
            | "jsonSchema"
            | "sampleRate"
            | "alwaysTrue"
            | "alwaysFalse"
    )
}

/// Parses the operand of `$type`: a number or an alias, or an array of them.
pub(super) fn parse_type(field: &str, operand: Value<'_>) -> Result<TypeSet> {
    let mut types = TypeSet::default();
    match operand {
        Value::Array(list) => list.values().counted().try_for_each(|value| insert_type(value, &mut types))?,
        value => insert_type(value, &mut types)?,
    }
    if types.is_empty() {
        return Err(Error::failed_to_parse(format!("{field} must match at least one type")));
    }
    Ok(types)
}

fn insert_type(value: Value<'_>, types: &mut TypeSet) -> Result<()> {
    match value {
        Value::String("number") => types.insert_numbers(),
        Value::String(alias) => {
            let kind = (0..=255).filter_map(Kind::from_byte).find(|kind| kind.alias() == alias);
            types.insert(kind.ok_or_else(|| Error::bad_value(format!("Unknown type name alias: {alias}")))?);
        }
        Value::IllFormed { kind: Kind::String, .. } => {
            let alias = value.to_text_lossy().unwrap_or_default();
            return Err(Error::bad_value(format!("Unknown type name alias: {alias}")));
        }
        value if value.kind().is_number() => {
            let invalid = || Error::bad_value(format!("Invalid numerical type code: {}", plain_number(value)));
            let kind = match as_i64_exact(value) {
                Some(0) => {
                    return Err(Error::bad_value("Invalid numerical type code: 0. Instead use {$exists:false}."));
                }
                Some(-1) => Some(Kind::MinKey),
                Some(code) => u8::try_from(code).ok().and_then(Kind::from_byte).filter(|kind| *kind != Kind::MinKey),
                None => None,
            };
            types.insert(kind.ok_or_else(invalid)?);
        }
        _ => return Err(Error::type_mismatch("type must be represented as a number or a string")),
    }
    Ok(())
}

fn plain_number(value: Value<'_>) -> String {
    match value {
        Value::Double(number) => text::general(number, 15),
        value => text::value(value).to_string(),
    }
}

/// Returns a non-negative integer, or MongoDB's message about it.
pub(super) fn non_negative(element: Element<'_>) -> std::result::Result<i64, String> {
    let text = || text::element(element.key(), element.value()).to_string();
    if !element.kind.is_number() {
        return Err(format!("Expected a number in: {}", text()));
    }
    match as_i64_exact(element.value()) {
        Some(number) if number >= 0 => Ok(number),
        Some(_) => Err(format!("Expected a non-negative number in: {}", text())),
        None if values::integer::as_i64_truncated(element.value()).is_some() => {
            Err(format!("Expected an integer: {}", text()))
        }
        None => Err(format!("Cannot represent as a 64-bit integer: {}", text())),
    }
}
