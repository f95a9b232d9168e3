//! The operands of `$geoWithin` and `$geoIntersects`.

use super::flat;
use super::parse::{parse_pair, queried_shape, to_sphere};
use super::sphere::{Cap, IntersectionTarget, SphericalArea};
use super::{Position, Region};
use document::{Doc, Element, Value};
use error::{Error, Result};
use steps::Counted;
use values::number::Number;
use values::text;

/// The kind of region that an operand describes.
enum OperandRegion {
    Region(Region),
    Shape(super::SphericalShape),
    /// A pair of numbers that is not on the sphere.
    OffSphere,
}

/// Parses `$geoWithin`, `$within` and `$geoIntersects`. All errors have code 2.
pub fn parse_operator(element: Element<'_>) -> Result<Region> {
    let Value::Document(operand) = element.value() else { return Err(Error::bad_value("geometry must be an object")) };
    let mut described = None;
    for part in operand.elements().counted() {
        described = parse_part(part)?.or(described);
    }
    let described = described.ok_or_else(|| Error::bad_value("geo query doesn't have any geometry"))?;
    let within = element.key() != "$geoIntersects";
    let refuse = |operator: &str| {
        let found = text::element(element.key(), element.value());
        Err(Error::bad_value(format!("{operator} not supported with provided geometry: {{ {found} }}")))
    };
    match described {
        OperandRegion::Region(region) if within => Ok(region),
        // `$geoIntersects` accepts a circle, and matches nothing.
        OperandRegion::Region(Region::Cap(_)) => {
            Ok(Region::Intersects(Box::new(IntersectionTarget::new(super::SphericalShape::default()))))
        }
        OperandRegion::Region(_) => refuse("$geoIntersect"),
        OperandRegion::OffSphere => refuse(if within { "$within" } else { "$geoIntersect" }),
        OperandRegion::Shape(shape) if !within => Ok(Region::Intersects(Box::new(IntersectionTarget::new(shape)))),
        // Other members of a collection are ignored.
        OperandRegion::Shape(shape) if !shape.polygons.is_empty() || shape.oriented.is_some() => {
            Ok(Region::Within(Box::new(SphericalArea { polygons: shape.polygons, oriented: shape.oriented })))
        }
        OperandRegion::Shape(_) => refuse("$within"),
    }
}

fn parse_part(part: Element<'_>) -> Result<Option<OperandRegion>> {
    let unknown = || {
        let found = text::element(part.key(), part.value());
        Err(Error::bad_value(format!("unknown geo specifier: {found}")))
    };
    let region = match (part.key(), part.value()) {
        ("$uniqueDocs", _) => return Ok(None),
        ("$geometry", Value::Document(_) | Value::Array(_)) => {
            return Ok(Some(queried_shape(part.value())?.map_or(OperandRegion::OffSphere, OperandRegion::Shape)));
        }
        ("$box", Value::Array(list) | Value::Document(list)) => Region::Flat(parse_box(list)?),
        ("$polygon", Value::Array(list) | Value::Document(list)) => {
            let corners = list.values().counted().map(parse_pair).collect::<Result<Vec<_>>>()?;
            if corners.len() < 3 {
                return Err(Error::bad_value("Polygon must have at least 3 points"));
            }
            Region::Flat(flat::PlanarArea::Polygon(corners))
        }
        ("$center", Value::Array(list) | Value::Document(list)) => {
            let (center, radius) = parse_circle(list)?;
            Region::Flat(flat::PlanarArea::Circle { center, radius })
        }
        ("$centerSphere", Value::Array(list) | Value::Document(list)) => {
            let (center, radians) = parse_circle(list)?;
            Region::Cap(Cap { center: to_sphere(center)?, radians })
        }
        _ => return unknown(),
    };
    Ok(Some(OperandRegion::Region(region)))
}

fn parse_box(list: Doc<'_>) -> Result<flat::PlanarArea> {
    let mut corners = list.values();
    let mut corner = || parse_pair(corners.next().unwrap_or(Value::Null));
    let (a, b) = (corner()?, corner()?);
    Ok(flat::PlanarArea::Box {
        low: Position { x: a.x.min(b.x), y: a.y.min(b.y) },
        high: Position { x: a.x.max(b.x), y: a.y.max(b.y) },
    })
}

fn parse_circle(list: Doc<'_>) -> Result<(Position, f64)> {
    let mut parts = list.values();
    let center = parse_pair(parts.next().unwrap_or(Value::Null))?;
    let radius = parts.next().and_then(Number::from_value).map(Number::to_f64).filter(|radius| *radius >= 0.0);
    let radius = radius.ok_or_else(|| Error::bad_value("radius must be a non-negative number"))?;
    if parts.next().is_some() {
        return Err(Error::bad_value("Only 2 fields allowed for circular region"));
    }
    Ok((center, radius))
}
