//! Conversion between types: `$convert` and its short forms.

mod text;

use super::arguments::named;
use super::date;
use super::evaluated::Evaluated;
use super::string::double_text;
use super::tree::Arity::{Conversion, Named};
use super::tree::{Expr, Operator, ParseExpr};
use document::{Collation, Kind, ObjectId, Value, ValueBuf};
use error::{Code, Error, Result};
use values::hash;
use values::integer::{as_i64_exact, as_i64_truncated};
use values::number::Number;
use values::text::display;

pub(super) static OPERATORS: &[Operator] = &[
    Operator::new("$convert", Named(parse), convert),
    Operator::new("$toBool", Conversion, |_, arguments| short(&arguments[0], Kind::Boolean)),
    Operator::new("$toInt", Conversion, |_, arguments| short(&arguments[0], Kind::Int32)),
    Operator::new("$toLong", Conversion, |_, arguments| short(&arguments[0], Kind::Int64)),
    Operator::new("$toDouble", Conversion, |_, arguments| short(&arguments[0], Kind::Double)),
    Operator::new("$toDecimal", Conversion, |_, arguments| short(&arguments[0], Kind::Decimal128)),
    Operator::new("$toString", Conversion, |_, arguments| short(&arguments[0], Kind::String)),
    Operator::new("$toDate", Conversion, |_, arguments| short(&arguments[0], Kind::DateTime)),
    Operator::new("$toHashedIndexKey", Named(|parser, _, operand| Ok(vec![parser.parse(operand)?])), |_, arguments| {
        Ok(Value::Int64(hash::hash(arguments[0].value_or_null(), &Collation::SIMPLE)).into())
    }),
    Operator::new("$toObjectId", Conversion, |_, arguments| short(&arguments[0], Kind::ObjectId)),
];

/// The middle part of the messages of failed conversions.
const WHERE: &str = "in $convert with no onError value";

fn failure(message: impl Into<String>) -> Error {
    Error::new(Code::CONVERSION_FAILURE, message)
}

fn parse(parser: &mut dyn ParseExpr, name: &str, operand: Value<'_>) -> Result<Vec<Expr>> {
    let Value::Document(operand) = operand else {
        let found = operand.kind().alias();
        return Err(Error::failed_to_parse(format!("{name} expects an object of named arguments but found: {found}")));
    };
    let [input, to, on_error, on_null] = named(operand, ["input", "to", "onError", "onNull"], |unknown| {
        Error::failed_to_parse(format!("$convert found an unknown argument: {unknown}"))
    })?;
    let missing = |what: &str| Error::failed_to_parse(format!("Missing '{what}' parameter to $convert"));
    let input = parser.parse(input.ok_or_else(|| missing("input"))?)?;
    let to = parser.parse(to.ok_or_else(|| missing("to"))?)?;
    let has_on_error = Expr::Literal(ValueBuf::from(Value::Boolean(on_error.is_some())));
    let mut optional = |value: Option<Value<'_>>| value.map_or(Ok(Expr::Missing), |value| parser.parse(value));
    let on_error = optional(on_error)?;
    let null = if on_null.is_some() { optional(on_null)? } else { Expr::Literal(ValueBuf::from(Value::Null)) };
    Ok(vec![input, to, has_on_error, on_error, null])
}

fn convert<'a>(_: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    let [input, to, has_on_error, on_error, on_null] = arguments else { return Ok(Evaluated::Missing) };
    // The server evaluates them in this order, and checks the type afterwards.
    to.mark_read();
    input.mark_read();
    let target = match to.value() {
        None | Some(Value::Null | Value::Undefined) => None,
        Some(to) => Some(target(to)?),
    };
    if input.is_nullish() {
        return Ok(on_null.take());
    }
    let Some(target) = target else { return Ok(Evaluated::NULL) };
    match convert_value(input, target) {
        Err(error) if has_on_error.is_truthy() && error.code() == Code::CONVERSION_FAILURE => Ok(on_error.take()),
        converted => converted,
    }
}

