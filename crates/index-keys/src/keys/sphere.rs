//! The keys of a `2dsphere` index: one per cell that covers a geometry, combined with each value of
//! the other fields.
//!
//! A document without any geometry has none.

use super::encode_field;
use crate::{IndexField, IndexShape};
use document::path::Path;
use document::{Doc, Value};
use error::Result;
use std::ops::ControlFlow;
use store::index_kind::SphereOptions;
use store::{FieldKind, geo_keys};

/// The byte in front of a cell's number; it sorts cells behind documents without a geometry.
const CELL: u8 = 0x80;

/// Part of a key: its bytes, and the value they encode.
type Part<'a> = (Vec<u8>, Value<'a>);

pub fn for_each_key(
    document: Doc<'_>,
    index: &IndexShape,
    options: &SphereOptions,
    give: &mut dyn FnMut(&[u8], &[Value<'_>]),
) -> Result<()> {
    let mut fields: Vec<Vec<Part<'_>>> = Vec::with_capacity(index.fields.len());
    let mut any = !options.leaves_out_missing();
    for field in &index.fields {
        let parts = match field.kind {
            FieldKind::Sphere => {
                let parts = cells(document, field, options)?;
                any |= !parts.is_empty();
                parts
            }
            _ => values(document, field),
        };
        fields.push(match parts.is_empty() {
            true => vec![missing(field)],
            false => parts,
        });
    }
    if any {
        combine(&fields, &mut Vec::new(), &mut Vec::new(), give);
    }
    Ok(())
}

/// Appends a cell's part of a key.
pub fn encode_cell(cell: u64, out: &mut Vec<u8>) {
    out.push(CELL);
    out.extend_from_slice(&cell.to_be_bytes());
}

/// The length of a cell's part.
pub const CELL_BYTES: usize = 9;

/// Returns whether a key continues with a cell, not with the null of a missing geometry.
pub fn is_cell(key: &[u8]) -> bool {
    key.first() == Some(&CELL)
}

fn missing(field: &IndexField) -> Part<'static> {
    let mut bytes = Vec::new();
    encode_field(Value::Null, field, &mut bytes);
    (bytes, Value::Null)
}

/// Returns the cells of all geometries of a field. Fails with 16755 for a value that is no
/// geometry.
fn cells<'a>(document: Doc<'a>, field: &IndexField, options: &SphereOptions) -> Result<Vec<Part<'a>>> {
    let mut parts = Vec::new();
    geo_keys::on_sphere(document, &field.path, options, &mut |cell, geometry| {
        let mut bytes = Vec::with_capacity(9);
        encode_cell(cell, &mut bytes);
        parts.push((bytes, geometry));
    })?;
    Ok(parts)
}

/// Returns the values of another field, with arrays expanded.
fn values<'a>(document: Doc<'a>, field: &IndexField) -> Vec<Part<'a>> {
    let mut parts = Vec::new();
    let _ = Path::new(&field.path).visit_keys(document, &mut |key| {
        let value = key.sort_value();
        let mut bytes = Vec::new();
        encode_field(value, field, &mut bytes);
        parts.push((bytes, value));
        ControlFlow::Continue(())
    });
    parts
}

/// Calls `give` with every combination of the fields' parts.
fn combine<'a>(
    fields: &[Vec<Part<'a>>],
    key: &mut Vec<u8>,
    chosen: &mut Vec<Value<'a>>,
    give: &mut dyn FnMut(&[u8], &[Value<'_>]),
) {
    let Some((parts, rest)) = fields.split_first() else { return give(key, chosen) };
    let length = key.len();
    for (bytes, value) in parts {
        steps::step();
        key.extend_from_slice(bytes);
        chosen.push(*value);
        combine(rest, key, chosen, give);
        chosen.pop();
        key.truncate(length);
    }
}
