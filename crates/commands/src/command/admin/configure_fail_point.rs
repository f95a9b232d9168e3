//! `configureFailPoint`: lets the next commands fail, for tests of drivers.
//!
//! Source: <https://github.com/mongodb/mongo/wiki/The-failCommand-Fail-Point>

use crate::arguments;
use crate::call::Call;
use document::{Doc, DocWriter, Element, Value};
use error::{Code, Error, Result};
use server::fail_point::Mode;

/// The only fail point.
const FAIL_COMMAND: &str = "failCommand";

pub fn configure_fail_point(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let name = call.first().value().as_str().unwrap_or_default();
    if name != FAIL_COMMAND {
        return Err(Error::new(Code::FAIL_POINT_SET_FAILED, format!("{name} not found")));
    }
    let (mut mode, mut data) = (None, Doc::EMPTY);
    for field in call.fields() {
        match (field.key(), field.value()) {
            ("mode", value) => mode = Some(read_mode(value)?),
            ("data", Value::Document(given) | Value::Array(given)) => data = given,
            ("data", _) => return Err(Error::type_mismatch("the 'data' option must be a JSON object")),
            // MongoDB ignores other fields.
            _ => {}
        }
    }
    let missing = || Error::new(Code::ILLEGAL_OPERATION, "When setting a failpoint, you must supply a 'mode'");
    let fired = call.worker.server.fail_command.set(mode.ok_or_else(missing)?, data.to_owned());
    reply.append("count", fired);
    Ok(())
}

fn read_mode(value: Value<'_>) -> Result<Mode> {
    let document = match value {
        Value::String("off") => return Ok(Mode::Off),
        Value::String("alwaysOn") => return Ok(Mode::AlwaysOn),
        Value::String(other) => return Err(Error::bad_value(format!("unknown mode: {other}"))),
        Value::Document(document) => document,
        _ => return Err(Error::type_mismatch("'mode' must be a string or JSON object")),
    };
    if let Some(times) = document.element("times") {
        return Ok(match count(times)? {
            0 => Mode::Off,
            times => Mode::Times(times),
        });
    }
    if let Some(skipped) = document.element("skip") {
        return count(skipped).map(Mode::Skip);
    }
    if let Some(probability) = document.get("activationProbability") {
        return read_probability(probability).map(Mode::Probability);
    }
    Err(Error::bad_value(
        "'mode' must be one of 'off', 'alwaysOn', '{times:n}', '{skip:n}' or '{activationProbability:p}'",
    ))
}

/// Reads a number of commands.
fn count(field: Element<'_>) -> Result<u32> {
    let (name, value) = (field.key(), field.value());
    if !value.kind().is_number() {
        let found = value.kind().alias();
        let message = format!("Expected field \"{name}\" to have numeric type, but found {found}");
        return Err(Error::type_mismatch(message));
    }
    let is_whole = !matches!(value, Value::Double(number) if number.fract() != 0.0);
    let Some(number) = arguments::number_to_i64(value).filter(|_| is_whole) else {
        return Err(Error::bad_value(format!(
            "Expected field \"{name}\" to have a value exactly representable as a 64-bit integer, but found {}",
            values::text::element(name, value)
        )));
    };
    if number < 0 {
        return Err(Error::bad_value(format!("'{name}' option to 'mode' must be positive")));
    }
    match i32::try_from(number) {
        Ok(number) => Ok(number.unsigned_abs()),
        Err(_) => Err(Error::bad_value(format!("'{name}' option to 'mode' is too large"))),
    }
}

fn read_probability(value: Value<'_>) -> Result<f64> {
    let probability = match value {
        Value::Double(number) => number,
        Value::Int32(number) => f64::from(number),
        Value::Int64(number) => number as f64,
        Value::Decimal128(number) => number.to_f64(),
        _ => {
            let message = "the 'activationProbability' option to 'mode' must be a double between 0 and 1";
            return Err(Error::type_mismatch(message));
        }
    };
    if !(0.0..=1.0).contains(&probability) {
        let message = format!("activationProbability must be between 0.0 and 1.0; found {probability}");
        return Err(Error::bad_value(message));
    }
    Ok(probability)
}
