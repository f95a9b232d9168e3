//! Random documents with the fields `a` and `b`, and questions about them.

use document::{DocBuf, ObjectId, Value, doc};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

fn number(odd: bool) -> BoxedStrategy<DocBuf> {
    let decimal = |negative, coefficient: u128, exponent| {
        let decimal = document::Decimal128::from_parts(negative, coefficient, exponent).unwrap();
        doc! { "v": Value::Decimal128(decimal) }
    };
    let plain = prop_oneof![
        4 => (-4..4).prop_map(|it| doc! { "v": it }),
        2 => (-8..8).prop_map(|it| doc! { "v": f64::from(it) / 4.0 }),
        1 => (-8..8).prop_map(|it| doc! { "v": f64::from(it) / 100.0 }),
        1 => (-4i64..4).prop_map(|it| doc! { "v": it + (1 << 53) }),
        1 => (-4i64..4).prop_map(|it| doc! { "v": (it + (1 << 53)) as f64 }),
        1 => any::<i64>().prop_map(|it| doc! { "v": it }),
        1 => prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0]).prop_map(|it| doc! { "v": it }),
        2 => (any::<bool>(), 0..400u128, -2..1i32).prop_map(move |(a, b, c)| decimal(a, b, c)),
    ];
    if !odd {
        return plain.boxed();
    }
    prop_oneof![
        8 => plain,
        1 => any::<f64>().prop_map(|it| doc! { "v": it }),
        1 => prop::sample::select(vec![f64::MIN_POSITIVE, 1e300, -1e-17]).prop_map(|it| doc! { "v": it }),
        1 => (any::<bool>(), any::<u64>(), -40..30i32).prop_map(move |(a, b, c)| decimal(a, b.into(), c)),
    ]
    .boxed()
}

/// `odd`: those that have no place in an index, too.
pub fn value(odd: bool) -> BoxedStrategy<DocBuf> {
    let text = prop_oneof!["[a-c]{0,3}", "[a-cA-C !\"]{0,2}", "\\PC{0,6}", "[\\\\\"/\n\t\u{0}é💧]{0,3}"];
    let plain = prop_oneof![
        4 => number(odd),
        3 => text.prop_map(|it: String| doc! { "v": it.as_str() }),
        1 => (0..4u8).prop_map(|it| doc! { "v": ObjectId([it; 12]) }),
        1 => any::<bool>().prop_map(|it| doc! { "v": it }),
        1 => prop::sample::select(vec![0, 1, 999, 1_000, 1_709_164_800_000, -1, -471_916_800_000])
            .prop_map(|it| doc! { "v": Value::DateTime(it) }),
        1 => prop::collection::vec(any::<u8>(), 0..4).prop_map(|it| doc! { "v": Value::Binary { subtype: 4, bytes: &it } }),
        1 => Just(doc! { "v": Value::Null }),
    ];
    if !odd {
        return plain.boxed();
    }
    prop_oneof![
        12 => plain,
        1 => (0..3i32, 0..3i64).prop_map(|(a, b)| doc! { "v": &doc! { "a": a, "b": b } }),
        1 => (280usize..1500, "[ab]").prop_map(|(it, end)| doc! { "v": format!("{}{end}", "x".repeat(it)).as_str() }),
        1 => prop::sample::select(vec![Value::Symbol("a"), Value::Undefined, Value::Code("a")]).prop_map(|it| doc! { "v": it }),
        1 => prop::sample::select(vec![
            Value::Regex { pattern: "^a", options: "" },
            Value::DateTime(i64::MIN),
            Value::DateTime(i64::MAX),
            Value::DateTime(253_402_300_800_000),
            Value::Timestamp { time: 1, increment: 2 },
            Value::MinKey,
            Value::MaxKey,
        ])
        .prop_map(|it| doc! { "v": it }),
    ]
    .boxed()
}

