//! `$push` by `_id`, which stores may carry out without reading the document: the result equals
//! that of the pure function, byte for byte.

use crate::random::{Random, array_of, seed, value};
use crate::suite::{Check, Suite, update};
use document::{DocBuf, Value, ValueBuf, doc};
use update::UpdateOutcome;

pub fn checks() -> Vec<Check> {
    vec![("pushes", random_pushes_give_what_the_pure_function_gives)]
}

const PUSHES: usize = 600;

/// Fields, of which the first is pushed to most often.
const FIELDS: [&str; 5] = ["a", "b", "a b-c_d", "\u{e4}", "c\"\\"];

fn random_pushes_give_what_the_pure_function_gives(suite: &Suite) {
    let mut random = Random(seed() ^ 0x511CE);
    for round in 0..PUSHES {
        let id = round as i32;
        let document = document(&mut random, id);
        let update_spec = push(&mut random);
        suite.insert(std::slice::from_ref(&document));
        let update = update(doc! { "_id": id }, update_spec.clone());
        let mut pure = Vec::new();
        let applied = update.update.apply(document.as_doc(), &Default::default(), &mut pure);
        let outcome = suite.update(update);
        let expected = match applied {
            Ok(UpdateOutcome::Changed) => DocBuf::from_vec(pure).unwrap(),
            _ => document.clone(),
        };
        let told = |what: &str| format!("{what} of {update_spec:?} on {document:?}");
        match (&applied, &outcome) {
            (Ok(applied), Ok(outcome)) => {
                let modified = u64::from(*applied == UpdateOutcome::Changed);
                assert_eq!((outcome.matched, outcome.modified), (1, modified), "{}", told("outcome"));
            }
            (Err(pure), Err(error)) => assert_eq!((error.code(), error.message()), (pure.code(), pure.message())),
            other => panic!("{}: {other:?}", told("outcome")),
        }
        let found = suite.find(&doc! { "_id": id });
        assert_eq!(found.first().map(DocBuf::as_bytes), Some(expected.as_bytes()), "{}", told("result"));
    }
    suite.assert_valid();
}

/// Most have an array to push to, of up to twelve elements; some have none, something else, or the
/// field twice.
fn document(random: &mut Random, id: i32) -> DocBuf {
    let mut document = doc! { "_id": id, "before": &value(random, 2) };
    for field in FIELDS {
        match random.below(12) {
            0 => {}
            1 => document.append(field, &value(random, 1)),
            2 => {
                document.append(field, &elements(random, 4));
                document.append(field, &elements(random, 4));
            }
            _ => document.append(field, &elements(random, 12)),
        }
    }
    document.append("behind", &value(random, 3));
    document
}

fn elements(random: &mut Random, below: u64) -> ValueBuf {
    let element = |random: &mut Random| match random.below(8) {
        0 => Value::String(["\"\\/", "\u{1f600}\u{7f}\n", "[1, 2]", "a , b: {c}"][random.below(4) as usize]).to_owned(),
        _ => value(random, 2),
    };
    let elements: Vec<ValueBuf> = (0..random.below(below)).map(|_| element(random)).collect();
    array_of(&elements)
}

fn push(random: &mut Random) -> DocBuf {
    let field = FIELDS[random.below(8).saturating_sub(3) as usize];
    if random.below(8) == 0 {
        return of_field("$push", &of_field(field, &value(random, 2)));
    }
    let mut clauses = doc! { "$each": &elements(random, 4) };
    let number = |random: &mut Random| match random.below(12) {
        0 => Value::Int64([i64::MIN, i64::MAX, 1 << 20, -(1 << 20), 1 << 31][random.below(5) as usize]).to_owned(),
        1 => Value::Double(random.below(5) as f64).to_owned(),
        _ => Value::Int32(random.below(30) as i32 - 15).to_owned(),
    };
    if random.below(3) > 0 {
        clauses.append("$slice", &number(random));
    }
    if random.below(3) == 0 {
        clauses.append("$position", &number(random));
    }
    if random.below(6) == 0 {
        clauses.append("$sort", if random.below(2) == 0 { 1 } else { -1 });
    }
    of_field("$push", &of_field(field, &clauses))
}

fn of_field<'v>(name: &str, value: impl Into<Value<'v>>) -> DocBuf {
    let mut document = DocBuf::new();
    document.append(name, value);
    document
}
