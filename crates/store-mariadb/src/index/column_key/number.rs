//! Keys of numbers: the whole part (the next whole number below), and the fraction above it in
//! pieces of 56 bits.

use document::Value;
use document::decimal::{Decimal128, Parts};

/// 2^63, 2^56 and 2^56 - 1, in SQL.
const SIGN: &str = "9223372036854775808";
const PIECE: &str = "72057594037927936";
const PIECE_MASK: &str = "72057594037927935";

/// Bits of a piece of a fraction.
const PIECE_BITS: u32 = 56;
/// Decimal places that leave room for what [`pieces`] does.
const PLACES_MAX: u32 = 34;
/// Doubles closer to zero than 2^-56, except zero, have digits beyond the pieces.
const TINY: &str = "1.4e-17";
/// The last double below 2^63.
const LARGE: &str = "9223372036854774784e0";

/// Returns the expression for the bytes of the whole part.
pub(super) fn integer_bytes(number: &str) -> String {
    format!("unhex(lpad(hex({number}^{SIGN}),16,0))")
}

/// Returns the expression for a number's bytes: its whole part and up to two nonzero pieces of its
/// fraction.
fn pieces_bytes(whole: &str, first: &str, second: &str) -> String {
    format!(
        "concat('35',unhex(regexp_replace(concat(lpad(hex({whole}^{SIGN}),16,0),lpad(hex({first}),14,0),lpad(hex({second}),14,0)),\
         '(0{{14}}){{1,2}}$','')))"
    )
}

/// Returns the expression for the key of a number's JSON text. In arithmetic, MariaDB converts the
/// text to a double; for the operator `^`, to an int64. It converts a double for `^` and `&`
/// through its decimal digits, which lose precision, but for `cast` exactly; hence the casts.
pub(super) fn expression(text: &str) -> String {
    let scaled = format!("({text}*{PIECE}e0)");
    format!(
        "case when {text} regexp '^-?[0-9]{{1,19}}$' then \
         if(cast({text} as decimal(20)) between -{SIGN} and 9223372036854775807,concat('35',{integer}),null) \
         when {text} regexp '^-?[0-9]{{1,40}}([.][0-9]{{1,60}})?(e-?[0-9]{{1,2}})?$' \
         and (abs({text}) between {TINY} and {LARGE} or {text}=0e0 or {text}=-{SIGN}e0) then {pieces} end",
        integer = integer_bytes(text),
        pieces = pieces_bytes(
            &format!("cast(floor({text})+0e0 as signed)"),
            // The rest of a number from 1 on; of a smaller one its part of the first piece.
            &format!("cast(floor({scaled}%{PIECE}) as signed)&{PIECE_MASK}"),
            &format!("floor(({scaled}-floor({scaled}))*{PIECE}e0)"),
        ),
    )
}

/// Returns the expression for the key of a DECIMAL(65,30). `hex` converts a DECIMAL through a
/// double, which has too few digits for a piece, and an integer exactly; `|0` converts to an
/// integer.
pub(super) fn decimal_expression(decimal: &str) -> String {
    let scaled = format!("(({decimal}-floor({decimal}))*{PIECE})");
    pieces_bytes(&format!("floor({decimal})"), &format!("floor({scaled})|0"), &format!("floor({scaled}%1*{PIECE})|0"))
}

pub(super) fn signed_bytes(number: i64) -> [u8; 8] {
    (number as u64 ^ 1 << 63).to_be_bytes()
}

/// Appends a number's key; returns whether no other number has the same.
pub(super) fn append(value: Value<'_>, key: &mut Vec<u8>) -> bool {
    match value {
        Value::Int32(number) => append_parts(number.into(), &[], key),
        Value::Int64(number) => append_parts(number, &[], key),
        Value::Double(number) => append_double(number, key),
        Value::Decimal128(number) => append_decimal(number, key),
        _ => false,
    }
}

fn append_parts(whole: i64, pieces: &[u64], key: &mut Vec<u8>) -> bool {
    key.extend_from_slice(b"35");
    key.extend_from_slice(&signed_bytes(whole));
    let significant = pieces.len() - pieces.iter().rev().take_while(|piece| **piece == 0).count();
    for piece in &pieces[..significant] {
        key.extend_from_slice(&piece.to_be_bytes()[1..]);
    }
    true
}

fn append_special(class: &[u8; 2], key: &mut Vec<u8>) -> bool {
    key.extend_from_slice(class);
    matches!(class, b"30" | b"31" | b"39")
}