/// Returns the type that `to` names, by number or alias.
fn target(to: Value<'_>) -> Result<Kind> {
    match to {
        // The server counts the type of a missing value among the types.
        Value::String("missing") => Ok(Kind::Undefined),
        Value::String(name) => (0..=255)
            .filter_map(Kind::from_byte)
            .find(|kind| kind.alias() == name)
            .ok_or_else(|| Error::bad_value(format!("Unknown type name: {name}"))),
        Value::IllFormed { kind: Kind::String, .. } => {
            let name = to.to_text_lossy().unwrap_or_default();
            Err(Error::bad_value(format!("Unknown type name: {name}")))
        }
        to if to.kind().is_number() => {
            let code = as_i64_exact(to)
                .ok_or_else(|| Error::failed_to_parse("In $convert, numeric 'to' argument is not an integer"))?;
            if code == 0 {
                return Ok(Kind::Undefined);
            }
            let byte = if code == -1 { Some(0xFF) } else { u8::try_from(code).ok().filter(|code| *code != 0xFF) };
            byte.and_then(Kind::from_byte).ok_or_else(|| {
                Error::failed_to_parse(format!(
                    "In $convert, numeric value for 'to' does not correspond to a BSON type: {code}"
                ))
            })
        }
        to => {
            let found = to.kind().alias();
            Err(Error::failed_to_parse(format!("$convert's 'to' argument must be a string or number, but is {found}")))
        }
    }
}

fn short<'a>(input: &Evaluated<'a>, target: Kind) -> Result<Evaluated<'a>> {
    if input.is_nullish() { Ok(Evaluated::NULL) } else { convert_value(input, target) }
}

fn convert_value<'a>(input: &Evaluated<'a>, target: Kind) -> Result<Evaluated<'a>> {
    let value = input.value_or_null();
    if value.kind() == target
        && matches!(
            target,
            Kind::Boolean
                | Kind::Int32
                | Kind::Int64
                | Kind::Double
                | Kind::Decimal128
                | Kind::String
                | Kind::DateTime
                | Kind::ObjectId
        )
    {
        return Ok(input.clone());
    }
    if let (true, Some(text)) = (value.well_formed().is_none() && target != Kind::Boolean, value.to_text_lossy()) {
        // No text with U+FFFD in it converts to anything; the error shows it.
        return convert_value(&Evaluated::string(&text), target);
    }
    let converted = match target {
        Kind::Boolean => Some(Value::Boolean(value.is_truthy())),
        Kind::Int32 => to_int32(value)?,
        Kind::Int64 => to_int64(value)?,
        Kind::Double => to_double(value)?,
        Kind::Decimal128 => to_decimal(value)?,
        Kind::DateTime => to_date(value)?,
        Kind::ObjectId => to_object_id(value)?,
        Kind::String => {
            if let Value::DateTime(milliseconds) = value {
                return date::moment::checked_iso_text(milliseconds).map(|text| Evaluated::string(&text));
            }
            return to_string(value).map(|text| Evaluated::string(&text)).ok_or_else(|| unsupported(value, target));
        }
        _ => None,
    };
    converted.map(Evaluated::Value).ok_or_else(|| unsupported(value, target))
}

fn unsupported(value: Value<'_>, target: Kind) -> Error {
    let (from, to) = (value.kind().alias(), target.alias());
    failure(format!("Unsupported conversion from {from} to {to} {WHERE}"))
}

fn unparsable(text: &str, reason: &str) -> Error {
    if text.starts_with("0x") {
        return failure(format!("Illegal hexadecimal input {WHERE}: {text}"));
    }
    failure(format!("Failed to parse number '{text}' {WHERE}: {reason}"))
}

fn overflow(value: Value<'_>) -> Error {
    failure(format!("Conversion would overflow target type {WHERE}: {}", display(value)))
}

/// Returns the integral part of a number, for the integer types and dates.
fn whole(value: Value<'_>) -> Result<i64> {
    let (nan, infinite) = match value {
        Value::Double(number) => (number.is_nan(), number.is_infinite()),
        Value::Decimal128(number) => (number.is_nan(), !number.is_nan() && !values::decimal::is_finite(number)),
        _ => (false, false),
    };
    if nan || infinite {
        let what = if nan { "NaN" } else { "infinity" };
        return Err(failure(format!("Attempt to convert {what} value to integer type {WHERE}")));
    }
    as_i64_truncated(value).ok_or_else(|| overflow(value))
}

fn parse_integer<T: std::str::FromStr<Err = std::num::ParseIntError>>(text: &str) -> Result<T> {
    use std::num::IntErrorKind::{Empty, NegOverflow, PosOverflow};
    text.parse().map_err(|error: std::num::ParseIntError| {
        let reason = match error.kind() {
            Empty => "No digits",
            _ if matches!(text, "-" | "+") => "No digits",
            PosOverflow | NegOverflow => "Overflow",
            _ => "Did not consume whole string.",
        };
        unparsable(text, reason)
    })
}

