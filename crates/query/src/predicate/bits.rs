//! `$bitsAllSet` and its siblings.

use document::Value;
use steps::Counted;
use values::integer::as_i64_exact;

/// Which bits must be set or clear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bits {
    pub condition: BitCondition,
    /// Positions, ascending, without duplicates. Bit 0 is the lowest.
    positions: Vec<u32>,
    /// The same as a mask, for numbers; positions past 63 are the sign bit of a sign-extended
    /// number.
    mask: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitCondition {
    AllSet,
    AllClear,
    AnySet,
    AnyClear,
}

impl Bits {
    pub fn new(condition: BitCondition, mut positions: Vec<u32>) -> Bits {
        positions.sort_unstable_by(|a, b| {
            steps::step();
            a.cmp(b)
        });
        positions.dedup();
        let mask = positions.iter().fold(0, |mask, &position| mask | 1 << position.min(63));
        Bits { condition, positions, mask }
    }

    pub fn positions(&self) -> &[u32] {
        &self.positions
    }

    pub(crate) fn holds_for(&self, value: Value<'_>) -> bool {
        match value {
            Value::Binary { bytes, .. } => self.holds_for_bytes(bytes),
            // A decimal is rounded, unlike a double, which must be an integer; values beyond 64
            // bits count as the lowest integer.
            Value::Decimal128(number) => {
                let whole = values::decimal::round(number, 0, false).to_i64_exact();
                self.holds_for_number(whole.unwrap_or(i64::MIN) as u64)
            }
            _ => as_i64_exact(value).is_some_and(|number| self.holds_for_number(number as u64)),
        }
    }

    fn holds_for_number(&self, number: u64) -> bool {
        match self.condition {
            BitCondition::AllSet => number & self.mask == self.mask,
            BitCondition::AllClear => number & self.mask == 0,
            BitCondition::AnySet => number & self.mask != 0,
            BitCondition::AnyClear => number & self.mask != self.mask,
        }
    }

    fn holds_for_bytes(&self, bytes: &[u8]) -> bool {
        let is_set =
            |position: &u32| bytes.get(*position as usize / 8).is_some_and(|byte| byte & (1 << (position % 8)) != 0);
        match self.condition {
            BitCondition::AllSet => self.positions.iter().counted().all(is_set),
            BitCondition::AllClear => !self.positions.iter().counted().any(is_set),
            BitCondition::AnySet => self.positions.iter().counted().any(is_set),
            BitCondition::AnyClear => !self.positions.iter().counted().all(is_set),
        }
    }
}
