//! Arithmetic on decimals: 34 significant digits, rounded half to even.
//!
//! Source: IEEE 754-2008, as the server's decimal library applies it.

use document::Decimal128;

pub mod real;
pub mod wide;

use document::decimal::Parts;
use wide::Wide;

/// The smallest and the largest exponent.
const EXPONENT_MIN: i32 = -6176;
const EXPONENT_MAX: i32 = 6111;
const DIGITS: u32 = 34;

const NAN: Decimal128 = Decimal128(0x7C00_0000_0000_0000_0000_0000_0000_0000_u128.to_le_bytes());
const ZERO: Decimal128 = Decimal128(0x3040_0000_0000_0000_0000_0000_0000_0000_u128.to_le_bytes());

fn infinity(negative: bool) -> Decimal128 {
    Decimal128((u128::from(negative) << 127 | 0x7800_0000_0000_0000_0000_0000_0000_0000_u128).to_le_bytes())
}

/// How digits that do not fit are dropped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rounding {
    HalfEven,
    Down,
    Up,
}

/// A finite number during a computation.
#[derive(Clone, Copy)]
struct Finite {
    negative: bool,
    coefficient: Wide,
    exponent: i32,
}

impl Finite {
    /// Fits the number into 34 digits; if it is exact, the exponent is as near to `wanted` as
    /// possible.
    fn pack(self, rounding: Rounding) -> Decimal128 {
        let Finite { negative, mut coefficient, mut exponent } = self;
        let excess = coefficient.digits().saturating_sub(DIGITS) as i32;
        let drop = excess.max(EXPONENT_MIN.saturating_sub(exponent)).max(0);
        if drop > 0 {
            coefficient =
                coefficient.without_digits(drop as u32, |kept, rest| round_up(rounding, negative, kept, rest));
            exponent += drop;
            if coefficient.digits() > DIGITS {
                return Finite { negative, coefficient, exponent }.pack(rounding);
            }
        }
        let mut coefficient = coefficient.low();
        while exponent > EXPONENT_MAX && coefficient != 0 {
            match coefficient.checked_mul(10) {
                Some(larger) if Wide::from(larger).digits() <= DIGITS => coefficient = larger,
                _ => return infinity(negative),
            }
            exponent -= 1;
        }
        Decimal128::from_parts(negative, coefficient, exponent.clamp(EXPONENT_MIN, EXPONENT_MAX)).unwrap_or(NAN)
    }
}

/// The dropped digits, compared with half a unit of the last digit retained.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    Nothing,
    LessThanHalf,
    Half,
    MoreThanHalf,
}

fn round_up(rounding: Rounding, negative: bool, kept_is_odd: bool, rest: Rest) -> bool {
    match rounding {
        Rounding::HalfEven => rest == Rest::MoreThanHalf || (rest == Rest::Half && kept_is_odd),
        Rounding::Down => negative && rest != Rest::Nothing,
        Rounding::Up => !negative && rest != Rest::Nothing,
    }
}

pub fn from_i64(number: i64) -> Decimal128 {
    Decimal128::from_parts(number < 0, u128::from(number.unsigned_abs()), 0).unwrap_or(ZERO)
}

/// Converts a double like the server: rounded to 15 significant digits, all of which the decimal
/// retains. `2.5` becomes `2.50000000000000`.
pub fn from_f64(number: f64) -> Decimal128 {
    if number == 0.0 { parse("0e0", number) } else { parse(&format!("{number:.14e}"), number) }
}

