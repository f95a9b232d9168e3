//! Indexes on MariaDB: equal results with and without them, in the requested order, for documents
//! written by gateways and by SQL.

#![allow(clippy::unwrap_used)]

#[path = "support/questions.rs"]
mod questions;
#[path = "support/random.rs"]
mod random;
mod support;

use document::{DocBuf, Value, doc};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use query::{Context, Predicate, Sort};
use questions::{condition, documents, filter, sort, value};
use random::runner;
use store::{Flow, IndexSpec, Namespace, Position, Query, ScanEnd, Sink, StoredDoc};
use support::client::{Client, id, refusal, spec};
use support::{Server, decode, server};

/// Accepts a number of documents of a scan at a time.
struct Some_(Vec<DocBuf>, usize);

impl Sink for Some_ {
    fn accept(&mut self, document: StoredDoc<'_>) -> error::Result<Flow> {
        self.0.push(decode(document));
        Ok(if self.0.len().is_multiple_of(self.1) { Flow::StopAfter } else { Flow::Continue })
    }
}

struct Outcome {
    documents: Vec<DocBuf>,
    sorted: bool,
    by_index: bool,
    merged: bool,
    /// The server read keys of several indexes, or sorted by those of another one.
    by_keys: bool,
}

/// Runs a query and reads the results in batches. The limit is the size of the first batch: it only
/// affects plans.
fn ask(client: &Client, things: &Namespace, predicate: &Predicate, sort: Option<&Sort>, batch: usize) -> Outcome {
    answer(client, things, Query { predicate, sort, limit: Some(batch as u64), hint: None, fields: None }, batch)
}

fn answer(client: &Client, things: &Namespace, query: Query<'_>, batch: usize) -> Outcome {
    let plan = client.run(client.store.plan(things, query)).unwrap();
    let (mut sink, mut position): (_, Option<Position>) = (Some_(Vec::new(), batch), None);
    loop {
        match client.run(client.store.scan(&*plan, position.as_ref(), batch, &mut sink)).unwrap() {
            ScanEnd::Exhausted => break,
            ScanEnd::Stopped(reached) => position = Some(reached),
        }
    }
    let stages = format!("{:?}", plan.winning_plan());
    let (by_index, merged) = (stages.contains("IXSCAN"), stages.contains("SORT_MERGE"));
    let by_keys = stages.contains("k.`a~") && stages.contains("k.`b~") || stages.contains("sortPattern");
    Outcome { documents: sink.0, sorted: plan.facts().sorted, by_index, merged, by_keys }
}

fn shown(documents: &[DocBuf]) -> Vec<String> {
    let mut ids: Vec<_> = documents.iter().map(|it| format!("{:?}", id(it))).collect();
    ids.sort();
    ids
}

/// How often indexes were used, gave the order, and gave it in several places put together.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    indexes: u32,
    orders: u32,
    merges: u32,
    others: u32,
}

/// Answers by indexes are those that the evaluator gives for all documents: which, in what order,
/// how many.
fn check(client: &Client, things: &Namespace, documents: &[DocBuf], cases: u32) -> Used {
    check_queries(client, things, documents, cases, (filter(), sort()))
}

