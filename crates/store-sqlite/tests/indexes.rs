//! An index changes how a query is executed, never its result: random documents, indexes and
//! queries, evaluated by the store and by the evaluator alone. `SELKIE_SEED` selects others,
//! `SELKIE_RANDOM` more of them.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use bytes::Bytes;
use document::path::{End, Path};
use document::{Collation, Doc, DocBuf, Value, ValueBuf, array, doc};
use error::Result;
use query::ReadFields;
use query::{Context, Predicate, Sort};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::rc::Rc;
use store::{
    DocumentStore, Flow, IndexSpec, Namespace, Plan, PrefixFiltering, PrefixVerdict, Query, ScanEnd, Sink, Statements,
    StoredDoc, WriteBatch,
};
use store_sqlite::{Options, open};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 11) % limit
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn of<'c, T>(&mut self, choices: &'c [T]) -> &'c T {
        &choices[self.below(choices.len() as u64) as usize]
    }
}

const TEXTS: [&str; 6] = ["a", "A", "ab", "b", "á", ""];

/// Values of all types, few enough to repeat.
fn scalar(random: &mut Random) -> ValueBuf {
    let number = random.below(5) as i32;
    match random.below(18) {
        0 => Value::Null.to_owned(),
        1 => Value::Double(f64::from(number)).to_owned(),
        2 => Value::Double(f64::from(number) + 0.5).to_owned(),
        3 => Value::Double(f64::NAN).to_owned(),
        4 | 5 => {
            let text: &str = random.of::<&str>(&TEXTS);
            Value::String(text).to_owned()
        }
        6 => Value::Document(doc! { "x": number }.as_doc()).to_owned(),
        7 => Value::DateTime(i64::from(number)).to_owned(),
        8 => Value::Boolean(number > 2).to_owned(),
        9 if random.one_in(3) => (*random.of(&[Value::MinKey, Value::MaxKey, Value::Undefined])).into(),
        9 => Value::Regex { pattern: "^a", options: "" }.to_owned(),
        10 => Value::Int64(i64::from(number)).to_owned(),
        _ => Value::Int32(number).to_owned(),
    }
}

fn list(random: &mut Random) -> ValueBuf {
    let mut list = Vec::new();
    for _ in 0..random.below(4) {
        list.push(match random.below(12) {
            0 => array![random.below(5) as i32],
            1 => array![],
            _ => scalar(random),
        });
    }
    array_of(&list)
}

fn array_of(values: &[ValueBuf]) -> ValueBuf {
    let mut elements = DocBuf::new();
    values.iter().enumerate().for_each(|(at, value)| elements.append(&at.to_string(), value));
    Value::Array(elements.as_doc()).to_owned()
}

fn value(random: &mut Random) -> ValueBuf {
    if random.one_in(5) { list(random) } else { scalar(random) }
}

/// A document that shares fields with the one it may be an element beside.
fn inner(random: &mut Random) -> ValueBuf {
    let mut inner = DocBuf::new();
    for field in ["d", "e"] {
        if !random.one_in(4) {
            let value = if random.one_in(8) { list(random) } else { scalar(random) };
            inner.append(field, &value);
        }
    }
    Value::Document(inner.as_doc()).to_owned()
}

fn document(random: &mut Random, id: i32) -> DocBuf {
    let mut document = doc! { "_id": id };
    for field in ["a", "b"] {
        if !random.one_in(5) {
            let value = if field == "a" { value(random) } else { scalar(random) };
            document.append(field, &value);
        }
    }
    match random.below(6) {
        0 => {}
        1 => document.append("c", &scalar(random)),
        2 | 3 => {
            let mut elements = Vec::new();
            for _ in 0..random.below(4) {
                elements.push(if random.one_in(6) { value(random) } else { inner(random) });
            }
            document.append("c", &array_of(&elements));
        }
        _ => document.append("c", &inner(random)),
    }
    document
}

