//! `$near` and `$nearSphere`: documents in the order of their distance from a point.
//!
//! Distances equal MongoDB's to the last bit. On the sphere a distance is the angle between unit
//! vectors times the Earth's radius, on the plane the length of the difference. The distance of a
//! line or area is that of its closest point.

use super::edge_distance::distance_to_edges;
use super::parse::{parse_pair, position_of, stored_position, stored_shape};
use super::position::{EARTH_RADIUS_METERS, Position};
use super::shape::SphericalShape;
use document::path::{End, Path};
use document::{Doc, Element, Value};
use error::{Code, Error, Result};
use s2::point::Point;
use std::f64::consts::PI;
use std::ops::ControlFlow;
use steps::Counted;
use values::number::Number;
use values::text;

/// A condition that sorts documents by distance.
#[derive(Clone, Debug)]
pub struct Near {
    pub path: Path,
    pub center: Position,
    pub metric: Metric,
    /// The least and the greatest distance that match, in meters on the sphere.
    pub min: f64,
    pub max: f64,
    /// Whether the point was given as GeoJSON, which requires an index over the sphere.
    pub is_geo_json: bool,
    /// Whether distances are returned as angles.
    pub in_radians: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    Flat,
    Sphere,
}

/// A document's distance from the point, and the value that has it.
#[derive(Clone, Copy, Debug)]
pub struct Nearest<'d> {
    /// In meters on the sphere, in the coordinates' unit on the plane.
    pub distance: f64,
    pub location: Value<'d>,
}

/// Returns whether an operator sorts documents by distance.
pub fn is_near(operator: &str) -> bool {
    matches!(operator, "$near" | "$nearSphere" | "$geoNear")
}

/// A query's point, and the form in which it was given.
#[derive(Clone, Copy)]
pub struct QueryPoint {
    pub position: Position,
    pub is_geo_json: bool,
}

/// The parts of a condition while it is parsed.
struct NearParts {
    point: Option<QueryPoint>,
    sphere: bool,
    min: f64,
    max: f64,
}

impl Default for NearParts {
    fn default() -> Self {
        NearParts { point: None, sphere: false, min: 0.0, max: f64::MAX }
    }
}

impl Near {
    /// Parses the operators of a field, the first of which sorts by distance.
    ///
    /// Fails with 2 in most cases; in the form with a legacy point also with 16893 to 16896, 18522
    /// and 34413.
    pub fn parse(field: &str, operators: Doc<'_>) -> Result<Near> {
        let parts = match NearParts::legacy(operators)? {
            Some(parts) => parts,
            None => NearParts::geo_json(operators)?,
        };
        let point = parts.point.ok_or_else(|| Error::bad_value("$geometry is required for geo near query"))?;
        Near::new(Path::new(field), point, parts.sphere, (parts.min, parts.max))
    }

    /// Builds the condition. Fails with 2 if the point is not on the sphere.
    pub fn new(path: Path, point: QueryPoint, sphere: bool, (min, max): (f64, f64)) -> Result<Near> {
        let QueryPoint { position, is_geo_json } = point;
        let on_sphere = sphere || is_geo_json;
        if on_sphere && !position.is_on_sphere() {
            return Err(Error::bad_value("Legacy point is out of bounds for spherical query"));
        }
        let in_radians = sphere && !is_geo_json;
        let unit = if in_radians { EARTH_RADIUS_METERS } else { 1.0 };
        let (min, max) = match on_sphere {
            true => {
                let farthest = PI * EARTH_RADIUS_METERS;
                ((min * unit).min(farthest), (max * unit).min(farthest))
            }
            false => (min, max),
        };
        let metric = if on_sphere { Metric::Sphere } else { Metric::Flat };
        Ok(Near { path, center: position, metric, min, max, is_geo_json, in_radians })
    }

    /// Returns the nearest of a document's locations within the limits, or `None`.
    pub fn nearest<'d>(&self, document: Doc<'d>) -> Option<Nearest<'d>> {
        let mut nearest: Option<Nearest<'d>> = None;
        let mut consider = |value: Value<'d>| {
            let Some(distance) = self.distance_to(value) else { return false };
            if nearest.is_none_or(|nearest| distance < nearest.distance) {
                nearest = Some(Nearest { distance, location: value });
            }
            true
        };
        let _ = self.path.visit_elements(document, End::Whole, &mut |element, _| {
            let Some(value) = element.map(Element::value) else { return ControlFlow::<()>::Continue(()) };
            if !consider(value)
                && let Value::Array(array) = value
            {
                array.values().counted().for_each(|element| _ = consider(element));
            }
            ControlFlow::Continue(())
        });
        nearest.filter(|nearest| self.min <= nearest.distance && nearest.distance <= self.max)
    }

    /// Converts a distance to the unit of results.
    pub fn to_result_unit(&self, distance: f64) -> f64 {
        if self.in_radians { distance / EARTH_RADIUS_METERS } else { distance }
    }

    fn distance_to(&self, value: Value<'_>) -> Option<f64> {
        match self.metric {
            Metric::Flat => {
                let at = stored_position(value)?;
                let (x, y) = (at.x - self.center.x, at.y - self.center.y);
                Some((x * x + y * y).sqrt())
            }
            Metric::Sphere => Some(angle_to_shape(self.center.to_point(), &stored_shape(value)?) * EARTH_RADIUS_METERS),
        }
    }

    /// Returns the condition as quoted in MongoDB's messages.
    pub fn describe(&self) -> String {
        let unit = if self.in_radians { EARTH_RADIUS_METERS } else { 1.0 };
        let max = if self.max >= PI * EARTH_RADIUS_METERS { f64::MAX } else { self.max / unit };
        let max = text::general(max, 6);
        format!("GEONEAR  field={} maxdist={max} isNearSphere={}", self.path.as_str(), u8::from(self.in_radians))
    }
}

