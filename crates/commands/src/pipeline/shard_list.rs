//! `config.shards` of a router: one shard, which is this server. Tools that find a router read the
//! list of its shards there.
//!
//! It is not a collection of the store, so that nothing wrong remains if the topology changes.

use crate::arguments;
use crate::arguments::options;
use crate::call::Call;
use crate::pipeline::{open, over_views};
use crate::read::Reader;
use document::{Collation, DocBuf, DocWriter, Value};
use error::Result;
use server::Topology;
use store::Namespace;

const NAME: &str = "selkie";

/// Returns whether a read of this collection is answered here.
pub fn is_list(call: &Call<'_>, namespace: &Namespace) -> bool {
    (&*namespace.database, &*namespace.collection) == ("config", "shards")
        && call.worker.server.settings.topology == Topology::Router
}

/// Returns the shards, as `config.shards` has them.
pub fn list() -> [DocBuf; 1] {
    [DocBuf::build(write)]
}

/// Appends the fields of the one shard.
pub fn write(writer: &mut DocWriter<'_>) {
    writer.append("_id", NAME);
    writer.append("host", server::host::cached_name());
    writer.append("state", 1);
    writer.append("topologyTime", Value::Timestamp { time: 1, increment: 1 });
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
