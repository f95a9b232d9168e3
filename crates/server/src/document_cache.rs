//! The document cache's entries: replies to commands, sent again while they are still right.
//!
//! How a command is looked up, and what its reply depends on, is decided in the crate `commands`.

mod reply_body;
mod rules;

pub use reply_body::ReplyBody;
pub use rules::CacheRules;

use cache::{Cache, CacheObserver, Dependencies};
use document::{Collation, Doc, Element, names};
use shared_cache::Shared;
use std::sync::Arc;
use store::{ChangeObserver, Changes, InFlightWrite, Namespace, Plan, Position};

/// What a cached reply takes beside its bytes.
pub const ENTRY_OVERHEAD_BYTES: usize = 224;

/// Returns the current statistics of a cache.
pub type CacheStatistics = Box<dyn Fn() -> cache::Statistics + Send + Sync>;

/// A cached reply.
pub struct CachedReply {
    pub body: ReplyBody,
    /// The continuation of its cursor; `None` if the reply is complete.
    pub continuation: Option<Continuation>,
    /// Whether names in the body must be restored before it is sent.
    pub has_escaped_names: bool,
}

impl CachedReply {
    pub fn new(body: &[u8], continuation: Option<Continuation>) -> Arc<CachedReply> {
        let has_escaped_names = names::may_be_escaped() && names::has_mark(body);
        Arc::new(CachedReply { body: ReplyBody::new(body), continuation, has_escaped_names })
    }

    /// Returns the offset of the cursor's id in the body: `{cursor: {firstBatch: […], id, …}, …}`.
    pub fn cursor_id_offset(&self) -> Option<usize> {
        const ID: &[u8] = b"\x12id\0";
        let head = |element: Element<'_>| 1 + element.key_bytes().len() + 1;
        let cursor = Doc::from_bytes(&self.body)?.first()?;
        let batch = cursor.value().as_document()?.first()?;
        let at = 4 + head(cursor) + 4 + head(batch) + batch.raw_value().len();
        let id_at = at + ID.len();
        (self.body.get(at..id_at)? == ID).then_some(id_at)
    }
}

/// The position at which a read continues after a batch.
#[derive(Clone, Debug)]
pub struct Continuation {
    pub plan: Arc<dyn Plan>,
    pub position: Position,
    pub skip: u64,
    pub limit: Option<u64>,
    /// The collation that was in effect for the first batch.
    pub collation: Collation,
}

/// The cache key of a cursor's batches: the command that opened the cursor, and what its reply
/// depends on.
#[derive(Debug)]
pub struct BatchKey {
    pub command: Box<[u8]>,
    pub scope: Dependencies,
}

/// The document cache.
pub struct DocumentCache {
    pub cache: Arc<Cache<CachedReply>>,
    pub rules: CacheRules,
    /// The cache that is shared with other gateways, if there is one.
    pub shared: Option<Arc<Shared>>,
}

impl DocumentCache {
    /// Invalidates a collection's entries. While the returned guard lives, none are served or
    /// stored.
    pub fn invalidate(&self, namespace: &Namespace) -> Box<dyn InFlightWrite> {
        let mut changes = Changes::default();
        changes.add_unspecified(namespace);
        CacheObserver(self.cache.clone()).begin_write(changes)
    }
}

/// The caches that a connection uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachePolicy {
    pub replies: bool,
    /// The rows that the store caches.
    pub rows: bool,
}

impl CachePolicy {
    pub const ALL: CachePolicy = CachePolicy { replies: true, rows: true };
    pub const NONE: CachePolicy = CachePolicy { replies: false, rows: false };
}

/// The caches of the process.
#[derive(Default)]
pub struct Caches {
    /// The policy of each listener, by its number; [`CachePolicy::ALL`] for listeners beyond.
    pub listeners: Vec<CachePolicy>,
    pub documents: Option<DocumentCache>,
    /// The store's result-set cache, if there is one.
    pub result_sets: Option<CacheStatistics>,
    /// The cache for SQL clients, if there is one.
    pub sql: Option<CacheStatistics>,
}