fn operator(random: &mut Random, depth: u32) -> DocBuf {
    let comparisons = ["$eq", "$lt", "$lte", "$gt", "$gte", "$ne"];
    match random.below(20) {
        0..9 => {
            let mut both = DocBuf::new();
            let first = *random.of(&comparisons);
            let operand = comparable(random, first);
            both.append(first, &operand);
            let second = *random.of(&comparisons);
            if random.one_in(3) && second != first {
                let operand = comparable(random, second);
                both.append(second, &operand);
            }
            both
        }
        9 | 10 => {
            let values: Vec<ValueBuf> = (0..random.below(4)).map(|_| value(random)).collect();
            let name = *random.of(&["$in", "$in", "$nin"]);
            DocBuf::build(|writer| writer.append(name, &array_of(&values)))
        }
        11 => doc! { "$exists": random.one_in(2) },
        12 => doc! { "$type": *random.of(&["string", "number", "null", "array", "date", "object", "int", "bool"]) },
        13 => doc! { "$regex": *random.of(&["^a", "^A", "a", "^ab*", "^a.", "b$"]) },
        14 => doc! { "$not": &operator(random, depth + 1) },
        15 if depth < 2 => doc! { "$elemMatch": &operator(random, depth + 1) },
        16 => doc! { "$size": random.below(3) as i32 },
        17 => doc! { "$mod": &array![2, 1] },
        18 if depth < 2 => doc! { "$all": &array![random.below(5) as i32, random.below(5) as i32] },
        _ => DocBuf::build(|writer| writer.append("$eq", &value(random))),
    }
}

/// An operand of a comparison: regular expressions are not allowed, except for `$eq` and `$ne`.
fn comparable(random: &mut Random, operator: &str) -> ValueBuf {
    loop {
        let value = value(random);
        let is_regex = value.kind() == document::Kind::Regex;
        if !is_regex && value.kind() != document::Kind::Undefined || operator == "$eq" && is_regex {
            return value;
        }
    }
}

const PATHS: [&str; 8] = ["a", "b", "c", "c.d", "c.e", "a.0", "a.x", "_id"];

fn filter(random: &mut Random, depth: u32) -> DocBuf {
    let mut filter = DocBuf::new();
    for _ in 0..1 + random.below(3) {
        let path = *random.of(&PATHS);
        if filter.as_doc().get(path).is_some() {
            continue;
        }
        match random.below(10) {
            0 if depth < 2 && filter.as_doc().get("$or").is_none() => {
                let branches: Vec<ValueBuf> = (0..2 + random.below(2))
                    .map(|_| Value::Document(self::filter(random, depth + 1).as_doc()).to_owned())
                    .collect();
                filter.append("$or", &array_of(&branches));
            }
            1 if filter.as_doc().get("c").is_none() => {
                let both = doc! { "d": &operator(random, 1), "e": &operator(random, 1) };
                let one = doc! { "d": &operator(random, 1) };
                let conditions = if random.one_in(2) { both } else { one };
                filter.append("c", &doc! { "$elemMatch": &conditions });
            }
            2 | 3 => filter.append(path, &value(random)),
            _ => filter.append(path, &operator(random, 0)),
        }
    }
    filter
}

fn collation() -> DocBuf {
    doc! { "locale": "en", "strength": 2 }
}