fn check_queries(
    client: &Client,
    things: &Namespace,
    documents: &[DocBuf],
    cases: u32,
    queries: impl Strategy<Value = (DocBuf, DocBuf)>,
) -> Used {
    let used = std::cell::Cell::new(Used::default());
    runner(cases)
        .run(&(queries, prop::sample::select(vec![1, 7, 1000])), |((filter, sort), batch)| {
            let Ok(predicate) = Predicate::parse(filter.as_doc(), &Context::at(0)) else { return Ok(()) };
            let sort = Sort::parse(sort.as_doc(), &Context::at(0)).unwrap();
            let expected: Vec<DocBuf> =
                documents.iter().filter(|it| predicate.matches(it.as_doc()).unwrap()).cloned().collect();
            let mut asked = ask(client, things, &predicate, Some(&sort), batch);
            asked.documents.retain(|it| predicate.matches(it.as_doc()).unwrap());
            prop_assert_eq!(shown(&asked.documents), shown(&expected), "{:?}", filter);
            let in_order = asked.sorted && !sort.is_empty();
            let before = used.get();
            used.set(Used {
                indexes: before.indexes + u32::from(asked.by_index),
                orders: before.orders + u32::from(in_order),
                merges: before.merges + u32::from(asked.merged),
                others: before.others + u32::from(asked.by_keys),
            });
            if in_order {
                let keys: Vec<Vec<u8>> = asked
                    .documents
                    .iter()
                    .map(|it| {
                        let mut key = Vec::new();
                        sort.key(it.as_doc(), &mut key).unwrap();
                        key
                    })
                    .collect();
                for (at, pair) in keys.windows(2).enumerate() {
                    prop_assert!(
                        pair[0] <= pair[1],
                        "{:?} {:?} {:?}",
                        sort,
                        asked.documents[at],
                        asked.documents[at + 1]
                    );
                }
            }
            let query = Query::of(&predicate);
            let plan = client.run(client.store.plan(things, query)).unwrap();
            if let Some(count) = client.run(client.store.count(&*plan, None)).unwrap() {
                prop_assert_eq!(count, expected.len() as u64, "{:?}", filter);
            }
            Ok(())
        })
        .unwrap();
    used.get()
}

/// An index with most documents in range is seldom chosen, so a hint names it.
fn check_hinted(client: &Client, things: &Namespace, documents: &[DocBuf], cases: u32) {
    let hints = prop::sample::select(vec!["a", "ab", "a.x"]);
    runner(cases)
        .run(&(filter(), hints), |(filter, hint)| {
            let Ok(predicate) = Predicate::parse(filter.as_doc(), &Context::at(0)) else { return Ok(()) };
            let matching = |it: &&DocBuf| predicate.matches(it.as_doc()).unwrap();
            let expected: Vec<DocBuf> = documents.iter().filter(matching).cloned().collect();
            let query = Query { hint: Some(Value::String(hint)), ..Query::of(&predicate) };
            let mut asked = answer(client, things, query, 1000);
            asked.documents.retain(|it| matching(&it));
            prop_assert_eq!(shown(&asked.documents), shown(&expected), "{:?} by {}", filter, hint);
            let query = Query { hint: Some(Value::String(hint)), ..Query::of(&predicate) };
            let plan = client.run(client.store.plan(things, query)).unwrap();
            if let Some(count) = client.run(client.store.count(&*plan, None)).unwrap() {
                prop_assert_eq!(count, expected.len() as u64, "{:?} by {}", filter, hint);
            }
            Ok(())
        })
        .unwrap();
}

/// For each value of a path there is a document among those that the store gives for them.
fn check_values(client: &Client, things: &Namespace, path: &str, documents: &[DocBuf]) -> usize {
    let everything = Predicate::everything();
    let query = Query::of(&everything);
    let plan = client.run(client.store.plan_distinct(things, query, path, &document::Collation::SIMPLE)).unwrap();
    let mut sink = Some_(Vec::new(), usize::MAX);
    client.run(client.store.scan(&*plan, None, 16, &mut sink)).unwrap();
    let values = |documents: &[DocBuf]| {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        for document in documents {
            let _ = document::Path::new(path).visit(document.as_doc(), document::path::End::Expanded, &mut |reached| {
                keys.extend(reached.value.map(|value| {
                    let mut key = Vec::new();
                    document::key::encode(value, &mut key);
                    key
                }));
                std::ops::ControlFlow::Continue(())
            });
        }
        keys.sort();
        keys.dedup();
        keys
    };
    assert!(values(&sink.0) == values(documents), "some values of {path} are missing");
    sink.0.len()
}

fn indexes() -> Vec<IndexSpec> {
    vec![
        spec("a", doc! { "a": 1 }, doc! {}),
        spec("a.x", doc! { "a.x": -1 }, doc! {}),
        spec("ab", doc! { "a": 1, "b": -1 }, doc! {}),
        spec("b", doc! { "b": 1 }, doc! { "sparse": true }),
    ]
}