fn to_int32(value: Value<'_>) -> Result<Option<Value<'static>>> {
    Ok(Some(Value::Int32(match value {
        Value::Boolean(flag) => i32::from(flag),
        Value::String(text) => parse_integer(text)?,
        Value::Int64(number) => {
            i32::try_from(number).map_err(|_| failure(format!("Conversion would overflow target type {WHERE}: ")))?
        }
        // A fraction beyond the largest integer is already out of range.
        Value::Double(number) if number > f64::from(i32::MAX) || number < f64::from(i32::MIN) => {
            whole(value)?;
            return Err(overflow(value));
        }
        value if value.kind().is_number() => i32::try_from(whole(value)?).map_err(|_| overflow(value))?,
        _ => return Ok(None),
    })))
}

fn to_int64(value: Value<'_>) -> Result<Option<Value<'static>>> {
    Ok(Some(Value::Int64(match value {
        Value::Boolean(flag) => i64::from(flag),
        Value::String(text) => parse_integer(text)?,
        Value::DateTime(milliseconds) => milliseconds,
        value if value.kind().is_number() => whole(value)?,
        _ => return Ok(None),
    })))
}

fn to_double(value: Value<'_>) -> Result<Option<Value<'static>>> {
    Ok(Some(Value::Double(match value {
        Value::Boolean(flag) => f64::from(flag),
        Value::DateTime(milliseconds) => milliseconds as f64,
        Value::String(text) => text::double(text).map_err(|reason| unparsable(text, reason))?,
        Value::Decimal128(number) => {
            let double = number.to_f64();
            let vanishes = !double.is_normal() && double.is_finite() && !Number::Decimal(number).is_zero();
            if vanishes || double.is_infinite() && values::decimal::is_finite(number) {
                return Err(overflow(value));
            }
            double
        }
        value => match Number::from_value(value) {
            Some(number) => number.to_f64(),
            None => return Ok(None),
        },
    })))
}

fn to_decimal(value: Value<'_>) -> Result<Option<Value<'static>>> {
    Ok(Some(Value::Decimal128(match value {
        Value::Boolean(flag) => values::decimal::from_i64(i64::from(flag)),
        Value::DateTime(milliseconds) => values::decimal::from_i64(milliseconds),
        Value::String(text) => text::decimal(text).map_err(|reason| unparsable(text, reason))?,
        value => match Number::from_value(value) {
            Some(number) => number.to_decimal(),
            None => return Ok(None),
        },
    })))
}

/// Returns the text of a value, for the types that convert to one.
fn to_string(value: Value<'_>) -> Option<String> {
    Some(match value {
        Value::Boolean(flag) => flag.to_string(),
        Value::Int32(number) => number.to_string(),
        Value::Int64(number) => number.to_string(),
        Value::Double(number) => double_text(number),
        Value::Decimal128(number) => number.to_string(),
        Value::ObjectId(id) => id.to_string(),
        _ => return None,
    })
}

fn to_date(value: Value<'_>) -> Result<Option<Value<'static>>> {
    Ok(Some(Value::DateTime(match value {
        Value::Int64(milliseconds) => milliseconds,
        value @ (Value::Double(_) | Value::Decimal128(_)) => whole(value)?,
        Value::ObjectId(id) => i64::from(id.seconds()) * 1000,
        Value::Timestamp { time, .. } => i64::from(time) * 1000,
        Value::String(text) => date::read::parse_text(text)?,
        _ => return Ok(None),
    })))
}

fn to_object_id(value: Value<'_>) -> Result<Option<Value<'static>>> {
    let Value::String(text) = value else { return Ok(None) };
    if let Some(id) = ObjectId::parse_hex(text) {
        return Ok(Some(Value::ObjectId(id)));
    }
    let reason = match text.chars().find(|letter| !letter.is_ascii_hexdigit()) {
        Some(letter) if text.len() == 24 => format!("Invalid character found in hex string: '{letter}'"),
        _ => format!("Invalid string length for parsing to OID, expected 24 but found {}", text.len()),
    };
    Err(failure(format!("Failed to parse objectId '{text}' {WHERE}: {reason}")))
}
