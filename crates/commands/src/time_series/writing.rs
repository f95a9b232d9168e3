//! Writing to time-series collections: measurements become buckets, and statements about metadata
//! become statements on buckets.

use crate::call::Call;
use crate::time_series::options::Granularity;
use crate::time_series::{Series, bucket, reading};
use crate::views;
use crate::write::{self, Outcomes, new_document};
use bytes::Bytes;
use document::{Doc, DocBuf, Element, Value};
use error::{Code, Error, Result};

/// Inserts measurements.
pub async fn insert(
    call: &Call<'_>,
    series: &Series,
    options: write::Options,
    measurements: &[Doc<'_>],
) -> Result<Outcomes> {
    let info = series.options(call).await?;
    let granularity = Granularity::of(info.as_ref().map_or(Doc::EMPTY, |info| info.options.as_doc()));
    let new_id = |begin_ms| call.worker.new_object_id(begin_ms);
    let buckets = measurements.iter().map(|measurement| {
        new_document::check_extent(*measurement)?;
        bucket::of(series, granularity, *measurement, new_id)
    });
    write::execute::<Bytes>(call, &series.buckets, options.on_buckets(), buckets.collect()).await
}

fn invalid<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::new(Code::INVALID_OPTIONS, message.into()))
}

/// Translates an update statement to buckets. Fails with 72 if it concerns more than metadata.
pub fn update(series: &Series, statement: Doc<'_>) -> Result<DocBuf> {
    let flag = |name: &str| statement.get(name).is_some_and(Value::is_truthy);
    if series.meta_field.is_none() {
        return invalid("Cannot perform an update on a time-series collection that does not have a metaField");
    }
    if !flag("multi") {
        return invalid("Cannot perform a non-multi update on a time-series collection");
    }
    let changes = match statement.get("u") {
        Some(Value::Array(_)) => {
            return invalid("Cannot perform an update on a time-series collection using a pipeline update");
        }
        Some(Value::Document(update)) if update.first().is_some_and(|first| first.key().starts_with('$')) => {
            changes(series, update)?
        }
        _ => return invalid("Cannot perform an update on a time-series collection using a replacement document"),
    };
    if flag("upsert") {
        return invalid("Cannot perform an upsert on a time-series collection");
    }
    translated(series, statement, Some(&changes))
}

/// Translates a delete statement to buckets. Fails with 20 for a single document, and 72 if it
/// concerns more than metadata.
pub fn delete(series: &Series, statement: Doc<'_>) -> Result<DocBuf> {
    if statement.get("limit").is_some_and(Value::is_truthy) {
        let message = "Cannot perform a non-multi delete on a time-series collection";
        return Err(Error::new(Code::ILLEGAL_OPERATION, message));
    }
    let has_query = statement.get("q").and_then(Value::as_document).is_some_and(|query| !query.is_empty());
    if series.meta_field.is_none() && has_query {
        return invalid(
            "Cannot perform a delete with a non-empty query on a time-series collection that does not have a metaField",
        );
    }
    translated(series, statement, None)
}

fn translated(series: &Series, statement: Doc<'_>, changes: Option<&DocBuf>) -> Result<DocBuf> {
    let mut translated = DocBuf::new();
    for field in statement.elements() {
        match (field.key(), field.value(), changes) {
            ("q", Value::Document(query), _) => translated.append("q", &condition(series, query)?),
            ("u", _, Some(changes)) => translated.append("u", changes),
            ("hint", Value::Document(_), _) => translated.append("hint", &reading::hint(field.value(), series)),
            (key, value, _) => translated.append(key, value),
        }
    }
    Ok(translated)
}

fn other_field<T>(series: &Series) -> Result<T> {
    let name = series.meta_field.as_deref().unwrap_or_default();
    invalid(format!(
        "Cannot perform an update or delete on a time-series collection when querying on a field that is not the metaField \
         '{name}'"
    ))
}

/// Translates a condition on metadata to buckets.
fn condition(series: &Series, filter: Doc<'_>) -> Result<DocBuf> {
    let mut translated = DocBuf::new();
    for field in filter.elements() {
        match (field.key(), field.value()) {
            (key @ ("$and" | "$or" | "$nor"), Value::Array(parts)) => {
                let mut branches = Vec::new();
                for part in parts.values() {
                    let Some(part) = part.as_document() else {
                        return Err(Error::bad_value("$or/$and/$nor entries need to be full objects"));
                    };
                    branches.push(condition(series, part)?);
                }
                let branches = views::stages(|array| branches.iter().for_each(|branch| array.push(branch)));
                translated.append(key, Value::Array(branches.as_doc()));
            }
            (key @ ("$expr" | "$where"), _) => {
                return invalid(format!(
                    "Cannot use {key} when performing an update or delete on a time-series collection"
                ));
            }
            ("$jsonSchema", Value::Document(schema)) => {
                translated.append("$jsonSchema", &schema_of_buckets(series, schema)?);
            }
            (key, value) if key.starts_with('$') => translated.append(key, value),
            (path, value) => match series.meta_path(path) {
                Some(path) => translated.append(&path, value),
                None => return other_field(series),
            },
        }
    }
    Ok(translated)
}

/// Translates a schema that concerns the meta field only.
fn schema_of_buckets(series: &Series, schema: Doc<'_>) -> Result<DocBuf> {
    let mut translated = DocBuf::new();
    for field in schema.elements() {
        match (field.key(), field.value()) {
            ("required", Value::Array(names)) => {
                let mut required = Vec::new();
                for name in names.values() {
                    match name.as_str().and_then(|name| series.meta_path(name)) {
                        Some(name) => required.push(name),
                        None => return other_field(series),
                    }
                }
                let required = views::stages(|array| required.iter().for_each(|name| array.push(name.as_str())));
                translated.append("required", Value::Array(required.as_doc()));
            }
            ("properties", Value::Document(properties)) => {
                let mut renamed = DocBuf::new();
                for (name, value) in properties.iter() {
                    match series.meta_path(name) {
                        Some(name) => renamed.append(&name, value),
                        None => return other_field(series),
                    }
                }
                translated.append("properties", &renamed);
            }
            (key, value) => translated.append(key, value),
        }
    }
    Ok(translated)
}

/// Translates changes of metadata to buckets.
fn changes(series: &Series, update: Doc<'_>) -> Result<DocBuf> {
    let name = series.meta_field.as_deref().unwrap_or_default();
    let own = |path: &str| {
        series.meta_path(path).map_or_else(
            || {
                invalid(format!(
                    "Cannot perform an update on a time-series collection which updates a field that is not the metaField \
                     '{name}'"
                ))
            },
            Ok,
        )
    };
    let mut translated = DocBuf::new();
    for operator in update.elements() {
        let Some(paths) = operator.value().as_document() else {
            translated.append(operator.key(), operator.value());
            continue;
        };
        let mut changed = DocBuf::new();
        for field in paths.elements() {
            let path = own(field.key())?;
            match renamed(operator, field) {
                Some(target) => changed.append(&path, own(target)?.as_str()),
                None => changed.append(&path, field.value()),
            }
        }
        translated.append(operator.key(), &changed);
    }
    Ok(translated)
}

fn renamed<'a>(operator: Element<'_>, field: Element<'a>) -> Option<&'a str> {
    (operator.key() == "$rename").then(|| field.value().as_str()).flatten()
}
