//! Writes to `admin.system.users` and `admin.system.roles`, which bypass the commands about users.

use super::{Events, Recording};
use crate::table::spec::{Access, Spec};
use document::{Doc, DocBuf, Value, doc};
use error::Code;
use server::audit::kind;

/// Returns whether a command writes to the users or roles.
pub(super) fn is_one(spec: &Spec, body: Doc<'_>) -> bool {
    let target = body.first().and_then(|first| first.value().as_str());
    spec.access == Access::Write
        && matches!(target, Some("system.users" | "system.roles"))
        && body.get("$db").and_then(Value::as_str) == Some("admin")
}

/// Adds an event for each statement.
pub(super) fn add_events(recording: &Recording<'_>, events: &mut Events<'_>, result: Code) {
    let (field, operation) = match recording.spec.name {
        "insert" => ("documents", "insert"),
        "update" => ("updates", "update"),
        "delete" => ("deletes", "delete"),
        other => ("", other),
    };
    let add = |events: &mut Events<'_>, statement: Doc<'_>| {
        let param = || {
            let document = without_credentials(statement);
            doc! { "document": &document, "ns": recording.namespace().as_str(), "operation": operation }
        };
        events.add(kind::DIRECT_AUTH_MUTATION, param, result);
    };
    if field.is_empty() {
        return add(events, recording.body);
    }
    let inline = recording.body.get(field).and_then(Value::as_array);
    inline.into_iter().flat_map(Doc::values).filter_map(Value::as_document).for_each(|each| add(events, each));
    recording.request.sequence(field).into_iter().flatten().for_each(|each| add(events, each));
}

/// Returns a document without what a login is checked with, on any level.
fn without_credentials(document: Doc<'_>) -> DocBuf {
    DocBuf::build(|writer| {
        for element in document.elements() {
            match element.value() {
                _ if element.key().split('.').next() == Some("credentials") => writer.append(element.key(), "xxx"),
                Value::Document(inner) => writer.append(element.key(), &without_credentials(inner)),
                Value::Array(inner) => writer.append(element.key(), Value::Array(without_credentials(inner).as_doc())),
                _ => writer.append_element(element),
            }
        }
    })
}