/// Returns the least angle between a point and a shape, in radians.
pub fn angle_to_shape(center: Point, shape: &SphericalShape) -> f64 {
    let points = shape.points.iter().counted().map(|point| center.distance(point).rad());
    let lines = shape.lines.iter().counted().map(|line| distance_to_edges(center, line.edges()));
    let polygons = shape.polygons.iter().counted().map(|polygon| polygon.distance(center));
    let wound = shape.oriented.iter().map(|wound| wound.distance(center));
    points.chain(lines).chain(polygons).chain(wound).fold(f64::INFINITY, f64::min)
}

impl NearParts {
    /// Parses `{$near: [x, y], $maxDistance: …}`; returns `None` if there is no point of this form.
    fn legacy(operators: Doc<'_>) -> Result<Option<NearParts>> {
        let mut parts = NearParts::default();
        for operator in operators.elements().counted() {
            match operator.key() {
                name if is_near(name) => {
                    let (Value::Array(point) | Value::Document(point)) = operator.value() else { return Ok(None) };
                    if let Ok(point) = parse_query_point(operator.value()) {
                        parts.point = Some(point);
                        parts.sphere = name == "$nearSphere";
                    } else if let Some((position, max)) = with_max_distance(point) {
                        if max < 0.0 {
                            return Err(Error::new(Code(18522), "max distance must be non-negative"));
                        }
                        parts.point = Some(QueryPoint { position, is_geo_json: false });
                        parts.sphere = name == "$nearSphere";
                        parts.max = max;
                    }
                }
                "$minDistance" => parts.min = distance(operator, Code(16893), Code(16894))?,
                "$maxDistance" => parts.max = distance(operator, Code(16895), Code(16896))?,
                "$uniqueDocs" => {}
                other => return Err(Error::new(Code(34413), invalid_argument_message(other))),
            }
        }
        Ok(parts.point.is_some().then_some(parts))
    }

    /// Parses `{$near: {$geometry: …, $maxDistance: …}}`.
    fn geo_json(operators: Doc<'_>) -> Result<NearParts> {
        let mut elements = operators.elements();
        let first = elements.next();
        if let Some(extra) = elements.next() {
            let extra = text::element(extra.key(), extra.value());
            return Err(Error::bad_value(format!(
                "geo near accepts just one argument when querying for a GeoJSON point. Extra field found: {extra}"
            )));
        }
        let Some(Value::Array(argument) | Value::Document(argument)) = first.map(Element::value) else {
            return Err(Error::bad_value(format!("near must be first in: {}", text::document(operators))));
        };
        let mut parts = NearParts::default();
        for part in argument.elements().counted() {
            match (part.key(), part.value()) {
                ("$geometry", Value::Array(point) | Value::Document(point)) => {
                    let found = || text::document(point);
                    let point = parse_query_point(part.value()).map_err(|error| {
                        let reason = error.message();
                        let point = found();
                        Error::bad_value(format!(
                            "invalid point in geo near query $geometry argument: {point}  {reason}"
                        ))
                    })?;
                    if !point.is_geo_json {
                        return Err(Error::bad_value(format!("$near requires geojson point, given {}", found())));
                    }
                    parts.point = Some(point);
                }
                ("$geometry", _) => {}
                ("$minDistance", _) => parts.min = finite_distance(part)?,
                ("$maxDistance", _) => parts.max = finite_distance(part)?,
                (other, _) => return Err(Error::bad_value(invalid_argument_message(other))),
            }
        }
        Ok(parts)
    }
}

fn invalid_argument_message(argument: &str) -> String {
    format!("invalid argument in geo near query: {argument}")
}

/// Parses a query's point: two numbers, or GeoJSON.
pub fn parse_query_point(value: Value<'_>) -> Result<QueryPoint> {
    let (Value::Array(object) | Value::Document(object)) = value else {
        return Err(Error::bad_value("Point must be an array or object"));
    };
    if super::parse::is_pair(value, object) {
        return Ok(QueryPoint { position: parse_pair(value)?, is_geo_json: false });
    }
    let strict = super::parse::has_strict_winding(object)?;
    let position = position_of(object.get("coordinates"))?;
    super::parse::to_sphere(position)?;
    if strict {
        return Err(Error::bad_value("Strict winding order is only supported by polygon"));
    }
    Ok(QueryPoint { position, is_geo_json: true })
}

/// Parses `[x, y, greatest distance]`.
fn with_max_distance(point: Doc<'_>) -> Option<(Position, f64)> {
    let mut numbers = point.values().map(|value| Number::from_value(value).map(Number::to_f64));
    let (x, y, max) = (numbers.next()??, numbers.next()??, numbers.next()??);
    if !x.is_finite() || !y.is_finite() || max.is_nan() {
        return None;
    }
    numbers.next().is_none().then_some((Position { x, y }, max))
}

fn distance(part: Element<'_>, no_number: Code, negative: Code) -> Result<f64> {
    let number = Number::from_value(part.value()).map(Number::to_f64);
    let number = number.ok_or_else(|| Error::new(no_number, format!("{} must be a number", part.key())))?;
    match number >= 0.0 {
        true => Ok(number),
        false => Err(Error::new(negative, format!("{} must be non-negative", part.key()))),
    }
}

fn finite_distance(part: Element<'_>) -> Result<f64> {
    let code = Code::BAD_VALUE;
    let number = distance(part, code, code)?;
    match number.is_finite() {
        true => Ok(number),
        false => Err(Error::new(code, format!("{} must be non-negative", part.key()))),
    }
}
