//! Exact comparison of numbers of different types.
//!
//! MongoDB compares the mathematical values: 2^53 + 1 as an int64 is greater than 2^53 as a double,
//! and the double 0.1 is greater than the decimal 0.1. All NaN are one value below every other
//! number, and zeros are equal whatever their sign.

use crate::decimal::{Decimal128, Parts};
use std::cmp::Ordering;

/// 2^63, the first double past the int64 range.
const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

#[inline]
pub(crate) fn compare_doubles(a: f64, b: f64) -> Ordering {
    // `partial_cmp` is `None` only with a NaN.
    a.partial_cmp(&b).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
}

#[inline]
pub(crate) fn compare_integer_double(a: i64, b: f64) -> Ordering {
    if b.is_nan() || b < -TWO_TO_63 {
        return Ordering::Greater;
    }
    if b >= TWO_TO_63 {
        return Ordering::Less;
    }
    let whole = b as i64;
    a.cmp(&whole).then_with(|| compare_doubles(0.0, b - whole as f64))
}

pub(crate) fn compare_decimals(a: Decimal128, b: Decimal128) -> Ordering {
    compare_parts(a.parts(), b.parts())
}

pub(crate) fn compare_integer_decimal(a: i64, b: Decimal128) -> Ordering {
    compare_parts(integer_parts(a), b.parts())
}

pub(crate) fn compare_double_decimal(a: f64, b: Decimal128) -> Ordering {
    if a.is_nan() || a.is_infinite() {
        let parts = if a.is_nan() { Parts::NotANumber } else { Parts::Infinity { negative: a < 0.0 } };
        return compare_parts(parts, b.parts());
    }
    match b.parts() {
        Parts::NotANumber => Ordering::Greater,
        Parts::Infinity { negative } => direction(negative).reverse(),
        Parts::Finite { negative, coefficient, exponent } => {
            let sign = compare_signs(double_sign(a), decimal_sign(negative, coefficient));
            sign.unwrap_or_else(|| {
                let magnitude = compare_magnitude(a.abs(), coefficient, exponent);
                if negative { magnitude.reverse() } else { magnitude }
            })
        }
    }
}

pub(crate) fn integer_parts(number: i64) -> Parts {
    Parts::Finite { negative: number < 0, coefficient: u128::from(number.unsigned_abs()), exponent: 0 }
}

fn compare_parts(a: Parts, b: Parts) -> Ordering {
    match (a, b) {
        (Parts::NotANumber, Parts::NotANumber) => Ordering::Equal,
        (Parts::NotANumber, _) => Ordering::Less,
        (_, Parts::NotANumber) => Ordering::Greater,
        (Parts::Infinity { negative: a }, Parts::Infinity { negative: b }) => b.cmp(&a),
        (Parts::Infinity { negative }, _) => direction(negative),
        (_, Parts::Infinity { negative }) => direction(negative).reverse(),
        (
            Parts::Finite { negative, coefficient: a, exponent: a_exponent },
            Parts::Finite { negative: b_negative, coefficient: b, exponent: b_exponent },
        ) => compare_signs(decimal_sign(negative, a), decimal_sign(b_negative, b)).unwrap_or_else(|| {
            let magnitude = compare_scaled(a, a_exponent, b, b_exponent);
            if negative { magnitude.reverse() } else { magnitude }
        }),
    }
}

/// Returns how a number far out on that side compares with others.
fn direction(negative: bool) -> Ordering {
    if negative { Ordering::Less } else { Ordering::Greater }
}

fn double_sign(number: f64) -> i8 {
    (number > 0.0) as i8 - (number < 0.0) as i8
}

fn decimal_sign(negative: bool, coefficient: u128) -> i8 {
    match (coefficient, negative) {
        (0, _) => 0,
        (_, true) => -1,
        (_, false) => 1,
    }
}

/// Decides by signs alone if possible; `None` for two numbers on the same side of zero.
fn compare_signs(a: i8, b: i8) -> Option<Ordering> {
    (a != b || a == 0).then(|| a.cmp(&b))
}

