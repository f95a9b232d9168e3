//! Keys of numbers.
//!
//! The first byte is the class: zero, or a distance above or below it that grows with the
//! magnitude.
//!
//! | class | magnitude | following bytes |
//! |---|---|---|
//! | 1 | below 1 | nearest double toward zero, shifted left by one; perhaps a decimal tail |
//! | 2 to 9 | below 2^63 | whole part, shifted left by one, in 1 to 8 bytes; perhaps a fraction |
//! | 10 | from 2^63 | as class 1 |
//! | 11 | infinite | none |
//!
//! In classes 1 and 10 the bit shifted in says that the number is not exactly that double: it is a
//! decimal, and its tail follows. In classes 2 to 9 the bit shifted in says that a fraction
//! follows: 52 bits of it, then four bits that are zero if this is the whole fraction, and one if
//! its decimal digits follow. Numbers below zero have all bytes behind the class inverted.
//!
//! So a small whole number takes two bytes, a double about nine, and each decimal128 has its exact
//! place between the doubles and int64s next to it, which a conversion to either would lose.

use super::lead;
use crate::decimal::{Decimal128, Parts, scaled_to_f64};
use crate::number::{compare_magnitude, digits, power_of_ten};
use std::cmp::Ordering;

const CLASS_BELOW_ONE: u8 = 1;
/// Class of a whole part of `n` bytes, minus `n`.
const CLASS_WHOLE: u8 = 1;
const CLASS_LARGE: u8 = 10;
const CLASS_INFINITE: u8 = 11;

const FRACTION_BITS: u32 = 52;
/// Digits of a decimal128's coefficient.
const DIGITS_MAX: i32 = 34;
/// Bytes that hold any number of 34 digits.
const COEFFICIENT_BYTES: usize = 15;

/// Appends bytes behind a number's class, inverted for a negative number.
struct Writer<'o> {
    negative: bool,
    out: &'o mut Vec<u8>,
}

impl Writer<'_> {
    fn class(&mut self, class: u8) {
        self.out.push(if self.negative { lead::ZERO - class } else { lead::ZERO + class });
    }

    /// Appends the low `width` bytes, 1 to 8, of a number.
    fn bytes(&mut self, number: u64, width: usize) {
        let flip = if self.negative { u64::MAX } else { 0 };
        self.out.extend_from_slice(&(number ^ flip).to_be_bytes()[8 - width..]);
    }

    fn coefficient(&mut self, coefficient: u128) {
        let high = (coefficient >> 64) as u64;
        self.bytes(high, COEFFICIENT_BYTES - 8);
        self.bytes(coefficient as u64, 8);
    }

    /// Appends a whole part below 2^63 and whether a fraction follows.
    #[inline]
    fn whole(&mut self, whole: u64, has_fraction: bool) {
        let shifted = whole << 1 | u64::from(has_fraction);
        let width = 8 - shifted.leading_zeros() as usize / 8;
        self.class(CLASS_WHOLE + width as u8);
        self.bytes(shifted, width);
    }

    /// Appends the first 52 bits of a fraction and whether that is all of it.
    fn fraction(&mut self, bits: u64, exact: bool) {
        self.bytes(bits << 4 | u64::from(!exact), 7);
    }

    fn double(&mut self, magnitude: f64, exact: bool) {
        self.bytes(magnitude.to_bits() << 1 | u64::from(!exact), 8);
    }
}

#[inline]
pub(super) fn encode_integer(number: i64, out: &mut Vec<u8>) {
    let magnitude = number.unsigned_abs();
    if number == 0 {
        out.push(lead::ZERO);
    } else if magnitude >> 63 == 0 {
        Writer { negative: number < 0, out }.whole(magnitude, false);
    } else {
        encode_double(number as f64, out);
    }
}

/// Returns the integer with this key; `None` if there is a fraction, or it is out of range.
pub(super) fn whole(key: &[u8]) -> Option<i64> {
    let (class, bytes) = key.split_first()?;
    if *class == lead::ZERO {
        return Some(0);
    }
    let negative = *class < lead::ZERO;
    let width = usize::from(class.abs_diff(lead::ZERO)).checked_sub(usize::from(CLASS_WHOLE))?;
    if width == 0 || width > 8 || bytes.len() != width {
        return None;
    }
    let flip = if negative { u8::MAX } else { 0 };
    let shifted = bytes.iter().fold(0_u64, |number, byte| number << 8 | u64::from(byte ^ flip));
    let magnitude = i64::try_from(shifted >> 1).ok().filter(|_| shifted & 1 == 0)?;
    Some(if negative { -magnitude } else { magnitude })
}

