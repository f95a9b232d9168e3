//! Random documents, values and filters that checks draw from.

use document::{Decimal128, DocBuf, Kind, ObjectId, Value, ValueBuf, array, doc};

/// A small generator (xorshift) with a seed, so that a failure can be repeated.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Returns documents whose fields have many types, arrays among them, or are missing.
pub fn documents(count: i32) -> Vec<DocBuf> {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    (0..count)
        .map(|id| {
            let mut document = doc! { "_id": id, "n": id };
            for field in ["a", "b"] {
                let number = random.below(10) as i32;
                match random.below(12) {
                    0 => {}
                    1 => document.append(field, Value::Null),
                    2 => document.append(field, "text"),
                    3 => document.append(field, f64::from(number) + 0.5),
                    4 => document.append(field, i64::from(number)),
                    // Two arrays cannot be indexed together.
                    5 if field == "a" => document.append(field, &array![number, number + 3]),
                    6 if field == "a" => document.append(field, &array![]),
                    7 => document.append(field, f64::NAN),
                    8 => document.append(field, &doc! { "x": number }),
                    9 => document.append(field, Value::DateTime(i64::from(number))),
                    _ => document.append(field, number),
                }
            }
            let inner = doc! { "d": random.below(5) as i32 };
            match random.below(4) {
                0 => document.append("c", &array![&inner, 1, &doc! { "d": 7 }]),
                1 => document.append("c", 5),
                _ => document.append("c", &inner),
            }
            document
        })
        .collect()
}

/// Returns filters on the fields of [`documents`].
pub fn filters() -> Vec<DocBuf> {
    let between = |low: i32, high: i32| doc! { "$gt": low, "$lt": high };
    vec![
        doc! {},
        doc! { "a": 3 },
        doc! { "a": 3.0, "b": 4 },
        doc! { "a": Value::Null },
        doc! { "a": &doc! { "$ne": Value::Null } },
        doc! { "a": &doc! { "$exists": false } },
        doc! { "a": "text" },
        doc! { "a": f64::NAN },
        doc! { "a": &doc! { "$gt": 5 } },
        doc! { "a": &doc! { "$gte": 5 }, "b": &doc! { "$lte": 3 } },
        doc! { "a": &doc! { "$lt": 2 } },
        doc! { "a": &doc! { "$lte": f64::NAN } },
        doc! { "a": &doc! { "$gte": "" } },
        doc! { "a": &doc! { "$lt": "u" } },
        doc! { "a": &doc! { "$gte": Value::Null } },
        doc! { "a": &doc! { "$lt": Value::DateTime(5) } },
        doc! { "a": &doc! { "$gt": Value::MinKey } },
        doc! { "a": &between(2, 6) },
        doc! { "a": &between(6, 2) },
        doc! { "a": &doc! { "$in": &array![1, 3, "text", Value::Null] } },
        doc! { "a": &doc! { "$in": &array![] } },
        doc! { "a": &doc! { "$nin": &array![1, 2, 3] } },
        doc! { "a": &array![] },
        doc! { "a": &array![3, 6] },
        doc! { "a": &doc! { "x": 3 } },
        doc! { "a.x": 3 },
        doc! { "a.0": &doc! { "$gte": 0 } },
        doc! { "a": &doc! { "$elemMatch": &between(1, 5) } },
        doc! { "b": 5, "a": &doc! { "$gt": 1 } },
        doc! { "b": &doc! { "$in": &array![1, 2] }, "a": &doc! { "$in": &array![3, 4] } },
        doc! { "c.d": 2 },
        doc! { "c.d": 7 },
        doc! { "c.d": &doc! { "$gt": 2, "$lt": 7 } },
        doc! { "c.d": Value::Null },
        doc! { "_id": 17 },
        doc! { "_id": &between(10, 20), "a": &doc! { "$gt": 2 } },
        doc! { "_id": &doc! { "$in": &array![1, 2, 500] }, "b": &doc! { "$ne": 3 } },
        doc! { "n": &doc! { "$gte": 290 } },
        doc! { "n": &doc! { "$not": &doc! { "$gte": 10 } } },
        doc! { "$or": &array![&doc! { "a": 1 }, &doc! { "b": 2 }] },
        doc! { "$and": &array![&doc! { "a": &doc! { "$gt": 1 } }, &doc! { "a": &doc! { "$lt": 4 } }] },
        doc! { "$nor": &array![&doc! { "a": 1 }] },
    ]
}

/// Returns the seed: `SELKIE_SEED`, as for the random commands of the comparison, or a constant.
pub fn seed() -> u64 {
    let seed = std::env::var("SELKIE_SEED").ok().and_then(|seed| seed.parse::<u64>().ok());
    seed.unwrap_or(0).wrapping_mul(0x9E37_79B9) & 0xFFFF_FFFF_FFFF
}

pub fn pick<'t, T: ?Sized>(random: &mut Random, among: &[&'t T]) -> &'t T {
    among[random.below(among.len() as u64) as usize]
}

/// Returns a value of any type, drawn from few values so that several documents share it.
pub fn value(random: &mut Random, depth: u64) -> ValueBuf {
    let number = random.below(7) as i32 - 1;
    let scalar = match random.below(if depth == 0 { 17 } else { 23 }) {
        0 => Value::Null,
        1 => Value::Boolean(number > 2),
        2 => Value::Int64(i64::from(number)),
        3 => Value::Int64((1 << 53) + i64::from(number)),
        4 => Value::Double(f64::from(number) + 0.5),
        5 => Value::Double(f64::from(number)),
        6 => Value::Double(pick(random, &[&f64::NAN, &-0.0, &f64::INFINITY, &9_007_199_254_740_992.0]).to_owned()),
        7 => Value::Decimal128(Decimal128::from_parts(number < 0, number.unsigned_abs().into(), -1).unwrap()),
        8 | 9 => Value::String(pick(random, &["", "a", "A", "ab", "b", "a.b", "\u{e4}", "5", "a\0b"])),
        10 => Value::DateTime(i64::from(number)),
        11 => Value::ObjectId(ObjectId([number as u8; 12])),
        12 => pick(
            random,
            &[&Value::MinKey, &Value::MaxKey, &Value::Undefined, &Value::Timestamp { time: 1, increment: 2 }],
        )
        .to_owned(),
        13 => Value::Binary { subtype: 0, bytes: &[1, 2] },
        14..=16 => Value::Int32(number),
        17..=19 => return Value::Document(object(random, depth).as_doc()).to_owned(),
        _ => return list(random, depth),
    };
    scalar.to_owned()
}

fn object(random: &mut Random, depth: u64) -> DocBuf {
    let mut object = DocBuf::new();
    for name in ["x", "y"] {
        if random.below(3) > 0 {
            object.append(name, &value(random, depth - 1));
        }
    }
    object
}

fn list(random: &mut Random, depth: u64) -> ValueBuf {
    let elements: Vec<ValueBuf> = (0..random.below(4)).map(|_| value(random, depth - 1)).collect();
    array_of(&elements)
}

pub fn array_of(elements: &[ValueBuf]) -> ValueBuf {
    let mut bytes = Vec::new();
    let mut array = document::ArrayWriter::begin(&mut bytes);
    elements.iter().for_each(|element| array.push(element));
    drop(array);
    ValueBuf::from_raw(Kind::Array, bytes)
}
