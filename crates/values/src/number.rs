//! Numbers with MongoDB's promotion rules: int32 → int64 → double → decimal128.

use crate::integer::as_milliseconds;
use document::{Decimal128, Element, Kind, Value};
use error::{Code, Error, Result};

/// A value that is a number.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    Int32(i32),
    Int64(i64),
    Double(f64),
    Decimal(Decimal128),
}

impl Number {
    pub fn from_value(value: Value<'_>) -> Option<Number> {
        Some(match value {
            Value::Int32(number) => Number::Int32(number),
            Value::Int64(number) => Number::Int64(number),
            Value::Double(number) => Number::Double(number),
            Value::Decimal128(number) => Number::Decimal(number),
            _ => return None,
        })
    }

    /// Like [`Number::from_value`], without decoding other types.
    #[inline]
    pub fn from_element(element: Element<'_>) -> Option<Number> {
        let raw = element.raw_value();
        match element.kind {
            Kind::Int32 => Some(Number::Int32(i32::from_le_bytes(*raw.first_chunk()?))),
            Kind::Int64 => Some(Number::Int64(i64::from_le_bytes(*raw.first_chunk()?))),
            Kind::Double => Some(Number::Double(f64::from_le_bytes(*raw.first_chunk()?))),
            Kind::Decimal128 => Number::from_value(element.value()),
            _ => None,
        }
    }

    pub fn to_value(self) -> Value<'static> {
        match self {
            Number::Int32(number) => Value::Int32(number),
            Number::Int64(number) => Value::Int64(number),
            Number::Double(number) => Value::Double(number),
            Number::Decimal(number) => Value::Decimal128(number),
        }
    }

    /// Returns an integer of the smallest type that holds it; int32 only if `narrow`.
    pub fn integer(number: i64, narrow: bool) -> Number {
        match i32::try_from(number) {
            Ok(small) if narrow => Number::Int32(small),
            _ => Number::Int64(number),
        }
    }

    pub fn as_integer(self) -> Option<i64> {
        match self {
            Number::Int32(number) => Some(i64::from(number)),
            Number::Int64(number) => Some(number),
            _ => None,
        }
    }

    pub fn is_int32(self) -> bool {
        matches!(self, Number::Int32(_))
    }

    pub fn is_decimal(self) -> bool {
        matches!(self, Number::Decimal(_))
    }

    pub fn to_f64(self) -> f64 {
        match self {
            Number::Int32(number) => f64::from(number),
            Number::Int64(number) => number as f64,
            Number::Double(number) => number,
            Number::Decimal(number) => number.to_f64(),
        }
    }

    pub fn to_decimal(self) -> Decimal128 {
        match self {
            Number::Int32(number) => super::decimal::from_i64(i64::from(number)),
            Number::Int64(number) => super::decimal::from_i64(number),
            Number::Double(number) => super::decimal::from_f64(number),
            Number::Decimal(number) => number,
        }
    }

    pub fn is_zero(self) -> bool {
        match self {
            Number::Decimal(number) => number.is_zero(),
            number => number.to_f64() == 0.0,
        }
    }
}

/// Returns a number of any type as a double, rounded if need be.
pub fn as_f64_lossy(value: Value<'_>) -> Option<f64> {
    Number::from_value(value).map(Number::to_f64)
}

/// Like [`as_f64_lossy`]; `None` for decimals, which a double represents badly.
pub fn as_f64_unless_decimal(value: Value<'_>) -> Option<f64> {
    Number::from_value(value).filter(|number| !number.is_decimal()).map(Number::to_f64)
}

/// Like [`as_f64_lossy`], with booleans as 0 and 1.
pub fn as_f64_or_boolean(value: Value<'_>) -> Option<f64> {
    match value {
        Value::Boolean(flag) => Some(f64::from(u8::from(flag))),
        value => as_f64_lossy(value),
    }
}

