//! MongoDB's total order over values, which `sort`, `$lt`, indexes and unique keys use.
//!
//! Values of different types are ordered by [`type_rank`]; all numbers are one type, and so are
//! strings and symbols. Within a type:
//!
//! - numbers by their mathematical value, exactly, across the four number types; NaN below all
//!   others, -0.0 = 0.0;
//! - strings, symbols and code by their bytes;
//! - documents field by field, each by type rank, then name, then value; a document that ends first
//!   is less;
//! - arrays the same way without the names;
//! - binary by length, then subtype, then bytes; DBPointers by length, then bytes;
//! - regular expressions by pattern, then options; code with scope by code, then scope.
//!
//! [`hash_value`] agrees with it: equal values have equal hashes. [`crate::key`] encodes the same
//! order as bytes.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/bson-type-comparison-order/>; where it is
//! silent (undefined, symbol, DBPointer, code), the behaviour of a 6.0 server.

use crate::collation::Collator;
use crate::decimal::Parts;
use crate::names::restore_bytes;
use crate::number;
use crate::raw::{Doc, Element};
use crate::value::{Kind, Value};
use crate::{DEPTH_MAX, Decimal128};
use std::cmp::Ordering;
use std::hash::Hasher;

/// Compares two values in MongoDB's order.
#[inline]
pub fn compare(a: Value<'_>, b: Value<'_>) -> Ordering {
    match (a, b) {
        (Value::Int32(a), Value::Int32(b)) => a.cmp(&b),
        (Value::String(a), Value::String(b)) => compare_bytes(a.as_bytes(), b.as_bytes()),
        (Value::Double(a), Value::Double(b)) => number::compare_doubles(a, b),
        (Value::Int64(a), Value::Int64(b)) => a.cmp(&b),
        (Value::ObjectId(a), Value::ObjectId(b)) => a.cmp(&b),
        (Value::DateTime(a), Value::DateTime(b)) => a.cmp(&b),
        _ => compare_any(a, b, 0, None),
    }
}

#[inline]
fn compare_bytes(a: &[u8], b: &[u8]) -> Ordering {
    steps::bytes(a.len().min(b.len()));
    a.cmp(b)
}

/// Returns whether two values are equal in MongoDB's order: `1` and `1.0` are.
#[inline]
pub fn equal(a: Value<'_>, b: Value<'_>) -> bool {
    match (a, b) {
        (Value::String(a), Value::String(b)) => {
            steps::bytes(a.len().min(b.len()));
            a == b
        }
        _ => compare(a, b) == Ordering::Equal,
    }
}

/// Compares two documents in MongoDB's order.
pub fn compare_documents(a: Doc<'_>, b: Doc<'_>) -> Ordering {
    compare_elements(a, b, Names::Compared, 1, None)
}

/// Returns the rank of a value's type in the order. A missing value ranks as [`RANK_MISSING`], with
/// undefined.
#[inline]
pub fn type_rank(value: Value<'_>) -> u8 {
    kind_rank(value.kind())
}

/// The rank of a missing value.
pub const RANK_MISSING: u8 = 1;

/// Returns the rank of a type in the order. From null on, it is MongoDB's number, which hashes
/// depend on.
#[inline]
pub fn kind_rank(kind: Kind) -> u8 {
    match kind {
        Kind::MinKey => 0,
        Kind::Undefined => RANK_MISSING,
        Kind::Null => 5,
        Kind::Double | Kind::Int32 | Kind::Int64 | Kind::Decimal128 => 10,
        Kind::String | Kind::Symbol => 15,
        Kind::Document => 20,
        Kind::Array => 25,
        Kind::Binary => 30,
        Kind::ObjectId => 35,
        Kind::Boolean => 40,
        Kind::DateTime => 45,
        Kind::Timestamp => 47,
        Kind::Regex => 50,
        Kind::DbPointer => 55,
        Kind::Code => 60,
        Kind::CodeWithScope => 65,
        Kind::MaxKey => 127,
    }
}

