//! The first check of a pipeline, before any of its stages is parsed: that the stages exist, and
//! the collections they read and write are named. MongoDB reports errors of these first, wherever
//! they occur.

use super::facets::facet_pipelines;
use super::joins::sources::{missing_source, parse_source, wrong_type};
use super::joins::{Merge, Out};
use super::stage_table::{find, unknown_stage};
use document::{Doc, Value};
use error::{Code, Error, Result};
use steps::Counted;

/// Checks a pipeline. Fails with 14 and 40323 for an invalid stage, 40324 for an unknown one, and
/// 73 for an invalid name of a collection.
pub fn precheck(pipeline: Doc<'_>) -> Result<()> {
    pipeline.values().counted().try_for_each(|stage| {
        let Value::Document(stage) = stage else {
            return Err(Error::type_mismatch("Each element of the 'pipeline' array must be an object"));
        };
        let mut elements = stage.elements();
        let (Some(operator), None) = (elements.next(), elements.next()) else {
            let message = "A pipeline stage specification object must contain exactly one field.";
            return Err(Error::new(Code(40323), message));
        };
        check_stage(operator.key(), operator.value())
    })
}

fn check_stage(name: &str, spec: Value<'_>) -> Result<()> {
    match (name, spec) {
        ("$lookup", Value::Document(spec)) => {
            match spec.get("from") {
                Some(from) => check_source(name, from)?,
                None if spec.get("pipeline").is_none() => {
                    return Err(Error::failed_to_parse("must specify 'pipeline' when 'from' is empty"));
                }
                None => {}
            }
            let wrong = || Error::type_mismatch("'pipeline' option must be specified as an array");
            let stages = spec.get("pipeline").map(|stages| stages.as_array().ok_or_else(wrong)).transpose()?;
            stages.map_or(Ok(()), |stages| check_nested(name, spec.get("from"), stages))
        }
        ("$graphLookup", Value::Document(spec)) => spec.get("from").map_or(Ok(()), |from| check_source(name, from)),
        ("$unionWith", Value::Document(spec)) => {
            spec.get("pipeline").and_then(Value::as_array).map_or(Ok(()), |stages| {
                check_elements(stages).and_then(|()| check_nested(name, spec.get("coll"), stages))
            })
        }
        ("$facet", spec) => facet_pipelines(spec)?.into_iter().try_for_each(|(_, stages)| precheck(stages)),
        ("$out", spec) => Out::parse(spec).map(drop),
        ("$merge", spec) => {
            let stages = Merge::check_fields(spec)?;
            stages.map_or(Ok(()), |stages| precheck(stages.as_value().as_array().unwrap_or(Doc::EMPTY)))
        }
        _ => find(name).map(drop).ok_or_else(|| unknown_stage(name)),
    }
}

/// Checks the pipeline of a stage, which begins with a collection or with documents of its own.
fn check_nested(stage: &str, collection: Option<Value<'_>>, stages: Doc<'_>) -> Result<()> {
    let first = stages.values().next().and_then(Value::as_document).and_then(Doc::first);
    if collection.is_none() && first.is_none_or(|first| first.key() != "$documents") {
        return Err(missing_source(stage));
    }
    precheck(stages)
}

fn check_source(stage: &str, from: Value<'_>) -> Result<()> {
    match parse_source(stage, from)? {
        "" => Err(Error::new(Code::INVALID_NAMESPACE, format!("invalid {stage} namespace"))),
        _ => Ok(()),
    }
}

fn check_elements(stages: Doc<'_>) -> Result<()> {
    stages.elements().counted().try_for_each(|stage| match stage.value() {
        Value::Document(_) => Ok(()),
        other => Err(wrong_type("$unionWith.pipeline", stage.key(), other, "object")),
    })
}
