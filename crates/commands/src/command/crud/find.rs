//! `find`.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/command/find/>

use crate::arguments::find::Arguments;
use crate::arguments::namespace_to_read;
use crate::arguments::options;
use crate::call::{Call, Disposition};
use crate::document_cache;
use crate::pipeline::config_lists;
use crate::pipeline::over_views;
use crate::read::index_bounds;
use crate::read::index_filters;
use crate::read::open_cursor::{FIRST_BATCH_DOCUMENTS, estimated_size, open_cursor, register_cursor};
use crate::read::{Batch, ReadSpec, Reader};
use crate::reply::{append_namespace, in_executor};
use cache::dependencies::{Aspect, DocumentSet};
use cache::{Dependencies, NotCached};
use document::{Doc, DocWriter};
use error::{Code, Error, Result};
use query::{Predicate, Sort};
use server::Topology;
use server::document_cache::{CachedReply, Continuation};
use store::Namespace;

/// Parses the fields of a `find`.
pub fn parse(call: &Call<'_>) -> Result<()> {
    Arguments::read(call.all_fields())?;
    namespace_to_read(call.database(), call.first()).map(drop)
}

pub async fn find(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let arguments = Arguments::read(call.fields())?;
    let namespace = namespace_to_read(call.database(), call.first())?;
    let collation = options::effective_collation(call, &namespace, arguments.collation).await?;
    let spec = arguments.prepare(call, collation.clone())?;
    let worker = call.worker;
    worker.statistics().operations_query.add(1);
    if let Some(cached) = call.first_batch.take() {
        return continue_cached(call, &namespace, &arguments, spec, &cached, reply);
    }
    call.dependencies.depend_on(|| {
        let predicate = spec.predicate.clone().unwrap_or_else(Predicate::everything);
        Dependencies::matching(namespace.clone(), predicate, Aspect::Documents)
    });
    let order = spec.sort.clone().filter(|sort| call.dependencies.is_recording() && sort.needs().is_empty());
    let first_few = spec.limit.filter(|_| spec.projection.is_none() && spec.skip == 0);

    if arguments.tailable {
        check_oplog(call, &namespace)?;
    }
    let tail = match (arguments.tailable, &spec.predicate) {
        (true, Some(predicate)) => worker.store.tail(&namespace, predicate).await?,
        (true, None) => worker.store.tail(&namespace, &Predicate::everything()).await?,
        (false, _) => None,
    };
    let mut reader = match tail {
        Some(plan) => Reader::follow(plan, ReadSpec { limit: arguments.limit, ..spec }, arguments.await_data),
        None => {
            let index_filter = index_filters::of_read(call, &namespace, &spec, arguments.collation).await?;
            let hint = index_filters::hint(&index_filter, spec.hint);
            let spec = ReadSpec { hint, ..spec };
            let spec = index_bounds::apply(call, &namespace, (arguments.min, arguments.max), &collation, spec).await?;
            Reader::open(&*worker.store, &namespace, spec).await?
        }
    };
    let view = reader.is_view();
    if config_lists::is_list(call, &namespace) {
        reader = config_lists::open_find(call, &namespace, &arguments).await?;
    }
    if view {
        call.dependencies.refuse(NotCached::NotACollection);
        reader = over_views::open_find(call, &namespace, &arguments).await?;
    }
    let batch_size = arguments.batch_size.unwrap_or(FIRST_BATCH_DOCUMENTS);
    let mut cursor = reply.document("cursor");
    {
        let mut batch = Batch::begin(&mut cursor, "firstBatch", options::as_count(batch_size));
        let filled = reader.fill(call, &mut batch).await;
        filled.map_err(|error| in_executor(error, "Executor error during find command"))?;
        worker.statistics().documents_returned.add(batch.len() as u64);
        if let (Some(sort), Some(limit)) = (order, first_few)
            && batch.len() as u64 == limit
            && reader.is_done()
        {
            depend_on_first(call, sort, batch.last());
        }
    }
    // A tailable cursor on an empty collection is closed at once.
    let dead = reader.is_tail() && reader.examined == 0 && batch_size > 0;
    let keep = !reader.is_done() && !arguments.single_batch && !dead;
    // A batch of size zero has not read the collection yet; if it does not exist, there is nothing
    // to continue.
    let keep = keep && (batch_size > 0 || view || worker.store.collection(&namespace).await?.is_some());
    if keep {
        // Bounds depend on the index, which is not part of the cache key.
        let bounded = arguments.min.is_some() || arguments.max.is_some();
        let continuation = reader.continuation().filter(|_| !bounded).map(|next| Continuation { collation, ..next });
        reader.batch_key = call.dependencies.set_continuation(continuation);
    }
    let no_timeout = arguments.no_cursor_timeout;
    let id = if keep { open_cursor(call, &namespace, reader, no_timeout, &cursor)? } else { 0 };
    cursor.append("id", id);
    append_namespace(&mut cursor, &namespace);
    // MongoDB names no time if the collection does not exist.
    if call.snapshot.is_some() && (view || worker.store.collection(&namespace).await?.is_some()) {
        call.append_snapshot_time(&mut cursor);
    }
    Ok(Disposition::Reply)
}