/// Whether field names count: they do in documents, not in arrays.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    Compared,
    Ignored,
}

/// Compares two values; `depth` counts the documents around them. Strings compare by the collator,
/// if there is one.
pub(crate) fn compare_any(a: Value<'_>, b: Value<'_>, depth: usize, collator: Option<&Collator>) -> Ordering {
    let ranks = type_rank(a).cmp(&type_rank(b));
    ranks.then_with(|| compare_within_rank(a, b, depth, collator))
}

fn compare_within_rank(a: Value<'_>, b: Value<'_>, depth: usize, collator: Option<&Collator>) -> Ordering {
    match (a, b) {
        (Value::String(a) | Value::Symbol(a), Value::String(b) | Value::Symbol(b)) => match collator {
            None => compare_bytes(a.as_bytes(), b.as_bytes()),
            Some(collator) => collator.compare(a, b),
        },
        (Value::Document(a), Value::Document(b)) => compare_elements(a, b, Names::Compared, depth + 1, collator),
        (Value::Array(a), Value::Array(b)) => compare_elements(a, b, Names::Ignored, depth + 1, collator),
        (Value::Binary { subtype: a_type, bytes: a }, Value::Binary { subtype: b_type, bytes: b }) => {
            a.len().cmp(&b.len()).then(a_type.cmp(&b_type)).then_with(|| compare_bytes(a, b))
        }
        (Value::ObjectId(a), Value::ObjectId(b)) => a.cmp(&b),
        (Value::Boolean(a), Value::Boolean(b)) => a.cmp(&b),
        (Value::DateTime(a), Value::DateTime(b)) => a.cmp(&b),
        (
            Value::Timestamp { time: a, increment: a_increment },
            Value::Timestamp { time: b, increment: b_increment },
        ) => a.cmp(&b).then(a_increment.cmp(&b_increment)),
        (Value::Regex { pattern: a, options: a_options }, Value::Regex { pattern: b, options: b_options }) => {
            a.as_bytes().cmp(b.as_bytes()).then_with(|| a_options.as_bytes().cmp(b_options.as_bytes()))
        }
        (Value::DbPointer { namespace: a, id: a_id }, Value::DbPointer { namespace: b, id: b_id }) => {
            a.len().cmp(&b.len()).then_with(|| a.as_bytes().cmp(b.as_bytes())).then(a_id.cmp(&b_id))
        }
        (Value::IllFormed { .. }, _) | (_, Value::IllFormed { .. }) => compare_ill_formed(a, b, depth, collator),
        (Value::Code(a), Value::Code(b)) => compare_bytes(a.as_bytes(), b.as_bytes()),
        (Value::CodeWithScope { code: a, scope: a_scope }, Value::CodeWithScope { code: b, scope: b_scope }) => a
            .as_bytes()
            .cmp(b.as_bytes())
            .then_with(|| compare_elements(a_scope, b_scope, Names::Compared, depth + 1, collator)),
        _ => compare_numbers(a, b),
    }
}

/// Compares two values of one rank, one of which has text that is not UTF-8, by their bytes. A
/// collator gets U+FFFD in place of bytes that it could not read.
#[cold]
fn compare_ill_formed(a: Value<'_>, b: Value<'_>, depth: usize, collator: Option<&Collator>) -> Ordering {
    let (Some(a_parts), Some(b_parts)) = (a.texts(), b.texts()) else { return Ordering::Equal };
    match (a.kind(), collator) {
        (Kind::DbPointer, _) => {
            let lengths = a_parts.text.len().cmp(&b_parts.text.len());
            lengths.then_with(|| a_parts.text.cmp(b_parts.text)).then_with(|| a_parts.id.cmp(&b_parts.id))
        }
        (Kind::String | Kind::Symbol, Some(collator)) => {
            collator.compare(&String::from_utf8_lossy(a_parts.text), &String::from_utf8_lossy(b_parts.text))
        }
        _ => a_parts
            .text
            .cmp(b_parts.text)
            .then_with(|| a_parts.options.cmp(b_parts.options))
            .then_with(|| compare_elements(a_parts.scope, b_parts.scope, Names::Compared, depth + 1, collator)),
    }
}

