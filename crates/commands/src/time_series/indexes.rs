//! Indexes of time-series collections, which are indexes of their buckets.

use crate::call::Call;
use crate::time_series::Series;
use document::{Doc, DocBuf, Element, Value};
use error::{Code, Error, Result};
use query::Predicate;
use store::Query;

/// Returns the key of buckets for an index on measurements: the meta field itself, other fields by
/// their bounds.
pub fn key_of_buckets(key: Doc<'_>, series: &Series) -> DocBuf {
    let mut translated = DocBuf::new();
    for field in key.elements() {
        if let Some(path) = series.meta_path(field.key()) {
            translated.append(&path, field.value());
            continue;
        }
        let descends = field.value().to_i64().is_some_and(|direction| direction < 0);
        let sides = if descends { ["max", "min"] } else { ["min", "max"] };
        sides.iter().for_each(|side| translated.append(&format!("control.{side}.{}", field.key()), field.value()));
    }
    translated
}

/// Returns the key of measurements for an index on buckets.
fn key_of_measurements(key: Doc<'_>, series: &Series) -> DocBuf {
    let mut translated = DocBuf::new();
    let meta_field = series.meta_field.as_deref().unwrap_or_default();
    for field in key.elements() {
        let path = field.key();
        if let Some(rest) = path.strip_prefix("meta").filter(|rest| rest.is_empty() || rest.starts_with('.')) {
            translated.append(&format!("{meta_field}{rest}"), field.value());
        } else {
            // The first of the two bounds stands for both.
            let name = path.strip_prefix("control.min.").or_else(|| path.strip_prefix("control.max.")).unwrap_or(path);
            if translated.as_doc().get(name).is_none() {
                translated.append(name, field.value());
            }
        }
    }
    translated
}

/// Returns an index's specification as it is listed, in terms of measurements.
pub fn listed(spec: Doc<'_>, series: &Series) -> DocBuf {
    DocBuf::build(|writer| {
        for field in spec.elements() {
            match (field.key(), field.value()) {
                ("key", Value::Document(key)) => writer.append("key", &key_of_measurements(key, series)),
                ("partialFilterExpression", Value::Document(filter)) => {
                    writer.append("partialFilterExpression", &key_of_measurements(filter, series));
                }
                _ => writer.append_element(field),
            }
        }
    })
}

/// Returns an index's specification in terms of buckets. Fails with 72 for kinds and options that
/// time-series collections do not have.
pub fn of_buckets(spec: Doc<'_>, series: &Series) -> Result<DocBuf> {
    let unsupported = |what: &str| {
        let message = format!("{what} indexes are not supported on time-series collections");
        Err(Error::new(Code::INVALID_OPTIONS, message))
    };
    let mut translated = DocBuf::new();
    for field in spec.elements() {
        match (field.key(), field.value()) {
            ("unique", value) if value.is_truthy() => return unsupported("Unique"),
            ("expireAfterSeconds", _) => return unsupported("TTL"),
            ("key", Value::Document(key)) => {
                if key.values().any(|kind| kind.as_str() == Some("text")) {
                    return unsupported("Text");
                }
                check_measurements(key, series)?;
                translated.append("key", &key_of_buckets(key, series));
            }
            ("partialFilterExpression", Value::Document(filter)) => {
                translated.append("partialFilterExpression", &partial(filter, series)?);
            }
            (key, value) => translated.append(key, value),
        }
    }
    Ok(translated)
}

/// Checks the fields of measurements in a key: only an ascending or descending order is supported.
fn check_measurements(key: Doc<'_>, series: &Series) -> Result<()> {
    let own = |field: &Element<'_>| series.meta_path(field.key()).is_none();
    for field in key.elements().filter(own) {
        if field.key().contains("$**") {
            return Err(Error::new(Code::CANNOT_CREATE_INDEX, "wildcard indexes do not allow compounding"));
        }
        if field.value().as_str().is_some() {
            let message = format!(
                "indexes of this kind on measurements of a time-series collection are not supported by this server: {}",
                field.key()
            );
            return Err(Error::new(Code::CANNOT_CREATE_INDEX, message));
        }
    }
    Ok(())
}

/// Translates a partial filter about metadata.
fn partial(filter: Doc<'_>, series: &Series) -> Result<DocBuf> {
    let mut translated = DocBuf::new();
    for (path, value) in filter.iter() {
        let Some(path) = series.meta_path(path) else {
            let message =
                "partial filters about measurements of a time-series collection are not supported by this server";
            return Err(Error::new(Code::CANNOT_CREATE_INDEX, message));
        };
        translated.append(&path, value);
    }
    Ok(translated)
}

/// Fails with 5930501 if a measurement has an array in an indexed field.
pub async fn check_arrays(call: &Call<'_>, series: &Series, spec: Doc<'_>) -> Result<()> {
    let key = spec.get("key").and_then(Value::as_document).unwrap_or(Doc::EMPTY);
    for field in key.elements().filter(|field| field.key().starts_with("control.")) {
        let name = field.key().split('.').nth(2).unwrap_or_default();
        let mut filter = DocBuf::new();
        filter.append(&format!("control.min.{name}"), &document::doc! { "$type": "array" });
        let predicate = Predicate::parse(filter.as_doc(), &call.context())?;
        let store = &*call.worker.store;
        let query = Query { predicate: &predicate, sort: None, limit: Some(1), hint: None, fields: None };
        let plan = store.plan(&series.buckets, query).await?;
        let mut found = false;
        crate::read::for_each(store, &plan, &predicate, true, call.operation, |_| {
            found = true;
            Ok(crate::read::Visit::Stop)
        })
        .await?;
        if found {
            return Err(Error::new(Code(5930501), "Indexed measurement field contains an array value"));
        }
    }
    Ok(())
}
