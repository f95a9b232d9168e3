//! IEEE 754-2008 decimal128 numbers in the encoding of BSON (binary integer decimal,
//! little-endian).
//!
//! Source:
//! <https://github.com/mongodb/specifications/blob/master/source/bson-decimal128/decimal128.md>

mod text;

use crate::number::power_of_ten;
use smallvec::SmallVec;
use std::fmt;

/// Added to the exponent before it is stored.
pub(crate) const EXPONENT_BIAS: i32 = 6176;
/// The largest exponent.
pub(crate) const EXPONENT_MAX: i32 = 6111;
/// The largest coefficient: 34 digits.
pub(crate) const COEFFICIENT_MAX: u128 = 9_999_999_999_999_999_999_999_999_999_999_999;
const COEFFICIENT_BITS: u32 = 113;

/// IEEE 754-2008 decimal floating point, as its 16 bytes on the wire.
///
/// `==` is identity of representation; numeric equality is [`crate::compare::equal`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decimal128(pub [u8; 16]);

/// The parts of a decimal128.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    NotANumber,
    Infinity {
        negative: bool,
    },
    /// `coefficient × 10^exponent`; the coefficient has at most 34 digits.
    Finite {
        negative: bool,
        coefficient: u128,
        exponent: i32,
    },
}

impl Decimal128 {
    #[inline]
    pub fn parts(self) -> Parts {
        let bits = u128::from_le_bytes(self.0);
        let negative = bits >> 127 == 1;
        match (bits >> 122) as u8 & 0b1_1111 {
            0b1_1111 => Parts::NotANumber,
            0b1_1110 => Parts::Infinity { negative },
            // The form for coefficients of more than 34 digits, which count as zero.
            combination if combination >> 3 == 0b11 => {
                let exponent = (bits >> 111) as i32 & 0x3FFF;
                Parts::Finite { negative, coefficient: 0, exponent: exponent - EXPONENT_BIAS }
            }
            _ => {
                let exponent = (bits >> COEFFICIENT_BITS) as i32 & 0x3FFF;
                let coefficient = bits & ((1 << COEFFICIENT_BITS) - 1);
                let coefficient = if coefficient > COEFFICIENT_MAX { 0 } else { coefficient };
                Parts::Finite { negative, coefficient, exponent: exponent - EXPONENT_BIAS }
            }
        }
    }

    /// Returns whether the number is a zero of either sign and any exponent.
    pub fn is_zero(self) -> bool {
        matches!(self.parts(), Parts::Finite { coefficient: 0, .. })
    }

    pub fn is_nan(self) -> bool {
        self.parts() == Parts::NotANumber
    }

    /// Builds a finite number; `None` if coefficient or exponent are out of range.
    pub fn from_parts(negative: bool, coefficient: u128, exponent: i32) -> Option<Decimal128> {
        let stored = u128::try_from(exponent.checked_add(EXPONENT_BIAS)?).ok()?;
        if coefficient > COEFFICIENT_MAX || exponent > EXPONENT_MAX {
            return None;
        }
        let bits = u128::from(negative) << 127 | stored << COEFFICIENT_BITS | coefficient;
        Some(Decimal128(bits.to_le_bytes()))
    }

    /// Returns the number as an int64, if it is exactly one: `5.00` is, `5.01` and `1E19` are not.
    pub fn to_i64_exact(self) -> Option<i64> {
        let Parts::Finite { negative, coefficient, exponent } = self.parts() else {
            return None;
        };
        let magnitude = if coefficient == 0 {
            0
        } else if exponent >= 0 {
            (exponent < 20).then(|| coefficient.checked_mul(power_of_ten(exponent)))??
        } else {
            let divisor = (exponent > -35).then(|| power_of_ten(-exponent))?;
            (coefficient % divisor == 0).then_some(coefficient / divisor)?
        };
        let magnitude = i128::try_from(magnitude).ok()?;
        i64::try_from(if negative { -magnitude } else { magnitude }).ok()
    }

    /// Returns the nearest double.
    pub fn to_f64(self) -> f64 {
        match self.parts() {
            Parts::NotANumber => f64::NAN,
            Parts::Infinity { negative } => {
                if negative {
                    f64::NEG_INFINITY
                } else {
                    f64::INFINITY
                }
            }
            Parts::Finite { negative, coefficient, exponent } => {
                let magnitude = scaled_to_f64(coefficient, exponent);
                if negative { -magnitude } else { magnitude }
            }
        }
    }
}

/// Returns the double nearest to `coefficient × 10^exponent`, by the standard library's parser,
/// which rounds correctly.
pub(crate) fn scaled_to_f64(coefficient: u128, exponent: i32) -> f64 {
    let mut text = SmallVec::<[u8; 64]>::new();
    text.extend_from_slice(itoa::Buffer::new().format(coefficient).as_bytes());
    text.push(b'e');
    text.extend_from_slice(itoa::Buffer::new().format(exponent).as_bytes());
    std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
}

impl fmt::Debug for Decimal128 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Decimal128({:#034x})", u128::from_le_bytes(self.0))
    }
}