/// Compares numbers of any two types; other pairs of one rank have only one value.
fn compare_numbers(a: Value<'_>, b: Value<'_>) -> Ordering {
    match (Number::of(a), Number::of(b)) {
        (Some(Number::Integer(a)), Some(Number::Integer(b))) => a.cmp(&b),
        (Some(Number::Double(a)), Some(Number::Double(b))) => number::compare_doubles(a, b),
        (Some(Number::Decimal(a)), Some(Number::Decimal(b))) => number::compare_decimals(a, b),
        (Some(Number::Integer(a)), Some(Number::Double(b))) => number::compare_integer_double(a, b),
        (Some(Number::Double(a)), Some(Number::Integer(b))) => number::compare_integer_double(b, a).reverse(),
        (Some(Number::Integer(a)), Some(Number::Decimal(b))) => number::compare_integer_decimal(a, b),
        (Some(Number::Decimal(a)), Some(Number::Integer(b))) => number::compare_integer_decimal(b, a).reverse(),
        (Some(Number::Double(a)), Some(Number::Decimal(b))) => number::compare_double_decimal(a, b),
        (Some(Number::Decimal(a)), Some(Number::Double(b))) => number::compare_double_decimal(b, a).reverse(),
        (None, _) | (_, None) => Ordering::Equal,
    }
}

enum Number {
    Integer(i64),
    Double(f64),
    Decimal(Decimal128),
}

impl Number {
    fn of(value: Value<'_>) -> Option<Number> {
        Some(match value {
            Value::Int32(number) => Number::Integer(number.into()),
            Value::Int64(number) => Number::Integer(number),
            Value::Double(number) => Number::Double(number),
            Value::Decimal128(number) => Number::Decimal(number),
            _ => return None,
        })
    }
}