/// Partial indexes are used for what they have, and for nothing else.
#[test]
fn answers_are_the_same_with_partial_indexes() {
    let Some(server) = server() else { return };
    let client = Client::open(server.engine());
    let filters = [
        doc! { "a": &doc! { "$gte": 0 } },
        doc! { "b": &doc! { "$exists": true } },
        doc! { "a": "a", "b": &doc! { "$lt": 2 } },
        doc! { "a": &doc! { "$gt": "" } },
        doc! { "b": &doc! { "$type": "string" }, "a": &doc! { "$lte": 1 } },
    ];
    let things = Namespace::new("index_partial", "things");
    let all = documents(&mut runner(1), 150, true);
    client.insert(&things, &all[..75]).unwrap();
    let specs = filters.iter().enumerate().map(|(number, filter)| {
        spec(&format!("partial{number}"), doc! { "a": 1 }, doc! { "partialFilterExpression": filter })
    });
    client.run(client.store.create_indexes(&things, specs.collect())).unwrap();
    client.insert(&things, &all[75..]).unwrap();
    let used = check(&client, &things, &all, 400).indexes;
    assert!(used > 10, "indexes are used ({used} times)");
    let unique = doc! { "unique": true, "partialFilterExpression": &doc! { "u": &doc! { "$gt": 5 } } };
    client.run(client.store.create_indexes(&things, vec![spec("u", doc! { "u": 1 }, unique)])).unwrap();
    let inserted =
        |id: i32, u: i32| client.insert(&things, &[doc! { "_id": id, "u": u }]).unwrap().statements[0].is_ok();
    assert_eq!([inserted(1001, 5), inserted(1002, 5), inserted(1003, 6), inserted(1004, 6)], [true, true, true, false]);
    // None of these documents has the field, so those that the filter lets in have one key.
    for filter in [doc! { "u": &doc! { "$type": "number" } }, doc! { "u": &doc! { "$type": "int" } }] {
        let unique = doc! { "unique": true, "partialFilterExpression": &filter };
        let refused = client.run(client.store.create_indexes(&things, vec![spec("x", doc! { "x": 1 }, unique)]));
        assert_eq!(refused.unwrap_err().code(), error::Code::DUPLICATE_KEY);
    }
    let dropped = client.run(client.store.drop_indexes(&things, store::IndexSelection::All)).unwrap();
    assert_eq!(dropped, 7);
    let left = "SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'index_partial' AND COLUMN_NAME LIKE '~%'";
    assert_eq!(server.sql(left).trim(), "0");
}

/// Fractions on both sides of zero have the keys by which they are looked up.
#[test]
fn fractions_are_found_by_their_keys() {
    let Some(server) = server() else { return };
    let client = Client::open(server.engine());
    let things = Namespace::new("index_fractions", "things");
    let numbers: Vec<f64> = (-300..300)
        .map(|it| f64::from(it) / 100.0)
        .chain([-1e-7, 1e-7, -0.3e-15, -5e9 / 7.0, 1.2345678901234567e18, -1.2345678901234567e18])
        .collect();
    let all: Vec<DocBuf> = (0..).zip(&numbers).map(|(id, number)| doc! { "_id": id, "a": *number }).collect();
    client.insert(&things, &all).unwrap();
    client.run(client.store.create_indexes(&things, indexes())).unwrap();
    for (document, number) in all.iter().zip(&numbers) {
        let filter = doc! { "a": *number };
        let predicate = Predicate::parse(filter.as_doc(), &Context::at(0)).unwrap();
        let asked = ask(&client, &things, &predicate, None, 10);
        assert_eq!(shown(&asked.documents), shown(std::slice::from_ref(document)), "{number}");
    }
}

