//! The cache key of a command: the database and the fields that affect its reply.

use crate::envelope::Envelope;
use document::{Doc, DocWriter, Element, Value};
use server::document_cache::Continuation;

/// Operators and stages whose result depends on more than documents, or that write.
const VOLATILE: &[&str] = &[
    "$rand",
    "$sampleRate",
    "$sample",
    "$function",
    "$where",
    "$accumulator",
    "$out",
    "$merge",
    "$currentOp",
    "$collStats",
    "$indexStats",
    "$planCacheStats",
    "$listSessions",
    "$listLocalSessions",
    "$listCatalog",
    "$changeStream",
    "$operationMetrics",
    "$_internalInhibitOptimization",
];

/// Variables whose value depends on the time or the user.
const VARIABLES: &[&str] = &["$$NOW", "$$CLUSTER_TIME", "$$USER_ROLES"];

/// Fields that change the kind of reply.
const NOT_CACHED: &[&str] = &["tailable", "awaitData", "explain"];

/// Separates the command from the position.
const POSITION: u8 = 0xff;

/// Writes the key of a command.
pub fn write(envelope: &Envelope<'_>, out: &mut Vec<u8>) {
    write_parts(envelope.database, envelope.first, &envelope.fields, out);
}

/// Writes the key from its parts. The order of the fields counts: another order may be another
/// command.
pub fn write_parts(database: &str, first: Element<'_>, fields: &[Element<'_>], out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(database.as_bytes());
    out.push(0);
    let mut command = DocWriter::begin(out);
    command.append_element(first);
    fields.iter().for_each(|field| command.append_element(*field));
}

/// Appends a cursor's position and the batch size.
pub fn write_position(continuation: &Continuation, batch_size: u64, out: &mut Vec<u8>) {
    out.push(POSITION);
    for number in [batch_size, continuation.skip, continuation.limit.map_or(0, |limit| limit + 1)] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(&continuation.position.0);
}

/// Returns why a collection is never cached; `None` if it may be.
pub fn never_cached(database: &str, collection: &str) -> Option<&'static str> {
    match (database, collection) {
        ("admin" | "local" | "config", _) => Some("the databases admin, local and config are not cached"),
        (_, collection) if collection.starts_with("system.") => Some("system collections are not cached"),
        _ => None,
    }
}

/// Returns whether the reply may depend on more than documents. False positives are possible and
/// harmless.
pub fn is_volatile(fields: &[Element<'_>]) -> bool {
    fields.iter().any(|field| NOT_CACHED.contains(&field.key()) && field.value().is_truthy() || mentions(field.value()))
}

fn mentions(value: Value<'_>) -> bool {
    match value {
        Value::String(text) => VARIABLES.iter().any(|variable| text.starts_with(variable)),
        Value::Document(inner) | Value::Array(inner) => within(inner),
        _ => false,
    }
}

fn within(document: Doc<'_>) -> bool {
    document.elements().any(|element| {
        let key = element.key();
        key.starts_with('$') && VOLATILE.contains(&key) || mentions(element.value())
    })
}
