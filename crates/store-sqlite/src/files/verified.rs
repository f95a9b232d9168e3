//! The pages that were verified recently.
//!
//! SQLite reads pages of large documents past its cache, and mapped pages each time that it uses
//! them. A checksum takes 160 ns, and some of these reads hardly take longer. A page that the
//! system returned intact is still in its memory seconds later, so a page is verified only once in
//! a while.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A page counts as verified for this many seconds.
const SECONDS: u64 = 5;

/// Pages that are remembered, by the last bits of their numbers.
const SLOTS: usize = 1 << 16;

pub struct Verified {
    begun: Instant,
    /// A page's number, followed by the second in which it was verified.
    slots: Box<[AtomicU64]>,
}

impl Default for Verified {
    fn default() -> Verified {
        Verified { begun: Instant::now(), slots: (0..SLOTS).map(|_| AtomicU64::new(0)).collect() }
    }
}

impl Verified {
    /// Starts at 1, so that an empty slot matches no page.
    fn second(&self) -> u64 {
        (self.begun.elapsed().as_secs() + 1) & u64::from(u32::MAX)
    }

    fn slot(&self, page: u64) -> Option<&AtomicU64> {
        self.slots.get(page as usize % SLOTS)
    }

    pub fn note(&self, page: u64) {
        if let Some(slot) = self.slot(page) {
            slot.store(page << 32 | self.second(), Ordering::Relaxed);
        }
    }

    pub fn is_recent(&self, page: u64) -> bool {
        let Some(found) = self.slot(page).map(|slot| slot.load(Ordering::Relaxed)) else { return false };
        found >> 32 == page && self.second().wrapping_sub(found & u64::from(u32::MAX)) < SECONDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_distinguished() {
        let verified = Verified::default();
        assert!(!verified.is_recent(7));
        verified.note(7);
        assert!(verified.is_recent(7));
        assert!(!verified.is_recent(7 + SLOTS as u64));
        verified.note(7 + SLOTS as u64);
        assert!(!verified.is_recent(7));
    }
}
