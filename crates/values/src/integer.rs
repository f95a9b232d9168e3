//! Numbers of any type as 64-bit integers. [`Value::to_i64`] is another answer: it rounds
//! decimals and clamps.

use document::Value;
use error::{Code, Error, Result};

/// Returns the integral part of a number; `None` for other types, and for numbers not finite or
/// beyond 64 bits.
pub fn as_i64_truncated(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Int32(number) => Some(i64::from(number)),
        Value::Int64(number) => Some(number),
        Value::Double(number) => as_i64_of_double(number),
        Value::Decimal128(number) => crate::decimal::round(number, 0, true).to_i64_exact(),
        _ => None,
    }
}

/// Returns a number of any type that is an integer and fits 64 bits.
pub fn as_i64_exact(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Double(number) => as_i64_of_double(number).filter(|whole| *whole as f64 == number),
        Value::Decimal128(number) => number.to_i64_exact(),
        _ => as_i64_truncated(value),
    }
}

/// Like [`as_i64_exact`], for an operand that must be an integer. Fails with 31109 for doubles
/// beyond 64 bits.
pub fn to_i64_exact(value: Value<'_>) -> Result<Option<i64>> {
    match value {
        Value::Double(number) if as_i64_of_double(number).is_none() => {
            let found = crate::text::display(value);
            Err(Error::new(Code(31109), format!("Can't coerce out of range value {found} to long")))
        }
        _ => Ok(as_i64_exact(value)),
    }
}

/// Returns the integral part of a double; `None` if it is not finite or beyond 64 bits.
pub fn as_i64_of_double(number: f64) -> Option<i64> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    (-LIMIT..LIMIT).contains(&number).then_some(number as i64)
}

/// Returns a number as milliseconds to move a date by: doubles are truncated, decimals rounded half
/// to even; `None` beyond 64 bits.
pub fn as_milliseconds(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Decimal128(number) => crate::decimal::round(number, 0, false).to_i64_exact(),
        _ => as_i64_truncated(value),
    }
}
