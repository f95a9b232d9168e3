//! What version 1 of MongoDB's API leaves out, and `apiStrict` forbids: error 323.
//!
//! Source: <https://www.mongodb.com/docs/v6.0/reference/stable-api/>

use crate::command::index_specification;
use document::{Doc, Element, Value};
use error::{Code, Error, Result};

/// The commands that are in it.
pub const COMMANDS: [&str; 27] = [
    "abortTransaction",
    "aggregate",
    "authenticate",
    "collMod",
    "commitTransaction",
    "count",
    "create",
    "createIndexes",
    "delete",
    "drop",
    "dropDatabase",
    "dropIndexes",
    "endSessions",
    "explain",
    "find",
    "findAndModify",
    "getMore",
    "hello",
    "insert",
    "killCursors",
    "listCollections",
    "listDatabases",
    "listIndexes",
    "ping",
    "refreshSessions",
    "saslStart",
    "update",
];

const STAGES: [&str; 8] = [
    "$_internalInhibitOptimization",
    "$currentOp",
    "$fill",
    "$indexStats",
    "$listCatalog",
    "$listLocalSessions",
    "$listSessions",
    "$planCacheStats",
];

/// Whether a command with these fields is in the API.
pub fn check(command: &str, fields: &[Element<'_>]) -> Result<()> {
    if !COMMANDS.contains(&command) {
        return refuse(format!(
            "Provided apiStrict:true, but the command {command} is not in API Version 1. Information on supported commands \
             and migrations in API Version 1 can be found at https://dochub.mongodb.org/core/manual-versioned-api"
        ));
    }
    let (within, left_out): (&str, &[&str]) = match command {
        "find" => (
            "FindCommandRequest",
            &[
                "min",
                "max",
                "tailable",
                "awaitData",
                "oplogReplay",
                "noCursorTimeout",
                "readOnce",
                "returnKey",
                "showRecordId",
            ],
        ),
        "create" => (
            "create",
            &[
                "autoIndexId",
                "size",
                "max",
                "flags",
                "temp",
                "recordPreImages",
                "storageEngine",
                "indexOptionDefaults",
                "changeStreamPreAndPostImages",
            ],
        ),
        "aggregate" => ("aggregate", &["explain"]),
        _ => ("", &[]),
    };
    for field in fields {
        if left_out.contains(&field.key()) {
            return refuse(format!("BSON field '{within}.{}' is not allowed with apiStrict:true.", field.key()));
        }
        match (command, field.key(), field.value()) {
            ("aggregate", "pipeline", Value::Array(stages)) => check_stages(stages)?,
            ("createIndexes", "indexes", Value::Array(indexes)) => check_indexes(indexes)?,
            _ => {}
        }
    }
    Ok(())
}

fn check_stages(stages: Doc<'_>) -> Result<()> {
    for stage in stages.values().filter_map(|stage| stage.as_document()?.first()) {
        if STAGES.contains(&stage.key()) {
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
    let is_text = |spec: &Doc<'_>| index_specification::key(*spec).values().any(|value| value == Value::String("text"));
    match indexes.values().filter_map(Value::as_document).any(|spec| is_text(&spec)) {
        true => refuse("text indexes cannot be created with apiStrict: true".to_owned()),
        false => Ok(()),
    }
}

fn refuse(message: String) -> Result<()> {
    Err(Error::new(Code::API_STRICT_ERROR, message))
}
