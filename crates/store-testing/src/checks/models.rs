//! Random operations, compared with a list of documents in memory; and the documents and filters that checks draw from.

use super::*;
use document::{array, doc};

pub fn checks() -> Vec<Check> {
    vec![("model", random_writes_agree_with_a_model)]
}

/// A small generator, so that a failure repeats itself.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Documents whose fields have all sorts of types, arrays among them, and are missing here and there.
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

fn random_writes_agree_with_a_model(suite: &Suite) {
    suite.create_index(index(doc! { "a": 1 }, doc! {})).unwrap();
    suite.create_index(index(doc! { "u": 1 }, doc! { "unique": true, "sparse": true })).unwrap();
    suite.create_index(index(doc! { "b": 1, "a": -1 }, doc! {})).unwrap();
    let mut model: Vec<DocBuf> = Vec::new();
    let mut random = Random(42);
    for step in 0..600 {
        let id = random.below(40) as i32;
        let unique = random.below(60) as i32;
        let number = random.below(8) as i32;
        match random.below(7) {
            0 | 1 => {
                let document = doc! { "_id": id, "a": number, "u": unique };
                let free = !model.iter().any(|other| clashes(other, id, unique));
                let outcome = suite.write(inserts(std::slice::from_ref(&document)), true).remove(0);
                assert_eq!(outcome.is_ok(), free, "step {step}");
                if free {
                    model.push(document);
                }
            }
            2 => {
                let change = doc! { "$set": &doc! { "u": unique } };
                let taken =
                    model.iter().any(|other| field(other, "u") == Some(unique) && field(other, "_id") != Some(id));
                let there = model.iter().any(|other| field(other, "_id") == Some(id));
                let outcome = suite.update(update(doc! { "_id": id }, change.clone()));
                assert_eq!(outcome.is_ok(), !(there && taken), "step {step}");
                if outcome.is_ok() {
                    apply(&mut model, &doc! { "_id": id }, &change, true);
                }
            }
            3 => {
                let change = doc! { "$push": &doc! { "b": number }, "$inc": &doc! { "a": 1 } };
                let filter = doc! { "a": number };
                let multi = UpdateStatement { multi: true, ..update(filter.clone(), change.clone()) };
                let outcome = suite.update(multi).unwrap();
                let modified = apply(&mut model, &filter, &change, false);
                assert_eq!(outcome.modified, modified, "step {step}");
            }
            4 => {
                let filter = doc! { "_id": id };
                let there = model.len();
                model.retain(|other| field(other, "_id") != Some(id));
                assert_eq!(suite.delete(delete(filter, true)).matched, (there - model.len()) as u64, "step {step}");
            }
            5 => {
                let filter = doc! { "b": number, "a": &doc! { "$gt": 4 } };
                let matching = predicate(&filter);
                let there = model.len();
                model.retain(|other| !matching.matches(other.as_doc()).unwrap());
                assert_eq!(suite.delete(delete(filter, false)).matched, (there - model.len()) as u64, "step {step}");
            }
            _ => {
                let filter = doc! { "a": &doc! { "$gte": number }, "b": Value::Null };
                let matching = predicate(&filter);
                let mut expected: Vec<&DocBuf> =
                    model.iter().filter(|it| matching.matches(it.as_doc()).unwrap()).collect();
                let found = suite.find(&filter);
                let mut found: Vec<&DocBuf> = found.iter().collect();
                let id = |document: &&DocBuf| field(document, "_id");
                expected.sort_by_key(id);
                found.sort_by_key(id);
                assert_eq!(found, expected, "step {step}");
            }
        }
    }
    assert_eq!(suite.all(), model);
    suite.assert_valid();
}

fn field(document: &DocBuf, name: &str) -> Option<i32> {
    match document.as_doc().get(name) {
        Some(Value::Int32(number)) => Some(number),
        _ => None,
    }
}

fn clashes(document: &DocBuf, id: i32, unique: i32) -> bool {
    field(document, "_id") == Some(id) || field(document, "u") == Some(unique)
}

fn apply(model: &mut [DocBuf], filter: &DocBuf, change: &DocBuf, one: bool) -> u64 {
    let filter = predicate(filter);
    let update = Update::parse(Value::Document(change.as_doc()), None, &Context::at(0)).unwrap();
    let mut modified = 0;
    for document in model.iter_mut().filter(|document| filter.matches(document.as_doc()).unwrap()) {
        let mut out = Vec::new();
        let applied = update.apply(document.as_doc(), &Default::default(), &mut out).unwrap();
        if applied == update::Applied::Changed {
            *document = DocBuf::from_vec(out).unwrap();
            modified += 1;
        }
        if one {
            break;
        }
    }
    modified
}
