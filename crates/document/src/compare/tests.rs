use super::*;
use crate::testing::{numbers, values};
use crate::{Doc, ObjectId, ValueBuf, array, doc};
use proptest::prelude::*;
use std::hash::DefaultHasher;

fn hash(value: Value<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    hash_value(value, &mut hasher);
    hasher.finish()
}

/// Compares all pairs: values of one group are equal, and groups ascend.
fn check_order(groups: &[Vec<ValueBuf>]) {
    for (i, left) in groups.iter().enumerate() {
        for (j, right) in groups.iter().enumerate() {
            for a in left {
                for b in right {
                    assert_eq!(compare(a.into(), b.into()), i.cmp(&j), "{a:?} against {b:?}");
                    assert_eq!(equal(a.into(), b.into()), i == j, "{a:?} against {b:?}");
                    assert!(i != j || hash(a.into()) == hash(b.into()), "hashes of {a:?} and {b:?}");
                }
            }
        }
    }
}

fn own(value: Value<'_>) -> ValueBuf {
    ValueBuf::from(value)
}

fn decimal(negative: bool, coefficient: u128, exponent: i32) -> ValueBuf {
    own(Value::Decimal128(Decimal128::from_parts(negative, coefficient, exponent).unwrap()))
}

const DECIMAL_NAN: Decimal128 = Decimal128([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x7C]);
const DECIMAL_INFINITY: Decimal128 = Decimal128([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x78]);

#[test]
fn types_are_ordered() {
    check_order(&[
        vec![own(Value::MinKey)],
        vec![own(Value::Undefined)],
        vec![own(Value::Null)],
        vec![own(1.into())],
        vec![own("a".into()), own(Value::Symbol("a"))],
        vec![own((&doc! {}).into())],
        vec![array![]],
        vec![own(Value::Binary { subtype: 0, bytes: b"" })],
        vec![own(ObjectId([0; 12]).into())],
        vec![own(false.into())],
        vec![own(true.into())],
        vec![own(Value::DateTime(i64::MIN))],
        vec![own(Value::Timestamp { time: 0, increment: 0 })],
        vec![own(Value::Regex { pattern: "", options: "" })],
        vec![own(Value::DbPointer { namespace: "", id: ObjectId([0; 12]) })],
        vec![own(Value::Code(""))],
        vec![own(Value::CodeWithScope { code: "", scope: Doc::EMPTY })],
        vec![own(Value::MaxKey)],
    ]);
}

#[test]
fn numbers_are_ordered_exactly() {
    check_order(&[
        vec![own(f64::NAN.into()), own((-f64::NAN).into()), own(Value::Decimal128(DECIMAL_NAN))],
        vec![own(f64::NEG_INFINITY.into())],
        vec![decimal(true, 1, 400)],
        vec![own(f64::MIN.into())],
        vec![own(i64::MIN.into()), own((-9_223_372_036_854_775_808.0).into())],
        vec![own((-1).into()), own((-1.0).into()), decimal(true, 100, -2)],
        vec![own((-5e-324).into())],
        vec![decimal(true, 1, -400)],
        vec![own(0.into()), own(0i64.into()), own(0.0.into()), own((-0.0).into()), decimal(true, 0, 5)],
        vec![decimal(false, 1, -400)],
        vec![decimal(false, 4, -324)],
        vec![own(5e-324.into())],
        vec![decimal(false, 5, -324)],
        vec![decimal(false, 1, -1)],
        vec![own(0.1.into())],
        vec![own(0.5.into()), decimal(false, 5, -1), decimal(false, 500, -3)],
        vec![own(1.into()), own(1i64.into()), own(1.0.into()), decimal(false, 1, 0), decimal(false, 10, -1)],
        vec![own(9_007_199_254_740_992i64.into()), own(9_007_199_254_740_992.0.into())],
        vec![own(9_007_199_254_740_993i64.into()), decimal(false, 9_007_199_254_740_993, 0)],
        vec![own(9_007_199_254_740_994.0.into())],
        vec![own(i64::MAX.into())],
        vec![decimal(false, 92_233_720_368_547_758_075, -1)],
        vec![own(9_223_372_036_854_775_808.0.into()), decimal(false, 9_223_372_036_854_775_808, 0)],
        vec![own(1e22.into()), decimal(false, 1, 22)],
        vec![own(1e23.into())],
        vec![decimal(false, 1, 23)],
        vec![own(1e308.into())],
        vec![own(f64::MAX.into())],
        vec![decimal(false, 1, 309)],
        vec![own(f64::INFINITY.into()), own(Value::Decimal128(DECIMAL_INFINITY))],
    ]);
}

#[test]
fn within_other_types() {
    check_order(&[
        vec![own("".into())],
        vec![own("\0".into())],
        vec![own("a".into())],
        vec![own("a\0".into())],
        vec![own("ab".into())],
        vec![own("b".into())],
        vec![own((&doc! {}).into())],
        vec![own((&doc! {"z": 1}).into()), own((&doc! {"z": 1.0}).into())],
        vec![own((&doc! {"z": 1, "a": 1}).into())],
        vec![own((&doc! {"z": 2}).into())],
        // The type counts before the name.
        vec![own((&doc! {"a": "x"}).into())],
        vec![array![]],
        vec![array![1], array![1.0]],
        vec![array![1, 1]],
        vec![array![2]],
        vec![array![&array![1]]],
        vec![own(Value::Binary { subtype: 0, bytes: b"\xFF" })],
        vec![own(Value::Binary { subtype: 5, bytes: b"a" })],
        vec![own(Value::Binary { subtype: 0, bytes: b"aa" })],
        vec![own(Value::DateTime(-1))],
        vec![own(Value::DateTime(0))],
        vec![own(Value::Timestamp { time: 1, increment: u32::MAX })],
        vec![own(Value::Timestamp { time: u32::MAX, increment: 0 })],
        vec![own(Value::Regex { pattern: "a", options: "i" })],
        vec![own(Value::Regex { pattern: "a", options: "x" })],
        vec![own(Value::Regex { pattern: "b", options: "" })],
        vec![own(Value::DbPointer { namespace: "b", id: ObjectId([9; 12]) })],
        vec![own(Value::DbPointer { namespace: "aa", id: ObjectId([0; 12]) })],
        vec![own(Value::CodeWithScope { code: "a", scope: Doc::EMPTY })],
        vec![own(Value::CodeWithScope { code: "a", scope: doc! {"a": 1}.as_doc() })],
        vec![own(Value::CodeWithScope { code: "b", scope: Doc::EMPTY })],
    ]);
}

fn check_laws(a: &ValueBuf, b: &ValueBuf, c: &ValueBuf) -> Result<(), TestCaseError> {
    let (a, b, c) = (a.as_value(), b.as_value(), c.as_value());
    prop_assert_eq!(compare(a, a), Ordering::Equal);
    prop_assert_eq!(compare(a, b), compare(b, a).reverse());
    if compare(a, b) != Ordering::Greater && compare(b, c) != Ordering::Greater {
        prop_assert_ne!(compare(a, c), Ordering::Greater);
    }
    prop_assert_eq!(equal(a, b), compare(a, b) == Ordering::Equal);
    if equal(a, b) {
        prop_assert_eq!(hash(a), hash(b));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn numbers_are_in_total_order(a in numbers(), b in numbers(), c in numbers()) {
        check_laws(&a, &b, &c)?;
    }

    #[test]
    fn values_are_in_total_order(a in values(), b in values(), c in values()) {
        check_laws(&a, &b, &c)?;
    }
}