#[test]
fn answers_are_the_same_with_indexes() {
    let Some(server) = server() else { return };
    let client = Client::open(server.engine());
    for (odd, database) in [(true, "index_odd"), (false, "index_plain")] {
        let things = Namespace::new(database, "things");
        let all = documents(&mut runner(1), 150, odd);
        insert_by_sql(&server, &client, &things, &all, indexes());
        check_odd(&server, database, odd);
        let used = check(&client, &things, &all, 400);
        for path in ["a", "a.x"] {
            let given = check_values(&client, &things, path, &all);
            assert!(odd || given < all.len(), "{given} documents for the values of {path}");
        }
        assert!(used.indexes > 100, "{used:?}");
        assert!(odd || used.orders > 50, "{used:?}");
        let used = check_queries(&client, &things, &all, 150, several_places());
        assert!(odd || used.merges > 75, "{used:?}");
        check_hinted(&client, &things, &all, 600);
    }
}

/// The columns that say whether a field's keys, and an index of several fields, are in order say so
/// of all rows, and of no more than there are reasons for.
fn check_odd(server: &Server, database: &str, expected: bool) {
    let columns = server.sql(&format!(
        "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = '{database}' AND COLUMN_NAME LIKE '%.odd'"
    ));
    let (mut fields, mut indexes) = (0, 0);
    for odd in columns.lines() {
        let name = odd.strip_suffix(".odd").unwrap_or_default();
        let keys = server.sql(&format!(
            "SELECT COLUMN_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = '{database}' AND INDEX_NAME = '{name}'"
        ));
        let of_index: Vec<&str> = keys.lines().collect();
        let of_field = format!("{name}.key");
        let keys = if of_index.is_empty() { vec![of_field.as_str()] } else { of_index };
        *(if keys.len() == 1 { &mut fields } else { &mut indexes }) += 1;
        let out_of_place = keys.iter().map(|key| format!("coalesce(`{key}` >= 'D' and `{key}` < 'H', false)"));
        let keys = format!("({})", out_of_place.collect::<Vec<_>>().join(" or "));
        let counts = server.sql(&format!(
            "SELECT SUM({keys} and `{odd}` is null), SUM({keys}) > 0, SUM(`{odd}` is not null and not {keys}) FROM {database}.things"
        ));
        let counts: Vec<&str> = counts.split_whitespace().collect();
        assert_eq!(counts[..2], ["0", if expected { "1" } else { "0" }], "{odd}: {counts:?}");
        assert!(expected || counts[2] == "0", "{odd}: {counts:?}");
    }
    assert!(fields > 1 && indexes > 0, "{columns}");
}

/// Makes indexes, and has SQL write the documents that they refuse, which are those with arrays
/// side by side.
fn insert_by_sql(server: &Server, client: &Client, things: &Namespace, all: &[DocBuf], indexes: Vec<IndexSpec>) {
    let is_array = |document: &DocBuf, field| matches!(document.as_doc().get(field), Some(Value::Array(_)));
    let (by_sql, plain): (Vec<DocBuf>, Vec<DocBuf>) =
        all.iter().cloned().partition(|it| is_array(it, "a") && is_array(it, "b"));
    client.insert(things, &plain).unwrap();
    client.run(client.store.create_indexes(things, indexes)).unwrap();
    let unindexed = Namespace::new(&things.database, "unindexed");
    for document in &by_sql {
        assert_eq!(refusal(client, things, document), Some(error::Code::CANNOT_INDEX_PARALLEL_ARRAYS));
        assert_eq!(refusal(client, &unindexed, document), None);
    }
    if !by_sql.is_empty() {
        let (from, to) = (format!("{}.unindexed", things.database), format!("{}.things", things.database));
        server.sql(&format!("INSERT INTO {to} (doc) SELECT doc FROM {from}"));
    }
}

