//! Statistics of the cache.

/// Counts since the start, of one shard or of all.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    pub hits: u64,
    pub misses: u64,
    /// Lookups that waited for another caller's computation.
    pub waits: u64,
    /// Hits of replies past their soft TTL, while another caller recomputes them.
    pub stale_hits: u64,
    pub stored: u64,
    pub not_cached: [u64; NotCached::ALL.len()],
    /// Entries removed because of a change.
    pub invalidations: u64,
    /// Entries removed for want of memory.
    pub evictions: u64,
    /// Entries removed for their age.
    pub expirations: u64,
    /// Entries removed in favour of a newer reply to the same command.
    pub replacements: u64,
    pub changes: u64,
    /// The time that writes have spent on finding and removing the entries they affect, in
    /// microseconds.
    pub invalidation_us: u64,
    /// Entries that changes were checked against.
    pub entries_examined: u64,
    pub entries: u64,
    pub bytes: u64,
    /// The time that computing the replies took which were hit, in microseconds.
    pub saved_us: u64,
}

/// Why a reply is not cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotCached {
    /// The reply, or what it was computed from, depends on more than documents: time, chance, the
    /// server.
    Volatile,
    /// A write that affects the reply was in flight while it was computed.
    ConcurrentWrite,
    /// The reply is larger than a shard's memory.
    TooLarge,
    /// The reply leaves a cursor open that cannot be resumed from the cache.
    OpenCursor,
    /// The command failed.
    Failed,
    /// The command does not read the documents of a collection.
    NotACollection,
    /// External writes cannot be followed at the moment.
    FollowerLost,
}

impl NotCached {
    pub const ALL: [NotCached; 7] = [
        NotCached::Volatile,
        NotCached::ConcurrentWrite,
        NotCached::TooLarge,
        NotCached::OpenCursor,
        NotCached::Failed,
        NotCached::NotACollection,
        NotCached::FollowerLost,
    ];

    /// The name in `serverStatus`.
    pub fn name(self) -> &'static str {
        match self {
            NotCached::Volatile => "volatile",
            NotCached::ConcurrentWrite => "concurrentWrite",
            NotCached::TooLarge => "tooLarge",
            NotCached::OpenCursor => "openCursor",
            NotCached::Failed => "failed",
            NotCached::NotACollection => "notACollection",
            NotCached::FollowerLost => "followerLost",
        }
    }

    /// The reason as a sentence.
    pub fn explanation(self) -> &'static str {
        match self {
            NotCached::Volatile => "it depends on more than documents",
            NotCached::ConcurrentWrite => "a write that affects the reply was in flight while it was computed",
            NotCached::TooLarge => "the reply is too large for the cache",
            NotCached::OpenCursor => "the reply leaves a cursor open that cannot be resumed from the cache",
            NotCached::Failed => "the command failed",
            NotCached::NotACollection => {
                "it does not read the documents of a collection, but a view or the state of the server"
            }
            NotCached::FollowerLost => "external writes could not be followed",
        }
    }
}

impl Statistics {
    /// Adds the statistics of another cache.
    pub fn add(&mut self, other: &Statistics) {
        for (sum, count) in [
            (&mut self.hits, other.hits),
            (&mut self.misses, other.misses),
            (&mut self.waits, other.waits),
            (&mut self.stale_hits, other.stale_hits),
            (&mut self.stored, other.stored),
            (&mut self.invalidations, other.invalidations),
            (&mut self.evictions, other.evictions),
            (&mut self.expirations, other.expirations),
            (&mut self.replacements, other.replacements),
            (&mut self.changes, other.changes),
            (&mut self.invalidation_us, other.invalidation_us),
            (&mut self.entries_examined, other.entries_examined),
            (&mut self.entries, other.entries),
            (&mut self.bytes, other.bytes),
            (&mut self.saved_us, other.saved_us),
        ] {
            *sum += count;
        }
        for (sum, count) in self.not_cached.iter_mut().zip(other.not_cached) {
            *sum += count;
        }
    }

    pub(crate) fn count_not_cached(&mut self, reason: NotCached) {
        if let Some(count) = self.not_cached.get_mut(reason as usize) {
            *count += 1;
        }
    }
}
