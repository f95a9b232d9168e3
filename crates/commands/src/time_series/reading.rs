//! Reading time-series collections: derives conditions on buckets from conditions on measurements.

use crate::time_series::{Series, indexes};
use crate::views;
use aggregate::UNPACK_BUCKET;
use document::{Doc, DocBuf, DocWriter, Value};

/// Returns the pipeline with a condition on buckets in front, if the view's pipeline begins with a
/// condition from which one follows; `None` otherwise.
pub fn with_bounds(pipeline: Doc<'_>, series: &Series) -> Option<DocBuf> {
    let mut stages = pipeline.values().filter_map(Value::as_document).filter_map(Doc::first);
    stages.next().filter(|stage| stage.key() == UNPACK_BUCKET)?;
    let filter = stages.next().filter(|stage| stage.key() == "$match")?.value().as_document()?;
    let mut conditions = Vec::new();
    collect(filter, series, &mut conditions);
    if conditions.is_empty() {
        return None;
    }
    Some(views::stages(|array| {
        {
            let mut stage = array.document();
            let mut matching = stage.document("$match");
            let mut all = matching.array("$and");
            conditions.iter().for_each(|condition| all.push(condition));
        }
        pipeline.values().for_each(|stage| array.push(stage));
    }))
}

/// Collects the conditions on buckets that follow from a filter on their measurements.
fn collect(filter: Doc<'_>, series: &Series, conditions: &mut Vec<DocBuf>) {
    for field in filter.elements() {
        match (field.key(), field.value()) {
            ("$and", Value::Array(parts)) => {
                parts.values().filter_map(Value::as_document).for_each(|part| collect(part, series, conditions));
            }
            (name, value) if name == &*series.time_field => times(value, series, conditions),
            (path, value) => {
                if let Some(path) = series.meta_path(path) {
                    let mut condition = DocBuf::new();
                    condition.append(&path, value);
                    conditions.push(condition);
                }
            }
        }
    }
}

/// No measurement of a bucket is earlier than its start, or later than its last measurement.
fn times(value: Value<'_>, series: &Series, conditions: &mut Vec<DocBuf>) {
    let mut bound = |side: &str, operator: &str, time: Value<'_>| {
        let path = format!("control.{side}.{}", series.time_field);
        let write = |writer: &mut DocWriter<'_>| writer.document(&path).append(operator, time);
        conditions.push(DocBuf::build(write));
    };
    match value {
        Value::DateTime(_) => {
            bound("max", "$gte", value);
            bound("min", "$lte", value);
        }
        Value::Document(operators) => {
            for (operator, time) in operators.iter().filter(|(_, time)| matches!(time, Value::DateTime(_))) {
                match operator {
                    "$gt" | "$gte" => bound("max", operator, time),
                    "$lt" => bound("min", "$lte", time),
                    "$lte" => bound("min", "$lte", time),
                    "$eq" => {
                        bound("max", "$gte", time);
                        bound("min", "$lte", time);
                    }
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

/// Translates a hint at an index to the index of the buckets.
pub fn hint(hint: Value<'_>, series: &Series) -> DocBuf {
    match hint {
        Value::Document(key) if key.get("$natural").is_none() => indexes::key_of_buckets(key, series),
        Value::Document(key) => key.to_owned(),
        _ => DocBuf::new(),
    }
}