fn field(odd: bool) -> BoxedStrategy<DocBuf> {
    let nested = |value: DocBuf| doc! { "v": &doc! { "x": value.as_doc().get("v").unwrap() } };
    if !odd {
        return value(false);
    }
    let array = prop::collection::vec(value(true), 0..3).prop_map(|values| {
        DocBuf::build(|writer| {
            let mut array = writer.array("v");
            values.iter().for_each(|it| array.push(it.as_doc().get("v").unwrap()));
        })
    });
    let listed = value(true).prop_map(|value| {
        DocBuf::build(|writer| {
            writer.array("v").document().append("x", value.as_doc().get("v").unwrap());
        })
    });
    prop_oneof![6 => value(true), 2 => array, 2 => value(true).prop_map(nested), 1 => listed].boxed()
}

pub fn condition() -> impl Strategy<Value = DocBuf> {
    let operator = prop::sample::select(vec!["$eq", "$eq", "$lt", "$lte", "$gt", "$gte", "$ne"]);
    let path = prop::sample::select(vec!["a", "a", "b", "a.x", "a.0", "_id"]);
    let values = prop::collection::vec(value(true), 2..9);
    (path, operator, values, 0..9).prop_map(|(path, operator, values, kind)| {
        let value = |at: usize| values[at % values.len()].as_doc().get("v").unwrap();
        DocBuf::build(|writer| {
            let mut inner = writer.document(path);
            match kind {
                0 | 1 => inner.append(operator, value(0)),
                2 | 5 => {
                    let mut list = inner.array(if kind == 2 { "$in" } else { "$nin" });
                    (0..values.len()).for_each(|at| list.push(value(at)));
                }
                6 => inner.document("$not").append(operator, value(0)),
                7 => inner.append("$exists", values.len() % 2 == 0),
                8 => {
                    let types = ["string", "number", "null", "object", "date", "bool", "int", "objectId", "binData"];
                    let mut list = inner.array("$type");
                    (0..values.len() / 2).for_each(|at| list.push(types[(values.len() + at) % types.len()]));
                }
                3 => {
                    inner.append("$gte", value(0));
                    inner.append("$lt", value(1));
                }
                _ => {
                    let text = value(0).as_str().unwrap_or("a");
                    let prefix: String = text.chars().take_while(|it| it.is_alphanumeric()).take(20).collect();
                    inner.append("$regex", format!("^{prefix}").as_str());
                }
            }
        })
    })
}

pub fn filter() -> impl Strategy<Value = DocBuf> {
    (prop::collection::vec(condition(), 0..3), any::<bool>()).prop_map(|(conditions, or)| {
        DocBuf::build(|writer| {
            if conditions.is_empty() {
                return;
            }
            let mut list = writer.array(if or { "$or" } else { "$and" });
            conditions.iter().for_each(|it| list.push(it));
        })
    })
}

pub fn sort() -> impl Strategy<Value = DocBuf> {
    let direction = || prop::sample::select(vec![1, -1]);
    (
        prop::sample::select(vec![vec![], vec!["a"], vec!["b"], vec!["a", "b"], vec!["_id"], vec!["a.x"]]),
        direction(),
        direction(),
    )
        .prop_map(|(paths, first, second)| {
            DocBuf::build(|writer| {
                paths.iter().zip([first, second]).for_each(|(path, direction)| writer.append(path, direction));
            })
        })
}

pub fn documents(random: &mut TestRunner, count: i32, odd: bool) -> Vec<DocBuf> {
    let fields = (field(odd), prop::option::of(field(odd)));
    (0..count)
        .map(|number| {
            let (a, b) = fields.new_tree(random).unwrap().current();
            DocBuf::build(|writer| {
                writer.append("_id", number);
                writer.append("a", a.as_doc().get("v").unwrap());
                b.iter().for_each(|b| writer.append("b", b.as_doc().get("v").unwrap()));
            })
        })
        .collect()
}
