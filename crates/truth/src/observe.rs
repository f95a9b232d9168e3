//! Takes the documents out of an answer, and holds each against what its version says it holds.

use super::check::{Group, Observed};
use super::layout::{Layout, Version};
use document::{Doc, Value};

/// Which fields a document has to have beside `_id`.
pub type Shape = &'static [&'static str];

pub const WHOLE: Shape = &["v", "b", "t", "g", "n", "s", "j", "pad"];
pub const PART: Shape = &["v", "s", "g"];
/// With an array of documents of another collection, which is not looked into here.
pub const JOINED: Shape = &["v", "b", "t", "g", "n", "s", "j", "pad", "joined"];

/// A document's number and version, all of whose fields are right.
pub fn document(layout: &Layout, document: Doc<'_>, shape: Shape) -> Result<Observed, String> {
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
        let right = match name {
            "s" => value.as_str() == Some(&fields.s),
            "joined" => value.as_array().is_some(),
            "pad" => value.as_str().is_some_and(|text| text.len() == layout.pad),
            _ => value == Value::Int32(expected),
        };
        if !right || !shape.contains(&name) {
            return Err(format!("the field {name} does not belong to version {}: {document:?}", fields.v));
        }
        count += 1;
    }
    if count != shape.len() {
        return Err(format!("{count} fields instead of {}: {document:?}", shape.len()));
    }
    Ok(observed)
}

/// The documents of a batch.
pub fn batch(layout: &Layout, batch: Doc<'_>, shape: Shape) -> Result<Vec<Observed>, String> {
    let one = |value: Value<'_>| match value {
        Value::Document(found) => document(layout, found, shape),
        other => Err(format!("{other:?} in a batch")),
    };
    batch.values().map(one).collect()
}

/// Numbers of an array, as `distinct` gives them.
pub fn numbers(values: Doc<'_>) -> Result<Vec<i32>, String> {
    let one = |value: Value<'_>| match value {
        Value::Int32(number) => Ok(number),
        other => Err(format!("{other:?} among groups")),
    };
    values.values().map(one).collect()
}

/// Rows `{_id, count, sum}`.
pub fn groups(batch: Doc<'_>) -> Result<Vec<Group>, String> {
    let one = |value: Value<'_>| {
        let row = value.as_document()?;
        let number = |name| row.get(name).and_then(Value::to_i64);
        Some(Group { group: number("_id")? as i32, count: number("count")?, sum: number("sum")? })
    };
    batch.values().map(|value| one(value).ok_or_else(|| format!("{value:?} among groups"))).collect()
}
