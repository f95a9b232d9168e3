//! The geometries that `2dsphere` and `2d` indexes find in a document, as cells, and the errors for
//! invalid ones, which all stores share.

use crate::IndexSpec;
use crate::index_kind::{IndexKind, PlaneOptions, SphereOptions};
use document::path::{End, Path};
use document::{Doc, Element, Value};
use error::{Code, Error, Result};
use geo::cover::index_cells;
use geo::{Grid, Position};
use std::ops::ControlFlow;
use values::number::as_f64_lossy;
use values::text;

/// Fails for a document that an index of this kind cannot hold: with 16755 for `2dsphere`, with
/// 13026, 13027, 13068 or 16804 for `2d`.
pub fn check(document: Doc<'_>, index: &IndexSpec, kind: &IndexKind) -> Result<()> {
    let plugin = Value::String(kind.name());
    let fields = index.key.as_doc().iter().filter(|(_, value)| *value == plugin).map(|(path, _)| path);
    match kind {
        IndexKind::Sphere(options) => {
            fields.into_iter().try_for_each(|path| on_sphere(document, path, options, &mut |_, _| {}))
        }
        IndexKind::Plane(options) => {
            fields.into_iter().try_for_each(|path| on_plane(document, path, &grid(options), &mut |_, _| {}))
        }
        _ => Ok(()),
    }
}

/// Calls `give` with each cell of all geometries at a path, and the geometry. Fails with 16755 for
/// a value that is no geometry.
pub fn on_sphere<'a>(
    document: Doc<'a>,
    path: &str,
    options: &SphereOptions,
    give: &mut dyn FnMut(u64, Value<'a>),
) -> Result<()> {
    for geometry in elements(document, path) {
        let value = geometry.value();
        let is_empty = match value {
            Value::Null | Value::Undefined => true,
            Value::Document(inner) | Value::Array(inner) => inner.is_empty(),
            _ => false,
        };
        if is_empty {
            continue;
        }
        let cells = index_cells(value, options.finest).map_err(|error| {
            let found = match value {
                Value::Document(_) | Value::Array(_) => String::new(),
                _ => format!(": {}", text::element(geometry.key(), value)),
            };
            let (document, reason) = (text::document(document), error.message());
            Error::new(Code(16755), format!("Can't extract geo keys: {document}  {reason}{found}"))
        })?;
        cells.into_iter().for_each(|cell| give(cell, value));
    }
    Ok(())
}

pub fn grid(options: &PlaneOptions) -> Grid {
    Grid { bits: options.bits, min: options.min, max: options.max }
}

/// Calls `give` with the cell of each point at a path: a pair of numbers, or several of them in an
/// array or a document.
///
/// Fails with 13026, 13027, 13068 or 16804 for a value that is neither.
pub fn on_plane<'a>(document: Doc<'a>, path: &str, grid: &Grid, give: &mut dyn FnMut(u64, Value<'a>)) -> Result<()> {
    for element in elements(document, path) {
        let value = element.value();
        let (Value::Array(found) | Value::Document(found)) = value else { continue };
        if found.first().is_some_and(|first| first.kind.is_number()) {
            give(plane_cell(found, document, grid)?, value);
            continue;
        }
        for geometry in found.values() {
            let (Value::Array(pair) | Value::Document(pair)) = geometry else {
                let message = "location object expected, location array not in correct format";
                return Err(Error::new(Code(16804), message));
            };
            if !pair.is_empty() {
                give(plane_cell(pair, document, grid)?, geometry);
            }
        }
    }
    Ok(())
}

fn elements<'a>(document: Doc<'a>, path: &str) -> Vec<Element<'a>> {
    let mut fields = Vec::new();
    let _ = Path::new(path).visit_elements(document, End::Whole, &mut |element, _| {
        fields.extend(element);
        ControlFlow::<()>::Continue(())
    });
    fields
}

fn plane_cell(pair: Doc<'_>, document: Doc<'_>, grid: &Grid) -> Result<u64> {
    let refuse = |code, reason: &str| {
        Err(Error::new(Code(code), format!("{reason} :: caused by :: {}", text::document(document))))
    };
    let mut coordinates = pair.values();
    let (x, Some(y)) = (coordinates.next(), coordinates.next()) else {
        return refuse(13068, "geo field only has 1 element");
    };
    let (Some(x), Some(y)) = (x.and_then(as_f64_lossy), as_f64_lossy(y)) else {
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
