//! The options about validation of `create` and `collMod`.

use crate::arguments;
use crate::call::Call;
use document::{Doc, Element, Value};
use error::{Code, Error, Result};
use query::Predicate;
use store::Namespace;

/// Reads `validationLevel`.
pub fn level<'a>(within: &str, field: Element<'a>) -> Result<&'a str> {
    one_of(within, field, &["off", "strict", "moderate"])
}

/// Reads `validationAction`.
pub fn action<'a>(within: &str, field: Element<'a>) -> Result<&'a str> {
    one_of(within, field, &["error", "warn"])
}

fn one_of<'a>(within: &str, field: Element<'a>, words: &[&str]) -> Result<&'a str> {
    let word = arguments::string(within, field)?;
    match words.contains(&word) {
        true => Ok(word),
        false => Err(Error::bad_value(format!(
            "Enumeration value '{word}' for field '{within}.{}' is not a valid value.",
            field.key()
        ))),
    }
}

/// Checks that a collection may have this validator.
pub fn check_validator(call: &Call<'_>, namespace: &Namespace, validator: Doc<'_>) -> Result<()> {
    if validator.is_empty() {
        return Ok(());
    }
    if matches!(&*namespace.database, "admin" | "local" | "config") || namespace.collection.starts_with("system.") {
        let message = format!(
            "Document validators are not allowed on {} collection {namespace} in the {} database",
            if namespace.collection.starts_with("system.") { "system" } else { "internal" },
            namespace.database
        );
        return Err(Error::new(Code::INVALID_OPTIONS, message));
    }
    check_condition(call, validator)
}

/// Checks a validator, whatever its collection.
pub fn check_condition(call: &Call<'_>, validator: Doc<'_>) -> Result<()> {
    check_operators(validator)?;
    Predicate::parse(validator, &call.context()).map(drop)
}

/// Fails for operators that filters have and validators do not.
fn check_operators(filter: Doc<'_>) -> Result<()> {
    filter.iter().try_for_each(|(key, value)| match (key, value) {
        ("$text", _) => Err(Error::bad_value("$text is not allowed in this context")),
        // A rate compares with a random number, unless it takes all documents or none.
        ("$sampleRate", Value::Double(rate)) if rate > 0.0 && rate < 1.0 => Err(no_random()),
        ("$sampleRate", Value::Decimal128(rate)) if rate.to_f64() > 0.0 && rate.to_f64() < 1.0 => Err(no_random()),
        ("$expr", expression) => check_expression(expression),
        ("$and" | "$or" | "$nor", Value::Array(branches)) => {
            branches.values().filter_map(Value::as_document).try_for_each(check_operators)
        }
        // Values that a field is compared with contain no operators; other operands contain none of
        // these.
        _ => Ok(()),
    })
}

fn check_expression(expression: Value<'_>) -> Result<()> {
    match expression {
        Value::Array(parts) => parts.values().try_for_each(check_expression),
        Value::Document(parts) => parts.iter().try_for_each(|(key, value)| match key {
            "$literal" | "$const" => Ok(()),
            "$rand" => Err(no_random()),
            "$function" => Err(Error::new(Code(4660800), "$function cannot be used inside a validator.")),
            "$_internalJsEmit" => Err(Error::new(Code(4660801), "$_internalJsEmit cannot be used inside a validator.")),
            _ => check_expression(value),
        }),
        _ => Ok(()),
    }
}

fn no_random() -> Error {
    Error::new(Code(3040500), "$rand not allowed inside collection validators")
}
