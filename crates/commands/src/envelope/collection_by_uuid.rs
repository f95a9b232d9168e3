//! Commands that name their collection by its UUID.

use crate::table::spec::Spec;
use document::{Doc, DocBuf, Element, Value};
use error::{Code, Error, Result};
use server::Worker;
use server::logical_session::uuid_text;

/// The name in place of a UUID that no collection has.
const UNRESOLVED: &str = "unresolved";

/// Returns whether the command names its collection by a UUID.
#[inline]
pub fn is_given(spec: &Spec, first: Element<'_>) -> bool {
    spec.takes_uuid && matches!(first.value(), Value::Binary { subtype: 4, .. })
}

/// A command's first element with the collection's name in place of its UUID.
pub struct Resolved {
    first: DocBuf,
    /// Why the UUID cannot be resolved: 26, or 207 for a malformed one.
    pub failure: Option<Error>,
}

impl Resolved {
    /// Returns the element that names the command.
    pub fn first(&self) -> Option<Element<'_>> {
        self.first.as_doc().first()
    }
}

/// Looks up the collection with the UUID in `first`.
pub async fn resolve(worker: &Worker, body: Doc<'_>, first: Element<'_>) -> Result<Resolved> {
    let uuid: Option<[u8; 16]> = match first.value() {
        Value::Binary { bytes, .. } => bytes.try_into().ok(),
        _ => None,
    };
    let database = body.get("$db").and_then(Value::as_str).unwrap_or_default();
    let found = match uuid {
        Some(uuid) => worker.store.collections(database).await?.into_iter().find(|collection| collection.uuid == uuid),
        None => None,
    };
    let failure = match (uuid, &found) {
        (_, Some(_)) => None,
        (Some(uuid), None) => {
            Some(Error::new(Code::NAMESPACE_NOT_FOUND, format!("Unable to resolve {}", uuid_text(&uuid))))
        }
        (None, None) => {
            let message = "uuid must be a 16-byte binary field with UUID (4) subtype";
            Some(Error::new(Code::INVALID_UUID, message))
        }
    };
    let name = found.as_ref().map_or(UNRESOLVED, |collection| &collection.name);
    Ok(Resolved { first: DocBuf::build(|writer| writer.append(first.key(), name)), failure })
}
