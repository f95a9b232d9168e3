//! Decimal128 as text, in both directions.
//!
//! The text keeps the exponent, so that `1.50` and `1.5` stay two representations of one number: a
//! finite number that is written and read back has the same 16 bytes.
//!
//! Source:
//! <https://github.com/mongodb/specifications/blob/master/source/bson-decimal128/decimal128.md>

use super::{COEFFICIENT_MAX, Decimal128, EXPONENT_BIAS, EXPONENT_MAX, Parts};
use crate::number::{digits, power_of_ten};
use std::fmt;

/// Digits of the longest coefficient.
const DIGITS_MAX: u32 = 34;
/// The notation without an exponent is used down to this many places before the first digit.
const PLAIN_ADJUSTED_MIN: i32 = -6;

impl fmt::Display for Decimal128 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parts() {
            Parts::NotANumber => f.write_str("NaN"),
            Parts::Infinity { negative } => f.write_str(if negative { "-Infinity" } else { "Infinity" }),
            Parts::Finite { negative, coefficient, exponent } => {
                if negative {
                    f.write_str("-")?;
                }
                write_finite(f, coefficient, exponent)
            }
        }
    }
}

fn write_finite(f: &mut fmt::Formatter<'_>, coefficient: u128, exponent: i32) -> fmt::Result {
    let mut buffer = itoa::Buffer::new();
    let text = buffer.format(coefficient);
    // The exponent with the point behind the first digit.
    let adjusted = exponent + text.len() as i32 - 1;
    if exponent > 0 || adjusted < PLAIN_ADJUSTED_MIN {
        let (first, rest) = text.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        return write!(f, "{first}{point}{rest}E{adjusted:+}");
    }
    match (exponent, text.len() as i32 + exponent) {
        (0, _) => f.write_str(text),
        (_, whole) if whole > 0 => {
            let (whole, fraction) = text.split_at(whole as usize);
            write!(f, "{whole}.{fraction}")
        }
        (_, whole) => write!(f, "0.{:0>1$}{text}", "", -whole as usize),
    }
}

impl Decimal128 {
    pub const NAN: Decimal128 = Decimal128::special(0x7C);
    pub const INFINITY: Decimal128 = Decimal128::special(0x78);
    pub const NEGATIVE_INFINITY: Decimal128 = Decimal128::special(0xF8);

    const fn special(last: u8) -> Decimal128 {
        Decimal128([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last])
    }

    /// Parses a number as MongoDB does: digits with at most one point and perhaps an exponent;
    /// `Infinity`, `Inf` and `NaN` in any case. More than 34 digits are rounded half to even.
    /// Returns `None` if it is not a number.
    pub fn parse(text: &str) -> Option<Decimal128> {
        let (negative, magnitude) = match text.as_bytes() {
            [b'-', ..] => (true, &text[1..]),
            [b'+', ..] => (false, &text[1..]),
            _ => (false, text),
        };
        if magnitude.eq_ignore_ascii_case("nan") {
            return Some(Decimal128::NAN);
        }
        if magnitude.eq_ignore_ascii_case("inf") || magnitude.eq_ignore_ascii_case("infinity") {
            return Some(if negative { Decimal128::NEGATIVE_INFINITY } else { Decimal128::INFINITY });
        }
        let (coefficient, exponent) = match magnitude.find(['e', 'E']) {
            Some(at) => (&magnitude[..at], parse_exponent(&magnitude[at + 1..])?),
            None => (magnitude, 0),
        };
        let digits = Digits::read(coefficient)?;
        let exponent = digits.exponent.saturating_add(exponent);
        Some(Decimal128::from_rounded(negative, digits.coefficient, exponent, digits.rest))
    }

    /// Returns the decimal128 nearest to `coefficient × 10^exponent` plus a small `rest`. Too large
    /// a number becomes an infinity, too small a one a zero. The coefficient has at most 34 digits.
    pub(crate) fn from_rounded(negative: bool, mut coefficient: u128, exponent: i64, mut rest: Rest) -> Decimal128 {
        let lowest = i64::from(-EXPONENT_BIAS);
        let mut exponent = exponent;
        if exponent < lowest {
            let dropped = (lowest - exponent).min(40) as i32;
            (coefficient, rest) = drop_digits(coefficient, dropped, rest);
            exponent = lowest;
        }
        coefficient += u128::from(rest.rounds_up(coefficient));
        if coefficient > COEFFICIENT_MAX {
            coefficient /= 10;
            exponent += 1;
        }
        let excess = exponent - i64::from(EXPONENT_MAX);
        if excess > 0 && coefficient != 0 {
            if excess > i64::from(DIGITS_MAX - digits(coefficient)) {
                return if negative { Decimal128::NEGATIVE_INFINITY } else { Decimal128::INFINITY };
            }
            coefficient *= power_of_ten(excess as i32);
        }
        let exponent = exponent.min(i64::from(EXPONENT_MAX)) as i32;
        Decimal128::from_parts(negative, coefficient, exponent).unwrap_or(Decimal128::NAN)
    }

    /// Returns whether the text of the number gives the same 16 bytes again: not for NaN with a
    /// payload or sign, nor for a coefficient of more than 34 digits.
    pub(crate) fn has_exact_text(self) -> bool {
        match self.parts() {
            Parts::NotANumber => self == Decimal128::NAN,
            Parts::Infinity { .. } => self == Decimal128::INFINITY || self == Decimal128::NEGATIVE_INFINITY,
            Parts::Finite { negative, coefficient, exponent } => {
                Decimal128::from_parts(negative, coefficient, exponent) == Some(self)
            }
        }
    }
}

