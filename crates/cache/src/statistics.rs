//! What the cache tells of itself.

/// Counts since the start, of one part or of all.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    pub hits: u64,
    pub misses: u64,
    /// Questions that waited for another one's answer.
    pub waits: u64,
    /// Hits with answers past their soft age, while another question refreshes them.
    pub stale: u64,
    pub stored: u64,
    pub refused: [u64; NotCached::ALL.len()],
    /// Answers that went because of a change.
    pub invalidated: u64,
    /// For want of memory.
    pub evicted: u64,
    /// For their age.
    pub expired: u64,
    /// In favour of a newer answer to the same question.
    pub replaced: u64,
    pub changes: u64,
    /// The time that writes have spent on finding and throwing out the answers they matter to, in microseconds.
    pub changes_us: u64,
    /// Answers that changes were held against.
    pub examined: u64,
    pub answers: u64,
    pub bytes: u64,
    /// The time that making the answers took which were given again, in microseconds.
    pub saved_us: u64,
}

/// Why an answer is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotCached {
    /// It, or what it was to be made from, depends on more than documents: time, chance, the server.
    Volatile,
    /// A change that matters was under way while it was made.
    ConcurrentWrite,
    /// Too large for the memory there is.
    TooLarge,
    /// It goes on, in a way that cannot be taken up again.
    OpenCursor,
    /// The command failed.
    Failed,
    /// What is read is not a collection's documents.
    NotACollection,
    /// Writes from elsewhere cannot be followed at the moment.
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

    /// Its name in `serverStatus`.
    pub fn name(self) -> &'static str {
        match self {
            NotCached::Volatile => "volatile",
            NotCached::ConcurrentWrite => "overtaken",
            NotCached::TooLarge => "tooLarge",
            NotCached::OpenCursor => "continues",
            NotCached::Failed => "failed",
            NotCached::NotACollection => "noCollection",
            NotCached::FollowerLost => "blind",
        }
    }

    /// The same in a sentence.
    pub fn explanation(self) -> &'static str {
        match self {
            NotCached::Volatile => "it depends on more than documents",
            NotCached::ConcurrentWrite => "a change that matters was under way while it was made",
            NotCached::TooLarge => "the answer is too large for the memory there is",
            NotCached::OpenCursor => {
                "the answer goes on behind its first batch, in a way that cannot be taken up again"
            }
            NotCached::Failed => "the command failed",
            NotCached::NotACollection => {
                "what it reads is no collection's documents: a view, or what the server says of itself"
            }
            NotCached::FollowerLost => "writes from elsewhere could not be followed",
        }
    }
}

impl Statistics {
    pub(crate) fn add(&mut self, other: &Statistics) {
        let Statistics { hits, misses, waits, stale, stored, refused, invalidated, evicted, expired, .. } = other;
        let Statistics { replaced, changes, changes_us, examined, answers, bytes, saved_us, .. } = other;
        for (sum, count) in [
            (&mut self.hits, hits),
            (&mut self.misses, misses),
            (&mut self.waits, waits),
            (&mut self.stale, stale),
            (&mut self.stored, stored),
            (&mut self.invalidated, invalidated),
            (&mut self.evicted, evicted),
            (&mut self.expired, expired),
            (&mut self.replaced, replaced),
            (&mut self.changes, changes),
            (&mut self.changes_us, changes_us),
            (&mut self.examined, examined),
            (&mut self.answers, answers),
            (&mut self.bytes, bytes),
            (&mut self.saved_us, saved_us),
        ] {
            *sum += count;
        }
        for (sum, count) in self.refused.iter_mut().zip(refused) {
            *sum += count;
        }
    }

    pub(crate) fn refuse(&mut self, why: NotCached) {
        if let Some(count) = self.refused.get_mut(why as usize) {
            *count += 1;
        }
    }
}
