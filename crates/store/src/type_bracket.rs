//! The values that a value compares with: those of its own type.

use document::{Doc, Kind, ObjectId, Value};

/// Returns the least of all values that compare with values of a type, the greatest, and whether
/// the greatest is one of them. NaN is left out of the numbers, since it is neither less nor
/// greater than another.
pub fn of(kind: Kind) -> (Value<'static>, Value<'static>, bool) {
    let empty_code = Value::CodeWithScope { code: "", scope: Doc::EMPTY };
    let pointer = Value::DbPointer { namespace: "", id: ObjectId([0; 12]) };
    match kind {
        Kind::MinKey => (Value::MinKey, Value::MinKey, true),
        Kind::Undefined => (Value::Undefined, Value::Undefined, true),
        Kind::Null => (Value::Null, Value::Null, true),
        Kind::Double | Kind::Int32 | Kind::Int64 | Kind::Decimal128 => {
            (Value::Double(f64::NEG_INFINITY), Value::Double(f64::INFINITY), true)
        }
        Kind::String | Kind::Symbol => (Value::String(""), Value::Document(Doc::EMPTY), false),
        Kind::Document => (Value::Document(Doc::EMPTY), Value::Array(Doc::EMPTY), false),
        Kind::Array => (Value::Array(Doc::EMPTY), Value::Binary { subtype: 0, bytes: &[] }, false),
        Kind::Binary => (Value::Binary { subtype: 0, bytes: &[] }, Value::ObjectId(ObjectId([0; 12])), false),
        Kind::ObjectId => (Value::ObjectId(ObjectId([0; 12])), Value::ObjectId(ObjectId([0xFF; 12])), true),
        Kind::Boolean => (Value::Boolean(false), Value::Boolean(true), true),
        Kind::DateTime => (Value::DateTime(i64::MIN), Value::DateTime(i64::MAX), true),
        Kind::Timestamp => {
            (Value::Timestamp { time: 0, increment: 0 }, Value::Timestamp { time: u32::MAX, increment: u32::MAX }, true)
        }
        Kind::Regex => (Value::Regex { pattern: "", options: "" }, pointer, false),
        Kind::DbPointer => (pointer, Value::Code(""), false),
        Kind::Code => (Value::Code(""), empty_code, false),
        Kind::CodeWithScope => (empty_code, Value::MaxKey, false),
        Kind::MaxKey => (Value::MaxKey, Value::MaxKey, true),
    }
}