/// Appends the key of a finite number that is too large: after or before all others.
fn append_large(negative: bool, key: &mut Vec<u8>) -> bool {
    append_special(if negative { b"34" } else { b"36" }, key)
}

fn append_double(number: f64, key: &mut Vec<u8>) -> bool {
    let scale = (1u64 << PIECE_BITS) as f64;
    let floor = number.floor();
    match number {
        number if number.is_nan() => append_special(b"30", key),
        number if number.is_infinite() => append_special(if number < 0.0 { b"31" } else { b"39" }, key),
        // -2^63 is the int64 of that value.
        number if number >= 9_223_372_036_854_775_808.0 => append_large(false, key),
        number if number < -9_223_372_036_854_775_808.0 => append_large(true, key),
        number if number == floor => append_parts(number as i64, &[], key),
        number if number.abs() >= 1.0 => append_parts(floor as i64, &[((number - floor) * scale) as u64], key),
        number => {
            let scaled = number * scale;
            let first = scaled.floor() as i64 as u64 & ((1 << PIECE_BITS) - 1);
            // Just below zero the rest may round up to a whole piece.
            let second = (((scaled - scaled.floor()) * scale) as u64).min((1 << PIECE_BITS) - 1);
            append_parts(floor as i64, &[first, second], key) && number.abs() * scale >= 1.0
        }
    }
}

fn append_decimal(number: Decimal128, key: &mut Vec<u8>) -> bool {
    let (negative, coefficient, exponent) = match number.parts() {
        Parts::NotANumber => return append_special(b"30", key),
        Parts::Infinity { negative } => return append_special(if negative { b"31" } else { b"39" }, key),
        Parts::Finite { negative, coefficient, exponent } => (negative, coefficient, exponent),
    };
    if coefficient == 0 {
        return append_parts(0, &[], key);
    }
    let Some((whole, rest, unit, cut)) = split(negative, coefficient, exponent) else {
        return append_large(negative, key);
    };
    // -2^63 is the one that has no positive counterpart.
    if whole >= 1 << 63 && !(negative && rest == 0 && whole == 1 << 63) {
        return append_large(negative, key);
    }
    let (whole, rest) = match (negative, rest) {
        (false, rest) => (whole as i64, rest),
        (true, 0) => ((whole as i64).wrapping_neg(), 0),
        // The next whole number below, and the rest above it.
        (true, rest) => (-(whole as i64) - 1, unit - rest),
    };
    append_parts(whole, &pieces(rest, unit), key);
    rest == 0 && !cut
}

/// Returns a decimal's whole part, its fraction as numerator and denominator, and whether digits
/// beyond the 34th place were cut (rounding down); `None` if it is too large.
fn split(negative: bool, coefficient: u128, exponent: i32) -> Option<(u128, u128, u128, bool)> {
    if exponent >= 0 {
        return Some((coefficient.checked_mul(10u128.checked_pow(exponent as u32)?)?, 0, 1, false));
    }
    let places = exponent.unsigned_abs();
    let divisor = 10u128.checked_pow(places.saturating_sub(PLACES_MAX)).unwrap_or(u128::MAX);
    let cut = !coefficient.is_multiple_of(divisor);
    let coefficient = coefficient / divisor + u128::from(cut && negative);
    let unit = 10u128.pow(places.min(PLACES_MAX));
    Some((coefficient / unit, coefficient % unit, unit, cut))
}

/// Returns the first 112 bits of a fraction. The denominator leaves 14 bits to shift.
fn pieces(mut rest: u128, unit: u128) -> [u64; 2] {
    let mut pieces = [0; 2];
    for piece in &mut pieces {
        for _ in 0..4 {
            rest <<= 14;
            *piece = *piece << 14 | (rest / unit) as u64;
            rest %= unit;
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_numbers_of_all_types_have_one_key() {
        for text in
            ["0", "1", "-1", "9223372036854775807", "-9223372036854775808", "-4611686018427387904", "0.5", "-0.25"]
        {
            let decimal = Decimal128::parse(text).expect("a decimal");
            let key = |value| {
                let mut key = Vec::new();
                append(value, &mut key);
                key
            };
            let expected = key(Value::Decimal128(decimal));
            if let Ok(whole) = text.parse() {
                assert_eq!(key(Value::Int64(whole)), expected, "{text}");
            }
            // The greatest int64 is no double.
            if text != "9223372036854775807" {
                assert_eq!(key(Value::Double(text.parse().expect("a double"))), expected, "{text}");
            }
        }
    }
}
