//! The document cache: cached replies to commands, sent again while they are still right.
//!
//! The cache is between the session and the command. A command that only reads is looked up by its
//! fields, without those that do not affect its reply ([`key`]). On a miss, its handler records
//! what the reply depends on ([`pending_entry`]), and the reply is stored as it was sent. A
//! cursor's first batch is stored with its plan and position, so that a hit continues from there.
//! The entries themselves are in [`server::document_cache`].

pub mod key;
pub mod pending_entry;
pub mod reason;

use crate::call::Call;
use crate::read::ReadSpec;
use cache::{CacheLookup, ComputePermit, Dependencies, NotCached};
use document::{Doc, DocWriter, Element, Value};
use mongo_wire::request::RequestKind;
use pending_entry::{PendingEntry, Sharing};
use query::Predicate;
use server::document_cache::{BatchKey, CachedReply, Continuation, DocumentCache, ENTRY_OVERHEAD_BYTES};
use std::sync::Arc;
use store::Namespace;

/// The outcome of a lookup.
pub enum Lookup {
    /// The whole reply.
    Hit(Arc<CachedReply>),
    /// The first batch; the handler must open a cursor behind it.
    FirstBatch(Arc<CachedReply>),
    /// A miss: the reply must be computed, and will be cached.
    Compute(Box<PendingEntry>),
    /// The command is not cached.
    Bypass,
}

/// Returns the cached reply to a command, whole or its first batch, without waiting.
pub fn get(cache: &DocumentCache, call: &Call<'_>) -> Option<Arc<CachedReply>> {
    let mut buffer = call.worker.key_buffer.borrow_mut();
    let key = key_of(cache, call, &mut buffer)?;
    cache.cache.get(key, call.steady_ms)
}

/// As [`look_up`], for a command that is executed without waiting.
pub fn begin_entry(cache: &DocumentCache, call: &Call<'_>) -> Option<Box<PendingEntry>> {
    let mut buffer = call.worker.key_buffer.borrow_mut();
    let key = key_of(cache, call, &mut buffer)?;
    match cache.cache.look_up(key, call.steady_ms, true) {
        CacheLookup::Compute(fill) => Some(PendingEntry::new(fill, key)),
        _ => None,
    }
}

/// Looks a command up. Waits while another call computes the same reply.
pub async fn look_up(cache: &DocumentCache, call: &Call<'_>) -> error::Result<Lookup> {
    let mut key = Vec::new();
    if key_of(cache, call, &mut key).is_none() {
        return Ok(Lookup::Bypass);
    }
    let mut alone = false;
    loop {
        match begin(cache, call, &key, alone) {
            CacheLookup::Hit(reply) if reply.continuation.is_some() => return Ok(Lookup::FirstBatch(reply)),
            CacheLookup::Hit(reply) => return Ok(Lookup::Hit(reply)),
            CacheLookup::Wait(mut flight) => {
                // It ends when the other call does, whatever its outcome.
                let landed = async { Ok(flight.changed().await.is_ok()) };
                call.operation.run_interruptible(landed).await?;
                alone = true;
            }
            CacheLookup::Compute(fill) => return Ok(look_up_shared(cache, call, fill, &key).await),
            CacheLookup::Bypass => return Ok(Lookup::Bypass),
        }
    }
}

/// Looks a command up in the cache that is shared with other gateways, if there is one.
async fn look_up_shared(
    cache: &DocumentCache,
    call: &Call<'_>,
    fill: ComputePermit<CachedReply>,
    key: &[u8],
) -> Lookup {
    let Some(shared) = &cache.shared else { return Lookup::Compute(PendingEntry::new(fill, key)) };
    if let Some(found) = shared.get(key).await {
        let reply = CachedReply::new(&found.body, None);
        let mut namespaces = found.namespaces.into_iter();
        if let Some(first) = namespaces.next() {
            // The command is not parsed here, so any change of its collections invalidates the
            // entry.
            let scope = Dependencies::all_documents(first, namespaces.collect());
            let bytes = reply.body.bytes_held() + ENTRY_OVERHEAD_BYTES;
            let _ = fill.store(reply.clone(), bytes, scope, call.steady_ms);
        }
        return Lookup::Hit(reply);
    }
    let sharing = shared.position().map(|position| Sharing { shared: shared.clone(), position });
    Lookup::Compute(PendingEntry::new(fill, key).shared_with(sharing))
}

