//! The hash of a value in a `hashed` index, which `$toHashedIndexKey` returns. It is MongoDB's own:
//! the first eight bytes of an MD5 over the value's type and bytes, with numbers truncated to
//! integers first.

use crate::integer::as_i64_truncated;
use document::compare::kind_rank;
use document::names::restore;
use document::{Collation, Doc, Kind, Value};
use md5::{Digest, Md5};
use steps::Counted;

/// Returns the hash of a value.
pub fn hash(value: Value<'_>, collation: &Collation) -> i64 {
    let mut digest = Md5::new();
    digest.update(0i32.to_le_bytes());
    add(value, None, collation, &mut digest);
    let digest = digest.finalize();
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    i64::from_le_bytes(first)
}

fn add(value: Value<'_>, name: Option<&str>, collation: &Collation, digest: &mut Md5) {
    let kind = value.kind();
    digest.update(rank(kind).to_le_bytes());
    if let Some(name) = name {
        digest.update(restore(name));
        digest.update([0]);
    }
    match value {
        Value::Document(inner) | Value::Array(inner) => add_fields(inner, collation, digest),
        Value::CodeWithScope { code, scope } => {
            digest.update(code.as_bytes());
            digest.update([0]);
            add_fields(scope, collation, digest);
        }
        Value::String(_) | Value::Symbol(_) if !collation.is_simple() => {
            let mut key = Vec::new();
            collation.encode_key(value, &mut key);
            digest.update(key);
        }
        value if kind.is_number() => digest.update(whole(value).to_le_bytes()),
        value => {
            let mut raw = Vec::new();
            value.write_raw(&mut raw);
            steps::bytes(8 * raw.len());
            digest.update(raw);
        }
    }
}

fn add_fields(document: Doc<'_>, collation: &Collation, digest: &mut Md5) {
    document.iter().counted().for_each(|(name, value)| add(value, Some(name), collation, digest));
    // The end has a type, too.
    digest.update(0i32.to_le_bytes());
}

/// Truncates a number to an integer. (Decimals are truncated as well; MongoDB rounds them, and so
/// does not find 1.5 by `NumberDecimal("1.5")`.)
fn whole(number: Value<'_>) -> i64 {
    match number {
        Value::Int32(number) => i64::from(number),
        Value::Int64(number) => number,
        Value::Double(number) => number as i64,
        Value::Decimal128(decimal) => as_i64_truncated(number).unwrap_or_else(|| decimal.to_f64() as i64),
        _ => 0,
    }
}

/// Returns MongoDB's number for a type in the order of types.
fn rank(kind: Kind) -> i32 {
    match kind {
        Kind::MinKey => -1,
        Kind::Undefined => 0,
        other => i32::from(kind_rank(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{Decimal128, ObjectId, array, doc};

    #[test]
    fn equal_numbers_have_one_hash() {
        for text in ["-999999999999999999", "9223372036854775807", "-9223372036854775808", "9007199254740993", "0"] {
            let decimal = Value::Decimal128(Decimal128::parse(text).unwrap());
            let long = Value::Int64(text.parse().unwrap());
            assert_eq!(hash(decimal, &Collation::SIMPLE), hash(long, &Collation::SIMPLE), "{text}");
        }
        for (text, double) in [("1E+30", 1e30), ("-1E+30", -1e30), ("9223372036854775808", 9_223_372_036_854_775_808.0)]
        {
            let decimal = Value::Decimal128(Decimal128::parse(text).unwrap());
            assert_eq!(hash(decimal, &Collation::SIMPLE), hash(Value::Double(double), &Collation::SIMPLE), "{text}");
        }
    }

    /// Hashes read from the indexes of a 6.0 server.
    #[test]
    fn hashes_are_mongodbs() {
        let check = |value: Value<'_>, expected: i64| {
            assert_eq!(hash(value, &Collation::SIMPLE), expected, "{value:?}");
        };
        check(Value::Null, 2338878944348059895);
        check(Value::Int32(1), 5902408780260971510);
        check(Value::Double(1.7), 5902408780260971510);
        check(Value::Double(-1.5), 1140205862565771219);
        check(Value::Double(f64::NAN), 4854801880128277513);
        check(Value::Double(1e300), 921523596458303250);
        check(Value::Double(f64::NEG_INFINITY), 4532067210535695462);
        check(Value::Int64((1 << 53) + 1), -4223421864049415010);
        check(Value::String("abc"), 8478485326885698097);
        check(Value::Boolean(false), 6289544573401934092);
        check(Value::DateTime(1577836800000), -8439725397068880569);
        check(Value::ObjectId(ObjectId([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])), -8302338813528586610);
        check(Value::Timestamp { time: 3, increment: 4 }, 6327276528802014201);
        check(Value::Binary { subtype: 5, bytes: b"xy" }, -3045502449565776037);
        check(Value::Regex { pattern: "ab", options: "i" }, 4920740736561340898);
        check(Value::MinKey, 7961148599568647290);
        check(Value::Code("x"), 6541829121976638719);
        let scope = doc! { "a": 1 };
        check(Value::CodeWithScope { code: "x", scope: scope.as_doc() }, 1114765668211402900);
        check(Value::Document(scope.as_doc()), -8705610352600103477);
        check(Value::Document(Doc::EMPTY), 7980500913326740417);
        let nested = doc! { "a": &array![1, 2, &doc! { "b": 3 }] };
        check(Value::Document(nested.as_doc()), -5970833411206376371);
    }
}
