//! From BSON to shapes: GeoJSON and legacy pairs.
//!
//! A value in a document that is no shape matches nothing; in a query it fails with 2.

use super::line::Line;
use super::polygon::{OrientedPolygon, Polygon, PolygonDefect};
use super::position::Position;
use super::ring::Ring;
use super::shape::SphericalShape;
use document::{Doc, Value};
use error::{Error, Result};
use s2::point::Point;
use steps::Counted;
use values::number::Number;
use values::text;

/// A coordinate reference system in which the winding order decides which side of a ring is inside.
/// The inside may be the larger side.
const STRICT_WINDING: &str = "urn:x-mongodb:crs:strictwinding:EPSG:4326";

fn refuse<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::bad_value(message))
}

/// Returns a stored value's position on the plane, if it is a pair or a GeoJSON point.
pub fn stored_position(value: Value<'_>) -> Option<Position> {
    let Value::Document(document) = value else { return parse_legacy_point(value).ok() };
    match document.get("type") {
        Some(Value::String("Point")) if document.get("coordinates").is_some() => {
            let is_plain = has_strict_winding(document).is_ok_and(|strict| !strict);
            position_of(document.get("coordinates")).ok().filter(|position| is_plain && position.is_on_sphere())
        }
        _ => parse_legacy_point(value).ok(),
    }
}

/// Returns a stored value's shape on the sphere, if it has one.
pub fn stored_shape(value: Value<'_>) -> Option<SphericalShape> {
    if let Value::Document(document) = value
        && matches!(document.get("type"), Some(Value::String(_)))
    {
        // Stored polygons with strict winding match nothing.
        return parse_shape(document).ok().filter(|shape| shape.oriented.is_none());
    }
    let position = parse_legacy_point(value).ok().filter(|position| position.is_on_sphere())?;
    Some(SphericalShape { points: vec![position.to_point()], ..SphericalShape::default() })
}

/// Like [`stored_shape`], but fails with the reason if the value is no shape. Index builds report
/// it.
pub fn stored_shape_or_reason(value: Value<'_>) -> Result<SphericalShape> {
    let (Value::Array(object) | Value::Document(object)) = value else {
        return refuse("geo element must be an array or object");
    };
    if !is_pair(value, object) {
        let shape = match object.get("type") {
            Some(Value::String(_)) => parse_shape(object)?,
            _ => return refuse(format!("unknown GeoJSON type: {}", text::document(object))),
        };
        return match shape.oriented {
            Some(_) => refuse(format!("can't index geometry with strict winding order {}", text::document(object))),
            None => Ok(shape),
        };
    }
    let position = parse_legacy_point(value)?;
    match position.is_on_sphere() {
        true => Ok(SphericalShape { points: vec![position.to_point()], ..SphericalShape::default() }),
        false => refuse(format!("can't project geometry into spherical CRS: {}", text::value(value))),
    }
}

const NOT_NUMERIC: &str = "Point must only contain numeric elements";
const NOT_FINITE: &str = "Point coordinates must be finite numbers";

/// Returns the first two members of an array or a document, which must be numbers.
fn leading_numbers(value: Value<'_>) -> Result<Position> {
    let (Value::Array(pair) | Value::Document(pair)) = value else {
        return refuse("Point must be an array or object");
    };
    let mut numbers = pair.values().map(|value| Number::from_value(value).map(Number::to_f64));
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(x), Some(y)) => Ok(Position { x, y }),
        _ => refuse(NOT_NUMERIC),
    }
}

fn check_finite(position: Position) -> Result<Position> {
    match position.x.is_finite() && position.y.is_finite() {
        true => Ok(position),
        false => refuse(NOT_FINITE),
    }
}

/// Parses two numbers in an array or a document; more may follow.
pub fn parse_legacy_point(value: Value<'_>) -> Result<Position> {
    check_finite(leading_numbers(value)?)
}

/// Parses the operand of `$geometry`: GeoJSON, or a pair of numbers. Returns `None` for a pair that
/// is not on the sphere.
pub fn queried_shape(value: Value<'_>) -> Result<Option<SphericalShape>> {
    match value {
        Value::Document(object) if !is_pair(value, object) => parse_shape(object).map(Some),
        _ => {
            let position = parse_pair(value)?;
            Ok(position
                .is_on_sphere()
                .then(|| SphericalShape { points: vec![position.to_point()], ..SphericalShape::default() }))
        }
    }
}

