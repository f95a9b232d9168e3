//! Decodes the documents of a reply, and compares each with the contents of its version.

use super::check::{Group, Observed};
use super::layout::{Layout, Version};
use document::{Doc, Value};

/// The fields of a document besides `_id`.
pub type FieldNames = &'static [&'static str];

pub const ALL_FIELDS: FieldNames = &["v", "b", "t", "g", "n", "s", "j", "pad"];
pub const PROJECTED_FIELDS: FieldNames = &["v", "s", "g"];
/// With an array of documents of another collection, which is not decoded here.
pub const JOINED_FIELDS: FieldNames = &["v", "b", "t", "g", "n", "s", "j", "pad", "joined"];

/// Returns a document's id and version; fails unless all its fields match the version.
pub fn document(layout: &Layout, document: Doc<'_>, field_names: FieldNames) -> Result<Observed, String> {
    let number = |name: &str| match document.get(name) {
        Some(Value::Int32(number)) if number >= 0 => Ok(number as u32),
        _ => Err(format!("a document without {name}: {document:?}")),
    };
    let observed = Observed { id: number("_id")?, version: number("v")? as Version };
    if observed.id >= layout.count() {
        return Err(format!("a document that was never written: {document:?}"));
    }
    let fields = layout.fields(observed.id, observed.version);
    let mut count = 0;
    for element in document.elements() {
        let name = element.key();
        let (value, expected) = (
            element.value(),
            match name {
                "_id" => continue,
                "v" => fields.v,
                "b" => fields.b,
                "t" => fields.t,
                "g" => fields.g,
                "n" => fields.n,
                "j" => fields.j,
                "s" | "pad" | "joined" => 0,
                _ => return Err(format!("a field that was never written, {name}: {document:?}")),
            },
        );
        let matches = match name {
            "s" => value.as_str() == Some(&fields.s),
            "joined" => value.as_array().is_some(),
            "pad" => value.as_str().is_some_and(|text| text.len() == layout.pad),
            _ => value == Value::Int32(expected),
        };
        if !matches || !field_names.contains(&name) {
            return Err(format!("the field {name} does not belong to version {}: {document:?}", fields.v));
        }
        count += 1;
    }
    if count != field_names.len() {
        return Err(format!("{count} fields instead of {}: {document:?}", field_names.len()));
    }
    Ok(observed)
}

/// Decodes the documents of a batch.
pub fn batch(layout: &Layout, batch: Doc<'_>, field_names: FieldNames) -> Result<Vec<Observed>, String> {
    let one = |value: Value<'_>| match value {
        Value::Document(found) => document(layout, found, field_names),
        other => Err(format!("{other:?} in a batch")),
    };
    batch.values().map(one).collect()
}

/// Decodes an array of numbers, as `distinct` returns it.
pub fn numbers(values: Doc<'_>) -> Result<Vec<i32>, String> {
    let one = |value: Value<'_>| match value {
        Value::Int32(number) => Ok(number),
        other => Err(format!("{other:?} among groups")),
    };
    values.values().map(one).collect()
}

/// Decodes rows `{_id, count, sum}`.
pub fn groups(batch: Doc<'_>) -> Result<Vec<Group>, String> {
    let one = |value: Value<'_>| {
        let row = value.as_document()?;
        let number = |name| row.get(name).and_then(Value::to_i64);
        Some(Group { group: number("_id")? as i32, count: number("count")?, sum: number("sum")? })
    };
    batch.values().map(|value| one(value).ok_or_else(|| format!("{value:?} among groups"))).collect()
}
