//! `$geoNear`: a pipeline over documents in the order of their distance.
//!
//! The stage is translated into a source, with the condition and the order of a `$near` in a
//! filter, and stages that write the distance of each document and the location that has it.

use super::add_fields::AddFields;
use super::stage::Stage;
use document::path::Path;
use document::{Doc, DocBuf, Element, Value, ValueBuf, doc};
use error::{Code, Error, Result};
use geo::Near;
use query::expression::check_field_path;
use query::{Context, Expression, Folding, Predicate};
use std::borrow::Cow;
use std::sync::Arc;
use values::number::Number;

#[derive(Clone, Debug)]
pub struct GeoNear {
    filter: Predicate,
    near: Near,
    /// Whether the stage names the field of the locations; otherwise the collection's indexes
    /// determine it.
    names_geo_field: bool,
}

/// The stage's fields while they are parsed.
#[derive(Default)]
struct GeoNearOptions<'a> {
    near: Option<Value<'a>>,
    distance_field: Option<Cow<'a, str>>,
    include_locs: Option<Cow<'a, str>>,
    multiplier: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
    query: Option<Doc<'a>>,
    spherical: bool,
    key: Option<Element<'a>>,
}

/// Options of older versions.
const REMOVED_OPTIONS: [(&str, i32, &str); 3] = [
    ("limit", 50858, "$geoNear no longer supports the 'limit' parameter. Use a $limit stage instead."),
    ("num", 50857, "$geoNear no longer supports the 'num' parameter. Use a $limit stage instead."),
    ("start", 50856, "$geoNear no longer supports the 'start' argument."),
];

/// Parses the stage, into the source and the stages that follow it.
pub(super) fn parse(spec: Value<'_>, context: &Context, stages: &mut Vec<Stage>) -> Result<()> {
    let (Value::Document(spec) | Value::Array(spec)) = spec else {
        return Err(Error::new(Code(10065), "invalid parameter: expected an object ($geoNear)"));
    };
    let mut fields = GeoNearOptions::default();
    for (name, code, message) in REMOVED_OPTIONS {
        if spec.get(name).is_some() {
            return Err(Error::new(Code(code), message));
        }
    }
    if spec.get("near").is_none() {
        return Err(no_near());
    }
    spec.elements().try_for_each(|field| fields.parse_field(field))?;
    let operator = if fields.spherical { "$nearSphere" } else { "$near" };
    let distance_field = fields.distance_field.ok_or_else(no_distance_field)?;
    let key = fields.key.map(key).transpose()?;
    let near = point(fields.near.ok_or_else(no_near)?, context)?;
    let condition = DocBuf::build(|writer| {
        writer.append(operator, near.as_value());
        fields.min.into_iter().for_each(|min| writer.append("$minDistance", min));
        fields.max.into_iter().for_each(|max| writer.append("$maxDistance", max));
    });
    let near = Near::parse(key.as_deref().unwrap_or_default(), condition.as_doc())?;
    let filter = Predicate::parse_query(fields.query.unwrap_or(Doc::EMPTY), context)?;
    if filter.near().is_some() {
        return Err(Error::bad_value("Too many geoNear expressions"));
    }
    let has_key = key.is_some();
    stages.push(Stage::GeoNear(Arc::new(GeoNear { filter, near, names_geo_field: has_key })));
    let distance = doc! { "$meta": "geoNearDistance" };
    let distance = match fields.multiplier {
        None => distance,
        Some(multiplier) => doc! { "$multiply": &document::array![&distance, multiplier] },
    };
    stages.push(set_field_stage(&distance_field, &distance, context)?);
    if let Some(location_field) = fields.include_locs {
        stages.push(set_field_stage(&location_field, &doc! { "$meta": "geoNearPoint" }, context)?);
    }
    Ok(())
}

/// Returns a stage that sets a field.
fn set_field_stage(path: &str, expression: &DocBuf, context: &Context) -> Result<Stage> {
    let mut fields = DocBuf::new();
    fields.append(path, expression);
    let fields = AddFields::parse("$addFields", Value::Document(fields.as_doc()), context)?;
    Ok(Stage::AddFields(Arc::new(fields)))
}

impl<'a> GeoNearOptions<'a> {
    fn parse_field(&mut self, field: Element<'a>) -> Result<()> {
        match field.key() {
            "near" => self.near = Some(field.value()),
            "distanceField" => self.distance_field = Some(name(field, no_distance_field)?),
            "includeLocs" => {
                let wrong = || Error::new(Code(16607), "$geoNear requires that 'includeLocs' option is a String");
                self.include_locs = Some(name(field, wrong)?);
            }
            "minDistance" => self.min = Some(number(field)?),
            "maxDistance" => self.max = Some(number(field)?),
            "distanceMultiplier" => self.multiplier = Some(number(field)?),
            "query" => match field.value() {
                Value::Document(query) => self.query = Some(query),
                _ => return Err(Error::type_mismatch("query must be an object")),
            },
            "spherical" => self.spherical = field.value().is_truthy(),
            "key" => self.key = Some(field),
            _ => {}
        }
        Ok(())
    }
}