fn indexes(random: &mut Random) -> Vec<IndexSpec> {
    let keys = [
        doc! { "a": 1 },
        doc! { "b": 1 },
        doc! { "b": -1, "a": 1 },
        doc! { "a": 1, "b": 1 },
        doc! { "a": -1, "b": 1, "c.d": 1 },
        doc! { "c.d": 1 },
        doc! { "c.d": 1, "c.e": 1 },
        doc! { "c.e": -1, "b": 1, "c.d": 1 },
        doc! { "c": 1, "b": 1 },
        doc! { "a.0": 1 },
        doc! { "a.x": 1, "_id": -1 },
        doc! { "b": 1, "_id": 1 },
    ];
    let partials = [
        doc! { "b": &doc! { "$gt": 1 } },
        doc! { "b": &doc! { "$exists": true } },
        doc! { "a": &doc! { "$gte": 1 }, "b": &doc! { "$type": "number" } },
    ];
    let mut indexes: Vec<IndexSpec> = Vec::new();
    for number in 0..1 + random.below(4) {
        let key = random.of(&keys).clone();
        let name = format!("i{number}");
        let mut spec = doc! { "v": 2, "key": &key, "name": &name };
        let sparse = random.one_in(5);
        if sparse {
            spec.append("sparse", true);
        } else if random.one_in(5) {
            spec.append("partialFilterExpression", random.of(&partials));
        }
        if random.one_in(5) {
            spec.append("collation", &collation());
        }
        indexes.push(IndexSpec { name, key, unique: false, sparse, spec });
    }
    indexes
}

struct World {
    store: Rc<dyn DocumentStore>,
    namespace: Namespace,
    /// The content of the collection.
    documents: Vec<DocBuf>,
    /// How often each stage was planned.
    stages: BTreeMap<String, u32>,
    /// Decides how much of a document is shown: separate from the rest, which stays the same for a
    /// seed.
    shown: Random,
}

/// Takes some documents, and a few more with the next scan.
struct Some<'s> {
    found: &'s mut Vec<DocBuf>,
    left: usize,
    /// Verdicts by the prefixes of documents.
    sieve: Option<(&'s Predicate, &'s ReadFields)>,
    passed: &'s mut u32,
}

impl Sink for Some<'_> {
    fn filters_by_prefix(&self) -> PrefixFiltering {
        if self.sieve.is_some() { PrefixFiltering::Now } else { PrefixFiltering::Never }
    }

    fn check_prefix(&mut self, prefix: Doc<'_>) -> Result<PrefixVerdict> {
        let (predicate, fields) = self.sieve.unwrap();
        if !fields.are_in(prefix) {
            return Ok(PrefixVerdict::Undecided);
        }
        let matches = predicate.matches(prefix)?;
        *self.passed += u32::from(!matches);
        Ok(if matches { PrefixVerdict::Wanted } else { PrefixVerdict::Rejected })
    }

    fn accept(&mut self, document: StoredDoc<'_>) -> Result<Flow> {
        let StoredDoc::Bson(document) = document else { panic!("this store gives BSON") };
        if self.left == 0 {
            return Ok(Flow::StopBefore);
        }
        self.left -= 1;
        self.found.push(document.to_owned());
        Ok(if self.left == 1 { Flow::StopAfter } else { Flow::Continue })
    }
}

impl World {
    async fn create_indexes(&self, indexes: Vec<IndexSpec>) {
        for index in indexes {
            // Duplicate indexes, and arrays in two fields, are refused.
            let _ = self.store.create_indexes(&self.namespace, vec![index]).await;
        }
    }

    async fn insert(&mut self, document: DocBuf) {
        let batch = WriteBatch::new(
            self.namespace.clone(),
            Statements::Insert(vec![Bytes::copy_from_slice(document.as_bytes())]),
        );
        if self.store.write(batch).await.unwrap().statements.remove(0).is_ok() {
            self.documents.push(document);
        }
    }

    async fn all(&self, plan: &dyn Plan, batch: usize, sieve: Option<(&Predicate, &ReadFields)>) -> (Vec<DocBuf>, u32) {
        let (mut found, mut passed) = (Vec::new(), 0);
        let mut after = None;
        loop {
            let mut sink = Some { found: &mut found, left: batch, sieve, passed: &mut passed };
            match self.store.scan(plan, after.as_ref(), batch, &mut sink).await.unwrap() {
                ScanEnd::Exhausted => return (found, passed),
                ScanEnd::Stopped(position) => after = Option::Some(position),
            }
        }
    }

