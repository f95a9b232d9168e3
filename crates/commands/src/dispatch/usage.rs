//! What a command counts as in the usage statistics.

use crate::table::spec::{CountedCollection, Spec};
use document::{Doc, Value};
use server::usage::CommandUsage;
use store::BorrowedNamespace;

/// Returns what a command counts as. `body`: its body.
pub(super) fn of<'a>(spec: &Spec, body: Doc<'a>) -> CommandUsage<'a> {
    let statements = spec.counted_statements.and_then(|field| body.get(field)).and_then(Value::as_array);
    CommandUsage {
        kind: spec.kind,
        latency: spec.latency,
        lock: spec.lock(),
        namespace: namespace(spec, body),
        operations: statements.map_or(1, |statements| statements.elements().count() as u64),
    }
}

/// Returns the collection that a command counts for, if it names one.
fn namespace<'a>(spec: &Spec, body: Doc<'a>) -> Option<BorrowedNamespace<'a>> {
    let collection = match spec.counted_collection {
        CountedCollection::None => return None,
        CountedCollection::First => body.first()?.value().as_str()?,
        CountedCollection::Field(name) => body.get(name)?.as_str()?,
    };
    (!collection.is_empty()).then_some(())?;
    Some(BorrowedNamespace { database: body.get("$db").and_then(Value::as_str)?, collection })
}