/// A running sum as computed by `$sum`, `$avg` and `$add`: integers exactly, doubles with
/// compensation for rounding, decimals separately.
///
/// The sum has the widest type that was added: int32 and int64 become int64 if int32 overflows, a
/// double if int64 does.
#[derive(Clone, Copy, Debug)]
pub struct Sum {
    integers: i128,
    doubles: Compensated,
    decimals: Decimal128,
    widest: Widest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Widest {
    Int32,
    Int64,
    Double,
    Decimal,
}

impl Default for Sum {
    fn default() -> Self {
        Sum {
            integers: 0,
            doubles: Compensated::default(),
            decimals: super::decimal::from_i64(0),
            widest: Widest::Int32,
        }
    }
}

impl Sum {
    /// Like [`Sum::add`], for the most frequent type. It avoids a [`Number`], which would be passed
    /// through memory.
    #[inline]
    pub fn add_int32(&mut self, number: i32) {
        if self.widest < Widest::Double {
            self.integers += i128::from(number);
        } else {
            self.add(Number::Int32(number));
        }
    }

    /// Adds the int32 1 this many times.
    pub fn count(&mut self, times: u64) {
        self.integers += i128::from(times);
    }

    /// Adds a number. Integers among doubles are added in order: it shows in the last digits.
    pub fn add(&mut self, number: Number) {
        let kind = match number {
            Number::Int32(number) => {
                match self.doubles.is_begun() {
                    true => self.doubles.add(number.into()),
                    false => self.integers += i128::from(number),
                }
                Widest::Int32
            }
            Number::Int64(number) => {
                match self.doubles.is_begun() {
                    true => self.doubles.add_int64(number),
                    false => self.integers += i128::from(number),
                }
                Widest::Int64
            }
            Number::Double(number) => {
                if self.integers != 0 {
                    self.doubles.add_integer(std::mem::take(&mut self.integers));
                }
                self.doubles.add(number);
                Widest::Double
            }
            Number::Decimal(number) => {
                self.decimals = super::decimal::add(self.decimals, number);
                Widest::Decimal
            }
        };
        self.widest = self.widest.max(kind);
    }

    pub fn total(&self) -> Number {
        match self.widest {
            Widest::Decimal => Number::Decimal(self.decimal_total()),
            Widest::Double => Number::Double(self.double_total()),
            widest => match i64::try_from(self.integers) {
                Ok(sum) => Number::integer(sum, widest == Widest::Int32),
                Err(_) => Number::Double(self.integers as f64),
            },
        }
    }

    /// Returns the sum divided by `count`: a decimal if one was added, otherwise a double.
    pub fn average(&self, count: u64) -> Number {
        match self.widest {
            Widest::Decimal => {
                Number::Decimal(super::decimal::divide(self.decimal_total(), super::decimal::from_i64(count as i64)))
            }
            _ => Number::Double(self.double_total() / count as f64),
        }
    }

    /// Returns the sum rounded to an integer, for dates; `None` if it does not fit.
    pub fn whole_total(&self) -> Option<i64> {
        match self.total() {
            Number::Int32(number) => Some(i64::from(number)),
            Number::Int64(number) => Some(number),
            Number::Double(_) if self.widest != Widest::Double => None,
            // To the nearest integer, halves towards zero.
            Number::Double(sum) => crate::integer::as_i64_of_double((sum.abs() - 0.5).ceil().copysign(sum)),
            number => crate::integer::as_milliseconds(number.to_value()),
        }
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &Sum) {
        self.integers += other.integers;
        self.doubles.merge(&other.doubles);
        self.decimals = super::decimal::add(self.decimals, other.decimals);
        self.widest = self.widest.max(other.widest);
    }

    /// Appends the sum's bytes, which [`Sum::read`] decodes.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.integers.to_le_bytes());
        for part in [self.doubles.sum, self.doubles.lost, self.doubles.special] {
            out.extend_from_slice(&part.to_le_bytes());
        }
        Value::Decimal128(self.decimals).write_raw(out);
        out.push(self.widest as u8);
    }

