//! Which parts of an index's paths have met an array, in any document the index has, or had.
//!
//! Where none has, a document has one key and every condition on the field is about that key. Where one has, conditions may
//! hold for different elements, and what bounds may be put together follows from where exactly the array is.

use std::sync::atomic::{AtomicU64, Ordering};

/// Some part has met an array.
const ANY: u64 = 1;
/// It is known which parts those are; indexes of earlier versions have the first bit alone.
const KNOWN: u64 = 2;
/// The bits above are those of [`index_keys::IndexField`]'s parts.
const PARTS_AT: u32 = 2;

/// Bits that come to be set and stay.
#[derive(Debug)]
pub struct Multikey(AtomicU64);

impl Multikey {
    /// Of a new index.
    pub fn none() -> Multikey {
        Multikey(AtomicU64::new(KNOWN))
    }

    pub fn from_stored(stored: i64) -> Multikey {
        Multikey(AtomicU64::new(stored as u64))
    }

    pub fn to_stored(&self) -> i64 {
        self.0.load(Ordering::Acquire) as i64
    }

    pub fn is_any(&self) -> bool {
        self.0.load(Ordering::Acquire) & ANY != 0
    }

    /// The parts that have met an array; all of them where it is not known.
    pub fn parts(&self) -> u64 {
        match self.0.load(Ordering::Acquire) {
            bits if bits & ANY == 0 => 0,
            bits if bits & KNOWN == 0 => u64::MAX,
            bits => bits >> PARTS_AT,
        }
    }

    /// Whether nothing changes when these parts are noted.
    pub fn has(&self, parts: u64) -> bool {
        let noted = ANY | parts << PARTS_AT;
        parts == 0 || self.0.load(Ordering::Acquire) & noted == noted
    }

    /// Notes parts; gives what was noted before, for [`Multikey::restore`].
    pub fn note(&self, parts: u64) -> i64 {
        self.0.fetch_or(ANY | parts << PARTS_AT, Ordering::AcqRel) as i64
    }

    pub fn restore(&self, stored: i64) {
        self.0.store(stored as u64, Ordering::Release);
    }
}
