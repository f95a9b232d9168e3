//! The documents before and after a change, as far as a stream asks for them.

use super::event::{Event, EventKind};
use super::options::{BeforeChange, FullDocument, View};
use crate::call::Call;
use crate::read::{Batch, ReadSpec, Reader};
use document::{Doc, DocBuf, DocWriter, Value, doc};
use error::{Code, Error, Result};
use query::Predicate;
use store::FeedEntry;

/// `None`: not requested. `Some(None)`: requested, and not available.
#[derive(Debug, Default)]
pub struct Images {
    pub before: Option<Option<DocBuf>>,
    pub after: Option<Option<DocBuf>>,
}

impl Images {
    /// Returns the images of an event. Fails with 47 if one is required and not available.
    pub async fn of(call: &Call<'_>, event: &Event<'_>, entry: &FeedEntry, view: View) -> Result<Images> {
        match event.kind {
            EventKind::Update { id, .. } if view.full_document == FullDocument::UpdateLookup => {
                let after = Some(look_up(call, event, id).await?);
                Ok(Images { before: before(event, entry, view)?, after })
            }
            _ => Ok(Images::logged(event, entry, view)?.unwrap_or_default()),
        }
    }

    /// Returns the images if the entry has them; `None` if a document must be looked up. Fails as
    /// [`Images::of`] does.
    pub fn logged(event: &Event<'_>, entry: &FeedEntry, view: View) -> Result<Option<Images>> {
        if matches!(event.kind, EventKind::Update { .. }) && view.full_document == FullDocument::UpdateLookup {
            return Ok(None);
        }
        // If both are missing, MongoDB reports this one.
        let before = before(event, entry, view)?;
        let after = match (&event.kind, view.full_document) {
            (EventKind::Update { difference, .. }, FullDocument::WhenAvailable | FullDocument::Required) => {
                let before = entry.before.as_ref();
                Some(before.map(|before| changed(before.as_doc(), *difference)).transpose()?)
            }
            _ => None,
        };
        if after == Some(None) && view.full_document == FullDocument::Required {
            return Err(missing("a post-image for all update events, but the post-image", event));
        }
        Ok(Some(Images { before, after }))
    }
}

/// Returns the document before a change, if it is asked for. Fails with 47 if it is required and
/// not available.
fn before(event: &Event<'_>, entry: &FeedEntry, view: View) -> Result<Option<Option<DocBuf>>> {
    let has_before = matches!(event.kind, EventKind::Update { .. } | EventKind::Replace { .. } | EventKind::Delete(_));
    if !has_before || view.before_change == BeforeChange::Off {
        return Ok(None);
    }
    if entry.before.is_none() && view.before_change == BeforeChange::Required {
        let what = "a pre-image for all update, delete and replace events, but the pre-image";
        return Err(missing(what, event));
    }
    Ok(Some(entry.before.clone()))
}

fn changed(before: Doc<'_>, difference: Doc<'_>) -> Result<DocBuf> {
    let mut bytes = Vec::new();
    update::diff::apply(before, difference, &mut bytes)?;
    DocBuf::from_vec(bytes).ok_or_else(|| Error::internal("a logged difference makes no document"))
}

/// Returns the document as it is now; `None` if it does not exist, or the collection is another of
/// the same name.
async fn look_up(call: &Call<'_>, event: &Event<'_>, id: Value<'_>) -> Result<Option<DocBuf>> {
    let store = &*call.worker.store;
    let namespace = &event.namespace;
    let collection = store.collection(namespace).await?;
    if collection.map(|collection| collection.uuid) != event.collection_uuid {
        return Ok(None);
    }
    let filter = doc! { "_id": &doc! { "$eq": id } };
    let predicate = Predicate::parse(filter.as_doc(), &call.context())?;
    let spec = ReadSpec { predicate: Some(predicate), limit: Some(1), ..ReadSpec::default() };
    let mut reader = Reader::open(store, namespace, spec).await?;
    let mut bytes = Vec::new();
    {
        let mut writer = DocWriter::begin(&mut bytes);
        // The reader may be one of a change stream's event: the future is boxed to end the cycle.
        Box::pin(reader.fill(call, &mut Batch::begin(&mut writer, "", 1))).await?;
    }
    let batch = Doc::from_bytes(&bytes).and_then(|document| document.get("")).and_then(Value::as_array);
    Ok(batch.and_then(|batch| batch.values().next()).and_then(Value::as_document).map(Doc::to_owned))
}

fn missing(what: &str, event: &Event<'_>) -> Error {
    let shown = DocBuf::build(|writer| {
        writer.append("operationType", event.operation_type());
        let mut namespace = writer.document("ns");
        namespace.append("db", &*event.namespace.database);
        namespace.append("coll", &*event.namespace.collection);
        drop(namespace);
        writer.append("clusterTime", event.token.position.as_value());
    });
    let message = format!(
        "Change stream was configured to require {what} was not found for event: {}",
        values::text::display(Value::Document(shown.as_doc()))
    );
    Error::new(Code::NO_MATCHING_DOCUMENT, message)
}
