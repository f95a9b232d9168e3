//! Which parts of an index's paths have met an array, in any document the index has, or had; and whether it has values that share the keys of others.
//!
//! Where none has, a document has one key and every condition on the field is about that key. Where one has, conditions may
//! hold for different elements, and what bounds may be put together follows from where exactly the array is.

use index_keys::keys::{OTHER_NUMBER, PARTS, SYMBOL};
use std::sync::atomic::{AtomicU64, Ordering};

/// Some part has met an array.
const ANY: u64 = 1;
/// It is known which parts those are; indexes of earlier versions have the first bit alone.
const KNOWN: u64 = 2;
/// The bits above are those of [`index_keys::IndexField`]'s parts.
const PARTS_AT: u32 = 2;
/// What is noted of values that have the keys of others.
const OTHERS: u64 = (SYMBOL | OTHER_NUMBER) << PARTS_AT;
/// Such values have been noted from the index's beginning; indexes of earlier versions are without this bit, and may have parts where others are
/// noted now.
const NOTES_OTHERS: u64 = 1 << 63;

/// What an index is known to have no others of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExactKeyTypes {
    /// Every text among the keys is a string's.
    pub texts: bool,
    /// Every number is a 32-bit integer.
    pub numbers: bool,
}

/// Bits that come to be set and stay.
#[derive(Debug)]
pub struct Multikey(AtomicU64);

impl Multikey {
    /// Of a new index.
    pub fn none() -> Multikey {
        Multikey(AtomicU64::new(KNOWN | NOTES_OTHERS))
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
            bits if bits & NOTES_OTHERS == 0 && bits & OTHERS != 0 => u64::MAX,
            bits => bits >> PARTS_AT & PARTS,
        }
    }

    /// Which values are known to be those that their keys are taken for.
    pub fn exact_key_types(&self) -> ExactKeyTypes {
        let bits = self.0.load(Ordering::Acquire);
        let never = |other: u64| bits & (NOTES_OTHERS | other << PARTS_AT) == NOTES_OTHERS;
        ExactKeyTypes { texts: never(SYMBOL), numbers: never(OTHER_NUMBER) }
    }

    /// Whether nothing changes when this is noted.
    pub fn has(&self, noted: u64) -> bool {
        let bits = self.0.load(Ordering::Acquire);
        let noted = noted_in(bits, noted);
        bits & noted == noted
    }

    /// Notes parts and other values; gives what was noted before, for [`Multikey::restore`].
    pub fn note(&self, noted: u64) -> i64 {
        let noted = noted_in(self.0.load(Ordering::Acquire), noted);
        self.0.fetch_or(noted, Ordering::AcqRel) as i64
    }

    pub fn restore(&self, stored: i64) {
        self.0.store(stored as u64, Ordering::Release);
    }
}

/// What is to be noted, as bits beside those that are there.
fn noted_in(bits: u64, noted: u64) -> u64 {
    let any = if noted & PARTS == 0 { 0 } else { ANY };
    let kept = if bits & NOTES_OTHERS == 0 { noted & PARTS } else { noted };
    any | kept << PARTS_AT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_values_are_noted_beside_arrays() {
        let multikey = Multikey::none();
        assert_eq!(
            (multikey.exact_key_types(), multikey.is_any()),
            (ExactKeyTypes { texts: true, numbers: true }, false)
        );
        multikey.note(SYMBOL);
        assert!(multikey.has(SYMBOL) && !multikey.has(1) && !multikey.has(OTHER_NUMBER));
        assert_eq!(
            (multikey.exact_key_types(), multikey.is_any()),
            (ExactKeyTypes { texts: false, numbers: true }, false)
        );
        multikey.note(OTHER_NUMBER | 1 << 58 | 1);
        assert_eq!((multikey.is_any(), multikey.parts()), (true, 1 << 58 | 1));
        let again = Multikey::from_stored(multikey.to_stored());
        assert!(again.has(SYMBOL | OTHER_NUMBER | 1) && again.exact_key_types() == ExactKeyTypes::default());
    }

    #[test]
    fn indexes_of_earlier_versions_tell_less() {
        assert_eq!(Multikey::from_stored(KNOWN as i64).exact_key_types(), ExactKeyTypes::default());
        let early = Multikey::from_stored((KNOWN | ANY | 1 << 5) as i64);
        assert!(early.has(OTHER_NUMBER));
        early.note(OTHER_NUMBER | SYMBOL | 1);
        assert_eq!(early.parts(), 1 << 3 | 1);
        assert_eq!(Multikey::from_stored((KNOWN | ANY | 1 << 61) as i64).parts(), u64::MAX);
    }
}