    /// Reads a sum from the front of `bytes`; returns `None` if there is none.
    pub fn read(bytes: &mut &[u8]) -> Option<Sum> {
        let (integers, rest) = bytes.split_first_chunk::<16>()?;
        let (sum, rest) = rest.split_first_chunk::<8>()?;
        let (lost, rest) = rest.split_first_chunk::<8>()?;
        let (special, rest) = rest.split_first_chunk::<8>()?;
        let (decimals, rest) = rest.split_at_checked(16)?;
        let (widest, rest) = rest.split_first()?;
        *bytes = rest;
        let Value::Decimal128(decimals) = Value::from_raw(Kind::Decimal128, decimals) else { return None };
        let doubles = Compensated {
            sum: f64::from_le_bytes(*sum),
            lost: f64::from_le_bytes(*lost),
            special: f64::from_le_bytes(*special),
        };
        let widest = match widest {
            0 => Widest::Int32,
            1 => Widest::Int64,
            2 => Widest::Double,
            _ => Widest::Decimal,
        };
        Some(Sum { integers: i128::from_le_bytes(*integers), doubles, decimals, widest })
    }

    /// Returns the sum of the integers and doubles.
    fn binary(&self) -> Compensated {
        let mut sum = self.doubles;
        if self.integers != 0 {
            sum.add_integer(self.integers);
        }
        sum
    }

    fn double_total(&self) -> f64 {
        self.binary().total()
    }

    fn decimal_total(&self) -> Decimal128 {
        let (high, low) = self.binary().parts();
        let [high, low] = [high, low].map(super::decimal::exact_from_f64);
        super::decimal::add(self.decimals, super::decimal::add(high, low))
    }
}

/// A sum of doubles with the rounding error, which is added to the next number, so that ten times
/// 0.1 is 1. The errors of the last additions are lost, as on the server: 1e16 + 1 - 1e16 is 0.
#[derive(Clone, Copy, Debug, Default)]
struct Compensated {
    sum: f64,
    lost: f64,
    /// The sum of infinities and NaN, which would spoil the compensation.
    special: f64,
}

impl Compensated {
    fn add(&mut self, number: f64) {
        self.special += number;
        let with_lost = number + self.lost;
        self.lost -= with_lost - number;
        let number = with_lost;
        let total = self.sum + number;
        // The exact rounding error, whichever of the two is larger (Knuth's two-sum).
        let part = total - self.sum;
        self.lost += (self.sum - (total - part)) + (number - part);
        self.sum = total;
    }

    /// Adds the lower half and then the upper one, like the server: the previous error is added to
    /// either.
    fn add_int64(&mut self, number: i64) {
        let low = number % (1 << 32);
        self.add(low as f64);
        self.add((number - low) as f64);
    }

    fn merge(&mut self, other: &Compensated) {
        let special = self.special + other.special;
        self.add(other.sum);
        self.add(other.lost);
        self.special = special;
    }

    fn is_begun(&self) -> bool {
        self.sum != 0.0 || self.lost != 0.0 || self.special != 0.0
    }

    fn add_integer(&mut self, number: i128) {
        // In two parts, each of which a double represents exactly.
        let high = number / (1 << 32) * (1 << 32);
        if high != 0 {
            self.add((number - high) as f64);
        }
        self.add(if high == 0 { number } else { high } as f64);
    }

    fn parts(&self) -> (f64, f64) {
        if self.special.is_finite() { (self.sum, self.lost) } else { (self.special, 0.0) }
    }

    fn total(&self) -> f64 {
        self.parts().0
    }
}

/// Converts a number to 64 bits like the server: doubles are truncated, decimals rounded half to
/// even.
///
/// Fails with 31109 for a double out of range; a decimal out of range becomes the least number.
pub fn to_i64(number: Value<'_>) -> Result<i64> {
    match (as_milliseconds(number), number) {
        (Some(long), _) => Ok(long),
        (None, Value::Decimal128(_)) => Ok(i64::MIN),
        (None, _) => {
            let found = crate::text::display(number);
            Err(Error::new(Code(31109), format!("Can't coerce out of range value {found} to long")))
        }
    }
}
