//! The components of an index's paths at which documents have, or had, arrays; and whether the
//! index has values that share the keys of other types.
//!
//! Without arrays, a document has one key, and every condition on the field applies to that key.
//! With arrays, conditions may be met by different elements, and which bounds can be combined
//! depends on where the array is.

use index_keys::keys::{OTHER_NUMBER, PARTS, SYMBOL};
use std::sync::atomic::{AtomicU64, Ordering};

/// Some component has met an array.
const ANY: u64 = 1;
/// The components are recorded; indexes of earlier versions have only the first bit.
const KNOWN: u64 = 2;
/// The bits above are those of [`index_keys::IndexField`]'s components.
const PARTS_AT: u32 = 2;
/// The bits for values that have the keys of other types.
const OTHERS: u64 = (SYMBOL | OTHER_NUMBER) << PARTS_AT;
/// Such values have been recorded since the index was created. Indexes of earlier versions lack
/// this bit, and may have components recorded in its place.
const RECORDS_OTHERS: u64 = 1 << 63;

/// The types of keys from which values can be decoded without doubt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExactKeyTypes {
    /// Every text key is a string's.
    pub texts: bool,
    /// Every number key is a 32-bit integer's.
    pub numbers: bool,
}

/// Bits that are set and never unset.
#[derive(Debug)]
pub struct Multikey(AtomicU64);

impl Multikey {
    /// Returns the bits of a new index.
    pub fn none() -> Multikey {
        Multikey(AtomicU64::new(KNOWN | RECORDS_OTHERS))
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

    /// Returns the components that have met an array; all of them if unknown.
    pub fn parts(&self) -> u64 {
        match self.0.load(Ordering::Acquire) {
            bits if bits & ANY == 0 => 0,
            bits if bits & KNOWN == 0 => u64::MAX,
            bits if bits & RECORDS_OTHERS == 0 && bits & OTHERS != 0 => u64::MAX,
            bits => bits >> PARTS_AT & PARTS,
        }
    }

    /// Returns the types of keys that identify their values.
    pub fn exact_key_types(&self) -> ExactKeyTypes {
        let bits = self.0.load(Ordering::Acquire);
        let never = |other: u64| bits & (RECORDS_OTHERS | other << PARTS_AT) == RECORDS_OTHERS;
        ExactKeyTypes { texts: never(SYMBOL), numbers: never(OTHER_NUMBER) }
    }

    /// Returns whether all of these bits are set.
    pub fn has(&self, noted: u64) -> bool {
        let bits = self.0.load(Ordering::Acquire);
        let noted = recorded_in(bits, noted);
        bits & noted == noted
    }

    /// Sets bits for components and other values. Returns the bits before, for
    /// [`Multikey::restore`].
    pub fn note(&self, noted: u64) -> i64 {
        let noted = recorded_in(self.0.load(Ordering::Acquire), noted);
        self.0.fetch_or(noted, Ordering::AcqRel) as i64
    }

    pub fn restore(&self, stored: i64) {
        self.0.store(stored as u64, Ordering::Release);
    }
}

/// Converts bits of an index to stored ones, in the format of `bits`.
fn recorded_in(bits: u64, noted: u64) -> u64 {
    let any = if noted & PARTS == 0 { 0 } else { ANY };
    let recorded = if bits & RECORDS_OTHERS == 0 { noted & PARTS } else { noted };
    any | recorded << PARTS_AT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_values_are_recorded_beside_arrays() {
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
