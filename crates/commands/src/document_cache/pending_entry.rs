//! A reply that will be cached, and what it depends on.

use cache::{ComputePermit, Dependencies, NotCached};
use server::document_cache::{BatchKey, CachedReply, Continuation, ENTRY_OVERHEAD_BYTES};
use shared_cache::Shared;
use std::cell::RefCell;
use std::sync::Arc;

/// The size of a continuation in memory, about.
const CONTINUATION_BYTES: usize = 512;

/// A reply being computed for the cache. The handler records what it depends on; a reply without
/// that is not cached.
pub struct PendingEntry {
    fill: ComputePermit<CachedReply>,
    key: Box<[u8]>,
    pub(super) scope: Option<Dependencies>,
    continuation: Option<Continuation>,
    refusal: Option<NotCached>,
    sharing: Option<Sharing>,
}

/// The shared cache that the reply is stored in, too.
pub(super) struct Sharing {
    pub shared: Arc<Shared>,
    /// The position in the store's log before the store was asked.
    pub position: shared_cache::Position,
}

impl PendingEntry {
    pub(super) fn new(fill: ComputePermit<CachedReply>, key: &[u8]) -> Box<PendingEntry> {
        Box::new(PendingEntry { fill, key: key.into(), scope: None, continuation: None, refusal: None, sharing: None })
    }

    pub(super) fn shared_with(self, sharing: Option<Sharing>) -> Box<PendingEntry> {
        Box::new(PendingEntry { sharing, ..self })
    }

    /// Stores the reply.
    pub fn finish(self, body: &[u8], now_ms: i64) {
        let PendingEntry { fill, key, scope, continuation, refusal, sharing } = self;
        match (scope, refusal) {
            (Some(scope), None) => {
                let continuation_bytes = continuation.as_ref().map_or(0, |_| CONTINUATION_BYTES);
                // A cursor belongs to this gateway alone.
                let sharing = sharing.filter(|_| continuation.is_none());
                let namespaces = sharing.as_ref().map(|_| scope.namespaces());
                let reply = CachedReply::new(body, continuation);
                let bytes = reply.body.bytes_held() + ENTRY_OVERHEAD_BYTES + continuation_bytes;
                let body = reply.body.clone();
                // The cache counts the reason if it does not store the reply.
                if fill.store(reply, bytes, scope, now_ms).is_ok()
                    && let (Some(Sharing { shared, position }), Some(namespaces)) = (sharing, namespaces)
                {
                    shared.put(&key, position, namespaces, body.into_bytes());
                }
            }
            (_, refusal) => fill.discard(refusal.unwrap_or(NotCached::NotACollection)),
        }
    }
}

/// The part of a [`Call`](crate::call::Call) in which handlers record what their reply depends on.
#[derive(Default)]
pub struct DependencyRecorder(RefCell<Option<Box<PendingEntry>>>);

impl DependencyRecorder {
    pub fn begin(&self, pending: Option<Box<PendingEntry>>) {
        *self.0.borrow_mut() = pending;
    }

    pub fn take(&self) -> Option<Box<PendingEntry>> {
        self.0.borrow_mut().take()
    }

    /// Returns whether the reply will be cached.
    pub fn is_recording(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Records the dependencies of the reply.
    pub fn depend_on(&self, scope: impl FnOnce() -> Dependencies) {
        if let Some(pending) = &mut *self.0.borrow_mut() {
            pending.scope = Some(scope());
        }
    }

    /// Prevents caching of the reply.
    pub fn refuse(&self, reason: NotCached) {
        if let Some(pending) = &mut *self.0.borrow_mut() {
            pending.refusal = Some(reason);
        }
    }

    /// Narrows the dependencies, now that the result is known.
    pub fn narrow(&self, narrow: impl FnOnce(&mut Dependencies)) {
        if let Some(scope) = self.0.borrow_mut().as_mut().and_then(|pending| pending.scope.as_mut()) {
            narrow(scope);
        }
    }

    /// Records that the reply is the first batch of a cursor, which continues at `continuation`;
    /// `None`: at no position that can be cached. Returns the key of the cursor's batches.
    pub fn set_continuation(&self, continuation: Option<Continuation>) -> Option<Arc<BatchKey>> {
        let mut pending = self.0.borrow_mut();
        let pending = pending.as_mut()?;
        match (&pending.scope, continuation) {
            (Some(scope), Some(continuation)) => {
                pending.continuation = Some(continuation);
                Some(Arc::new(BatchKey { command: pending.key.clone(), scope: scope.clone() }))
            }
            _ => {
                pending.refusal = Some(NotCached::OpenCursor);
                None
            }
        }
    }
}
