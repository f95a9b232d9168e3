//! Collections whose documents are distributed over several servers, the shards.

use crate::{DocumentStore, Namespace};
use document::{Doc, DocBuf};
use error::Result;
use futures_util::future::LocalBoxFuture;

/// A server that holds a part of each sharded collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    pub name: String,
    /// Host and port, or the path of a socket.
    pub address: String,
}

/// A sharded collection.
#[derive(Clone, Debug)]
pub struct ShardedCollection {
    pub namespace: Namespace,
    /// The shard key as the client gave it: `{_id: 1}` or `{_id: "hashed"}`.
    pub key: DocBuf,
    pub uuid: [u8; 16],
    /// The names of the shards that hold its documents.
    pub shards: Vec<String>,
}

/// The sharding of a store that distributes collections.
pub trait Sharding {
    /// Lists the shards.
    fn shards<'a>(&'a self) -> LocalBoxFuture<'a, Result<Vec<Shard>>>;

    /// Lists the sharded collections of all databases.
    fn sharded_collections<'a>(&'a self) -> LocalBoxFuture<'a, Result<Vec<ShardedCollection>>>;

    /// Returns how a collection is sharded, if it is.
    fn sharded<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, Result<Option<ShardedCollection>>>;

    /// Distributes a collection by a key, whose form was checked; creates it if it is missing, and
    /// moves its documents. Does nothing if it is sharded by this key. Fails with 23 if it is
    /// sharded by another one, and with 72 if it cannot be sharded.
    fn shard_collection<'a>(&'a self, namespace: &'a Namespace, key: Doc<'a>) -> LocalBoxFuture<'a, Result<()>>;
}

/// Returns whether a collection is sharded.
pub async fn is_sharded(store: &dyn DocumentStore, namespace: &Namespace) -> Result<bool> {
    match store.sharding() {
        Some(sharding) => Ok(sharding.sharded(namespace).await?.is_some()),
        None => Ok(false),
    }
}