/// What the keys of one index say of the rows of another one makes no difference to the answer.
#[test]
fn answers_are_the_same_where_other_keys_are_looked_at() {
    let Some(server) = server() else { return };
    let client = Client::open(server.engine());
    for (odd, database) in [(true, "keys_odd"), (false, "keys_plain")] {
        let things = Namespace::new(database, "things");
        let mut all = documents(&mut runner(1), 150, odd);
        // Of short documents the server is asked for more than match.
        all.iter_mut().for_each(|document| document.append("pad", "x".repeat(2_000).as_str()));
        let indexes = vec![spec("a", doc! { "a": 1 }, doc! {}), spec("b", doc! { "b": -1 }, doc! {})];
        client.run(client.store.create_indexes(&things, indexes)).unwrap();
        client.insert(&things, &all).unwrap();
        check(&client, &things, &all, 10);
        let used = check_queries(&client, &things, &all, 300, both_fields());
        assert!(used.others > if odd { 75 } else { 150 }, "{used:?}");
        assert!(odd || used.orders > 100, "{used:?}");
    }
}

/// Queries about both fields, often in the order of one of them.
fn both_fields() -> impl Strategy<Value = (DocBuf, DocBuf)> {
    let equal =
        |path: &'static str| (-4..4).prop_map(move |value: i32| DocBuf::build(|writer| writer.append(path, value)));
    let sorts = vec![doc! {}, doc! { "b": 1 }, doc! { "b": -1 }, doc! { "b": 1, "a": -1 }];
    let conditions = (prop_oneof![condition(), equal("a")], prop_oneof![condition(), equal("b")]);
    (conditions, prop::sample::select(sorts))
        .prop_map(|((one, other), sort)| (doc! { "$and": &document::array![&one, &other] }, sort))
}

/// Queries for several values of `a`, or of one thing or another, in the order of `b`.
fn several_places() -> impl Strategy<Value = (DocBuf, DocBuf)> {
    let values = prop::collection::vec(-4..4, 2..5);
    (values, 0..4, prop::sample::select(vec![1, -1])).prop_map(|(values, kind, direction)| {
        let filter = DocBuf::build(|writer| match kind {
            0 | 1 => {
                let mut list = writer.document("a");
                let mut list = list.array("$in");
                values.iter().for_each(|&value| list.push(value));
            }
            _ => {
                let mut list = writer.array("$or");
                let mut branch = |filter: DocBuf| list.push(&filter);
                values.iter().for_each(|&value| branch(doc! { "a": value }));
                branch(if kind == 2 {
                    doc! { "a": 1, "b": &doc! { "$gte": 0 } }
                } else {
                    doc! { "a": 2, "_id": &doc! { "$ne": 3 } }
                });
            }
        });
        (filter, doc! { "b": direction })
    })
}

