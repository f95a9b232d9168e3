//! Answers that several gateways share, in Redis.
//!
//! What comes in are a command's key and the reply that was made to it; what goes out is a reply that another gateway made, if it is still
//! right here. Nobody tells the others of changes by way of Redis: each gateway reads the log of the same MariaDB server, and a reply says how
//! much of that log had been read when it was made.
//!
//! In reading order: [`view`] (what this gateway knows of changes, and whether a reply has all of them), [`entry`] (a reply as it lies in Redis),
//! [`resp`] (Redis's protocol), [`storage`] (connections, time limits).

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

/// Replies of other formats are not to be found.
const FORMAT: &str = concat!("selkie:", env!("CARGO_PKG_VERSION"), ":1:");

/// Replies that are shared.
pub struct Shared {
    pub view: Arc<View>,
    storage: Storage,
    ttl: Duration,
}

/// A reply that another gateway made.
pub struct Found {
    pub body: Bytes,
    /// The collections that it was made from.
    pub namespaces: Vec<Namespace>,
}

impl Shared {
    /// `limit`: how long Redis may take to answer. `ttl`: how long it keeps a reply.
    pub fn new(address: Address, limit: Duration, ttl: Duration) -> Arc<Shared> {
        Arc::new(Shared { view: Arc::default(), storage: Storage::new(address, limit), ttl })
    }

    /// Whether Redis can be reached and lets us in; for the start, on a thread that has no runtime. The error says why not.
    pub fn check(&self) -> Result<(), String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(|error| error.to_string())?.block_on(self.storage.check())
    }

    /// How much of the log has been read: noted before the store is asked, and kept with the reply.
    pub fn position(&self) -> Option<Position> {
        self.view.position()
    }

    /// The reply to a command, if there is one that has all changes that are known here.
    pub async fn get(&self, key: &[u8]) -> Option<Found> {
        let key = self.full_key(key)?;
        let bytes = self.storage.get(&key).await?;
        let found = Entry::read(&bytes).filter(|entry| self.view.accepts(&entry.namespaces, &entry.position));
        self.storage.count_found(found.is_some());
        found.map(|entry| Found { body: bytes.slice_ref(entry.body), namespaces: entry.namespaces })
    }

    /// Gives a reply to the others. It is not waited for, and nobody is told if it fails.
    pub fn put(self: &Arc<Self>, key: &[u8], position: Position, namespaces: Vec<Namespace>, body: Bytes) {
        let Some(key) = self.full_key(key) else { return };
        let entry = Entry { position, namespaces, body: &body }.write();
        let shared = self.clone();
        tokio::spawn(async move { shared.storage.set(&key, &entry, shared.ttl).await });
    }

    pub fn statistics(&self) -> Statistics {
        self.storage.statistics()
    }

    /// `None` while it is not known which log is read.
    fn full_key(&self, key: &[u8]) -> Option<Vec<u8>> {
        Some([FORMAT.as_bytes(), self.view.log()?.as_bytes(), b":", key].concat())
    }
}