    async fn check(&mut self, random: &mut Random, filter: &DocBuf, sort: &DocBuf, context: &Context) {
        let Ok(predicate) = Predicate::parse(filter.as_doc(), context) else { return };
        let sort = Sort::parse(sort.as_doc(), context).unwrap();
        let limit = random.one_in(3).then(|| 1 + random.below(5));
        let query = Query { predicate: &predicate, sort: Option::Some(&sort), limit, hint: None, fields: None };
        let plan = self.store.plan(&self.namespace, query).await.unwrap();
        let winning = plan.winning_plan();
        let about = format!("{filter:?} sorted by {:?} under {:?}: {winning:?}", sort.parts(), context.collation);
        self.count_stages(winning.as_doc());
        let fields = ReadFields::of_filter_and_sort(filter.as_doc(), doc! {}.as_doc());
        let sieve = fields.as_ref().filter(|_| self.shown.one_in(2)).map(|fields| (&predicate, fields));
        let (mut found, passed) = self.all(&*plan, 2 + random.below(30) as usize, sieve).await;
        *self.stages.entry("passed at a glance".into()).or_default() += passed;
        for document in &found {
            let matches = predicate.matches(document.as_doc()).unwrap();
            assert!(matches || !plan.facts().exact, "exact, but {document:?} for {about}");
        }
        found.retain(|document| predicate.matches(document.as_doc()).unwrap());
        if plan.facts().sorted && !sort.is_empty() {
            let keys: Vec<Vec<u8>> = found.iter().map(|document| sort_key(&sort, document)).collect();
            assert!(keys.is_sorted(), "not in order: {found:?} for {about}");
        }
        let mut expected = self.documents.clone();
        expected.retain(|document| predicate.matches(document.as_doc()).unwrap());
        assert_eq!(ids(found.iter()), ids(expected.iter()), "{about}");
        if let Option::Some(counted) = self.store.count(&*plan, None).await.unwrap() {
            *self.stages.entry("counted by keys".into()).or_default() += 1;
            assert_eq!(counted, expected.len() as u64, "counting {about}");
        }
        let path = *random.of(&PATHS);
        let query = Query::of(&predicate);
        let plan = self.store.plan_distinct(&self.namespace, query, path, &context.collation).await.unwrap();
        self.count_stages(plan.winning_plan().as_doc());
        let (mut found, _) = self.all(&*plan, 100, None).await;
        found.retain(|document| predicate.matches(document.as_doc()).unwrap());
        let values = |documents: &mut dyn Iterator<Item = &DocBuf>| {
            let mut values = Vec::new();
            documents.for_each(|document| different(path, document.as_doc(), &context.collation, &mut values));
            values.sort();
            values.dedup();
            values
        };
        let expected = values(&mut expected.iter());
        assert_eq!(values(&mut found.iter()), expected, "values of {path} for {:?} {about}", plan.winning_plan());
    }

    fn count_stages(&mut self, stage: Doc<'_>) {
        let name = stage.get("stage").and_then(Value::as_str).unwrap_or_default();
        *self.stages.entry(name.to_owned()).or_default() += 1;
        if let Option::Some(input) = stage.get("inputStage").and_then(Value::as_document) {
            self.count_stages(input);
        }
    }
}

fn ids<'d>(documents: impl Iterator<Item = &'d DocBuf>) -> Vec<i32> {
    let id = |document: &DocBuf| match document.as_doc().get("_id") {
        Option::Some(Value::Int32(id)) => id,
        other => panic!("{other:?}"),
    };
    let mut ids: Vec<i32> = documents.map(id).collect();
    ids.sort_unstable();
    ids
}

fn sort_key(sort: &Sort, document: &DocBuf) -> Vec<u8> {
    let mut key = Vec::new();
    sort.key(document.as_doc(), &mut key).unwrap();
    key
}

