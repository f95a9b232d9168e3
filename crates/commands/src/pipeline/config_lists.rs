//! Collections in which tools read the arrangement of servers. A router has them in the database
//! `config`: its shards and sharded collections. If collections cannot be sharded, there is one
//! shard, which is this server. A replica set has its configuration in `local.system.replset`.
//!
//! They are not collections of the store, so that nothing wrong remains if the topology changes.

use crate::arguments;
use crate::arguments::options;
use crate::call::Call;
use crate::pipeline::{open, over_views};
use crate::read::Reader;
use crate::replica_set;
use document::{Collation, DocBuf, DocWriter, Value};
use error::Result;
use server::Topology;
use std::collections::BTreeSet;
use store::{Namespace, Shard, Sharding};

/// The shard of a router whose store has no sharding.
const NAME: &str = "selkie";

/// The version of the lists' form, as MongoDB 6.0 has it.
const FORM: [(&str, i32); 2] = [("minCompatibleVersion", 5), ("currentVersion", 6)];

/// Returns whether a read of this collection is answered here.
pub fn is_list(call: &Call<'_>, namespace: &Namespace) -> bool {
    match (&call.worker.server.settings.topology, &*namespace.database, &*namespace.collection) {
        (Topology::Router, "config", "shards") => true,
        (Topology::Router, "config", "collections" | "databases" | "version") => call.worker.store.sharding().is_some(),
        (Topology::ReplicaSet { .. }, "local", "system.replset") => true,
        _ => false,
    }
}

/// Returns the documents of such a collection.
pub async fn list(call: &Call<'_>, namespace: &Namespace) -> Result<Vec<DocBuf>> {
    if let Topology::ReplicaSet { name, advertised } = &call.worker.server.settings.topology {
        return Ok(vec![DocBuf::build(|writer| replica_set::write_config(name, advertised, writer))]);
    }
    let sharding = call.worker.store.sharding();
    match (&*namespace.collection, sharding) {
        ("collections", Some(sharding)) => collections(sharding).await,
        ("databases", Some(sharding)) => databases(call, sharding).await,
        ("version", _) => Ok(vec![version()]),
        _ => shards(call).await,
    }
}

/// Lists the shards.
pub async fn shards(call: &Call<'_>) -> Result<Vec<DocBuf>> {
    let shards = match call.worker.store.sharding() {
        Some(sharding) => sharding.shards().await?,
        None => vec![Shard { name: NAME.into(), address: server::host::cached_name().into() }],
    };
    Ok(shards.iter().map(|shard| DocBuf::build(|writer| write(shard, writer))).collect())
}

fn write(shard: &Shard, writer: &mut DocWriter<'_>) {
    writer.append("_id", shard.name.as_str());
    writer.append("host", shard.address.as_str());
    writer.append("state", 1);
    writer.append("topologyTime", Value::Timestamp { time: 1, increment: 1 });
}

async fn collections(sharding: &dyn Sharding) -> Result<Vec<DocBuf>> {
    let all = sharding.sharded_collections().await?;
    let describe = |writer: &mut DocWriter<'_>, collection: &store::ShardedCollection| {
        writer.append("_id", collection.namespace.to_string().as_str());
        writer.append("key", Value::Document(collection.key.as_doc()));
        writer.append("unique", false);
        writer.append("noBalance", true);
        writer.append("uuid", Value::Binary { subtype: 4, bytes: &collection.uuid });
    };
    Ok(all.iter().map(|collection| DocBuf::build(|writer| describe(writer, collection))).collect())
}

/// Lists all databases. Their other collections are on the head, which is no shard.
async fn databases(call: &Call<'_>, sharding: &dyn Sharding) -> Result<Vec<DocBuf>> {
    let all = sharding.sharded_collections().await?;
    let sharded: BTreeSet<&str> = all.iter().map(|collection| &*collection.namespace.database).collect();
    let describe = |writer: &mut DocWriter<'_>, name: &str| {
        writer.append("_id", name);
        writer.append("primary", NAME);
        writer.append("partitioned", sharded.contains(name));
    };
    let databases = call.worker.store.databases().await?;
    let names =
        databases.iter().map(|database| &*database.name).filter(|name| !matches!(*name, "admin" | "config" | "local"));
    Ok(names.map(|name| DocBuf::build(|writer| describe(writer, name))).collect())
}

fn version() -> DocBuf {
    DocBuf::build(|writer| {
        writer.append("_id", 1);
        FORM.iter().for_each(|(name, number)| writer.append(name, *number));
    })
}

/// Opens a `find` over the list.
pub async fn open_find(
    call: &Call<'_>,
    namespace: &Namespace,
    find: &crate::arguments::find::Arguments<'_>,
) -> Result<Reader> {
    let (pipeline, _) = over_views::find_pipeline(find)?;
    let arguments = arguments::aggregate::Arguments { pipeline: pipeline.as_doc(), ..Default::default() };
    let context = options::context(call, find.variables, Collation::SIMPLE)?;
    // Boxed because the future is large.
    Box::pin(open::open(call, namespace, &arguments, &context)).await
}

/// Counts the shards that match.
pub async fn count(
    call: &Call<'_>,
    namespace: &Namespace,
    count: &crate::arguments::count::Arguments<'_>,
) -> Result<u64> {
    let pipeline = over_views::count_pipeline(count);
    let arguments = arguments::aggregate::Arguments { pipeline: pipeline.as_doc(), ..Default::default() };
    let mut reader = Box::pin(open::open(call, namespace, &arguments, &call.context())).await?;
    let mut counted = 0;
    reader
        .for_each(call, |document| {
            counted = document.get("count").and_then(Value::to_i64).unwrap_or_default().unsigned_abs();
            Ok(())
        })
        .await?;
    Ok(counted)
}
