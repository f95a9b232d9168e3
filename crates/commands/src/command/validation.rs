//! Options about validation, as `create` and `collMod` read them.

use crate::arguments;
use crate::dispatch::Call;
use document::{Doc, Element, Value};
use error::{Code, Error, Result};
use query::Predicate;
use store::Namespace;

/// `validationLevel`.
pub fn level<'a>(within: &str, field: Element<'a>) -> Result<&'a str> {
    one_of(within, field, &["off", "strict", "moderate"])
}

/// `validationAction`.
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

/// Whether this can be a collection's validator.
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

/// What is wrong with a validator whatever it is for.
pub fn check_condition(call: &Call<'_>, validator: Doc<'_>) -> Result<()> {
    check_operators(validator)?;
    Predicate::parse(validator, &call.context()).map(drop)
}

/// Operators that filters have, and validators do not.
fn check_operators(filter: Doc<'_>) -> Result<()> {
    for (key, value) in filter.iter() {
        match key {
            "$text" => return Err(Error::bad_value("$text is not allowed in this context")),
            "$rand" => {
                return Err(Error::new(Code(3040500), "$rand not allowed inside collection validators"));
            }
            _ => {}
        }
        if let Value::Document(inner) | Value::Array(inner) = value {
            check_operators(inner)?;
        }
    }
    Ok(())
}
