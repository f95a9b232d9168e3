//! Values for property tests.

use crate::decimal::COEFFICIENT_MAX;
use crate::{ArrayWriter, Decimal128, Doc, DocWriter, Kind, ObjectId, Value, ValueBuf};
use proptest::prelude::*;

/// Numbers of all four types, dense where types meet: small integers, 2^53, 2^63, simple fractions,
/// the limits of the double range.
pub fn numbers() -> BoxedStrategy<ValueBuf> {
    prop_oneof![
        4 => integers().prop_map(|number| ValueBuf::from(Value::Int64(number))),
        3 => (-300i32..300).prop_map(|number| ValueBuf::from(Value::Int32(number))),
        1 => any::<i32>().prop_map(|number| ValueBuf::from(Value::Int32(number))),
        6 => doubles().prop_map(|number| ValueBuf::from(Value::Double(number))),
        6 => decimals().prop_map(|number| ValueBuf::from(Value::Decimal128(number))),
    ]
    .boxed()
}

fn integers() -> BoxedStrategy<i64> {
    let edges = prop::sample::select(vec![0, 1 << 31, 1 << 53, 1 << 62, i64::MAX, i64::MIN, -(1 << 53), -(1 << 31)]);
    prop_oneof![
        -300i64..300,
        (edges, -5i64..5).prop_map(|(edge, offset)| edge.wrapping_add(offset)),
        (any::<i64>(), 0u32..64).prop_map(|(number, shift)| number >> shift),
    ]
    .boxed()
}

fn doubles() -> BoxedStrategy<f64> {
    let special = vec![
        0.0,
        -0.0,
        f64::NAN,
        -f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MAX,
        f64::MIN,
        f64::MIN_POSITIVE,
        5e-324,
        -5e-324,
        0.1,
        0.2,
        1.1,
        1e22,
        1e23,
        9_223_372_036_854_775_808.0,
        -9_223_372_036_854_775_808.0,
        1.5,
        2.5,
        1e300,
    ];
    prop_oneof![
        2 => prop::sample::select(special),
        2 => (-300i32..300, 0i32..8).prop_map(|(number, shift)| f64::from(number) / f64::from(1 << shift)),
        2 => (-30000i32..30000).prop_map(|number| f64::from(number) / 100.0),
        2 => integers().prop_map(|number| number as f64),
        1 => any::<u64>().prop_map(f64::from_bits),
    ]
    .boxed()
}

pub fn decimals() -> BoxedStrategy<Decimal128> {
    let finite = |(negative, coefficient, exponent)| {
        Decimal128::from_parts(negative, coefficient, exponent).unwrap_or(Decimal128([0; 16]))
    };
    prop_oneof![
        1 => any::<[u8; 16]>().prop_map(Decimal128),
        3 => (any::<bool>(), 0u128..30000, -4i32..3).prop_map(finite),
        2 => (any::<bool>(), 0u128..=COEFFICIENT_MAX, -40i32..3).prop_map(finite),
        1 => (any::<bool>(), 0u128..=COEFFICIENT_MAX, -6176i32..6112).prop_map(finite),
        2 => (any::<bool>(), 1u128..1000, -345i32..320).prop_map(finite),
        2 => (integers(), 0i32..10, 0u128..3).prop_map(move |(number, zeros, more)| {
            let coefficient = u128::from(number.unsigned_abs()) * 10u128.pow(zeros as u32) + more;
            finite((number < 0, coefficient, -zeros))
        }),
        3 => doubles().prop_map(near_double),
    ]
    .boxed()
}

