//! `profile`: the profiler's settings of a database.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/command/profile/>

use crate::arguments;
use crate::arguments::is_absent;
use crate::call::{Call, Disposition};
use document::{Doc, DocBuf, DocWriter, Element, Value};
use error::{Error, Result};
use query::Predicate;
use server::profiling;
use server::profiling::DatabaseProfiling;
use std::sync::Arc;

const WITHIN: &str = "profile";

/// The change of the filter.
enum Filter {
    Unchanged,
    Unset,
    Set(DocBuf, Arc<Predicate>),
}

pub async fn profile(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    if is_absent(call.first()) {
        return Err(arguments::missing_field(WITHIN, WITHIN));
    }
    let requested = arguments::integer(WITHIN, call.first())?;
    let (mut slow_ms, mut rate, mut filter) = (None, None, Filter::Unchanged);
    for field in call.fields().filter(|field| !is_absent(*field)) {
        match field.key() {
            "slowms" => slow_ms = Some(arguments::integer(WITHIN, field)?),
            "sampleRate" => rate = Some(sample_rate(field)?),
            "filter" => filter = read_filter(call, field)?,
            // MongoDB ignores other fields.
            _ => {}
        }
    }
    let database = call.database();
    let profiling = &call.worker.server.profiling;
    let before = profiling.of_database(database);
    reply.append("was", before.level);
    reply.append("slowms", profiling.slow_ms() as i32);
    reply.append("sampleRate", profiling.sample_rate());
    if let Some((shown, _)) = &before.filter {
        reply.append("filter", shown);
    }
    if before.filter.is_some() || matches!(filter, Filter::Set(..)) {
        let note = "When a filter expression is set, slowms and sampleRate are not used for profiling and slow-query log lines.";
        reply.append("note", note);
    }
    let level = match requested {
        0..=2 => requested as i32,
        // Other levels only report the settings.
        _ => before.level,
    };
    if level > 0 && level != before.level {
        profiling::ensure_profile(call.worker, database).await?;
    }
    if let Some(slow_ms) = slow_ms {
        profiling.set_slow_ms(slow_ms);
    }
    if let Some(rate) = rate {
        profiling.set_sample_rate(rate);
    }
    let filter = match filter {
        Filter::Unchanged => before.filter,
        Filter::Unset => None,
        Filter::Set(shown, predicate) => Some((shown, predicate)),
    };
    profiling.set_database(database, DatabaseProfiling { level, filter });
    Ok(Disposition::Reply)
}

fn sample_rate(field: Element<'_>) -> Result<f64> {
    let rate = match field.value() {
        Value::Double(rate) => rate,
        Value::Decimal128(rate) => rate.to_f64(),
        _ => arguments::integer(WITHIN, field)? as f64,
    };
    match (0.0..=1.0).contains(&rate) {
        true => Ok(rate),
        false => Err(Error::bad_value("'sampleRate' must be between 0.0 and 1.0 inclusive")),
    }
}

fn read_filter(call: &Call<'_>, field: Element<'_>) -> Result<Filter> {
    match field.value() {
        Value::String("unset") => Ok(Filter::Unset),
        Value::Document(filter) => {
            let predicate = Predicate::parse_as_written(filter, &call.context())?;
            Ok(Filter::Set(shown(&predicate, filter), Arc::new(predicate)))
        }
        _ => Err(Error::bad_value("Expected an object, or the string 'unset'.")),
    }
}

fn shown(predicate: &Predicate, filter: Doc<'_>) -> DocBuf {
    predicate.describe(filter)
}
