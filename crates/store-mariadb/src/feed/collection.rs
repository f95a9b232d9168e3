//! The collection `local.oplog.rs`: the feed as documents. Nothing is stored for it: a scan reads
//! the binary log ([`scan`]), backwards part by part ([`window`]). Entries of a client's
//! transaction become one document ([`documents`]).

mod documents;
mod plan;
mod scan;
mod window;

pub(crate) use plan::{LogPlan, plan, tail};
pub(crate) use scan::scan;

use crate::catalog::names;
use crate::store::MariaDbStore;
use ::store::{
    BatchOutcome, CollectionInfo, CollectionStats, DatabaseInfo, Flow, Namespace, Query, Sink, SizeEstimate, StoredDoc,
    WriteBatch,
};
use document::doc;
use error::{Code, Error, Result};
use query::Predicate;

const DATABASE: &str = "local";
const COLLECTION: &str = "oplog.rs";

/// The size that the collection is said to be limited to, in bytes: MongoDB's limit. The log has
/// limits of its own.
const SIZE_MAX: i64 = 1 << 50;

/// An estimate that makes no plan prefer to read the whole log.
const ESTIMATE: SizeEstimate = SizeEstimate { documents: 1_000_000, data_bytes: 1 << 28 };

/// Returns whether a name is the collection's, and the store has a feed.
pub(crate) fn is_log(store: &MariaDbStore, namespace: &Namespace) -> bool {
    store.feed.is_some() && &*namespace.database == DATABASE && &*namespace.collection == COLLECTION
}

/// Fails with 73 if one of the collections is the log, which only the server writes.
pub(crate) fn refuse(store: &MariaDbStore, namespaces: &[&Namespace]) -> Result<()> {
    match namespaces.iter().any(|namespace| is_log(store, namespace)) {
        true => Err(Error::new(Code::INVALID_NAMESPACE, "cannot write to local.oplog.rs")),
        false => Ok(()),
    }
}

/// Returns the outcome of a batch of writes to the log: each statement is refused.
pub(crate) fn refused(error: Error, batch: &WriteBatch) -> BatchOutcome {
    let count = if batch.ordered { 1 } else { batch.statements.count() };
    BatchOutcome { statements: (0..count).map(|_| Err(error.clone())).collect(), ..BatchOutcome::default() }
}

pub(crate) fn info() -> CollectionInfo {
    CollectionInfo {
        name: COLLECTION.to_owned(),
        options: doc! { "capped": true, "size": SIZE_MAX, "autoIndexId": false },
        uuid: names::derived_uuid(DATABASE, COLLECTION),
    }
}

/// Adds the collection to those of a database.
pub(crate) fn add_to_collections(store: &MariaDbStore, database: &str, collections: &mut Vec<CollectionInfo>) {
    if store.feed.is_some() && database == DATABASE {
        collections.retain(|collection| collection.name != COLLECTION);
        collections.push(info());
    }
}

/// Adds the collection's database.
pub(crate) fn add_to_databases(store: &MariaDbStore, databases: &mut Vec<DatabaseInfo>) {
    if store.feed.is_some() && databases.iter().all(|database| database.name != DATABASE) {
        databases.push(DatabaseInfo { name: DATABASE.to_owned(), size_on_disk_bytes: 0, empty: false });
    }
}

pub(crate) fn estimated_size() -> SizeEstimate {
    ESTIMATE
}

/// Counts the documents by reading all of them.
pub(crate) async fn statistics(store: &MariaDbStore) -> Result<CollectionStats> {
    let everything = Predicate::everything();
    let mut counted = Counted::default();
    scan(store, &plan(&Query::of(&everything)), None, &mut counted).await?;
    let Counted { documents, bytes } = counted;
    Ok(CollectionStats { documents, data_bytes: bytes, storage_bytes: bytes, indexes: Vec::new() })
}

/// Counts documents and their bytes.
#[derive(Default)]
struct Counted {
    documents: u64,
    bytes: u64,
}

impl Sink for Counted {
    fn accept(&mut self, document: StoredDoc<'_>) -> Result<Flow> {
        self.documents += 1;
        if let StoredDoc::Bson(document) = document {
            self.bytes += document.size() as u64;
        }
        Ok(Flow::Continue)
    }
}