/// Converts a double with all its digits, as far as 34 can represent them.
pub fn exact_from_f64(number: f64) -> Decimal128 {
    let text = format!("{number:.33e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    parse(&format!("{}e{exponent}", mantissa.trim_end_matches('0')), number)
}

/// Parses `d.ddde±x`, as formatted above.
fn parse(text: &str, number: f64) -> Decimal128 {
    if number.is_nan() {
        return NAN;
    }
    if number.is_infinite() {
        return infinity(number < 0.0);
    }
    let Some((mantissa, exponent)) = text.trim_start_matches('-').split_once('e') else { return NAN };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let (Ok(coefficient), Ok(exponent)) = (format!("{whole}{fraction}").parse::<u128>(), exponent.parse::<i32>())
    else {
        return NAN;
    };
    let exponent = exponent - fraction.len() as i32;
    Finite { negative: number.is_sign_negative(), coefficient: Wide::from(coefficient), exponent }
        .pack(Rounding::HalfEven)
}

pub fn negate(number: Decimal128) -> Decimal128 {
    Decimal128((u128::from_le_bytes(number.0) ^ 1 << 127).to_le_bytes())
}

pub fn absolute(number: Decimal128) -> Decimal128 {
    Decimal128((u128::from_le_bytes(number.0) & !(1 << 127)).to_le_bytes())
}

fn finite(number: Decimal128) -> Option<Finite> {
    match number.parts() {
        Parts::Finite { negative, coefficient, exponent } => {
            Some(Finite { negative, coefficient: Wide::from(coefficient), exponent })
        }
        _ => None,
    }
}

pub fn is_negative(number: Decimal128) -> bool {
    number.0[15] & 0x80 != 0
}

pub fn add(a: Decimal128, b: Decimal128) -> Decimal128 {
    let (left, right) = match (finite(a), finite(b)) {
        (Some(left), Some(right)) => (left, right),
        _ if a.is_nan() || b.is_nan() => return NAN,
        (None, None) if is_negative(a) != is_negative(b) => return NAN,
        (None, _) => return a,
        (_, None) => return b,
    };
    let (high, low) = if left.exponent >= right.exponent { (left, right) } else { (right, left) };
    add_finite(high, low).pack(Rounding::HalfEven)
}

/// Adds; the exponent of `high` must be the larger one.
fn add_finite(high: Finite, mut low: Finite) -> Finite {
    let mut shift = (high.exponent - low.exponent) as u32;
    let room = 2 * DIGITS + 6 - high.coefficient.digits().max(1);
    if high.coefficient.is_zero() {
        // Zeros of both signs add up to the positive one.
        let negative = low.negative && (high.negative || !low.coefficient.is_zero());
        return Finite { negative, ..low };
    }
    if shift > room {
        // The low number is below the retained digits; it only decides how they are rounded.
        if !low.coefficient.is_zero() {
            low.coefficient = Wide::from(1);
        }
        low.exponent = high.exponent - room as i32;
        shift = room;
    }
    let raised = high.coefficient.times_power_of_ten(shift);
    let exponent = low.exponent;
    if high.negative == low.negative {
        return Finite { negative: high.negative, coefficient: raised.plus(low.coefficient), exponent };
    }
    match raised.cmp(&low.coefficient) {
        std::cmp::Ordering::Equal => Finite { negative: false, coefficient: Wide::from(0), exponent },
        std::cmp::Ordering::Greater => {
            Finite { negative: high.negative, coefficient: raised.minus(low.coefficient), exponent }
        }
        std::cmp::Ordering::Less => {
            Finite { negative: low.negative, coefficient: low.coefficient.minus(raised), exponent }
        }
    }
}

pub fn multiply(a: Decimal128, b: Decimal128) -> Decimal128 {
    let negative = is_negative(a) != is_negative(b);
    match (finite(a), finite(b)) {
        (Some(left), Some(right)) => Finite {
            negative,
            coefficient: Wide::product(left.coefficient.low(), right.coefficient.low()),
            exponent: left.exponent + right.exponent,
        }
        .pack(Rounding::HalfEven),
        _ if a.is_nan() || b.is_nan() || a.is_zero() || b.is_zero() => NAN,
        _ => infinity(negative),
    }
}

pub fn divide(a: Decimal128, b: Decimal128) -> Decimal128 {
    let negative = is_negative(a) != is_negative(b);
    let (left, right) = match (finite(a), finite(b)) {
        (Some(left), Some(right)) => (left, right),
        _ if a.is_nan() || b.is_nan() => return NAN,
        (None, None) => return NAN,
        (None, _) => return infinity(negative),
        (_, None) => {
            return Finite { negative, coefficient: Wide::from(0), exponent: EXPONENT_MIN }.pack(Rounding::HalfEven);
        }
    };
    if right.coefficient.is_zero() {
        return if left.coefficient.is_zero() { NAN } else { infinity(negative) };
    }
    let ideal = left.exponent - right.exponent;
    let shift = (DIGITS + 2 + right.coefficient.digits()).saturating_sub(left.coefficient.digits());
    let (mut quotient, rest) = left.coefficient.times_power_of_ten(shift).divided_by(right.coefficient.low());
    let mut exponent = ideal - shift as i32;
    if rest != 0 {
        // One more digit represents the whole remainder, so that rounding goes the right way.
        quotient = quotient.times_power_of_ten(1).plus(Wide::from(1));
        exponent -= 1;
        return Finite { negative, coefficient: quotient, exponent }.pack(Rounding::HalfEven);
    }
    while exponent < ideal && !quotient.is_zero() {
        let (shorter, digit) = quotient.divided_by(10);
        if digit != 0 {
            break;
        }
        quotient = shorter;
        exponent += 1;
    }
    if quotient.is_zero() {
        exponent = ideal;
    }
    Finite { negative, coefficient: quotient, exponent }.pack(Rounding::HalfEven)
}

/// Returns the remainder of a division whose quotient is truncated to an integer; it has the
/// dividend's sign.
pub fn remainder(a: Decimal128, b: Decimal128) -> Decimal128 {
    let (left, right) = match (finite(a), finite(b)) {
        (Some(left), Some(right)) if !right.coefficient.is_zero() => (left, right),
        (Some(_), None) if !b.is_nan() => return a,
        _ => return NAN,
    };
    let exponent = left.exponent.min(right.exponent);
    // A divisor beyond the dividend leaves the dividend unchanged.
    if right.exponent - exponent > DIGITS as i32 {
        return a;
    }
    let divisor = right.coefficient.times_power_of_ten((right.exponent - exponent) as u32);
    let mut rest = left.coefficient;
    for _ in 0..left.exponent - exponent {
        rest = rest.modulo(divisor).times_power_of_ten(1);
    }
    Finite { negative: left.negative, coefficient: rest.modulo(divisor), exponent }.pack(Rounding::HalfEven)
}

pub fn ceil(number: Decimal128) -> Decimal128 {
    whole(number, Rounding::Up)
}

pub fn floor(number: Decimal128) -> Decimal128 {
    whole(number, Rounding::Down)
}

/// Rounds to an integer. The server quantizes to an exponent of zero, which infinities and numbers
/// past 34 digits cannot have: they become NaN.
fn whole(number: Decimal128, rounding: Rounding) -> Decimal128 {
    let rounded = round_to(number, 0, rounding);
    match rounded.parts() {
        Parts::Finite { exponent: 0, .. } => rounded,
        _ => NAN,
    }
}

/// Rounds to a number of decimal places, half to even or towards zero.
pub fn round(number: Decimal128, places: i32, towards_zero: bool) -> Decimal128 {
    let rounding = match (towards_zero, is_negative(number)) {
        (false, _) => Rounding::HalfEven,
        (true, false) => Rounding::Down,
        (true, true) => Rounding::Up,
    };
    round_to(number, places, rounding)
}

fn round_to(number: Decimal128, places: i32, rounding: Rounding) -> Decimal128 {
    let Some(Finite { negative, coefficient, exponent }) = finite(number) else { return number };
    let drop = -places - exponent;
    if drop > 0 {
        let coefficient =
            coefficient.without_digits(drop as u32, |kept, rest| round_up(rounding, negative, kept, rest));
        return Finite { negative, coefficient, exponent: -places }.pack(Rounding::HalfEven);
    }
    // The requested places are written out, as far as there is room for them: 5 to two places is
    // 5.00.
    let room = if coefficient.is_zero() { -drop } else { (DIGITS - coefficient.digits()) as i32 };
    let raise = room.min(-drop);
    let coefficient = if coefficient.is_zero() { coefficient } else { coefficient.times_power_of_ten(raise as u32) };
    Finite { negative, coefficient, exponent: exponent - raise }.pack(Rounding::HalfEven)
}

pub fn is_finite(number: Decimal128) -> bool {
    matches!(number.parts(), Parts::Finite { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Decimal128 {
        Decimal128::parse(text).unwrap()
    }

    /// Results of a 6.0 server.
    #[test]
    fn rounding_spells_out_the_places() {
        let to = |text: &str, places| round(number(text), places, false).to_string();
        assert_eq!(to("-514187", 2), "-514187.00");
        assert_eq!(to("2.345", 2), "2.34");
        assert_eq!(to("-5.8194E+6", -1), "-5.81940E+6");
        assert_eq!(to("-4.7E+1426", 2), "-4.700000000000000000000000000000000E+1426");
        assert_eq!(to("Infinity", 2), "Infinity");
        assert_eq!(floor(number("-1.5")).to_string(), "-2");
        assert_eq!(ceil(number("5E+3")).to_string(), "5000");
        assert_eq!(floor(number("4.7E+1426")).to_string(), "NaN");
        assert_eq!(ceil(number("Infinity")).to_string(), "NaN");
    }
}
