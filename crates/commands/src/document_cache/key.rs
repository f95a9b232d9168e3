//! What a command is kept by: its own fields, the database, and nothing that does not matter to its answer.

use super::Rest;
use crate::envelope::Envelope;
use document::{Doc, DocWriter, Element, Value};

/// Operators and stages whose outcome depends on more than the documents, or which write.
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

/// Variables whose value depends on when it is asked.
const VARIABLES: &[&str] = &["$$NOW", "$$CLUSTER_TIME", "$$USER_ROLES"];

/// Fields of a command that ask for more than an answer.
const NOT_KEPT: &[&str] = &["tailable", "awaitData", "explain"];

/// Between the parts of a key.
const POSITION: u8 = 0xff;

/// Writes what a command is kept by.
pub fn write(envelope: &Envelope<'_>, out: &mut Vec<u8>) {
    write_parts(envelope.database, envelope.first, &envelope.fields, out);
}

/// The same from the parts. The fields in their order: another order may be another command.
pub fn write_parts(database: &str, first: Element<'_>, fields: &[Element<'_>], out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(database.as_bytes());
    out.push(0);
    let mut command = DocWriter::begin(out);
    command.append_element(first);
    fields.iter().for_each(|field| command.append_element(*field));
}

/// Adds where a cursor is, and how much it is asked for.
pub fn write_position(rest: &Rest, batch_size: u64, out: &mut Vec<u8>) {
    out.push(POSITION);
    for number in [batch_size, rest.skip, rest.limit.map_or(0, |limit| limit + 1)] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(&rest.position.0);
}

/// Why answers from a collection are never kept.
pub fn why_not(database: &str, collection: &str) -> Option<&'static str> {
    match (database, collection) {
        ("admin" | "local" | "config", _) => Some("the databases admin, local and config are not kept"),
        (_, collection) if collection.starts_with("system.") => Some("collections of the system are not kept"),
        _ => None,
    }
}

/// Whether the answer depends on more than documents. Of words that occur for other reasons it is said, too, which does no harm.
pub fn is_volatile(fields: &[Element<'_>]) -> bool {
    fields.iter().any(|field| NOT_KEPT.contains(&field.key()) && field.value().is_truthy() || mentions(field.value()))
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
