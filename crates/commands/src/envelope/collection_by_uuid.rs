//! Commands that name a collection by its UUID.

use crate::cursor::uuid_text;
use crate::server::Worker;
use crate::table::Spec;
use document::{Doc, DocBuf, Element, Value};
use error::{Code, Error, Result};

/// The commands that take a UUID in the place of a name.
const TAKEN_BY: &[&str] = &["find", "count", "distinct", "listIndexes"];

/// Stands for the name of a collection that is not there.
const UNRESOLVED: &str = "unresolved";

/// Whether the command names its collection by a UUID.
#[inline]
pub fn is_given(spec: &Spec, first: Element<'_>) -> bool {
    matches!(first.value(), Value::Binary { subtype: 4, .. }) && TAKEN_BY.contains(&spec.name)
}

/// A collection's name in the place of its UUID.
pub struct Resolved {
    first: DocBuf,
    /// Error 26, or 207 for what is no UUID, to be told when the command's own fields have been read.
    failure: Option<Error>,
}

impl Resolved {
    /// The element that names the command.
    pub fn first(&self) -> Option<Element<'_>> {
        self.first.as_doc().first()
    }

    pub fn check(&self) -> Result<()> {
        self.failure.clone().map_or(Ok(()), Err)
    }
}

pub async fn resolve(worker: &Worker, body: Doc<'_>, first: Element<'_>) -> Result<Resolved> {
    let wanted: Option<[u8; 16]> = match first.value() {
        Value::Binary { bytes, .. } => bytes.try_into().ok(),
        _ => None,
    };
    let database = body.get("$db").and_then(Value::as_str).unwrap_or_default();
    let found = match wanted {
        Some(wanted) => {
            worker.store.collections(database).await?.into_iter().find(|collection| collection.uuid == wanted)
        }
        None => None,
    };
    let failure = match (wanted, &found) {
        (_, Some(_)) => None,
        (Some(wanted), None) => {
            Some(Error::new(Code::NAMESPACE_NOT_FOUND, format!("Unable to resolve {}", uuid_text(&wanted))))
        }
        (None, None) => {
            let message = "uuid must be a 16-byte binary field with UUID (4) subtype";
            Some(Error::new(Code::INVALID_UUID, message))
        }
    };
    let name = found.as_ref().map_or(UNRESOLVED, |collection| &collection.name);
    Ok(Resolved { first: DocBuf::build(|writer| writer.append(first.key(), name)), failure })
}
