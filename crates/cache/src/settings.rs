//! The cache's settings.

use crate::key_directory;

/// The cache's size, expiry and invalidation.
#[derive(Clone, Debug)]
pub struct CacheSettings {
    /// Memory for replies, keys and dependencies.
    pub bytes: usize,
    /// Parts of the cache, each with a lock of its own.
    pub shards: usize,
    /// Each thread has a shard of its own, in which it alone looks up and stores. Otherwise the key
    /// determines the shard.
    pub per_thread: bool,
    /// An older reply is recomputed by one reader; the others get the old one meanwhile.
    pub soft_ttl_ms: Option<i64>,
    /// An older reply is not returned.
    pub hard_ttl_ms: Option<i64>,
    /// How long replies stored before are still returned while external writes cannot be followed.
    pub stale_ms: Option<i64>,
    /// A change invalidates all entries of its collection; for comparison.
    pub invalidate_by_collection: bool,
    /// Caches replies although a concurrent write affects them: wrong, for tests that must detect
    /// it.
    pub ignore_concurrent_writes: bool,
}

/// Unindexed entries of a collection, which every change is checked against: each costs a write a
/// quarter of a microsecond.
const UNINDEXED_MAX: usize = 64;

impl CacheSettings {
    /// Returns the number of key directories.
    pub(crate) fn directories(&self) -> usize {
        self.shards.div_ceil(key_directory::SHARDS)
    }

    /// The share of each directory in [`UNINDEXED_MAX`].
    pub(crate) fn unindexed_max(&self) -> usize {
        (UNINDEXED_MAX / self.directories()).max(4)
    }
}