fn begin(cache: &DocumentCache, call: &Call<'_>, key: &[u8], alone: bool) -> CacheLookup<CachedReply> {
    if let Some(reply) = cache.cache.get(key, call.steady_ms) {
        return CacheLookup::Hit(reply);
    }
    if key::is_volatile(&call.envelope.fields) {
        cache.cache.count_not_cached(NotCached::Volatile);
        return CacheLookup::Bypass;
    }
    cache.cache.look_up(key, call.steady_ms, alone)
}

/// Returns the cache key of a command; `None` if it must not be looked up.
fn key_of<'b>(cache: &DocumentCache, call: &Call<'_>, buffer: &'b mut Vec<u8>) -> Option<&'b [u8]> {
    let is_allowed = cache.rules.allow_command(call.spec.name) && call.session.cache_policy.get().replies;
    if !is_cacheable(call) || !is_allowed {
        return None;
    }
    let collection = call.first().value().as_str()?;
    if key::never_cached(call.database(), collection).is_some() || !cache.rules.allow(call.database(), collection) {
        return None;
    }
    key::write(&call.envelope, buffer);
    Some(buffer)
}

/// Looks up the next batch of a cursor.
pub fn next_batch(
    cache: &DocumentCache,
    call: &Call<'_>,
    batch_key: &BatchKey,
    continuation: &Continuation,
    batch_size: u64,
) -> Lookup {
    if !call.session.cache_policy.get().replies {
        return Lookup::Bypass;
    }
    let mut key = batch_key.command.to_vec();
    key::write_position(continuation, batch_size, &mut key);
    match cache.cache.look_up(&key, call.steady_ms, true) {
        CacheLookup::Hit(reply) => Lookup::Hit(reply),
        CacheLookup::Compute(fill) => {
            let mut pending = PendingEntry::new(fill, &batch_key.command);
            pending.scope = Some(batch_key.scope.clone());
            Lookup::Compute(pending)
        }
        CacheLookup::Wait(_) | CacheLookup::Bypass => Lookup::Bypass,
    }
}

/// Returns whether the reply of the command can be cached.
fn is_cacheable(call: &Call<'_>) -> bool {
    call.spec.cacheable
        && !call.envelope.in_transaction
        && matches!(call.request.kind, RequestKind::Msg { .. })
        && !call.envelope.is_linearizable()
        && call.envelope.snapshot_time().is_none()
        && call.reads_elsewhere.is_none()
}

/// Returns the key of the batches of a cursor that continues from a cached first batch.
pub fn batch_key(call: &Call<'_>, namespace: &Namespace, spec: &ReadSpec<'_>) -> Arc<BatchKey> {
    let mut key = Vec::new();
    key::write(&call.envelope, &mut key);
    let predicate = spec.predicate.clone().unwrap_or_else(Predicate::everything);
    let scope = Dependencies::matching(namespace.clone(), predicate, cache::dependencies::Aspect::Documents);
    Arc::new(BatchKey { command: key.into(), scope })
}

/// Writes a cached batch into a reply's cursor, under the name that it was cached with.
pub fn write_batch(reply: &CachedReply, cursor: &mut DocWriter<'_>) {
    if let Some(batch) = batch(reply) {
        cursor.append_element(batch);
    }
}

/// Returns the batch of a cached reply.
pub fn batch(reply: &CachedReply) -> Option<Element<'_>> {
    let cursor = Doc::from_bytes(&reply.body)?.get("cursor").and_then(Value::as_document)?;
    cursor.first()
}
