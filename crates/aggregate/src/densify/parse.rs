//! The specification of `$densify`.

use super::{Densify, DensifyBounds};
use crate::window::parse_unit;
use document::compare::compare;
use document::path::Path;
use document::{Doc, DocBuf, Kind, Value, ValueBuf};
use error::{Code, Error, Result};
use query::expression::check_field_path;
use query::{Context, Expression, Sort};
use values::integer::as_i64_exact;
use values::number::Number;

pub(super) fn parse_stage(spec: Value<'_>, context: &Context) -> Result<Densify> {
    let Value::Document(spec) = spec else {
        let kind = spec.kind().alias();
        let message = format!("The $densify stage specification must be an object, found {kind}");
        return Err(Error::failed_to_parse(message));
    };
    let (mut field, mut partition, mut range) = (None, Vec::new(), None);
    for (name, value) in spec.iter() {
        match name {
            "field" => field = Some(value.as_name().ok_or_else(|| wrong_type("field", value, "string"))?),
            "partitionByFields" => partition = fields(value)?,
            "range" => range = Some(value.as_document().ok_or_else(|| wrong_type("range", value, "object"))?),
            other => return Err(unknown(other)),
        }
    }
    let field = field.ok_or_else(|| missing("field"))?;
    let field = &*field;
    let range = range.ok_or_else(|| missing("range"))?;
    let range = parse_range(range)?;
    check_field_path(field)?;
    for path in &partition {
        check_field_path(path.as_str())?;
    }
    if matches!(range.bounds, DensifyBounds::Partition) && partition.is_empty() {
        let message = "One cannot specify the bounds as 'partition' without specifying a non-empty array of \
                       partitionByFields. You may have meant to specify 'full' bounds.";
        return Err(Error::new(Code(5733408), message));
    }
    let by_partition = !matches!(range.bounds, DensifyBounds::Full);
    let mut order: Vec<&str> = Vec::new();
    for path in partition.iter().filter(|_| by_partition).map(Path::as_str).chain([field]) {
        if !order.contains(&path) {
            order.push(path);
        }
    }
    let order = DocBuf::build(|writer| order.iter().for_each(|path| writer.append(path, 1)));
    let collation = context.collation.clone();
    let sort =
        Sort::parse_stage(order.as_doc(), &Context { collation: collation.clone(), ..Context::at(context.now_ms) })?;
    let partition_values = partition.iter().map(|path| Expression::field(path.as_str())).collect::<Result<_>>()?;
    let Range { step, unit, bounds } = range;
    Ok(Densify {
        field: Path::new(field),
        partition_by: partition,
        partition_values,
        step,
        unit,
        bounds,
        sort,
        collation,
    })
}

fn wrong_type(name: &str, value: Value<'_>, expected: &str) -> Error {
    let kind = match value.kind() {
        Kind::Null if expected == "array" => return not_an_object(name),
        Kind::Null => return missing(name),
        kind => kind.alias(),
    };
    Error::type_mismatch(format!("BSON field '$densify.{name}' is the wrong type '{kind}', expected type '{expected}'"))
}

/// Returns the server's error for null in place of a list.
fn not_an_object(name: &str) -> Error {
    Error::new(Code(10065), format!("invalid parameter: expected an object ({name})"))
}

fn unknown(name: &str) -> Error {
    Error::new(Code(40415), format!("BSON field '$densify.{name}' is an unknown field."))
}

fn missing(name: &str) -> Error {
    Error::new(Code(40414), format!("BSON field '$densify.{name}' is missing but a required field"))
}

fn fields(value: Value<'_>) -> Result<Vec<Path>> {
    let list = value.as_array().ok_or_else(|| wrong_type("partitionByFields", value, "array"))?;
    let path = |(index, value): (usize, Value<'_>)| {
        let path = value.as_name().ok_or_else(|| wrong_type(&format!("partitionByFields.{index}"), value, "string"))?;
        Ok(Path::new(&path))
    };
    list.values().enumerate().map(path).collect()
}