fn compare_elements(a: Doc<'_>, b: Doc<'_>, names: Names, depth: usize, collator: Option<&Collator>) -> Ordering {
    // Documents deeper than a client can send come from a damaged file: protecting the stack
    // matters more than their order.
    steps::bytes(a.size().min(b.size()));
    if a.as_bytes() == b.as_bytes() || depth > DEPTH_MAX {
        return a.as_bytes().cmp(b.as_bytes());
    }
    let (mut a, mut b) = (a.elements(), b.elements());
    loop {
        steps::step();
        let order = match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(a), Some(b)) => compare_element(a, b, names, depth, collator),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

fn compare_element(
    a: Element<'_>,
    b: Element<'_>,
    names: Names,
    depth: usize,
    collator: Option<&Collator>,
) -> Ordering {
    let ranks = kind_rank(a.kind).cmp(&kind_rank(b.kind));
    if ranks != Ordering::Equal {
        return ranks;
    }
    if names == Names::Compared && a.key_bytes() != b.key_bytes() {
        return restore_bytes(a.key_bytes()).cmp(&restore_bytes(b.key_bytes()));
    }
    compare_within_rank(a.value(), b.value(), depth, collator)
}

/// Feeds a value into a hasher so that values that are [`equal`] have equal hashes.
pub fn hash_value<H: Hasher>(value: Value<'_>, state: &mut H) {
    hash_nested(value, state, 0, None);
}

pub(crate) fn hash_nested<H: Hasher>(value: Value<'_>, state: &mut H, depth: usize, collator: Option<&Collator>) {
    state.write_u8(type_rank(value));
    match value {
        Value::Double(number) => hash_double(number, state),
        Value::Int32(number) => state.write_i64(number.into()),
        Value::Int64(number) => state.write_i64(number),
        Value::Decimal128(number) => hash_decimal(number, state),
        Value::String(text) | Value::Symbol(text) if collator.is_some() => {
            if let Some(collator) = collator {
                state.write(&collator.sort_key(text));
            }
            state.write_u8(u8::MAX);
        }
        Value::String(text) | Value::Symbol(text) | Value::Code(text) => hash_text(text, state),
        Value::Document(document) => hash_elements(document, Names::Compared, state, depth + 1, collator),
        Value::Array(array) => hash_elements(array, Names::Ignored, state, depth + 1, collator),
        Value::Binary { subtype, bytes } => {
            state.write_usize(bytes.len());
            state.write_u8(subtype);
            steps::bytes(bytes.len());
            state.write(bytes);
        }
        Value::ObjectId(id) => state.write(&id.0),
        Value::Boolean(flag) => state.write_u8(flag.into()),
        Value::DateTime(milliseconds) => state.write_i64(milliseconds),
        Value::Timestamp { time, increment } => state.write_u64(u64::from(time) << 32 | u64::from(increment)),
        Value::Regex { pattern, options } => {
            hash_text(pattern, state);
            hash_text(options, state);
        }
        Value::DbPointer { namespace, id } => {
            hash_text(namespace, state);
            state.write(&id.0);
        }
        Value::CodeWithScope { code, scope } => {
            hash_text(code, state);
            hash_elements(scope, Names::Compared, state, depth + 1, collator);
        }
        Value::Undefined | Value::Null | Value::MaxKey | Value::MinKey => {}
        Value::IllFormed { kind, .. } => hash_ill_formed(kind, value, state, depth, collator),
    }
}

/// As for other values of the type.
#[cold]
fn hash_ill_formed<H: Hasher>(kind: Kind, value: Value<'_>, state: &mut H, depth: usize, collator: Option<&Collator>) {
    let Some(parts) = value.texts() else { return };
    match (kind, collator) {
        (Kind::String | Kind::Symbol, Some(collator)) => {
            state.write(&collator.sort_key(&String::from_utf8_lossy(parts.text)));
            state.write_u8(u8::MAX);
        }
        _ => hash_bytes(parts.text, state),
    }
    match kind {
        Kind::Regex => hash_bytes(parts.options, state),
        Kind::DbPointer => state.write(&parts.id.0),
        Kind::CodeWithScope => hash_elements(parts.scope, Names::Compared, state, depth + 1, collator),
        _ => {}
    }
}

fn hash_elements<H: Hasher>(document: Doc<'_>, names: Names, state: &mut H, depth: usize, collator: Option<&Collator>) {
    if depth > DEPTH_MAX {
        return;
    }
    for element in document.elements() {
        steps::step();
        if names == Names::Compared {
            state.write(element.key_bytes());
        }
        hash_nested(element.value(), state, depth, collator);
    }
    state.write_u8(u8::MAX);
}

fn hash_text<H: Hasher>(text: &str, state: &mut H) {
    hash_bytes(text.as_bytes(), state);
}

fn hash_bytes<H: Hasher>(text: &[u8], state: &mut H) {
    steps::bytes(text.len());
    state.write(text);
    state.write_u8(u8::MAX);
}

/// Integers in the int64 range are hashed as such; other numbers as the nearest double.
fn hash_double<H: Hasher>(number: f64, state: &mut H) {
    let whole = number as i64;
    if whole as f64 == number && whole != i64::MAX {
        state.write_i64(whole);
    } else {
        state.write_u64(if number.is_nan() { f64::NAN.to_bits() } else { number.to_bits() });
    }
}

fn hash_decimal<H: Hasher>(number: Decimal128, state: &mut H) {
    match number.parts() {
        Parts::NotANumber => hash_double(f64::NAN, state),
        Parts::Infinity { negative } => hash_double(if negative { f64::NEG_INFINITY } else { f64::INFINITY }, state),
        Parts::Finite { .. } => match number.to_i64_exact() {
            Some(whole) => state.write_i64(whole),
            None => state.write_u64(number.to_f64().to_bits()),
        },
    }
}

#[cfg(test)]
mod tests;