/// The server computes column keys, for writes of gateways and of SQL clients.
#[test]
fn rows_written_by_sql_are_in_the_index() {
    let Some(server) = server() else { return };
    let (client, things) = (Client::open(server.engine()), Namespace::new("index_sql", "things"));
    client.run(client.store.create_indexes(&things, indexes())).unwrap();
    let spellings = [
        "1",
        "1.0",
        "1e0",
        "10e-1",
        "0.1E1",
        "-0",
        "-0.0",
        "123456789012345678901234567890",
        "1e400",
        "-1e-400",
        "5e-324",
        "9223372036854775807",
        "-9223372036854775808",
        "9223372036854775808",
        "1.7976931348623157e308",
        r#""a""#,
        r#""\u0061""#,
        r#""\ud83d\ude00""#,
        r#""a\/b""#,
        r#""""#,
        "true",
        "false",
        "null",
        "[]",
        "{}",
        r#"{ "$oid" : "0123456789abcdef01234567" }"#,
        r#"{"$oid":"0123456789ABCDEF01234567"}"#,
        r#"{"$oid":"0123"}"#,
        r#"{"$date":"2020-01-01T00:00:00Z"}"#,
        r#"{"$date":"2020-01-01T00:00:00.000Z"}"#,
        r#"{"$date":"2020-01-01T01:00:00+01:00"}"#,
        r#"{"$date":{"$numberLong":"1577836800000"}}"#,
        r#"{"$date":"2021-02-29T00:00:00Z"}"#,
        r#"{"$date":"2020-01-01T00:00Z"}"#,
        r#"{"$numberInt":"1"}"#,
        r#"{"$numberLong":"1"}"#,
        r#"{"$numberDouble":"1.0"}"#,
        r#"{"$numberDecimal":"1"}"#,
        r#"{"$numberDecimal":"1E0"}"#,
        r#"{"$numberDecimal":"nan"}"#,
        r#"{"$numberDouble":"NaN"}"#,
        r#"{"$binary":{"base64":"AAEC","subType":"00"}}"#,
        r#"{"$binary":{"base64":"AAE=","subType":"0"}}"#,
        r#"{"$timestamp":{"t":1,"i":2}}"#,
        r#"{"$timestamp":{"i":2,"t":1}}"#,
        r#"{"$symbol":"a"}"#,
        r#"{"$$x":1}"#,
        r#"{"\u0024oid":"0123456789abcdef01234567"}"#,
        r#"{ "x" : 1.0 }"#,
        r#"{"x":[1,2]}"#,
        r#"[1,"a"]"#,
    ];
    let rows: Vec<String> = spellings
        .iter()
        .enumerate()
        .map(|(id, text)| format!(r#"('{{"_id":{id},"a":{}}}')"#, text.replace('\\', "\\\\").replace('\'', "''")))
        .collect();
    server.sql(&format!("INSERT INTO index_sql.things (doc) VALUES {}", rows.join(",")));
    let all = client.find(&things, &doc! {}).unwrap();
    assert_eq!(all.len(), spellings.len());
    check(&client, &things, &all, 150);
    for document in &all {
        let value = document.as_doc().get("a").unwrap();
        let Ok(predicate) = Predicate::parse(doc! { "a": &doc! { "$eq": value } }.as_doc(), &Context::at(0)) else {
            continue;
        };
        let found = ask(&client, &things, &predicate, None, 1000);
        let expected = all.iter().filter(|it| predicate.matches(it.as_doc()).unwrap()).cloned().collect::<Vec<_>>();
        let given: Vec<DocBuf> =
            found.documents.into_iter().filter(|it| predicate.matches(it.as_doc()).unwrap()).collect();
        assert_eq!(shown(&given), shown(&expected), "{document:?}");
    }
    server.sql("UPDATE index_sql.things SET doc = JSON_SET(doc, '$.a', 'changed') WHERE id = '3'");
    assert_eq!(client.find(&things, &doc! { "a": "changed" }).unwrap().len(), 1);
    server.sql("DELETE FROM index_sql.things WHERE id = '3'");
    assert!(client.find(&things, &doc! { "a": "changed" }).unwrap().is_empty());
}

/// All ids are in order: those of each type, and the types among one another.
#[test]
fn ids_are_in_order() {
    let Some(server) = server() else { return };
    let (client, things) = (Client::open(server.engine()), Namespace::new("index_ids", "things"));
    let mut random = runner(1);
    let documents: Vec<DocBuf> = (0..300)
        .map(|number| {
            let id = value(false).new_tree(&mut random).unwrap().current();
            doc! { "_id": id.as_doc().get("v").unwrap(), "n": number }
        })
        .collect();
    client.insert(&things, &documents).unwrap();
    // Unordered keys would make the gateway sort.
    let odd = "id_key >= 'D' AND id_key < 'H'";
    server.sql(&format!("DELETE FROM index_ids.things WHERE {odd}"));
    let all = client.find(&things, &doc! {}).unwrap();
    assert!(all.len() > 50, "{}", all.len());
    let used = check(&client, &things, &all, 150);
    assert!(used.indexes > 20 && used.orders > 10, "{used:?}");
}

/// Elements of arrays are looked up, including those written by SQL; no other documents are read.
#[test]
fn values_of_arrays_are_looked_up() {
    let Some(server) = server() else { return };
    let (client, things) = (Client::open(server.engine()), Namespace::new("index_arrays", "things"));
    let indexes = || {
        vec![
            spec("tags", doc! { "tags": 1 }, doc! {}),
            spec("list.x", doc! { "list.x": 1 }, doc! {}),
            spec("n", doc! { "n": 1 }, doc! {}),
        ]
    };
    client.run(client.store.create_indexes(&things, indexes())).unwrap();
    let tables = || server.sql("SHOW TABLES FROM index_arrays LIKE '~elements~%'").lines().count();
    client.insert(&things, &[doc! { "_id": -1, "tags": "t1" }]).unwrap();
    assert_eq!(tables(), 0, "there is no array yet");
    let documents: Vec<DocBuf> = (0..200)
        .map(|number| {
            let (one, other) = (format!("t{}", number % 50), format!("t{}", number % 7));
            let list = document::array![&doc! { "x": number % 20 }, &doc! { "x": number % 3 }, &doc! { "y": 1 }];
            doc! { "_id": number, "n": number, "tags": &document::array![one.as_str(), other.as_str()], "list": &list }
        })
        .collect();
    client.insert(&things, &documents).unwrap();
    assert_eq!(tables(), 2);
    let found = |filter: DocBuf| {
        let predicate = Predicate::parse(filter.as_doc(), &Context::at(0)).unwrap();
        let asked = ask(&client, &things, &predicate, None, 7);
        let given = asked.documents.len();
        let matching =
            asked.documents.into_iter().filter(|it| predicate.matches(it.as_doc()).unwrap()).collect::<Vec<_>>();
        assert!(given == matching.len(), "{filter:?}: {given} were read");
        shown(&matching)
    };
    let expected = |filter: &dyn Fn(i32) -> bool, more: &[i32]| {
        let mut ids: Vec<String> =
            (0..200).filter(|it| filter(*it)).chain(more.iter().copied()).map(|it| format!("Int32({it})")).collect();
        ids.sort();
        ids
    };
    assert_eq!(found(doc! { "tags": "t5" }), expected(&|it| it % 50 == 5 || it % 7 == 5, &[]));
    assert_eq!(found(doc! { "tags": "t1" }), expected(&|it| it % 50 == 1 || it % 7 == 1, &[-1]));
    assert_eq!(found(doc! { "list.x": 2 }), expected(&|it| it % 20 == 2 || it % 3 == 2, &[]));
    let range = doc! { "list.x": &doc! { "$gte": 19 } };
    assert_eq!(found(range), expected(&|it| it % 20 == 19, &[]));
    server.sql("UPDATE index_arrays.things SET doc = JSON_SET(doc, '$.tags[0]', 'new') WHERE id IN ('3', '4')");
    server.sql(
        "INSERT INTO index_arrays.things (doc) VALUES ('{\"_id\": 500, \"tags\": [\"\\\\u006eew\", \"new\", 1.0]}')",
    );
    server.sql("DELETE FROM index_arrays.things WHERE id = '4'");
    assert_eq!(found(doc! { "tags": "new" }), ["Int32(3)", "Int32(500)"]);
    assert_eq!(found(doc! { "tags": 1 }), ["Int32(500)"]);
    let pull = doc! { "$set": &doc! { "tags": "alone" } };
    client.update(&things, &doc! { "_id": 500 }, &pull).unwrap();
    assert_eq!(found(doc! { "tags": "new" }), ["Int32(3)"]);
    assert_eq!(found(doc! { "tags": "alone" }), ["Int32(500)"]);

    let renamed = Namespace::new("index_arrays_too", "renamed");
    client.run(client.store.rename_collection(&things, &renamed, false)).unwrap();
    assert_eq!(tables(), 0);
    assert_eq!(client.find(&renamed, &doc! { "tags": "new" }).unwrap().len(), 1);
    client.insert(&renamed, &[doc! { "_id": 600, "tags": &document::array!["new"] }]).unwrap();
    assert_eq!(client.find(&renamed, &doc! { "tags": "new" }).unwrap().len(), 2);
    client.run(client.store.drop_indexes(&renamed, store::IndexSelection::Names(vec!["list.x".into()]))).unwrap();
    client.run(client.store.drop_database("index_arrays_too")).unwrap();
    assert_eq!(server.sql("SHOW DATABASES LIKE 'index_arrays_too'").trim(), "");
}
