//! Checks the operands of source stages, which MongoDB does before it checks their position.

use super::list_catalog;
use crate::arguments;
use crate::arguments::is_absent;
use crate::command::admin::current_op;
use crate::command::indexes::plan_cache;
use crate::command::sessions::logical_sessions;
use document::{Doc, Element, Value};
use error::{Code, Error, Result};
use values::text;

pub fn check(stage: Element<'_>) -> Result<()> {
    match stage.key() {
        "$collStats" => check_collection_stats(stage),
        "$indexStats" if stage.value().as_document().is_none_or(|options| !options.is_empty()) => {
            Err(Error::new(Code(28803), "The $indexStats stage specification must be an empty object"))
        }
        "$shardedDataDistribution" => check_sharded_data(stage.value()),
        "$changeStream" => check_change_stream(stage),
        // Other errors are reported after the check of its position.
        "$currentOp" => match current_op::check_stage(stage.value()) {
            Err(error) if error.code() == Code::TYPE_MISMATCH => Err(error),
            _ => Ok(()),
        },
        "$listSessions" | "$listLocalSessions" => logical_sessions::listed_sessions(stage).map(drop),
        "$listCatalog" => list_catalog::check(stage.value()),
        "$planCacheStats" => plan_cache::check_stage(stage.value()),
        _ => Ok(()),
    }
}

/// Fails: only a router of shards supports it.
fn check_sharded_data(operand: Value<'_>) -> Result<()> {
    match operand {
        Value::Document(options) if options.is_empty() => {
            Err(Error::new(Code(6789101), "The $shardedDataDistribution stage can only be run on mongoS"))
        }
        _ => {
            let message = "The $shardedDataDistribution stage specification must be an empty object";
            Err(Error::new(Code(6789100), message))
        }
    }
}

fn nested<'a>(stage: Element<'a>, code: i32) -> Result<Doc<'a>> {
    stage.value().as_document().ok_or_else(|| {
        let (name, found) = (stage.key(), text::element(stage.key(), stage.value()));
        Error::new(Code(code), format!("{name} must take a nested object but found: {found}"))
    })
}

fn check_collection_stats(stage: Element<'_>) -> Result<()> {
    let options = nested(stage, 5447000)?;
    for option in options.elements() {
        let within = format!("$collStats.{}", option.key());
        if !matches!(option.key(), "count" | "latencyStats" | "queryExecStats" | "storageStats") {
            return Err(arguments::unknown_field("$collStats", option.key()));
        }
        if is_absent(option) {
            continue;
        }
        let given = arguments::document("$collStats", option)?;
        match option.key() {
            "latencyStats" => given.elements().try_for_each(|field| match field.key() {
                "histograms" => arguments::plain_boolean(field).map(drop),
                other => Err(arguments::unknown_field(&within, other)),
            })?,
            "storageStats" => given.elements().try_for_each(|field| match field.key() {
                "scale" if !is_absent(field) => match arguments::integer(&within, field)? {
                    1.. => Ok(()),
                    scale => {
                        let message = format!("BSON field 'scale' value must be >= 1, actual value '{scale}'");
                        Err(Error::new(Code(51024), message))
                    }
                },
                "verbose" | "waitForLock" | "numericOnly" => arguments::plain_boolean(field).map(drop),
                _ => Ok(()),
            })?,
            _ if !given.is_empty() => {
                let message = format!("expected an empty object, but got {}", text::value(Value::Document(given)));
                return Err(Error::new(Code(31170), message));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Checks the options of `$changeStream`, although there are no change streams.
fn check_change_stream(stage: Element<'_>) -> Result<()> {
    const WITHIN: &str = "$changeStream";
    let known = |name: &str, values: &[&str]| values.contains(&name);
    for option in nested(stage, 6188500)?.elements().filter(|option| !is_absent(*option)) {
        let values: &[&str] = match option.key() {
            "fullDocument" => &["default", "updateLookup", "whenAvailable", "required"],
            "fullDocumentBeforeChange" => &["off", "whenAvailable", "required"],
            "resumeAfter" | "startAfter" => {
                arguments::document(WITHIN, option)?;
                continue;
            }
            "startAtOperationTime" if option.value().kind().alias() != "timestamp" => {
                return Err(arguments::wrong_type(WITHIN, option, "timestamp"));
            }
            "startAtOperationTime" => continue,
            "allChangesForCluster"
            | "showMigrationEvents"
            | "allowToRunOnConfigDB"
            | "allowToRunOnSystemNS"
            | "showExpandedEvents"
            | "showSystemEvents"
            | "showRawUpdateDescription" => {
                arguments::boolean(WITHIN, option)?;
                continue;
            }
            other => return Err(arguments::unknown_field(WITHIN, other)),
        };
        let given = arguments::string(WITHIN, option)?;
        if !known(given, values) {
            let name = option.key();
            return Err(Error::bad_value(format!(
                "Enumeration value '{given}' for field '{WITHIN}.{name}' is not a valid value."
            )));
        }
    }
    Ok(())
}
