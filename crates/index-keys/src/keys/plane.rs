//! The keys of a `2d` index: one per pair of numbers, with the bits of the two interleaved,
//! followed by the other fields' values.
//!
//! A document without a point has none. Several values of another field count as one array.

use super::encode_field;
use crate::{IndexField, IndexShape};
use document::path::{End, Path};
use document::{Doc, DocBuf, Value};
use error::Result;
use std::ops::ControlFlow;
use steps::Counted;
use store::geo_keys;
use store::index_kind::PlaneOptions;

/// Appends a cell's part of a key.
pub fn encode_cell(cell: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&cell.to_be_bytes());
}

pub fn for_each_key(
    document: Doc<'_>,
    index: &IndexShape,
    options: &PlaneOptions,
    give: &mut dyn FnMut(&[u8], &[Value<'_>]),
) -> Result<()> {
    let Some((field, others)) = index.fields.split_first() else { return Ok(()) };
    let others: Vec<(DocBuf, &IndexField)> = others.iter().map(|other| (values(document, other), other)).collect();
    let mut key = Vec::new();
    geo_keys::on_plane(document, &field.path, &geo_keys::grid(options), &mut |cell, geometry| {
        steps::step();
        key.clear();
        encode_cell(cell, &mut key);
        let mut chosen = vec![geometry];
        for (found, other) in &others {
            let value = match found.as_doc().elements().take(2).count() {
                0 => Value::Null,
                1 => found.as_doc().values().next().unwrap_or(Value::Null),
                _ => Value::Array(found.as_doc()),
            };
            encode_field(value, other, &mut key);
            chosen.push(value);
        }
        give(&key, &chosen);
    })
}

/// Returns all values at a path, with arrays expanded, as an array.
fn values(document: Doc<'_>, field: &IndexField) -> DocBuf {
    let mut found = DocBuf::new();
    let mut count = 0;
    let mut push = |value: Value<'_>| {
        found.append(&count.to_string(), value);
        count += 1;
    };
    let _ = Path::new(&field.path).visit_elements(document, End::Whole, &mut |element, _| {
        match element.map(|element| element.value()) {
            Some(Value::Array(array)) => array.values().counted().for_each(&mut push),
            Some(value) => push(value),
            None => {}
        }
        ControlFlow::<()>::Continue(())
    });
    found
}