fn different(path: &str, document: Doc<'_>, collation: &Collation, values: &mut Vec<Vec<u8>>) {
    let mut add = |value: Value<'_>| {
        let mut key = Vec::new();
        collation.encode_key(value, &mut key);
        values.push(key);
    };
    let _ = Path::new(path).visit(document, End::Whole, &mut |found| {
        match found.value {
            Option::Some(Value::Array(elements)) => elements.values().for_each(&mut add),
            Option::Some(value) => add(value),
            None => {}
        }
        ControlFlow::Continue(())
    });
}

async fn run(seed: u64, stages: &mut BTreeMap<String, u32>, store: &Rc<dyn DocumentStore>) {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let namespace = Namespace::new("d", &format!("c{seed}"));
    let stages_so_far = std::mem::take(stages);
    let shown = Random(seed.wrapping_mul(0xBF58_476D_1CE4_E5B9) | 1);
    let mut world = World { store: store.clone(), namespace, documents: Vec::new(), stages: stages_so_far, shown };
    let first = random.one_in(2);
    let specs = indexes(&mut random);
    if first {
        world.create_indexes(specs.clone()).await;
    }
    let lists = !random.one_in(3);
    let large = world.shown.one_in(3);
    for id in 0..10 + random.below(60) as i32 {
        let mut document = document(&mut random, id);
        if !lists {
            document = without_arrays(&document);
        }
        if large {
            document = padded(&document, world.shown.one_in(4));
        }
        world.insert(document).await;
    }
    if !first {
        world.create_indexes(specs).await;
    }
    for _ in 0..60 {
        let filter = filter(&mut random, 0);
        let sorts = [doc! {}, doc! { "a": 1 }, doc! { "b": -1, "_id": 1 }, doc! { "c.d": 1 }, doc! { "b": 1, "a": 1 }];
        // Two fields that may both be arrays give no order.
        let sort = if random.one_in(2) {
            doc! {}
        } else {
            random.of(&sorts).clone()
        };
        let mut context = Context::at(0);
        if random.one_in(4) {
            context.collation = Collation::parse(collation().as_doc(), "").unwrap();
        }
        world.check(&mut random, &filter, &sort, &context).await;
    }
    let findings = store.validate(&world.namespace).await.unwrap().findings;
    assert!(findings.is_empty(), "{findings:#?}");
    store.drop_collection(&world.namespace).await.unwrap();
    *stages = world.stages;
}

/// Makes a document take several pages, with its fields on the first or the last of them.
fn padded(document: &DocBuf, in_front: bool) -> DocBuf {
    let pad = "x".repeat(5000);
    let mut padded = DocBuf::new();
    if in_front {
        padded.append("pad", pad.as_str());
    }
    document.as_doc().iter().for_each(|(field, value)| padded.append(field, value));
    if !in_front {
        padded.append("pad", pad.as_str());
    }
    padded
}

fn without_arrays(document: &DocBuf) -> DocBuf {
    let mut plain = DocBuf::new();
    let scalars = document.as_doc().iter().filter(|(_, value)| value.as_array().is_none());
    for (field, value) in scalars {
        match value {
            Value::Document(inner) => {
                let inner = without_arrays(&inner.to_owned());
                plain.append(field, &inner);
            }
            value => plain.append(field, value),
        }
    }
    plain
}

#[tokio::test(flavor = "current_thread")]
async fn answers_are_the_same_with_and_without_indexes() {
    let number = |name: &str, default: u64| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let (seed, rounds) = (number("SELKIE_SEED", 1), number("SELKIE_RANDOM", 4_000) / 60);
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path(), Options::default()).unwrap();
    let store = engine.clone().open().unwrap();
    let mut stages = BTreeMap::new();
    for round in 0..rounds {
        println!("seed {}", seed + round);
        run(seed + round, &mut stages, &store).await;
    }
    println!("{stages:?}");
    for stage in ["IXSCAN", "COLLSCAN", "OR", "SORT_MERGE", "DISTINCT_SCAN", "counted by keys", "passed at a glance"] {
        assert!(stages.get(stage).is_some_and(|&count| count > 0), "{stage} was never planned: {stages:?}");
    }
}
