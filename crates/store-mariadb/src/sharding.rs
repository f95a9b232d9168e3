//! Sharded collections: tables whose rows the storage engine Spider distributes over data servers.
//!
//! The server that the gateway connects to is the head. There a sharded collection is a table as
//! any other, with the same generated columns, but of the engine Spider, with one partition for
//! each data server. On each data server there is a table with its part of the rows, in the schema
//! [`definition::DATA_SCHEMA`]. Its columns are plain: the head computes their values. So the
//! definition of a collection is that of the head's table, and all statements on documents are
//! executed by the head.
//!
//! Spider has no savepoints and no atomic commit over several servers. Therefore no client's
//! transaction may use a sharded collection, and the record of a retryable write is made after the
//! write instead of with it.
//!
//! In reading order: [`servers`] (the data servers), [`definition`] (both tables), [`layout`] (what
//! the head's table says about the collection), [`data_tables`] (statements on data servers),
//! [`shard_collection`] and [`indexes`].

pub(crate) mod data_tables;
pub(crate) mod definition;
pub(crate) mod indexes;
pub(crate) mod layout;
pub(crate) mod servers;
mod shard_collection;

use crate::catalog::TableLookup;
use crate::catalog::collections::collection_info;
use crate::catalog::names;
use crate::store::MariaDbStore;
use ::store::{Namespace, Shard, ShardedCollection, Sharding};
use document::Doc;
use error::{Code, Error};
use futures_util::future::LocalBoxFuture;
use mariadb_client::Result;

/// Returns the error for a use of a sharded collection in a client's transaction.
pub(crate) fn refused_in_transaction(namespace: &Namespace) -> Error {
    let message = format!(
        "Cannot use the sharded collection {namespace} in a multi-document transaction: its servers do not commit \
         atomically"
    );
    Error::new(Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, message)
}

impl MariaDbStore {
    async fn list_sharded(&self) -> Result<Vec<ShardedCollection>> {
        let mut lease = self.pool.lease_for_catalog().await?;
        let mut found = Vec::new();
        for (schema, table) in layout::tables(&mut lease).await? {
            let Some(layout) = layout::read(&mut lease, &schema, &table).await? else { continue };
            let Some(table) = self.catalog.by_table_name(&mut lease, &schema, &table).await? else { continue };
            let info = collection_info(&mut lease, &table).await?;
            let Some(namespace) = names::namespace(&schema, &table.name) else { continue };
            let namespace = Namespace::new(&namespace.database, &info.name);
            found.push(ShardedCollection { namespace, key: layout.key, uuid: info.uuid, shards: layout.shards });
        }
        Ok(found)
    }

    async fn sharded_one(&self, namespace: &Namespace) -> Result<Option<ShardedCollection>> {
        if self.catalog.names(namespace).is_err() {
            return Ok(None);
        }
        let mut lease = self.pool.lease_for(namespace).await?;
        let TableLookup::Collection(table) = self.catalog.read(&mut lease, namespace).await? else { return Ok(None) };
        if !table.is_sharded {
            return Ok(None);
        }
        let Some(layout) = layout::read(&mut lease, &table.schema, &table.name).await? else { return Ok(None) };
        let uuid = collection_info(&mut lease, &table).await?.uuid;
        Ok(Some(ShardedCollection { namespace: namespace.clone(), key: layout.key, uuid, shards: layout.shards }))
    }
}

impl Sharding for MariaDbStore {
    fn shards<'a>(&'a self) -> LocalBoxFuture<'a, error::Result<Vec<Shard>>> {
        Box::pin(async move {
            let mut lease = self.pool.lease_for_catalog().await?;
            Ok(servers::list(&mut lease, &self.shards).await?)
        })
    }

    fn sharded_collections<'a>(&'a self) -> LocalBoxFuture<'a, error::Result<Vec<ShardedCollection>>> {
        Box::pin(async move { Ok(self.list_sharded().await?) })
    }

    fn sharded<'a>(&'a self, namespace: &'a Namespace) -> LocalBoxFuture<'a, error::Result<Option<ShardedCollection>>> {
        Box::pin(async move { Ok(self.sharded_one(namespace).await?) })
    }

    fn shard_collection<'a>(&'a self, namespace: &'a Namespace, key: Doc<'a>) -> LocalBoxFuture<'a, error::Result<()>> {
        Box::pin(async move {
            self.prepare().await?;
            let sharding = shard_collection::shard(self, namespace, key);
            Ok(self.change_collections(&[namespace], sharding).await?)
        })
    }
}