/// Compares `a × 10^a_exponent` with `b × 10^b_exponent`, both coefficients between 1 and 34
/// digits.
fn compare_scaled(a: u128, a_exponent: i32, b: u128, b_exponent: i32) -> Ordering {
    let magnitudes = (digits(a) as i32 + a_exponent).cmp(&(digits(b) as i32 + b_exponent));
    magnitudes.then_with(|| {
        // With the same magnitude the exponents differ by at most 33, and the product has at most
        // 34 digits.
        let shift = a_exponent - b_exponent;
        if shift >= 0 { (a * power_of_ten(shift)).cmp(&b) } else { a.cmp(&(b * power_of_ten(-shift))) }
    })
}

/// Returns how many decimal digits a number has; 1 for zero.
pub(crate) fn digits(number: u128) -> u32 {
    number.checked_ilog10().unwrap_or(0) + 1
}

/// Returns 10^`power` for powers up to 38.
pub(crate) fn power_of_ten(power: i32) -> u128 {
    10u128.pow(power.clamp(0, 38) as u32)
}

/// Compares a finite double above zero with `coefficient × 10^exponent`, exactly.
pub(crate) fn compare_magnitude(double: f64, coefficient: u128, exponent: i32) -> Ordering {
    // Very different magnitudes decide at once, which also bounds the products below.
    let (mantissa, power) = mantissa_and_power(double);
    let double_scale = (64 - mantissa.leading_zeros() as i32 + power) as f64 * std::f64::consts::LOG10_2;
    let decimal_scale = f64::from(digits(coefficient) as i32 + exponent);
    if (double_scale - decimal_scale).abs() > 2.0 {
        return compare_doubles(double_scale, decimal_scale);
    }
    // Compares mantissa × 2^power with coefficient × 10^exponent; negative powers change sides.
    let mut left = Wide::new(u128::from(mantissa));
    let mut right = Wide::new(coefficient);
    if exponent >= 0 {
        right.multiply_power_of_ten(exponent)
    } else {
        left.multiply_power_of_ten(-exponent)
    }
    if power >= 0 {
        left.shift_left(power as u32)
    } else {
        right.shift_left(power.unsigned_abs())
    }
    left.compare(&right)
}

/// Splits a finite double above zero into `mantissa × 2^power`.
pub(crate) fn mantissa_and_power(double: f64) -> (u64, i32) {
    let bits = double.to_bits();
    let field = (bits >> 52) as i32 & 0x7FF;
    let fraction = bits & ((1 << 52) - 1);
    if field == 0 { (fraction, -1074) } else { (fraction | 1 << 52, field - 1075) }
}

/// An unsigned integer wide enough for any product that [`compare_magnitude`] forms from numbers of
/// similar size: up to 113 bits × 2^1074 and 10^360 × 2^53.
struct Wide {
    /// Least significant first.
    limbs: [u64; 24],
}

impl Wide {
    fn new(number: u128) -> Wide {
        let mut limbs = [0; 24];
        limbs[0] = number as u64;
        limbs[1] = (number >> 64) as u64;
        Wide { limbs }
    }

    fn multiply_power_of_ten(&mut self, mut power: i32) {
        while power > 0 {
            let step = power.min(19);
            self.multiply(10u64.pow(step as u32));
            power -= step;
        }
    }

    fn multiply(&mut self, factor: u64) {
        let mut carry = 0u128;
        for limb in &mut self.limbs {
            let product = u128::from(*limb) * u128::from(factor) + carry;
            *limb = product as u64;
            carry = product >> 64;
        }
    }

    fn shift_left(&mut self, bits: u32) {
        let whole = (bits / 64) as usize;
        self.limbs.rotate_right(whole);
        self.limbs[..whole].fill(0);
        self.multiply(1 << (bits % 64));
    }

    fn compare(&self, other: &Wide) -> Ordering {
        self.limbs.iter().rev().cmp(other.limbs.iter().rev())
    }
}
