//! The set of types of a `$type`.

use document::Kind;

/// A set of BSON types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TypeSet(u32);

impl TypeSet {
    pub fn insert(&mut self, kind: Kind) {
        self.0 |= bit(kind);
    }

    /// Inserts the four types of numbers, which the alias `number` denotes.
    pub fn insert_numbers(&mut self) {
        for kind in [Kind::Double, Kind::Int32, Kind::Int64, Kind::Decimal128] {
            self.insert(kind);
        }
    }

    #[inline]
    pub fn contains(self, kind: Kind) -> bool {
        self.0 & bit(kind) != 0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

fn bit(kind: Kind) -> u32 {
    match kind {
        Kind::MinKey => 1 << 30,
        Kind::MaxKey => 1 << 31,
        kind => 1 << (kind as u32),
    }
}
