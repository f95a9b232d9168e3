//! Version 1 of MongoDB's stable API: what it excludes fails with 323 under `apiStrict`.
//!
//! Source: <https://www.mongodb.com/docs/v6.0/reference/stable-api/>

use crate::table::spec::{Spec, StableApi};
use document::{Doc, Element, Value};
use error::{Code, Error, Result};

/// The excluded pipeline stages.
const EXCLUDED_STAGES: [&str; 8] = [
    "$_internalInhibitOptimization",
    "$currentOp",
    "$fill",
    "$indexStats",
    "$listCatalog",
    "$listLocalSessions",
    "$listSessions",
    "$planCacheStats",
];

/// Checks that a command and its fields are in the API. `name`: the command's name as it was sent;
/// aliases are not in the API. Fails with 323.
pub fn check(spec: &Spec, name: &str, fields: &[Element<'_>]) -> Result<()> {
    let excluded = match spec.stable_api {
        StableApi::IncludedWithout(excluded) if spec.name == name => excluded,
        _ => {
            return refuse(format!(
                "Provided apiStrict:true, but the command {name} is not in API Version 1. Information on supported commands \
                 and migrations in API Version 1 can be found at https://dochub.mongodb.org/core/manual-versioned-api"
            ));
        }
    };
    for field in fields {
        if excluded.contains(&field.key()) {
            let (within, key) = (spec.fields_name(), field.key());
            return refuse(format!("BSON field '{within}.{key}' is not allowed with apiStrict:true."));
        }
        match (name, field.key(), field.value()) {
            ("aggregate", "pipeline", Value::Array(stages)) => check_stages(stages)?,
            ("createIndexes", "indexes", Value::Array(indexes)) => check_indexes(indexes)?,
            _ => {}
        }
    }
    Ok(())
}

fn check_stages(stages: Doc<'_>) -> Result<()> {
    for stage in stages.values().filter_map(|stage| stage.as_document()?.first()) {
        if EXCLUDED_STAGES.contains(&stage.key()) {
            return refuse(format!("{} is not allowed with 'apiStrict: true' in API Version 1", stage.key()));
        }
        let Value::Document(operand) = stage.value() else { continue };
        match stage.key() {
            "$collStats" if operand.elements().any(|option| option.key() != "count") => {
                return refuse("only the 'count' option to $collStats is supported in API Version 1".to_owned());
            }
            "$facet" => operand.values().filter_map(Value::as_array).try_for_each(check_stages)?,
            _ => operand.get("pipeline").and_then(Value::as_array).map_or(Ok(()), check_stages)?,
        }
    }
    Ok(())
}

fn check_indexes(indexes: Doc<'_>) -> Result<()> {
    let key = |spec: Doc<'_>| spec.get("key").and_then(Value::as_document).is_some_and(has_text);
    match indexes.values().filter_map(Value::as_document).any(key) {
        true => refuse("text indexes cannot be created with apiStrict: true".to_owned()),
        false => Ok(()),
    }
}

fn has_text(key: Doc<'_>) -> bool {
    key.values().any(|value| value == Value::String("text"))
}

fn refuse(message: String) -> Result<()> {
    Err(Error::new(Code::API_STRICT_ERROR, message))
}
