//! Parses numbers from text like C and the server's decimal library.

use document::Decimal128;

/// The reason why a text is no number, as worded by the server.
type Reason = &'static str;

const OUT_OF_RANGE: Reason = "Out of range";
const NOT_WHOLE: Reason = "Did not consume whole string.";

/// The number of digits of a decimal, and its range of exponents.
const DIGITS_MAX: i64 = 34;
const EXPONENT_MIN: i64 = -6176;
const ADJUSTED_MIN: i64 = -6143;
const ADJUSTED_MAX: i64 = 6144;

pub(super) fn double(text: &str) -> Result<f64, Reason> {
    if text.is_empty() {
        return Err("Empty string");
    }
    if text.starts_with(|letter: char| letter.is_ascii_whitespace()) {
        return Err("Leading whitespace");
    }
    // A NaN may have a suffix, as in C.
    let bare = text.trim_start_matches(['+', '-']);
    if let Some(told) = bare.get(3..).filter(|_| bare.get(..3).is_some_and(|nan| nan.eq_ignore_ascii_case("nan")))
        && let Some(told) = told.strip_prefix('(').and_then(|told| told.strip_suffix(')'))
        && told.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    {
        return Ok(f64::NAN);
    }
    // The server rejects only this prefix of hexadecimal numbers.
    if text.starts_with("0x") {
        return Err(NOT_WHOLE);
    }
    let (negative, magnitude) = signed(text);
    if let Some(digits) = magnitude.strip_prefix("0x").or_else(|| magnitude.strip_prefix("0X")) {
        return hexadecimal(digits).map(|number| if negative { -number } else { number });
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_infinite() && text.contains(|letter: char| letter.is_ascii_digit()) => {
            Err(OUT_OF_RANGE)
        }
        // Subnormal doubles count as out of range.
        Ok(number) if !number.is_normal() && number.is_finite() && has_digit_but_zero(text) => Err(OUT_OF_RANGE),
        Ok(number) => Ok(number),
        Err(_) => {
            let has_digits = bare.trim_start_matches('.').starts_with(|letter: char| letter.is_ascii_digit());
            Err(if has_digits { NOT_WHOLE } else { "Did not consume any digits" })
        }
    }
}

