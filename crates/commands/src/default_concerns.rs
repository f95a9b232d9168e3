//! The default concerns of a replica set, and the concern of writes that name none.
//!
//! They are a document of `config.settings`, as in MongoDB. All levels that a default may have read
//! the same documents, so the concern of reads has no effect.

use crate::envelope::WriteConcern;
use document::{Doc, DocBuf, Value, doc};
use error::{Error, Result};
use server::{Topology, Worker, user_store};
use store::identity::under;
use store::{Identity, Namespace};

/// The `_id` of the document in `config.settings`.
pub const ID: &str = "ReadWriteConcernDefaults";

/// Reads the concerns from the store, if that is due.
pub async fn refresh(worker: &Worker, steady_ms: i64) -> Result<()> {
    let concerns = &worker.server.default_concerns;
    if concerns.are_due(steady_ms) {
        let is_replica_set = matches!(worker.server.settings.topology, Topology::ReplicaSet { .. });
        concerns.set(if is_replica_set { stored(worker).await? } else { None });
    }
    Ok(())
}

/// Returns the stored document.
pub async fn stored(worker: &Worker) -> Result<Option<DocBuf>> {
    let (namespace, filter) = (settings(), doc! { "_id": ID });
    let found = under(Identity::Gateway, user_store::find(&*worker.store, &namespace, filter.as_doc())).await?;
    Ok(found.into_iter().next())
}

fn settings() -> Namespace {
    Namespace::new("config", "settings")
}

/// Returns the concern of a write that names none, and the error to report if it cannot be
/// satisfied.
pub fn of_write(worker: &Worker) -> Result<(WriteConcern, Option<Error>)> {
    let Some(stored) = worker.server.default_concerns.for_writes() else { return Ok(Default::default()) };
    let concern = stored.as_doc().get("defaultWriteConcern").and_then(Value::as_document).unwrap_or(Doc::EMPTY);
    let named = DocBuf::build(|writer| {
        let mut named = writer.document("writeConcern");
        concern.elements().for_each(|element| named.append_element(element));
        named.append("provenance", "customDefault");
    });
    let topology = &worker.server.settings.topology;
    named.as_doc().first().map_or(Ok(Default::default()), |named| WriteConcern::parse_for(named, topology))
}
