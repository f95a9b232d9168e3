//! The keys of a `2d` index: one per pair of numbers, the bits of the two by turns, and behind it what the other fields hold.
//!
//! A document without a place has none. Several values of another field count as one array.

use super::encode_field;
use crate::catalog::{Index, IndexField};
use document::path::{End, Path};
use document::{Doc, DocBuf, Value};
use error::{Code, Error, Result};
use query::geo::{Grid, Position};
use query::text;
use std::ops::ControlFlow;
use store::index_kind::PlaneOptions;

pub fn grid(options: &PlaneOptions) -> Grid {
    Grid { bits: options.bits, min: options.min, max: options.max }
}

/// The part of a key that a cell makes.
pub fn encode_cell(cell: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&cell.to_be_bytes());
}

pub fn for_each_key(
    document: Doc<'_>,
    index: &Index,
    options: &PlaneOptions,
    give: &mut dyn FnMut(&[u8], &[Value<'_>]),
) -> Result<()> {
    let Some((field, others)) = index.fields.split_first() else { return Ok(()) };
    let mut places = Vec::new();
    let _ = Path::new(&field.path).visit_elements(document, End::Whole, &mut |element, _| {
        places.extend(element.map(|element| element.value()));
        ControlFlow::<()>::Continue(())
    });
    let others: Vec<(DocBuf, &IndexField)> = others.iter().map(|other| (values(document, other), other)).collect();
    let grid = grid(options);
    let mut key = Vec::new();
    for place in places {
        for_each_place(place, document, &grid, &mut |cell, value| {
            key.clear();
            encode_cell(cell, &mut key);
            let mut chosen = vec![value];
            for (found, other) in &others {
                let value = match found.as_doc().elements().count() {
                    0 => Value::Null,
                    1 => found.as_doc().values().next().unwrap_or(Value::Null),
                    _ => Value::Array(found.as_doc()),
                };
                encode_field(value, other, &mut key);
                chosen.push(value);
            }
            give(&key, &chosen);
        })?;
    }
    Ok(())
}

/// Gives the cells of a value: a pair of numbers, or several of them in an array or a document.
///
/// Errors 13026, 13027, 13068 and 16804 for what is neither.
fn for_each_place<'a>(
    value: Value<'a>,
    document: Doc<'_>,
    grid: &Grid,
    give: &mut dyn FnMut(u64, Value<'a>),
) -> Result<()> {
    let (Value::Array(found) | Value::Document(found)) = value else { return Ok(()) };
    if found.first().is_some_and(|first| first.kind.is_number()) {
        give(cell(found, document, grid)?, value);
        return Ok(());
    }
    for place in found.values() {
        let (Value::Array(pair) | Value::Document(pair)) = place else {
            let message = "location object expected, location array not in correct format";
            return Err(Error::new(Code(16804), message));
        };
        if !pair.is_empty() {
            give(cell(pair, document, grid)?, place);
        }
    }
    Ok(())
}

fn cell(pair: Doc<'_>, document: Doc<'_>, grid: &Grid) -> Result<u64> {
    let refuse = |code, reason: &str| {
        Err(Error::new(Code(code), format!("{reason} :: caused by :: {}", text::document(document))))
    };
    let mut coordinates = pair.values();
    let (x, Some(y)) = (coordinates.next(), coordinates.next()) else {
        return refuse(13068, "geo field only has 1 element");
    };
    let (Some(x), Some(y)) = (x.and_then(number), number(y)) else {
        return refuse(13026, "geo values must be 'legacy coordinate pairs' for 2d indexes");
    };
    match grid.cell(Position { x, y }) {
        Some(cell) => Ok(cell),
        None => {
            let (min, max) = (text::general(grid.min, 6), text::general(grid.max, 6));
            refuse(13027, &format!("point not in interval of [ {min}, {max} ]"))
        }
    }
}

fn number(value: Value<'_>) -> Option<f64> {
    match value {
        Value::Int32(number) => Some(f64::from(number)),
        Value::Int64(number) => Some(number as f64),
        Value::Double(number) => Some(number),
        Value::Decimal128(number) => Some(number.to_f64()),
        _ => None,
    }
}

/// All values at a path, arrays taken apart, as an array.
fn values(document: Doc<'_>, field: &IndexField) -> DocBuf {
    let mut found = DocBuf::new();
    let mut count = 0;
    let mut push = |value: Value<'_>| {
        found.append(&count.to_string(), value);
        count += 1;
    };
    let _ = Path::new(&field.path).visit_elements(document, End::Whole, &mut |element, _| {
        match element.map(|element| element.value()) {
            Some(Value::Array(array)) => array.values().for_each(&mut push),
            Some(value) => push(value),
            None => {}
        }
        ControlFlow::<()>::Continue(())
    });
    found
}