struct Range {
    step: ValueBuf,
    unit: Option<query::expression::date::calculate::TimeUnit>,
    bounds: DensifyBounds,
}

fn parse_range(range: Doc<'_>) -> Result<Range> {
    let (mut step, mut unit, mut bounds) = (None, None, None);
    for (name, value) in range.iter() {
        match name {
            "step" if value.kind() == Kind::Null => return Err(missing("range.step")),
            "step" if !value.kind().is_number() => {
                let kind = value.kind().alias();
                return Err(Error::type_mismatch(format!(
                    "BSON field '$densify.range.step' is the wrong type '{kind}', expected types '[int, decimal, double, \
                     long']"
                )));
            }
            "step" => step = Some(value),
            "bounds" => bounds = Some(value),
            "unit" => {
                let name = value.as_str().ok_or_else(|| wrong_type("range.unit", value, "string"))?;
                unit = Some(name);
            }
            other => return Err(unknown(&format!("range.{other}"))),
        }
    }
    let step = step.ok_or_else(|| missing("range.step"))?;
    let bounds = bounds.ok_or_else(|| missing("range.bounds"))?;
    if !Number::from_value(step).is_some_and(|step| step.to_f64() > 0.0) {
        let message = "The step parameter in a range statement must be a strictly positive numeric value";
        return Err(Error::new(Code(5733401), message));
    }
    if unit.is_some() && as_i64_exact(step).is_none() {
        let message = "The step parameter in a range statement must be a whole number when densifying a date range";
        return Err(Error::new(Code(6586400), message));
    }
    let unit = unit.map(parse_unit).transpose()?;
    let bounds = match bounds {
        Value::String("full") => DensifyBounds::Full,
        Value::String("partition") => DensifyBounds::Partition,
        Value::String(_) => {
            return Err(Error::new(Code(5946802), "Bounds string must either be 'full' or 'partition'"));
        }
        Value::Array(pair) => explicit(pair, step, unit.is_some())?,
        _ => {
            let message = "The bounds in a range statement must be the string 'full', 'partition', or an ascending array \
                           of two numbers or two dates";
            return Err(Error::new(Code(5733404), message));
        }
    };
    Ok(Range { step: step.to_owned(), unit, bounds })
}

fn explicit(pair: Doc<'_>, step: Value<'_>, has_unit: bool) -> Result<DensifyBounds> {
    let values: Vec<Value<'_>> = pair.values().take(3).collect();
    let [lower, upper] = values[..] else {
        return Err(Error::new(Code(5733403), "A bounding array in a range statement must have exactly two elements"));
    };
    let is_date = |value: Value<'_>| matches!(value, Value::DateTime(_));
    let is_number = |value: Value<'_>| value.kind().is_number();
    if compare(lower, upper).is_gt() {
        let message = "A bounding array must be an ascending array of either two dates or two numbers";
        return Err(Error::new(Code(5733402), message));
    }
    if is_number(lower) && has_unit {
        return Err(Error::new(Code(5733409), "Numeric bounds may not have unit parameter"));
    }
    if is_date(lower) && !has_unit {
        return Err(Error::new(Code(5733410), "A bounding array of dates must specify a unit"));
    }
    if !is_number(lower) && !is_date(lower) {
        return Err(Error::new(Code(5946800), "Explicit bounds must be numeric or dates"));
    }
    if is_number(lower) != is_number(upper) || is_date(lower) != is_date(upper) {
        let message = "A bounding array must contain either both dates or both numeric types";
        return Err(Error::new(Code(5733406), message));
    }
    if is_number(lower) && (lower.kind() != upper.kind() || lower.kind() != step.kind()) {
        let message = "Upper bound, lower bound, and step must all have the same type";
        return Err(Error::new(Code(5876900), message));
    }
    Ok(DensifyBounds::Explicit(lower.to_owned(), upper.to_owned()))
}