pub(super) fn encode_double(number: f64, out: &mut Vec<u8>) {
    let magnitude = number.abs();
    let mut writer = Writer { negative: number < 0.0, out };
    if number.is_nan() {
        writer.out.push(lead::NAN);
    } else if number == 0.0 {
        writer.out.push(lead::ZERO);
    } else if magnitude < 1.0 {
        writer.class(CLASS_BELOW_ONE);
        writer.double(magnitude, true);
    } else if magnitude < (1u64 << 63) as f64 {
        let whole = magnitude as u64;
        // Exact: a double of at least 1 has at most 52 bits of fraction.
        let fraction = ((magnitude - whole as f64) * (1u64 << FRACTION_BITS) as f64) as u64;
        writer.whole(whole, fraction != 0);
        if fraction != 0 {
            writer.fraction(fraction, true);
        }
    } else if magnitude.is_finite() {
        writer.class(CLASS_LARGE);
        writer.double(magnitude, true);
    } else {
        writer.class(CLASS_INFINITE);
    }
}

pub(super) fn encode_decimal(number: Decimal128, out: &mut Vec<u8>) {
    match number.parts() {
        Parts::NotANumber => out.push(lead::NAN),
        Parts::Infinity { negative } => Writer { negative, out }.class(CLASS_INFINITE),
        Parts::Finite { coefficient: 0, .. } => out.push(lead::ZERO),
        Parts::Finite { negative, coefficient, exponent } => {
            encode_finite(coefficient, exponent, Writer { negative, out });
        }
    }
}

/// Encodes `coefficient × 10^exponent`, the coefficient not zero.
fn encode_finite(coefficient: u128, exponent: i32, mut writer: Writer<'_>) {
    // The number is below 10^scale, and at least a tenth of it.
    let scale = digits(coefficient) as i32 + exponent;
    if scale <= 0 {
        return encode_beside_double(CLASS_BELOW_ONE, coefficient, exponent, writer);
    }
    if scale > 19 {
        return encode_beside_double(CLASS_LARGE, coefficient, exponent, writer);
    }
    let unit = power_of_ten(-exponent);
    let (whole, rest) = if exponent >= 0 {
        (coefficient * power_of_ten(exponent), 0)
    } else {
        (coefficient / unit, coefficient % unit)
    };
    if whole >> 63 != 0 {
        return encode_beside_double(CLASS_LARGE, coefficient, exponent, writer);
    }
    writer.whole(whole as u64, rest != 0);
    if rest != 0 {
        let (bits, remainder) = binary_fraction(rest, unit);
        writer.fraction(bits, remainder == 0);
        if remainder != 0 {
            writer.coefficient(rest * power_of_ten(DIGITS_MAX + exponent));
        }
    }
}

/// Returns the first 52 bits of `numerator / denominator`, which is below 1, and the remaining
/// numerator. The denominator is at most 10^33, so 18 bits are free to shift into.
fn binary_fraction(numerator: u128, denominator: u128) -> (u64, u128) {
    let (mut bits, mut rest) = (0, numerator);
    for step in [18, 17, 17] {
        rest <<= step;
        bits = bits << step | (rest / denominator) as u64;
        rest %= denominator;
    }
    (bits, rest)
}

/// Appends the nearest double toward zero, and a decimal tail if that is not exact.
fn encode_beside_double(class: u8, coefficient: u128, exponent: i32, mut writer: Writer<'_>) {
    let (double, exact) = truncate_to_double(coefficient, exponent);
    writer.class(class);
    writer.double(double, exact);
    if !exact {
        let digits = digits(coefficient) as i32;
        let scale = (digits + exponent) as i16;
        writer.bytes(u64::from(scale as u16 ^ 1 << 15), 2);
        writer.coefficient(coefficient * power_of_ten(DIGITS_MAX - digits));
    }
}

/// Returns the largest double that is not above `coefficient × 10^exponent`, and whether it is
/// equal.
fn truncate_to_double(coefficient: u128, exponent: i32) -> (f64, bool) {
    let nearest = scaled_to_f64(coefficient, exponent).min(f64::MAX);
    if nearest == 0.0 {
        return (0.0, false);
    }
    match compare_magnitude(nearest, coefficient, exponent) {
        Ordering::Less => (nearest, false),
        Ordering::Equal => (nearest, true),
        Ordering::Greater => (nearest.next_down(), false),
    }
}
