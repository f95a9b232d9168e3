//! Random writes, compared with a list of documents in memory.

use crate::random::Random;
use crate::suite::{Check, Suite, delete, index, inserts, predicate, update};
use document::{DocBuf, Value, doc};
use query::Context;
use store::UpdateStatement;
use update::Update;

pub fn checks() -> Vec<Check> {
    vec![("model", random_writes_agree_with_a_model)]
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
        if applied == update::UpdateOutcome::Changed {
            *document = DocBuf::from_vec(out).unwrap();
            modified += 1;
        }
        if one {
            break;
        }
    }
    modified
}