/// Returns whether a value is parsed as two numbers.
pub fn is_pair(value: Value<'_>, object: Doc<'_>) -> bool {
    matches!(value, Value::Array(_)) || object.first().is_some_and(|first| first.kind.is_number())
}

/// Parses exactly two numbers, as in the operands of `$geoWithin`.
pub fn parse_pair(value: Value<'_>) -> Result<Position> {
    let position = leading_numbers(value)?;
    match value {
        Value::Array(pair) | Value::Document(pair) if pair.elements().nth(2).is_some() => {
            refuse("Point must only contain two numeric elements")
        }
        _ => check_finite(position),
    }
}

pub fn position_of(coordinates: Option<Value<'_>>) -> Result<Position> {
    match coordinates {
        Some(pair @ (Value::Array(_) | Value::Document(_))) => parse_legacy_point(pair),
        _ => refuse("Point must be an array or object"),
    }
}

fn point_of(coordinates: Value<'_>) -> Result<Point> {
    to_sphere(position_of(Some(coordinates))?)
}

pub fn to_sphere(position: Position) -> Result<Point> {
    if position.is_on_sphere() {
        return Ok(position.to_point());
    }
    let (x, y) = (text::general(position.x, 6), text::general(position.y, 6));
    refuse(format!("longitude/latitude is out of bounds, lng: {x} lat: {y}"))
}

/// Parses a GeoJSON object.
pub fn parse_shape(object: Doc<'_>) -> Result<SphericalShape> {
    let mut found = SphericalShape::default();
    add_shape(object, &mut found, false)?;
    Ok(found)
}

fn add_shape(object: Doc<'_>, found: &mut SphericalShape, is_part: bool) -> Result<()> {
    let unknown = || {
        let word = if is_part { "Unknown" } else { "unknown" };
        refuse(format!("{word} GeoJSON type: {}", text::document(object)))
    };
    let Some(Value::String(kind)) = object.get("type") else { return unknown() };
    // A collection's own reference system is ignored.
    let strict = kind != "GeometryCollection" && has_strict_winding(object)?;
    if strict && kind != "Polygon" {
        return refuse("Strict winding order is only supported by polygon");
    }
    let items = |what: &str| match object.get("coordinates") {
        Some(Value::Array(items)) => Ok(items),
        _ => Err(Error::bad_value(format!("{what} coordinates must be an array"))),
    };
    match kind {
        "Point" => found.points.push(match object.get("coordinates") {
            Some(coordinates) => point_of(coordinates)?,
            None => return refuse("Point must be an array or object"),
        }),
        "MultiPoint" => {
            let (_, points) = coordinates(object.get("coordinates"))?;
            if points.is_empty() {
                return refuse("MultiPoint coordinates must have at least 1 element");
            }
            found.points.extend(points);
        }
        "LineString" => found.lines.push(line(object.get("coordinates"))?),
        "MultiLineString" => {
            let lines = items("MultiLineString")?;
            if lines.is_empty() {
                return refuse("MultiLineString coordinates must have at least 1 element");
            }
            for value in lines.values().counted() {
                found.lines.push(line(Some(value))?);
            }
        }
        "Polygon" if strict => found.oriented = Some(Box::new(oriented_polygon(items("Polygon")?)?)),
        "Polygon" => found.polygons.push(polygon(items("Polygon")?)?),
        "MultiPolygon" => {
            let polygons = items("MultiPolygon")?;
            if polygons.is_empty() {
                return refuse("MultiPolygon coordinates must have at least 1 element");
            }
            for value in polygons.values().counted() {
                let Value::Array(rings) = value else { return refuse("Polygon coordinates must be an array") };
                found.polygons.push(polygon(rings)?);
            }
        }
        "GeometryCollection" if is_part => {
            return refuse(format!("GeometryCollections cannot be nested: {}", text::document(object)));
        }
        "GeometryCollection" => {
            let Some(Value::Array(parts)) = object.get("geometries") else {
                return refuse("GeometryCollection geometries must be an array");
            };
            if parts.is_empty() {
                return refuse("GeometryCollection geometries must have at least 1 element");
            }
            for part in parts.values().counted() {
                let Value::Document(part) = part else { return refuse("Element 0 of \"geometries\" is not an object") };
                add_shape(part, found, true)?;
            }
        }
        _ => return unknown(),
    }
    Ok(())
}

