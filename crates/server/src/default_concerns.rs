//! The default concerns that `setDefaultRWConcern` has set, as the store has them.

use crate::clock;
use document::{DocBuf, Value};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};

/// The stored concerns are read again after this time: another gateway may have changed them.
const MAX_AGE_MS: i64 = 30_000;

/// The default concerns, as they were last read.
#[derive(Debug)]
pub struct DefaultConcerns {
    stored: RwLock<Option<Arc<DocBuf>>>,
    read_ms: AtomicI64,
}

impl Default for DefaultConcerns {
    fn default() -> DefaultConcerns {
        DefaultConcerns { stored: RwLock::default(), read_ms: AtomicI64::new(i64::MIN / 2) }
    }
}

impl DefaultConcerns {
    /// Returns whether they must be read from the store.
    #[inline]
    pub fn are_due(&self, steady_ms: i64) -> bool {
        steady_ms - self.read_ms.load(Relaxed) >= MAX_AGE_MS
    }

    /// Records what the store has.
    pub fn set(&self, stored: Option<DocBuf>) {
        *self.stored.write().unwrap_or_else(PoisonError::into_inner) = stored.map(Arc::new);
        self.read_ms.store(clock::steady_ms(), Relaxed);
    }

    /// Returns the stored document, if concerns have been set.
    pub fn stored(&self) -> Option<Arc<DocBuf>> {
        self.stored.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the document with the default concern of writes (`defaultWriteConcern`), if one has
    /// been set.
    pub fn for_writes(&self) -> Option<Arc<DocBuf>> {
        self.stored().filter(|stored| matches!(stored.as_doc().get("defaultWriteConcern"), Some(Value::Document(_))))
    }
}
