//! Random filters and updates: a plan finds every document that the evaluator accepts, and a
//! document read after an update is the result of the pure update function.

use crate::random::{Random, array_of, pick, seed, value};
use crate::suite::{Check, Suite, index, update};
use document::{DocBuf, Value, ValueBuf, array, doc};
use query::{Context, Predicate};
use store::IndexSpec;
use update::Update;
use update::UpdateOutcome;

pub fn checks() -> Vec<Check> {
    vec![("plans", random_filters_find_all_that_matches), ("changes", random_updates_give_what_the_pure_function_gives)]
}

const DOCUMENTS: usize = 80;
const FILTERS: usize = 120;
const UPDATES: usize = 400;

const FIELDS: [&str; 4] = ["a", "b", "c", "l"];
const PATHS: [&str; 12] = ["a", "b", "c", "l", "a.x", "c.x", "c.y.z", "l.x", "l.0", "a.1.x", "l.x.y", "_id"];

fn documents(random: &mut Random) -> Vec<DocBuf> {
    let document = |id: usize, random: &mut Random| {
        let mut document = doc! { "_id": id as i32 };
        for field in FIELDS {
            if random.below(6) > 0 {
                document.append(field, &value(random, 2));
            }
        }
        document
    };
    (0..DOCUMENTS).map(|id| document(id, random)).collect()
}

fn values(random: &mut Random) -> ValueBuf {
    let elements: Vec<ValueBuf> = (0..random.below(4)).map(|_| value(random, 1)).collect();
    array_of(&elements)
}