/// The decimal of a double's digits: often equal to it, sometimes just beside it.
fn near_double(double: f64) -> Decimal128 {
    let text = format!("{double:.33e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or(("0", "0"));
    let negative = mantissa.starts_with('-');
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let exponent = exponent.parse::<i32>().unwrap_or(0) - (digits.len() as i32 - 1);
    Decimal128::from_parts(negative, digits.parse().unwrap_or(0), exponent).unwrap_or(Decimal128([0; 16]))
}

fn short_text() -> BoxedStrategy<String> {
    prop_oneof![
        4 => "[ab\\x00\\x01]{0,3}",
        1 => "[a-zA-Zäß€😀\"\\\\/\\n\\t\\x7f$.0]{0,12}",
    ]
    .boxed()
}

pub fn keys() -> BoxedStrategy<String> {
    prop_oneof![
        6 => "[ab]{0,2}",
        2 => prop::sample::select(vec!["$a", "$$b", "$oid", "$date", "$numberLong", "$binary", "0", "1", "_id", "$type",
            "$regex", "$options", "$code", "$scope", "$ref", "$id", "$bson", "a.b", "", "ü\u{1}\"\\", "$numberDouble",
            "$timestamp", "$minKey", "$undefined", "$symbol", "$dbPointer", "$uuid", "$numberInt", "$numberDecimal"])
            .prop_map(str::to_owned),
    ]
    .boxed()
}

fn scalars() -> BoxedStrategy<ValueBuf> {
    let fixed = vec![
        Value::MinKey,
        Value::MaxKey,
        Value::Null,
        Value::Undefined,
        Value::Boolean(true),
        Value::Boolean(false),
        Value::DateTime(0),
        Value::DateTime(-1),
        Value::DateTime(1_600_000_000_123),
        Value::DateTime(253_402_300_799_999),
        Value::DateTime(253_402_300_800_000),
        Value::DateTime(i64::MAX),
        Value::DateTime(i64::MIN),
    ];
    let fixed: Vec<ValueBuf> = fixed.into_iter().map(ValueBuf::from).collect();
    prop_oneof![
        2 => prop::sample::select(fixed),
        4 => numbers(),
        3 => short_text().prop_map(|text| ValueBuf::from(Value::String(&text))),
        1 => short_text().prop_map(|text| ValueBuf::from(Value::Symbol(&text))),
        1 => short_text().prop_map(|text| ValueBuf::from(Value::Code(&text))),
        1 => (0u8..7, prop::collection::vec(0u8..3, 0..4))
            .prop_map(|(subtype, bytes)| ValueBuf::from(Value::Binary { subtype, bytes: &bytes })),
        1 => (any::<u8>(), prop::collection::vec(any::<u8>(), 0..20))
            .prop_map(|(subtype, bytes)| ValueBuf::from(Value::Binary { subtype, bytes: &bytes })),
        1 => any::<[u8; 12]>().prop_map(|bytes| ValueBuf::from(Value::ObjectId(ObjectId(bytes)))),
        1 => any::<i64>().prop_map(|date| ValueBuf::from(Value::DateTime(date))),
        1 => (0i64..4_102_444_800_000).prop_map(|date| ValueBuf::from(Value::DateTime(date))),
        1 => (any::<u32>(), 0u32..3).prop_map(|(time, increment)| ValueBuf::from(Value::Timestamp { time, increment })),
        1 => ("[ab^$\\\\/\"]{0,3}", "[imsxz]{0,3}")
            .prop_map(|(pattern, options)| ValueBuf::from(Value::Regex { pattern: &pattern, options: &options })),
        1 => (short_text(), any::<[u8; 12]>())
            .prop_map(|(namespace, id)| ValueBuf::from(Value::DbPointer { namespace: &namespace, id: ObjectId(id) })),
        2 => ill_formed(),
    ]
    .boxed()
}

/// Values with text of any bytes, mostly not UTF-8.
fn ill_formed() -> BoxedStrategy<ValueBuf> {
    let bytes = || prop::collection::vec(prop::sample::select(b"a\x01\x80\xC3\xA9\xE9\xF4\xFF".to_vec()), 0..5);
    let string = |text: &[u8]| ValueBuf::from_string_bytes(text).raw_value().to_vec();
    let joined = |parts: [&[u8]; 2]| parts.concat();
    prop_oneof![
        4 => (prop::sample::select(vec![Kind::String, Kind::Symbol, Kind::Code]), bytes())
            .prop_map(move |(kind, text)| ValueBuf::from_raw(kind, string(&text))),
        1 => (bytes(), bytes()).prop_map(move |(pattern, options)| {
            ValueBuf::from_raw(Kind::Regex, [&pattern[..], b"\0", &options, b"\0"].concat())
        }),
        1 => (bytes(), any::<[u8; 12]>())
            .prop_map(move |(text, id)| ValueBuf::from_raw(Kind::DbPointer, joined([&string(&text), &id]))),
        1 => (bytes(), bytes()).prop_map(move |(code, text)| {
            let scope = document_bytes(&[("a".to_owned(), ValueBuf::from_string_bytes(&text))]);
            let body = joined([&string(&code), &scope]);
            let length = (body.len() as i32 + 4).to_le_bytes();
            ValueBuf::from_raw(Kind::CodeWithScope, joined([&length, &body]))
        }),
    ]
    .boxed()
}

fn document_bytes(elements: &[(String, ValueBuf)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = DocWriter::begin(&mut bytes);
    for (key, value) in elements {
        writer.append(key, value);
    }
    drop(writer);
    bytes
}

fn array_bytes(values: &[ValueBuf]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = ArrayWriter::begin(&mut bytes);
    values.iter().for_each(|value| writer.push(value));
    drop(writer);
    bytes
}

fn doc(bytes: &[u8]) -> Doc<'_> {
    Doc::from_bytes(bytes).expect("a document that was just built")
}

/// Values of every type, nested a few levels.
pub fn values() -> BoxedStrategy<ValueBuf> {
    scalars()
        .prop_recursive(4, 24, 4, |inner| {
            let fields = prop::collection::vec((keys(), inner.clone()), 0..4);
            prop_oneof![
                fields.clone().prop_map(|fields| ValueBuf::from(Value::Document(doc(&document_bytes(&fields))))),
                prop::collection::vec(inner, 0..4)
                    .prop_map(|values| ValueBuf::from(Value::Array(doc(&array_bytes(&values))))),
                (short_text(), fields).prop_map(|(code, fields)| {
                    ValueBuf::from(Value::CodeWithScope { code: &code, scope: doc(&document_bytes(&fields)) })
                }),
            ]
        })
        .boxed()
}

/// Whole documents.
pub fn documents() -> BoxedStrategy<Vec<u8>> {
    prop::collection::vec((keys(), values()), 0..6).prop_map(|fields| document_bytes(&fields)).boxed()
}