/// Returns whether an object's reference system has strict winding.
pub fn has_strict_winding(object: Doc<'_>) -> Result<bool> {
    let name = match object.get("crs") {
        None => return Ok(false),
        Some(Value::Document(system) | Value::Array(system)) => match (system.get("type"), system.get("properties")) {
            (Some(Value::String("name")), Some(Value::Document(properties) | Value::Array(properties))) => {
                properties.get("name")
            }
            (Some(Value::String("name")), _) => return refuse("CRS must have field \"properties\" which is an object"),
            _ => return refuse("GeoJSON CRS must have field \"type\": \"name\""),
        },
        Some(_) => return refuse("GeoJSON CRS must be an object"),
    };
    match name {
        Some(Value::String("EPSG:4326" | "urn:ogc:def:crs:OGC:1.3:CRS84")) => Ok(false),
        Some(Value::String(STRICT_WINDING)) => Ok(true),
        Some(Value::String(other)) => refuse(format!("Unknown CRS name: {other}")),
        _ => refuse("In CRS, \"properties.name\" must be a string"),
    }
}

/// Parses an array of positions. Returns also the array, for messages.
fn coordinates(value: Option<Value<'_>>) -> Result<(Doc<'_>, Vec<Point>)> {
    let Some(Value::Array(positions)) = value else {
        return refuse("GeoJSON coordinates must be an array of coordinates");
    };
    let point = |value: Value<'_>| match value {
        Value::Array(_) => point_of(value),
        _ => refuse("GeoJSON coordinates must be an array"),
    };
    Ok((positions, positions.values().counted().map(point).collect::<Result<Vec<_>>>()?))
}

fn line(value: Option<Value<'_>>) -> Result<Line> {
    let (positions, mut points) = coordinates(value)?;
    points.dedup();
    if points.len() < 2 {
        let found = text::value(Value::Array(positions));
        return refuse(format!("GeoJSON LineString must have at least 2 vertices: {found}"));
    }
    Ok(Line::new(points))
}

/// Parses a polygon and checks its rings in MongoDB's order: each of them by itself, then as holes,
/// then all of them together.
fn polygon(coordinates: Doc<'_>) -> Result<Polygon> {
    let found = || text::value(Value::Array(coordinates));
    let mut rings: Vec<Ring> = Vec::new();
    for value in coordinates.values().counted() {
        let mut ring = ring(value, value)?;
        ring.normalize();
        if let Some(outline) = rings.first()
            && !outline.contains_ring(&ring)
        {
            let first = coordinates.first().map_or(Value::Null, |first| first.value());
            return refuse(format!(
                "Secondary loops not contained by first exterior loop - secondary loops must be holes: {} first loop: {}",
                text::value(value),
                text::value(first)
            ));
        }
        rings.push(ring);
    }
    if rings.is_empty() {
        return refuse("Polygon has no loops.");
    }
    let polygon = Polygon::new(rings);
    match polygon.defect() {
        None => Ok(polygon),
        Some(PolygonDefect::Invalid(reason)) => refuse(format!("Polygon isn't valid: {reason} {}", found())),
        Some(PolygonDefect::SharedCorners { hole }) => {
            refuse(format!("Loop {hole} shares more than one vertex with its parent loop 0: {}", found()))
        }
        Some(PolygonDefect::NestedHoles) => refuse(format!("Polygon interior loops cannot be nested: {}", found())),
    }
}

/// Parses a polygon with strict winding: one ring.
fn oriented_polygon(coordinates: Doc<'_>) -> Result<OrientedPolygon> {
    let mut rings = coordinates.values();
    match (rings.next(), rings.next()) {
        (Some(only), None) => Ok(OrientedPolygon::new(ring(only, Value::Array(coordinates))?)),
        _ => refuse(format!(
            "Only one simple loop is allowed in a big polygon: {}",
            text::value(Value::Array(coordinates))
        )),
    }
}

/// Parses a ring. `shown` is the value that messages quote.
fn ring(value: Value<'_>, shown: Value<'_>) -> Result<Ring> {
    let (_, mut corners) = coordinates(Some(value))?;
    let found = || text::value(shown);
    if corners.is_empty() {
        return refuse(format!("Loop has no vertices: {}", found()));
    }
    if corners.first() != corners.last() {
        return refuse(format!("Loop is not closed: {}", found()));
    }
    corners.dedup();
    corners.pop();
    if corners.len() < 3 {
        return refuse(format!("Loop must have at least 3 different vertices: {}", found()));
    }
    let ring = Ring::new(corners);
    match ring.defect() {
        None => Ok(ring),
        Some(defect) => refuse(format!("Loop is not valid: {} {defect}", found())),
    }
}