fn signed(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(magnitude) => (true, magnitude),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// Returns whether the number is nonzero, whatever its exponent.
fn has_digit_but_zero(text: &str) -> bool {
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'))
}

/// Parses `1.8p3`: hexadecimal digits, and an optional power of two.
fn hexadecimal(text: &str) -> Result<f64, Reason> {
    let (mantissa, power) = match text.split_once(['p', 'P']) {
        Some((mantissa, power)) => (mantissa, Some(power)),
        None => (text, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_number = whole.len() + fraction.len() > 0 && [whole, fraction].iter().all(|part| is_hexadecimal(part));
    if !is_number {
        return Err(NOT_WHOLE);
    }
    let mut exponent = match power {
        Some(power) => {
            let (negative, digits) = signed(power);
            let number = exponent_of(digits).ok_or(NOT_WHOLE)?;
            if negative { -number } else { number }
        }
        None => 0,
    };
    // Digits beyond a double's precision contribute one bit, for rounding.
    let mut bits: u128 = 0;
    for (at, digit) in whole.bytes().chain(fraction.bytes()).enumerate() {
        let digit = u128::from((digit as char).to_digit(16).unwrap_or(0));
        let is_behind_point = at >= whole.len();
        if bits >> 120 == 0 {
            bits = bits << 4 | digit;
            exponent -= if is_behind_point { 4 } else { 0 };
        } else {
            bits |= u128::from(digit != 0);
            exponent += if is_behind_point { 0 } else { 4 };
        }
    }
    if bits == 0 {
        return Ok(0.0);
    }
    // Two steps, because a single power might exceed the range of doubles.
    let half = exponent.clamp(-2000, 2000) / 2;
    let number = bits as f64 * 2_f64.powi(half as i32) * 2_f64.powi((exponent.clamp(-2000, 2000) - half) as i32);
    if number.is_normal() { Ok(number) } else { Err(OUT_OF_RANGE) }
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// Returns an exponent without its sign; saturates an exponent beyond every range.
fn exponent_of(digits: &str) -> Option<i64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(i64::MAX).min(1_000_000_000))
}

/// Parses a decimal. Digits past the 34th are dropped.
pub(super) fn decimal(text: &str) -> Result<Decimal128, Reason> {
    if text.is_empty() {
        return Err("Empty string");
    }
    let number = Decimal128::parse(text).ok_or("Failed to parse string to decimal")?;
    let (negative, magnitude) = signed(text);
    if !magnitude.starts_with(|letter: char| letter.is_ascii_digit() || letter == '.') {
        return Ok(number);
    }
    let (mantissa, exponent) = match magnitude.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => {
            let (negative, digits) = signed(exponent);
            let exponent = exponent_of(digits).unwrap_or(0);
            (mantissa, if negative { -exponent } else { exponent })
        }
        None => (magnitude, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = [whole, fraction].concat();
    let digits = all.trim_start_matches('0');
    if digits.is_empty() {
        return Ok(number);
    }
    let count = digits.len() as i64;
    let exponent = exponent - fraction.len() as i64;
    let adjusted = exponent + count - 1;
    if adjusted > ADJUSTED_MAX {
        return Err("Conversion from string to decimal would overflow");
    }
    let kept = count.min(DIGITS_MAX).min(exponent + count - EXPONENT_MIN).max(0);
    let (kept_digits, dropped) = digits.split_at(kept as usize);
    if dropped.bytes().all(|digit| digit == b'0') {
        return Ok(number);
    }
    if adjusted < ADJUSTED_MIN {
        return Err("Conversion from string to decimal would underflow");
    }
    let sign = if negative { "-" } else { "" };
    let cut = format!("{sign}{kept_digits}E{}", exponent + count - kept);
    Ok(Decimal128::parse(&cut).unwrap_or(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_in_hexadecimal() {
        assert_eq!(double("-0x1p0"), Ok(-1.0));
        assert_eq!(double("+0x1.8p1"), Ok(3.0));
        assert_eq!(double("0X.8"), Ok(0.5));
        assert_eq!(double("0X1."), Ok(1.0));
        assert_eq!(double("-0x1fffffffffffff81p0"), Ok(-(0x1fff_ffff_ffff_ff81_u64 as f64)));
        assert_eq!(double("-0x0p99999"), Ok(-0.0));
        assert_eq!(double("0X10000000000000000000000000000000000001"), Ok(2_f64.powi(148)));
        for none in ["-0x", "0XP1", "0X1P", "-0x1g", "0X1P1.5"] {
            assert_eq!(double(none), Err(NOT_WHOLE), "{none}");
        }
        for far in ["0X1P99999", "-0x1p-1080", "0X1P-1023"] {
            assert_eq!(double(far), Err(OUT_OF_RANGE), "{far}");
        }
    }

    #[test]
    fn decimals_are_cut() {
        let check = |text: &str, expected: &str| {
            assert_eq!(decimal(text).map(|number| number.to_string()), Ok(expected.to_owned()), "{text}");
        };
        check("1.23456789012345678901234567890123456789", "1.234567890123456789012345678901234");
        check("-99999999999999999999999999999999999999E6100", "-9.999999999999999999999999999999999E+6137");
        check("1.5", "1.5");
        check("0E-7000", "0E-6176");
        check("1E-6176", "1E-6176");
        check("10E-6177", "1E-6176");
        for large in ["1E6145", "1e99999999999999999999"] {
            assert_eq!(decimal(large), Err("Conversion from string to decimal would overflow"), "{large}");
        }
        for small in ["1E-6177", "1.5E-6176", "1e-99999999999999999999"] {
            assert_eq!(decimal(small), Err("Conversion from string to decimal would underflow"), "{small}");
        }
    }
}
