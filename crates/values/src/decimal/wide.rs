//! Integers of 256 bits, large enough for products of two 34-digit coefficients.

use super::Rest;
use std::cmp::Ordering;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wide {
    high: u128,
    low: u128,
}

impl From<u128> for Wide {
    fn from(low: u128) -> Self {
        Wide { high: 0, low }
    }
}

impl PartialOrd for Wide {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Wide {
    fn cmp(&self, other: &Self) -> Ordering {
        self.high.cmp(&other.high).then(self.low.cmp(&other.low))
    }
}

impl Wide {
    pub fn is_zero(self) -> bool {
        self.high == 0 && self.low == 0
    }

    pub fn low(self) -> u128 {
        self.low
    }

    pub fn product(a: u128, b: u128) -> Wide {
        const MASK: u128 = u64::MAX as u128;
        let (a_high, a_low, b_high, b_low) = (a >> 64, a & MASK, b >> 64, b & MASK);
        let low = a_low * b_low;
        let middle = (low >> 64) + ((a_low * b_high) & MASK) + ((a_high * b_low) & MASK);
        let high = a_high * b_high + ((a_low * b_high) >> 64) + ((a_high * b_low) >> 64) + (middle >> 64);
        Wide { high, low: middle << 64 | low & MASK }
    }

    /// Adds. Wraps on overflow; callers stay below 77 digits.
    pub fn plus(self, other: Wide) -> Wide {
        let (low, carry) = self.low.overflowing_add(other.low);
        Wide { high: self.high.wrapping_add(other.high).wrapping_add(u128::from(carry)), low }
    }

    /// Subtracts. Requires `self >= other`.
    pub fn minus(self, other: Wide) -> Wide {
        let (low, borrow) = self.low.overflowing_sub(other.low);
        Wide { high: self.high.wrapping_sub(other.high).wrapping_sub(u128::from(borrow)), low }
    }

    pub fn times_power_of_ten(self, exponent: u32) -> Wide {
        (0..exponent).fold(self, |number, _| {
            let tens = Wide::product(number.low, 10);
            Wide { high: tens.high.wrapping_add(number.high.wrapping_mul(10)), low: tens.low }
        })
    }

    /// Returns quotient and remainder.
    pub fn divided_by(self, divisor: u128) -> (Wide, u128) {
        if self.high == 0 && divisor != 0 {
            return (Wide::from(self.low / divisor), self.low % divisor);
        }
        let (quotient, rest) = self.long_division(Wide::from(divisor));
        (quotient, rest.low)
    }

    pub fn modulo(self, divisor: Wide) -> Wide {
        if self < divisor { self } else { self.long_division(divisor).1 }
    }

    fn long_division(self, divisor: Wide) -> (Wide, Wide) {
        let (mut quotient, mut rest) = (Wide::from(0), Wide::from(0));
        for position in (0..256).rev() {
            let bit = if position >= 128 { self.high >> (position - 128) } else { self.low >> position } & 1;
            rest = rest.plus(rest).plus(Wide::from(bit));
            quotient = quotient.plus(quotient);
            if rest >= divisor {
                rest = rest.minus(divisor);
                quotient.low |= 1;
            }
        }
        (quotient, rest)
    }

    /// Returns the number of decimal digits; 0 for zero.
    pub fn digits(self) -> u32 {
        if self.high == 0 {
            return self.low.checked_ilog10().map_or(0, |log| log + 1);
        }
        let (quotient, _) = self.divided_by(10_u128.pow(38));
        38 + quotient.digits()
    }

    /// Drops digits on the right. The arguments of `round_up` are whether the rest is odd, and the
    /// digits dropped.
    pub fn without_digits(self, count: u32, round_up: impl FnOnce(bool, Rest) -> bool) -> Wide {
        let (mut kept, mut last, mut sticky) = (self, 0, false);
        for _ in 0..count {
            if kept.is_zero() && last == 0 {
                break;
            }
            sticky |= last != 0;
            (kept, last) = kept.divided_by(10);
        }
        let dropped_all = count > self.digits() && !self.is_zero();
        let rest = match (last, sticky) {
            _ if dropped_all => Rest::LessThanHalf,
            (0, false) => Rest::Nothing,
            (5, false) => Rest::Half,
            (0..=4, _) => Rest::LessThanHalf,
            _ => Rest::MoreThanHalf,
        };
        if round_up(kept.low & 1 == 1, rest) { kept.plus(Wide::from(1)) } else { kept }
    }
}