/// The part cut off behind the last digit of a coefficient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    Nothing,
    BelowHalf,
    Half,
    AboveHalf,
}

impl Rest {
    /// Returns the rest that `dropped` is of `unit`; `below` is the rest behind `dropped` itself.
    pub(crate) fn of(dropped: u128, unit: u128, below: Rest) -> Rest {
        match (dropped.cmp(&(unit - dropped)), below) {
            (_, Rest::Nothing) if dropped == 0 => Rest::Nothing,
            (std::cmp::Ordering::Less, _) => Rest::BelowHalf,
            (std::cmp::Ordering::Equal, Rest::Nothing) => Rest::Half,
            _ => Rest::AboveHalf,
        }
    }

    /// Rounds half to even.
    fn rounds_up(self, coefficient: u128) -> bool {
        self == Rest::AboveHalf || self == Rest::Half && coefficient % 2 == 1
    }
}

/// Removes digits from the end of a coefficient.
pub(crate) fn drop_digits(coefficient: u128, count: i32, below: Rest) -> (u128, Rest) {
    if count == 0 {
        return (coefficient, below);
    }
    if count > 38 {
        let nothing = coefficient == 0 && below == Rest::Nothing;
        return (0, if nothing { Rest::Nothing } else { Rest::BelowHalf });
    }
    let unit = power_of_ten(count);
    (coefficient / unit, Rest::of(coefficient % unit, unit, below))
}

/// The digits of a number read so far.
struct Digits {
    coefficient: u128,
    exponent: i64,
    rest: Rest,
}

impl Digits {
    fn read(text: &str) -> Option<Digits> {
        let mut read = Digits { coefficient: 0, exponent: 0, rest: Rest::Nothing };
        let (mut behind_point, mut any, mut first_dropped) = (false, false, None);
        for byte in text.bytes() {
            match byte {
                b'.' if !behind_point => behind_point = true,
                b'0'..=b'9' => {
                    any = true;
                    let digit = byte - b'0';
                    if read.coefficient <= COEFFICIENT_MAX / 10 {
                        read.coefficient = read.coefficient * 10 + u128::from(digit);
                        read.exponent -= i64::from(behind_point);
                    } else {
                        read.exponent += i64::from(!behind_point);
                        read.drop_digit(digit, &mut first_dropped);
                    }
                }
                _ => return None,
            }
        }
        any.then_some(read)
    }

    fn drop_digit(&mut self, digit: u8, first_dropped: &mut Option<u8>) {
        match first_dropped {
            None => {
                *first_dropped = Some(digit);
                self.rest = Rest::of(u128::from(digit), 10, Rest::Nothing);
            }
            Some(_) if digit != 0 => {
                self.rest = match self.rest {
                    Rest::Nothing | Rest::BelowHalf => Rest::BelowHalf,
                    Rest::Half | Rest::AboveHalf => Rest::AboveHalf,
                };
            }
            Some(_) => {}
        }
    }
}

fn parse_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // More digits than an i64 has are far out of range in any case.
    let magnitude = digits.parse::<i64>().unwrap_or(i64::MAX / 4).min(i64::MAX / 4);
    Some(if text.starts_with('-') { -magnitude } else { magnitude })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::decimals;
    use proptest::prelude::*;

    fn check_text(text: &str, expected: &str) {
        let number = Decimal128::parse(text).unwrap_or_else(|| panic!("{text} is a number"));
        assert_eq!(number.to_string(), expected, "{text}");
    }

    #[test]
    fn spelling() {
        for text in [
            "0",
            "-0",
            "0E+3",
            "-0E-7",
            "1",
            "-1",
            "1.50",
            "0.001",
            "0.000001",
            "1E-7",
            "1.0E-7",
            "1E+3",
            "1.23E+5",
            "9.999999999999999999999999999999999E+6144",
            "1E-6176",
            "NaN",
            "Infinity",
            "-Infinity",
            "0E-6176",
            "0E+6111",
            "1234567890123456789012345678901234",
            "0.1234567890123456789012345678901234",
        ] {
            check_text(text, text);
        }
        check_text("1e3", "1E+3");
        check_text("+.5", "0.5");
        check_text("5.", "5");
        check_text("inf", "Infinity");
        check_text("-iNfInItY", "-Infinity");
        check_text("nan", "NaN");
        check_text("1E6112", "1.0E+6112");
        check_text("1E6144", "1.000000000000000000000000000000000E+6144");
        check_text("1E6145", "Infinity");
        check_text("-1E99999999999999999999", "-Infinity");
        check_text("1E-6177", "0E-6176");
        check_text("6E-6177", "1E-6176");
        check_text("1E-99999999999999999999", "0E-6176");
        check_text("0E+9999", "0E+6111");
        for text in ["", "-", ".", "e5", "1e", "1e+", "1.2.3", "0x1", "1 ", " 1", "1_0", "--1", "nanx"] {
            assert_eq!(Decimal128::parse(text), None, "{text}");
        }
    }

    #[test]
    fn rounding_half_to_even() {
        check_text("12345678901234567890123456789012345", "1.234567890123456789012345678901234E+34");
        check_text("12345678901234567890123456789012335", "1.234567890123456789012345678901234E+34");
        check_text("123456789012345678901234567890123450000001", "1.234567890123456789012345678901235E+41");
        check_text("99999999999999999999999999999999995", "1.000000000000000000000000000000000E+35");
        check_text("1.23456789012345678901234567890123449", "1.234567890123456789012345678901234");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn text_keeps_every_byte(number in decimals()) {
            if number.has_exact_text() {
                prop_assert_eq!(Decimal128::parse(&number.to_string()), Some(number));
            }
        }
    }
}