/// Refuses to tail the oplog if there is none: with an empty, closed cursor, clients would retry
/// forever.
fn check_oplog(call: &Call<'_>, namespace: &Namespace) -> Result<()> {
    let is_oplog = (&*namespace.database, &*namespace.collection) == ("local", "oplog.rs");
    let lacks_oplog = is_oplog && call.worker.store.change_feed().is_none();
    if lacks_oplog && call.worker.server.settings.topology != Topology::Standalone {
        let message = "this server has no oplog: local.oplog.rs cannot be followed";
        return Err(Error::new(Code::NOT_IMPLEMENTED, message));
    }
    Ok(())
}

/// Writes a cached first batch, and opens a cursor behind it.
fn continue_cached(
    call: &Call<'_>,
    namespace: &Namespace,
    arguments: &Arguments<'_>,
    spec: ReadSpec<'_>,
    cached: &CachedReply,
    reply: &mut DocWriter<'_>,
) -> Result<Disposition> {
    let mut cursor = reply.document("cursor");
    document_cache::write_batch(cached, &mut cursor);
    let id = open_behind(call, namespace, arguments, spec, cached)?;
    cursor.append("id", id);
    append_namespace(&mut cursor, namespace);
    Ok(Disposition::Reply)
}

/// Opens a cursor behind a cached first batch without waiting; returns its id.
pub fn continue_immediately(call: &Call<'_>, cached: &CachedReply) -> Result<i64> {
    let continuation = continuation_of(cached)?;
    let namespace = namespace_to_read(call.database(), call.first())?;
    let arguments = Arguments::read(call.fields())?;
    let spec = arguments.prepare(call, continuation.collation.clone())?;
    open_behind(call, &namespace, &arguments, spec, cached)
}

fn open_behind(
    call: &Call<'_>,
    namespace: &Namespace,
    arguments: &Arguments<'_>,
    spec: ReadSpec<'_>,
    cached: &CachedReply,
) -> Result<i64> {
    let continuation = continuation_of(cached)?;
    if arguments.single_batch {
        return Ok(0);
    }
    let batch_key = document_cache::batch_key(call, namespace, &spec);
    let mut reader = Reader::resume(continuation, spec);
    reader.batch_key = Some(batch_key);
    if call.request.is_silent() {
        return Ok(0);
    }
    register_cursor(call, namespace, reader, arguments.no_cursor_timeout, estimated_size(call))
}

fn continuation_of(cached: &CachedReply) -> Result<&Continuation> {
    cached.continuation.as_ref().ok_or_else(|| Error::internal("a cached reply has no continuation"))
}

/// Narrows the reply's dependencies: documents behind its last one, in the requested order, do not
/// affect it.
fn depend_on_first(call: &Call<'_>, sort: Sort, last: Option<Doc<'_>>) {
    let mut key = Vec::new();
    if let Some(last) = last
        && sort.natural().is_none()
        && sort.key(last, &mut key).is_ok()
    {
        call.dependencies.narrow(|scope| {
            if let DocumentSet::Matching { aspect, .. } = &mut scope.documents {
                *aspect = Aspect::First { sort: Box::new(sort), last: key.into() };
            }
        });
    }
}