fn no_near() -> Error {
    Error::new(Code(5860400), "$geoNear requires a 'near' argument")
}

fn no_distance_field() -> Error {
    Error::new(Code(16606), "$geoNear requires a 'distanceField' option as a String")
}

fn point(value: Value<'_>, context: &Context) -> Result<ValueBuf> {
    // Constants must be known at once, whatever the expression is part of.
    let expression = Expression::parse(value, &Context { folding: Folding::AtOnce, ..context.clone() })?;
    if !expression.is_constant() {
        return Err(Error::new(Code(5860402), "$geoNear requires a constant near argument"));
    }
    match expression.evaluate(Doc::EMPTY)?.value() {
        Some(point @ (Value::Array(_) | Value::Document(_))) => Ok(point.to_owned()),
        _ => {
            let message = "$geoNear requires near argument to be a GeoJSON object or a legacy point(array)";
            Err(Error::new(Code(5860401), message))
        }
    }
}

fn name<'a>(field: Element<'a>, wrong: impl Fn() -> Error) -> Result<Cow<'a, str>> {
    let name = field.value().as_name().ok_or_else(wrong)?;
    check_field_path(&name)?;
    Ok(name)
}

fn key(field: Element<'_>) -> Result<Cow<'_, str>> {
    let wrong = || {
        let found = field.kind.alias();
        Error::type_mismatch(format!("$geoNear parameter 'key' must be of type string but found type: {found}"))
    };
    match field.value().as_str() {
        Some("") => Err(Error::bad_value("$geoNear parameter 'key' cannot be the empty string")),
        _ => name(field, wrong),
    }
}

fn number(field: Element<'_>) -> Result<f64> {
    let found = values::number::Number::from_value(field.value());
    let number = found.ok_or_else(|| Error::type_mismatch(format!("{} must be a number", field.key())))?.to_f64();
    match number >= 0.0 {
        true => Ok(number),
        false => Err(Error::bad_value(format!("{} must be nonnegative", field.key()))),
    }
}

/// Returns the pipeline without the stages in front of its `$geoNear`, if those pass all documents.
/// A MongoDB server drops them before it checks the stage's position. It keeps two adjacent
/// `$match`, which become one.
pub(super) fn without_idle_prefix(pipeline: Doc<'_>) -> Option<DocBuf> {
    let mut idle = 0;
    let mut last = "";
    for stage in pipeline.values().filter_map(Value::as_document).filter_map(Doc::first) {
        match (stage.key(), stage.value()) {
            ("$geoNear", _) if idle > 0 => break,
            ("$match", Value::Document(filter)) if filter.is_empty() && last != "$match" => {}
            ("$skip", count) if Number::from_value(count).is_some_and(|count| count.to_f64() == 0.0) => {}
            _ => return None,
        }
        last = stage.key();
        idle += 1;
    }
    let mut rest = DocBuf::new();
    for (number, stage) in pipeline.values().skip(idle).enumerate() {
        rest.append(&number.to_string(), stage);
    }
    (!rest.as_doc().is_empty()).then_some(rest)
}

impl GeoNear {
    /// Returns whether the field of the locations is still unknown.
    pub(super) fn lacks_geo_field(&self) -> bool {
        !self.names_geo_field
    }

    pub(super) fn set_geo_field(&mut self, path: &str) {
        self.near.path = Path::new(path);
        self.names_geo_field = true;
    }

    /// Adds a condition on its documents.
    pub(super) fn add_condition(&mut self, predicate: Predicate) {
        self.filter = self.filter.clone().and(predicate);
    }

    pub(super) fn predicate(&self) -> Predicate {
        self.filter.clone().and_near(self.near.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shorthand::value;

    #[test]
    fn stages_without_effect_before_geo_near_are_dropped() {
        let cases = [
            ("[{$match: {}}, {$geoNear: 1}]", Some(1)),
            ("[{$match: {}}, {$skip: 0}, {$match: {}}, {$geoNear: 1}, {$limit: 2}]", Some(2)),
            ("[{$match: {}}, {$match: {}}, {$geoNear: 1}]", None),
            ("[{$match: {a: 1}}, {$geoNear: 1}]", None),
            ("[{$skip: 1}, {$geoNear: 1}]", None),
            ("[{$match: {}}, {$limit: 3}, {$geoNear: 1}]", None),
            ("[{$geoNear: 1}, {$match: {}}]", None),
            ("[{$match: {}}]", None),
        ];
        for (text, expected) in cases {
            let pipeline = value(text);
            let rest = without_idle_prefix(pipeline.as_value().as_array().unwrap());
            assert_eq!(rest.map(|rest| rest.as_doc().elements().count()), expected, "{text}");
        }
    }
}
