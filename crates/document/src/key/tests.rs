use super::*;
use crate::testing::{numbers, values};
use crate::{ValueBuf, compare};
use proptest::prelude::*;
use std::cmp::Ordering;

fn key(value: Value<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    encode(value, &mut out);
    out
}

fn tuple_key(values: &[&ValueBuf], ascending: &[bool]) -> Vec<u8> {
    let mut out = Vec::new();
    for (value, ascending) in values.iter().zip(ascending) {
        encode_field(Some(value.as_value()), *ascending, &mut out);
    }
    out
}

/// Checks a value's key, in hexadecimal: the format must not change by accident.
fn check_key<'v>(value: impl Into<Value<'v>>, expected: &str) {
    let value = value.into();
    let hex: String = key(value).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, expected, "{value:?}");
}

#[test]
fn format_of_numbers() {
    check_key(0, "2c");
    check_key(-0.0, "2c");
    check_key(1, "2e02");
    check_key(1.0, "2e02");
    check_key(-1, "2afd");
    check_key(127, "2efe");
    check_key(128, "2f0100");
    check_key(1.5, "2e0380000000000000");
    check_key(i64::MAX, "35fffffffffffffffe");
    check_key(i64::MIN, "22783fffffffffffff");
    check_key(f64::INFINITY, "37");
    check_key(f64::NEG_INFINITY, "21");
    check_key(f64::NAN, "20");
    check_key(0.5, "2d7fc0000000000000");
}

#[test]
fn format_of_others() {
    check_key(Value::MinKey, "05");
    check_key(Value::Null, "10");
    check_key("a\0\u{1}\u{2}", "4061010101020200");
    check_key(true, "69");
    check_key(Value::DateTime(1), "708000000000000001");
    check_key(Value::MaxKey, "f0");
}

fn check_pair(a: &ValueBuf, b: &ValueBuf) -> Result<(), TestCaseError> {
    let order = compare(a.into(), b.into());
    let (a_key, b_key) = (key(a.into()), key(b.into()));
    prop_assert_eq!(a_key.cmp(&b_key), order, "{:?} {:02x?} {:?} {:02x?}", a, &a_key, b, &b_key);
    prop_assert!(a_key == b_key || !(a_key.starts_with(&b_key) || b_key.starts_with(&a_key)), "not prefix-free");
    let descending = tuple_key(&[a], &[false]).cmp(&tuple_key(&[b], &[false]));
    prop_assert_eq!(descending, order.reverse());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn numbers_order_as_compared(a in numbers(), b in numbers()) {
        check_pair(&a, &b)?;
    }

    #[test]
    fn values_order_as_compared(a in values(), b in values()) {
        check_pair(&a, &b)?;
    }

    #[test]
    fn tuples_order_as_compared(
        left in [values(), values()], right in [values(), values()], ascending in any::<[bool; 2]>(), same in any::<bool>()
    ) {
        let [a1, a2] = &left;
        let [b1, b2] = if same { [a1, &right[1]] } else { [&right[0], &right[1]] };
        let directed = |order: Ordering, ascending| if ascending { order } else { order.reverse() };
        let first = directed(compare(a1.into(), b1.into()), ascending[0]);
        let order = first.then(directed(compare(a2.into(), b2.into()), ascending[1]));
        prop_assert_eq!(tuple_key(&[a1, a2], &ascending).cmp(&tuple_key(&[b1, b2], &ascending)), order);
    }

    #[test]
    fn rows_of_keys_are_split_again(
        first in values(), second in values(), ascending in any::<[bool; 2]>()
    ) {
        let row = tuple_key(&[&first, &second], &ascending);
        let (one, rest) = split(&row, !ascending[0]).unwrap();
        prop_assert_eq!(one, tuple_key(&[&first], &ascending[..1]), "{:?}", first);
        prop_assert_eq!(split(rest, !ascending[1]), Some((rest, &[][..])), "{:?}", second);
        prop_assert_eq!(split(&one[..one.len() - 1], !ascending[0]), None);
    }
}
