//! `$slice` in the form specific to `find`: a count, or `[skip, count]`.

use document::{Doc, Element, Value};
use steps::Counted;

/// The range of an array's elements to return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    /// Counted from the end if negative.
    skip: i32,
    count: i32,
}

/// The reason why an operand is not of this form: a code and a message, which is embedded in
/// another message.
pub(super) type SliceError = (i32, &'static str);

impl Slice {
    pub fn parse(operand: Value<'_>) -> Result<Slice, SliceError> {
        match operand {
            Value::Array(pair) => Self::parse_pair(pair),
            operand => {
                let count =
                    clamp_to_i32(operand).ok_or((31273, "$slice only supports numbers and [skip, limit] arrays"))?;
                let skip = if count < 0 { count } else { 0 };
                Ok(Slice { skip, count: count.saturating_abs() })
            }
        }
    }

    fn parse_pair(pair: Doc<'_>) -> Result<Slice, SliceError> {
        let values: Vec<Value<'_>> = pair.values().take(3).collect();
        let [skip, count] = values[..] else {
            return Err((31272, "$slice array argument should be of form [skip, limit]"));
        };
        let skip = clamp_to_i32(skip).ok_or((31257, "$slice skip must be a number"))?;
        let count = clamp_to_i32(count).ok_or((31258, "$slice limit must be a number"))?;
        if count <= 0 {
            return Err((31259, "$slice limit must be positive"));
        }
        Ok(Slice { skip, count })
    }

    /// Returns the elements of the slice.
    pub fn elements<'d>(&self, array: Doc<'d>) -> impl Iterator<Item = Element<'d>> + use<'d> {
        let skip = match usize::try_from(self.skip) {
            Ok(skip) => skip,
            Err(_) => array.elements().counted().count().saturating_sub(self.skip.unsigned_abs() as usize),
        };
        array.elements().counted().skip(skip).take(usize::try_from(self.count).unwrap_or(0))
    }
}

/// Returns a number truncated to an integer and clamped to 32 bits.
fn clamp_to_i32(value: Value<'_>) -> Option<i32> {
    Some(match value {
        Value::Int32(number) => number,
        Value::Int64(number) => number.clamp(i32::MIN.into(), i32::MAX.into()) as i32,
        Value::Double(number) => number as i32,
        Value::Decimal128(number) => number.to_f64() as i32,
        _ => return None,
    })
}
