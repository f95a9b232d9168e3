//! Replies that several gateways share, in Redis.
//!
//! It stores a reply under a command's key, and returns a reply that another gateway stored if it
//! is still right here. Gateways do not report changes through Redis: each reads the log of the
//! same MariaDB server, and a stored reply has the log position up to which its gateway had read.
//!
//! In reading order: [`view`] (the changes that this gateway knows of, and whether a reply includes
//! them), [`entry`] (a reply as stored in Redis), [`resp`] (Redis's protocol), [`storage`]
//! (connections, timeouts).

mod entry;
mod resp;
mod storage;
mod view;

pub use storage::{Address, Statistics, Tls};
pub use view::{Position, SharedCacheObserver, View};

use bytes::Bytes;
use entry::Entry;
use std::sync::Arc;
use std::time::Duration;
use storage::Storage;
use store::Namespace;

/// Part of each key: entries of other formats are not found.
const FORMAT: &str = concat!("selkie:", env!("CARGO_PKG_VERSION"), ":1:");

/// The shared cache.
pub struct Shared {
    pub view: Arc<View>,
    storage: Storage,
    ttl: Duration,
}

/// A reply that another gateway stored.
pub struct SharedReply {
    pub body: Bytes,
    /// The collections that it depends on.
    pub namespaces: Vec<Namespace>,
}

impl Shared {
    /// `timeout`: of a request to Redis. `ttl`: how long Redis keeps a reply.
    pub fn new(address: Address, timeout: Duration, ttl: Duration) -> Arc<Shared> {
        Arc::new(Shared { view: Arc::default(), storage: Storage::new(address, timeout), ttl })
    }

    /// Checks that Redis can be reached and accepts the credentials. Must be called on a thread
    /// without a runtime. The error is a sentence.
    pub fn check(&self) -> Result<(), String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(|error| error.to_string())?.block_on(self.storage.check())
    }

    /// Returns the log position, which must be read before the store is queried and stored with the
    /// reply. `None` while replies cannot be shared.
    pub fn position(&self) -> Option<Position> {
        self.view.position()
    }

    /// Returns the reply to a command if it includes all changes that this gateway knows of.
    pub async fn get(&self, key: &[u8]) -> Option<SharedReply> {
        let key = self.full_key(key)?;
        let bytes = self.storage.get(&key).await?;
        let found = Entry::read(&bytes).filter(|entry| self.view.accepts(&entry.namespaces, &entry.position));
        self.storage.count_found(found.is_some());
        found.map(|entry| SharedReply { body: bytes.slice_ref(entry.body), namespaces: entry.namespaces })
    }

    /// Stores a reply in the background. A failure is only counted.
    pub fn put(self: &Arc<Self>, key: &[u8], position: Position, namespaces: Vec<Namespace>, body: Bytes) {
        let Some(key) = self.full_key(key) else { return };
        let entry = Entry { position, namespaces, body: &body }.write();
        let shared = self.clone();
        tokio::spawn(async move { shared.storage.set(&key, &entry, shared.ttl).await });
    }

    pub fn statistics(&self) -> Statistics {
        self.storage.statistics()
    }

    /// Returns `None` before the log is known.
    fn full_key(&self, key: &[u8]) -> Option<Vec<u8>> {
        Some([FORMAT.as_bytes(), self.view.log()?.as_bytes(), b":", key].concat())
    }
}