/// One operator with its operand.
fn operator(random: &mut Random, depth: u64) -> DocBuf {
    let mut spec = DocBuf::new();
    match random.below(if depth == 0 { 13 } else { 16 }) {
        0..=5 => spec.append(pick(random, &["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]), &value(random, 1)),
        6 => {
            spec.append("$gte", &value(random, 0));
            spec.append("$lt", &value(random, 0));
        }
        7 => spec.append(pick(random, &["$in", "$nin", "$all"]), &values(random)),
        8 => spec.append("$exists", random.below(2) == 0),
        9 => {
            spec.append("$type", pick(random, &["number", "string", "object", "array", "null", "bool", "date", "int"]))
        }
        10 => spec.append("$mod", &array![2, random.below(2) as i32]),
        11 => spec.append("$regex", pick(random, &["^a", "b$", "^ab?", "^a\\.b", "a|b", "^"])),
        12 => spec.append("$size", random.below(3) as i32),
        13 => spec.append("$not", &operator(random, depth - 1)),
        14 => spec.append("$elemMatch", &operator(random, depth - 1)),
        _ => spec.append("$elemMatch", &doc! { "x": &operator(random, depth - 1) }),
    }
    spec
}

/// Fields that equal constants.
fn expression(random: &mut Random) -> DocBuf {
    let equality = |random: &mut Random| {
        let path = format!("${}", pick(random, &PATHS));
        doc! { "$eq": &array![&*path, &doc! { "$literal": &value(random, 1) }] }
    };
    match random.below(3) {
        0 => doc! { "$and": &array![&equality(random), &equality(random)] },
        _ => equality(random),
    }
}

fn filter(random: &mut Random, depth: u64) -> DocBuf {
    let mut filter = DocBuf::new();
    if depth > 0 && random.below(4) == 0 {
        let branches: Vec<ValueBuf> = (0..1 + random.below(3))
            .map(|_| Value::Document(self::filter(random, depth - 1).as_doc()).to_owned())
            .collect();
        filter.append(pick(random, &["$and", "$or", "$nor"]), &array_of(&branches));
        return filter;
    }
    for _ in 0..1 + random.below(2) {
        let path = pick(random, &PATHS);
        match random.below(7) {
            0 | 1 => filter.append(path, &value(random, 1)),
            2 if filter.as_doc().get("$expr").is_none() => filter.append("$expr", &expression(random)),
            _ => filter.append(path, &operator(random, 1)),
        }
    }
    filter
}

/// Sets of indexes; a store leaves out what it does not have.
fn indexes() -> Vec<Vec<IndexSpec>> {
    let some = doc! { "b": &doc! { "$gt": 0 } };
    vec![
        vec![],
        vec![index(doc! { "a": 1 }, doc! {}), index(doc! { "b": -1 }, doc! { "sparse": true })],
        vec![index(doc! { "a": 1, "b": -1 }, doc! {}), index(doc! { "c.x": 1 }, doc! {})],
        vec![index(doc! { "l": 1 }, doc! {}), index(doc! { "l.x": 1, "b": 1 }, doc! {})],
        vec![index(doc! { "a": 1 }, doc! { "partialFilterExpression": &some }), index(doc! { "c": "hashed" }, doc! {})],
        vec![index(doc! { "$**": 1 }, doc! {})],
    ]
}

fn in_order(mut found: Vec<DocBuf>) -> Vec<DocBuf> {
    found.sort_by(|left, right| left.as_bytes().cmp(right.as_bytes()));
    found
}

fn random_filters_find_all_that_matches(suite: &Suite) {
    for (round, indexes) in indexes().into_iter().enumerate() {
        let mut random = Random(0x5DEE_CE66 + round as u64 + seed());
        suite.run(suite.store.drop_collection(&suite.namespace)).ok();
        let documents = documents(&mut random);
        suite.insert(&documents);
        let names: Vec<String> = indexes
            .into_iter()
            .filter_map(|index| suite.create_index(index.clone()).is_ok().then_some(index.name))
            .collect();
        for _ in 0..FILTERS {
            let filter = filter(&mut random, 2);
            let Ok(predicate) = Predicate::parse(filter.as_doc(), &Context::at(0)) else { continue };
            let matches = |document: &&DocBuf| predicate.matches(document.as_doc()).unwrap();
            let expected = in_order(documents.iter().filter(matches).cloned().collect());
            let batch = if random.below(2) == 0 { 3 } else { usize::MAX };
            let found = in_order(suite.find_in_batches(&filter, None, batch).unwrap());
            assert_eq!(found, expected, "{filter:?} with indexes {names:?} in batches of {batch}");
        }
        suite.assert_valid();
    }
}

/// Some operators on some paths.
fn change(random: &mut Random) -> DocBuf {
    let mut change = DocBuf::new();
    let operators = [
        "$set",
        "$unset",
        "$inc",
        "$mul",
        "$min",
        "$max",
        "$push",
        "$addToSet",
        "$pull",
        "$pop",
        "$rename",
        "$bit",
        "$setOnInsert",
        "$pullAll",
        "$currentDate",
    ];
    for _ in 0..1 + random.below(2) {
        let operator = pick(random, &operators);
        if change.as_doc().get(operator).is_some() {
            continue;
        }
        let mut fields = DocBuf::new();
        let path = pick(random, &PATHS);
        match operator {
            "$pull" if random.below(2) == 0 => fields.append(path, &self::operator(random, 0)),
            "$pop" => fields.append(path, if random.below(2) == 0 { 1 } else { -1 }),
            "$rename" => fields.append(path, pick(random, &["r", "b", "c.q"])),
            "$bit" => fields.append(path, &doc! { "or": 5 }),
            "$inc" | "$mul" => fields.append(path, &value(random, 0)),
            "$pullAll" => fields.append(path, &values(random)),
            "$push" | "$addToSet" if random.below(2) == 0 => fields.append(path, &doc! { "$each": &values(random) }),
            "$currentDate" => fields.append(path, true),
            _ => fields.append(path, &value(random, 2)),
        }
        change.append(operator, &fields);
    }
    change
}

fn random_updates_give_what_the_pure_function_gives(suite: &Suite) {
    let mut random = Random(0x2545_F491 + seed());
    let mut model = documents(&mut random);
    suite.insert(&model);
    for spec in [index(doc! { "a": 1 }, doc! {}), index(doc! { "l.x": 1 }, doc! {})] {
        suite.create_index(spec).unwrap();
    }
    let (mut changed, mut refused) = (0, 0);
    for _ in 0..UPDATES {
        let (target, change) = (random.below(DOCUMENTS as u64) as i32, change(&mut random));
        let filter = doc! { "_id": target };
        let Ok(parsed) = Update::parse(Value::Document(change.as_doc()), None, &Context::at(0)) else { continue };
        let document = model
            .iter_mut()
            .find(|document| document.as_doc().get("_id").is_some_and(|id| document::equal(id, target.into())))
            .unwrap();
        let mut out = Vec::new();
        let expected = parsed.apply(document.as_doc(), &Default::default(), &mut out);
        let outcome = suite.update(update(filter.clone(), change.clone()));
        match expected {
            Ok(applied) => {
                let outcome = outcome.unwrap_or_else(|error| panic!("{change:?} of {document:?}: {error}"));
                assert_eq!(
                    outcome.modified,
                    u64::from(applied == UpdateOutcome::Changed),
                    "{change:?} of {document:?}"
                );
                if applied == UpdateOutcome::Changed {
                    *document = DocBuf::from_vec(out).unwrap();
                    changed += 1;
                }
            }
            Err(error) => {
                assert_eq!(
                    outcome.err().map(|refusal| refusal.code()),
                    Some(error.code()),
                    "{change:?} of {document:?}"
                );
                refused += 1;
            }
        }
        let expected = document.clone();
        assert_eq!(suite.find(&filter), [expected], "{change:?}");
    }
    assert!(changed > UPDATES / 8 && refused > 0, "{changed} changed, {refused} refused");
    assert_eq!(in_order(suite.all()), in_order(model));
    suite.assert_valid();
}
