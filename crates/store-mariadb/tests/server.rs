//! What only a MariaDB server can show: rows written by SQL, ids computed on both sides, names and
//! values that try to be SQL, filters checked by the server, and servers that die.

#![allow(clippy::unwrap_used)]

#[path = "support/random.rs"]
mod random;
mod support;

use document::{DocBuf, ObjectId, Value, doc};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use query::{Context, Predicate};
use random::runner;
use store::{Namespace, RetryKey, Statements};
use support::client::{Client, id};
use support::{Server, server};

fn namespace(database: &str) -> Namespace {
    Namespace::new(database, "things")
}

#[test]
fn rows_written_by_sql_are_documents_at_once() {
    let Some(server) = server() else { return };
    let (client, things) = (Client::open(server.engine()), namespace("by_sql"));
    client.insert(&things, &[doc! { "_id": 1, "a": "x" }]).unwrap();
    assert_eq!(client.find(&things, &doc! {}).unwrap().len(), 1);
    server.sql(r#"INSERT INTO by_sql.things (doc) VALUES ('{ "_id" : 2.0, "a" : "\\u0079" }')"#);
    server.sql("UPDATE by_sql.things SET doc = JSON_SET(doc, '$.b', 5) WHERE id = '1'");
    let expected = [doc! { "_id": 1, "a": "x", "b": 5 }, doc! { "_id": 2.0, "a": "y" }];
    assert_eq!(client.find(&things, &doc! {}).unwrap(), expected);
    assert_eq!(client.find(&things, &doc! { "a": "y" }).unwrap(), expected[1..]);
    assert_eq!(client.find(&things, &doc! { "_id": 2 }).unwrap(), expected[1..]);
    let half = Value::Decimal128(document::Decimal128::from_parts(false, 50, -2).unwrap());
    let outcome = client.insert(&things, &[doc! { "_id": 0.5 }, doc! { "_id": half }, doc! { "_id": 1.0 }]).unwrap();
    assert_eq!(outcome.statements.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, false]);
    client.write(&things, Statements::Delete(vec![support::client::delete(&doc! { "_id": half })]), None).unwrap();
    assert_eq!(client.update(&things, &doc! { "_id": 2 }, &doc! { "$set": &doc! { "a": "z" } }).unwrap().modified, 1);
    assert_eq!(server.sql("SELECT JSON_VALUE(doc, '$.a') FROM by_sql.things WHERE id = '2'").trim(), "z");
    server.sql("DROP TABLE by_sql.things");
    assert!(client.find(&things, &doc! {}).unwrap().is_empty());
    client.insert(&things, &[doc! { "_id": 3 }]).unwrap();
    assert_eq!(client.find(&things, &doc! {}).unwrap(), [doc! { "_id": 3 }]);
}

/// The server takes milliseconds to return a table's columns, and creates a temporary table on
/// disk, which this test counts.
#[test]
fn concurrent_misses_share_a_lookup() {
    let Some(server) = Server::start() else { return };
    let (engine, things) = (server.engine(), namespace("missed"));
    Client::open(engine.clone()).insert(&things, &[doc! { "_id": 1 }]).unwrap();
    let lookups = || -> u64 {
        let status = server.sql("SHOW GLOBAL STATUS LIKE 'Created_tmp_disk_tables'");
        status.split_whitespace().last().unwrap().parse().unwrap()
    };
    let found = |client: &Client, namespace: &Namespace| {
        let of_one = |_: usize| client.store.cached_indexes(namespace);
        let all = client.run(futures_util::future::join_all((0..30).map(of_one)));
        all.into_iter().filter(|indexes| indexes.as_ref().unwrap().is_some()).count()
    };
    let client = Client::open(engine);
    let before = lookups();
    assert_eq!(found(&client, &things), 30);
    assert_eq!(lookups() - before, 1);
    // Each looks up a missing table: it may have been created since another lookup began.
    assert_eq!(found(&client, &namespace("missing")), 0);
    assert_eq!(lookups() - before, 1, "and costs less");
    let indexes_now = || client.run(client.store.indexes(&things)).unwrap().unwrap().len();
    assert_eq!((indexes_now(), lookups() - before), (1, 1), "its definition is still the same");
    server.sql("ALTER TABLE missed.things ADD COLUMN more INT");
    assert_eq!((indexes_now(), lookups() - before), (1, 2), "who wants to know how it is now is status that");
}

#[test]
fn tables_of_two_columns_are_served_as_they_are() {
    let Some(server) = server() else { return };
    let (client, things) = (Client::open(server.engine()), namespace("plain"));
    server.sql(
        "CREATE DATABASE plain; CREATE TABLE plain.things (id VARCHAR(35) AS (JSON_COMPACT(JSON_EXTRACT(doc, '$._id'))) UNIQUE KEY, \
         doc JSON, CONSTRAINT id_not_null CHECK (id IS NOT NULL)); CREATE TABLE plain.other (a INT); \
         INSERT INTO plain.things (doc) VALUES ('{\"_id\":7,\"a\":1}'), ('{\"_id\":\"x\",\"a\":2}')",
    );
    let names: Vec<String> =
        client.run(client.store.collections("plain")).unwrap().into_iter().map(|info| info.name).collect();
    assert_eq!(names, ["things"]);
    let documents: Vec<DocBuf> =
        (0..300).map(|number| doc! { "_id": ObjectId([(number % 251) as u8; 12]), "n": number }).collect();
    let outcome = client.insert(&things, &documents).unwrap();
    assert_eq!(outcome.statements.iter().filter(|it| it.is_ok()).count(), 251);
    assert_eq!(client.find(&things, &doc! {}).unwrap().len(), 253);
    assert_eq!(client.find(&things, &doc! { "_id": 7.0 }).unwrap(), [doc! { "_id": 7, "a": 1 }]);
    assert_eq!(client.update(&things, &doc! { "_id": "x" }, &doc! { "$inc": &doc! { "a": 1 } }).unwrap().modified, 1);
    assert_eq!(server.sql("SELECT JSON_VALUE(doc, '$.a') FROM plain.things WHERE id = '\"x\"'").trim(), "3");
    let long = "x".repeat(50);
    let refused = client.insert(&things, &[doc! { "_id": long.as_str() }]).unwrap().statements.remove(0).unwrap_err();
    assert!(refused.message().contains("too long"), "{refused}");
    assert!(client.insert(&Namespace::new("plain", "other"), &[doc! { "_id": 1 }]).is_err());
    client.run(client.store.drop_database("plain")).unwrap();
    assert_eq!(server.sql("SHOW TABLES FROM plain").trim(), "other");
}

/// A batch so large that it goes over two connections.
fn many(ids: impl Iterator<Item = i32>) -> Vec<DocBuf> {
    let filling = "x".repeat(150);
    ids.map(|id| doc! { "_id": id, "filling": filling.as_str() }).collect()
}

fn ids(documents: &[DocBuf]) -> Vec<i32> {
    let id = |document: &DocBuf| match document.as_doc().get("_id") {
        Some(Value::Int32(id)) => id,
        other => panic!("{other:?}"),
    };
    documents.iter().map(id).collect()
}

#[test]
fn large_batches_are_inserted_in_order_and_up_to_what_is_refused() {
    let Some(server) = server() else { return };
    let (client, things) = (Client::open(server.engine()), namespace("large"));
    let outcome = client.insert(&things, &many(0..5_000)).unwrap();
    assert!(outcome.statements.len() == 5_000 && outcome.statements.iter().all(Result::is_ok));
    client.insert(&things, &many([9_000].into_iter())).unwrap();
    assert_eq!(ids(&client.find(&things, &doc! {}).unwrap()), (0..5_000).chain([9_000]).collect::<Vec<_>>());
    let halves =
        server.sql("SELECT COUNT(DISTINCT seq - (JSON_VALUE(doc, '$._id'))) FROM large.things WHERE id < 9000");
    assert_eq!(halves.trim(), "2", "the first document, and all others behind what was left out");

    // One that is there already, in the first half and in the second; twice the same, one in each
    // half.
    let mut from = 10_000;
    for (position, id) in [(700, 1), (2_500, 1), (2_999, 1), (0, 1), (2_900, 700)] {
        for ordered in [true, false] {
            let mut batch = many(from..from + 3_000);
            let id = if id == 1 { 1 } else { from + id };
            batch[position] = many([id].into_iter()).remove(0);
            let outcome = client.insert_with(&things, &batch, ordered, None).unwrap();
            let inserted: Vec<i32> = (from..from + 3_000)
                .filter(|it| it - from != position as i32)
                .take(if ordered { position } else { 3_000 })
                .collect();
            let expected = if ordered { position + 1 } else { 3_000 };
            assert_eq!(outcome.statements.len(), expected);
            assert_eq!(outcome.statements.iter().position(Result::is_err), Some(position));
            assert_eq!(outcome.statements.iter().filter(|it| it.is_err()).count(), 1);
            let found = client.find(&things, &doc! { "_id": &doc! { "$gte": from, "$lt": from + 3_000 } }).unwrap();
            assert_eq!(ids(&found), inserted);
            from += 3_000;
        }
    }
}

#[test]
fn a_large_batch_that_comes_again_is_not_inserted_again() {
    let Some(server) = server() else { return };
    let (client, things) = (Client::open(server.engine()), namespace("large_again"));
    let key = RetryKey { session: [77; 16], txn_number: 5 };
    for round in 0..2 {
        let outcome = client.insert_with(&things, &many(0..3_000), true, Some(key.clone())).unwrap();
        assert!(outcome.statements.len() == 3_000 && outcome.statements.iter().all(Result::is_ok));
        assert_eq!(outcome.retried, round == 1);
    }
    // As if the gateway had died between the halves.
    let next = RetryKey { session: [77; 16], txn_number: 6 };
    client.insert_with(&things, &many(10_000..11_000), true, Some(next.clone())).unwrap();
    let outcome = client.insert_with(&things, &many(10_000..13_000), true, Some(next)).unwrap();
    assert!(outcome.statements.len() == 3_000 && outcome.statements.iter().all(Result::is_ok));
    assert_eq!(ids(&client.find(&things, &doc! {}).unwrap()), (0..3_000).chain(10_000..13_000).collect::<Vec<_>>());
}

#[test]
fn large_batches_of_many_clients_do_not_get_in_each_others_way() {
    let Some(server) = server() else { return };
    let engine = server.engine();
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let engine = engine.clone();
            scope.spawn(move || {
                let (client, things) = (Client::open(engine), namespace("large_many"));
                for round in 0..6 {
                    let from = worker * 1_000_000 + round * 10_000;
                    let outcome = client.insert(&things, &many(from..from + 2_600)).unwrap();
                    assert!(
                        outcome.statements.iter().all(Result::is_ok),
                        "{:?}",
                        outcome.statements.iter().find(|it| it.is_err())
                    );
                    let single = client.insert(&things, &many([from + 5_000].into_iter())).unwrap();
                    assert!(single.statements[0].is_ok());
                }
            });
        }
    });
    let all = ids(&Client::open(engine).find(&namespace("large_many"), &doc! {}).unwrap());
    assert_eq!(all.len(), 4 * 6 * 2_601);
    for worker in 0..4 {
        let own: Vec<i32> = all.iter().copied().filter(|id| id / 1_000_000 == worker).collect();
        assert!(own.is_sorted(), "the batches of a client stay in order");
    }
}

#[test]
fn names_and_values_are_never_sql() {
    let Some(server) = server() else { return };
    let client = Client::open(server.engine());
    let long = "n".repeat(180);
    let evil =
        ["a`; DROP TABLE x; -- ", "a' OR '1'='1", "a\"b\\", "tick`s", "naïve.ünïcode", "smile 😀 ", "~tilde", &long];
    for name in evil {
        let things = Namespace::new("evil_names", name);
        let document = doc! { "_id": name, "v": "'); DROP TABLE x; -- \\" };
        client.insert(&things, std::slice::from_ref(&document)).unwrap();
        for filter in [doc! { "_id": name }, doc! { "v": "'); DROP TABLE x; -- \\" }, doc! {}] {
            assert_eq!(client.find(&things, &filter).unwrap(), std::slice::from_ref(&document), "{name} {filter:?}");
        }
        for path in ["a\" ) OR 1=1 -- ", "a' OR '1'='1", "x`y", "*", "a\\"] {
            let filter = DocBuf::build(|writer| writer.append(path, "x"));
            assert!(client.find(&things, &filter).unwrap().is_empty(), "{path}");
        }
    }
    let mut listed: Vec<String> =
        client.run(client.store.collections("evil_names")).unwrap().into_iter().map(|info| info.name).collect();
    let mut expected = evil.map(str::to_owned).to_vec();
    listed.sort();
    expected.sort();
    assert_eq!(listed, expected);
    for reserved in ["mysql", "information_schema", "selkie", "sys"] {
        let refused = client.insert(&Namespace::new(reserved, "x"), &[doc! { "_id": 1 }]).unwrap_err();
        assert_eq!(refused.code(), error::Code::INVALID_NAMESPACE);
    }
}

/// Values of every kind that ids and fields may have, with neighbors that are nearly equal.
fn value() -> impl Strategy<Value = DocBuf> {
    let number = prop_oneof![
        any::<i32>().prop_map(|it| doc! { "v": it }),
        (-5..5).prop_map(|it| doc! { "v": it }),
        (-5i64..5).prop_map(|it| doc! { "v": it }),
        any::<i64>().prop_map(|it| doc! { "v": it }),
        (-20..20).prop_map(|it| doc! { "v": f64::from(it) / 4.0 }),
        any::<f64>().prop_map(|it| doc! { "v": it }),
        (any::<i64>()).prop_map(|it| doc! { "v": it as f64 }),
        (any::<bool>(), 0..100u128, -4..4i32).prop_map(|(negative, coefficient, exponent)| {
            doc! { "v": Value::Decimal128(document::Decimal128::from_parts(negative, coefficient, exponent).unwrap()) }
        }),
        (any::<bool>(), any::<u64>(), -6000..6000i32).prop_map(|(negative, coefficient, exponent)| {
            let decimal = document::Decimal128::from_parts(negative, coefficient.into(), exponent).unwrap();
            doc! { "v": Value::Decimal128(decimal) }
        }),
    ];
    let text = prop_oneof!["[a-cA-C ]{0,3}", "\\PC{0,20}", ".{0,5}", "x{240,300}", "[\\\\\"/\n\t]{0,3}"];
    prop_oneof![
        4 => number,
        3 => text.prop_map(|it: String| doc! { "v": it.as_str() }),
        1 => any::<[u8; 12]>().prop_map(|it| doc! { "v": ObjectId(it) }),
        1 => any::<bool>().prop_map(|it| doc! { "v": it }),
        1 => any::<i64>().prop_map(|it| doc! { "v": Value::DateTime(it) }),
        1 => (0..3i32, 0..3i64).prop_map(|(a, b)| doc! { "v": &doc! { "a": a, "b": b, "c": f64::from(a), "d": "1.0,e0" } }),
        1 => any::<[u8; 5]>().prop_map(|it| doc! { "v": Value::Binary { subtype: 0, bytes: &it } }),
        1 => Just(doc! { "v": Value::Null }),
    ]
}

#[test]
fn the_server_computes_the_same_id() {
    let Some(server) = server() else { return };
    let (client, things) = (Client::open(server.engine()), namespace("same_id"));
    runner(300)
        .run(&value(), |value| {
            let value = value.as_doc().get("v").unwrap();
            let document = doc! { "_id": value };
            let taken = client.insert(&things, std::slice::from_ref(&document)).unwrap().statements.remove(0).is_err();
            let found = client.find(&things, &doc! { "_id": value }).unwrap();
            prop_assert!(!found.is_empty(), "{:?} is not found (taken: {})", document, taken);
            Ok(())
        })
        .unwrap();
}

#[test]
fn ids_that_no_double_is_near_to_are_their_own() {
    let Some(server) = server() else { return };
    let (client, things) = (Client::open(server.engine()), namespace("far_ids"));
    let decimal = |coefficient, exponent| document::Decimal128::from_parts(false, coefficient, exponent).unwrap();
    let ids = [(0, 0), (1, -400), (15, -6170), (1, 400), (15, 6100), (1, 18), (1, 17), (5, -1), (1, -40)];
    let documents: Vec<DocBuf> =
        ids.map(|(digits, exponent)| doc! { "_id": Value::Decimal128(decimal(digits, exponent)) }).into();
    client.insert(&things, &documents).unwrap().statements.into_iter().for_each(|outcome| drop(outcome.unwrap()));
    for document in &documents {
        assert_eq!(client.find(&things, document).unwrap(), std::slice::from_ref(document));
    }
}

/// Encodings of an `_id` at the start of a document: Selkie's own, similar ones, and hand-written
/// JSON.
fn id_encoding() -> impl Strategy<Value = String> {
    let hand_written = prop_oneof![
        "-?[0-9]{1,20}",
        "-?[0-9]{1,3}(\\.[0-9]{1,2}|e[0-9]|\\.0|e0)?",
        "-?0[0-9]?",
        "\"[a-zA-Z \\\\\"/é€💧]{0,8}\"",
        "\"x{30,60}\"",
        "\"x{240,270}\"",
        "\\{\"\\$oid\":\"[0-9a-fA-F]{23,25}\"\\}",
        "\\{\"\\$oid\" ?: ?\"[0-9a-f]{24}\" ?(,\"a\":1)?\\}",
        "\\{\"a\":(1|1\\.0)\\}",
        "(true|false|null|\\[1\\]|\\{\\})",
    ];
    let own = value().prop_map(|value| {
        let mut text = Vec::new();
        document::json::value_to_json(value.as_doc().get("v").unwrap(), &mut text);
        String::from_utf8(text).unwrap()
    });
    let other = ["{ \"_id\":", "{\"_id\": ", "{\"a\":\"_id\",\"_id\":", "{\"\\u005fid\":"];
    let front = prop_oneof![3 => Just("{\"_id\":"), 1 => prop::sample::select(other.to_vec())];
    let rest = prop::sample::select(vec!["}", " }", ",\"a\":1}", ",\"_id\":7}", " ,\"a\":\"\\\"\"}"]);
    (front, prop_oneof![2 => hand_written, 1 => own], rest).prop_map(|(front, id, rest)| format!("{front}{id}{rest}"))
}

/// The pattern that finds most ids without reading JSON gives what reading it gives.
#[test]
fn the_short_way_to_an_id_leads_to_the_same() {
    let Some(server) = server() else { return };
    let (client, things) = (Client::open(server.engine()), namespace("short_way"));
    client.insert(&things, &[doc! { "_id": 1 }]).unwrap();
    let expression = server.sql(
        "SELECT GENERATION_EXPRESSION FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'short_way' AND COLUMN_NAME = 'id'",
    );
    let (short, general) = expression.trim().split_once(",''),").unwrap();
    let (short, general) = (short.strip_prefix("coalesce(nullif(").unwrap(), general.strip_suffix(')').unwrap());
    server.sql("CREATE TABLE short_way.texts (doc LONGTEXT) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin");
    let (mut random, spelling) = (runner(1), id_encoding());
    for _ in 0..8 {
        let texts: Vec<String> = (0..500)
            .map(|_| {
                let text = spelling.new_tree(&mut random).unwrap().current();
                format!("('{}')", text.replace('\\', "\\\\").replace('\'', "''"))
            })
            .collect();
        server.sql(&format!("INSERT INTO short_way.texts VALUES {}", texts.join(",")));
    }
    server.sql("DELETE FROM short_way.texts WHERE NOT JSON_VALID(doc)");
    let wrong = server.sql(&format!(
        "SELECT doc, {short}, {general} FROM short_way.texts WHERE {short} <> '' AND NOT {short} <=> {general} LIMIT 5"
    ));
    assert_eq!(wrong, "");
    let counts = server.sql(&format!("SELECT SUM({short} <> '') > 200, SUM({short} = '') > 200 FROM short_way.texts"));
    assert_eq!(counts.split_whitespace().collect::<Vec<_>>(), ["1", "1"]);
}

fn filter() -> impl Strategy<Value = DocBuf> {
    let operator = prop::sample::select(vec!["$eq", "$lt", "$lte", "$gt", "$gte", "$ne"]);
    let path = prop::sample::select(vec!["a", "b", "a.x", "a.0", "_id"]);
    (path, operator, value(), value()).prop_flat_map(|(path, operator, one, other)| {
        let (one, other) = (one.as_doc().get("v").unwrap().to_owned(), other.as_doc().get("v").unwrap().to_owned());
        let compare = DocBuf::build(|writer| writer.document(path).append(operator, &one));
        let list = DocBuf::build(|writer| {
            let mut inner = writer.document(path);
            let mut list = inner.array("$in");
            list.push(&one);
            list.push(&other);
        });
        let prefix = DocBuf::build(|writer| {
            let pattern = one.as_value().as_str().filter(|text| text.chars().all(char::is_alphanumeric)).unwrap_or("a");
            writer.document(path).append("$regex", pattern.chars().take(20).collect::<String>().as_str());
        });
        prop_oneof![Just(compare), Just(list), Just(prefix)]
    })
}

fn field() -> impl Strategy<Value = DocBuf> {
    let plain = value();
    let array = prop::collection::vec(value(), 0..3).prop_map(|values| {
        DocBuf::build(|writer| {
            let mut array = writer.array("v");
            values.iter().for_each(|it| array.push(it.as_doc().get("v").unwrap()));
        })
    });
    let nested = value().prop_map(|value| doc! { "v": &doc! { "x": value.as_doc().get("v").unwrap() } });
    let listed = value().prop_map(|value| {
        DocBuf::build(|writer| {
            writer.array("v").document().append("x", value.as_doc().get("v").unwrap());
        })
    });
    let symbol = Just(doc! { "v": Value::Symbol("a") });
    prop_oneof![5 => plain, 2 => array, 2 => nested, 1 => listed, 1 => symbol]
}

/// What the server leaves out is not lookups for: with conditions on the text, and with an index.
#[test]
fn the_server_keeps_every_document_that_matches() {
    let Some(server) = server() else { return };
    let client = Client::open(server.engine());
    for indexed in [false, true] {
        let things = namespace(if indexed { "superset_indexed" } else { "superset" });
        let (mut random, fields) = (runner(1), (field(), prop::option::of(field())));
        let documents: Vec<DocBuf> = (0..150)
            .map(|number| {
                let (a, b) = fields.new_tree(&mut random).unwrap().current();
                DocBuf::build(|writer| {
                    writer.append("_id", number);
                    writer.append("a", a.as_doc().get("v").unwrap());
                    b.iter().for_each(|b| writer.append("b", b.as_doc().get("v").unwrap()));
                })
            })
            .collect();
        client.insert(&things, &documents).unwrap();
        if indexed {
            for path in ["a", "a.x"] {
                let key = DocBuf::build(|writer| writer.append(path, 1));
                let spec = doc! { "v": 2, "key": &key, "name": path };
                let index = store::IndexSpec { name: path.into(), key, unique: false, sparse: false, spec };
                client.run(client.store.create_indexes(&things, vec![index])).unwrap();
            }
        }
        runner(200)
            .run(&filter(), |filter| {
                let Ok(predicate) = Predicate::parse(filter.as_doc(), &Context::at(0)) else { return Ok(()) };
                let matching = |documents: &[DocBuf]| -> Vec<_> {
                    let mut ids: Vec<_> = documents
                        .iter()
                        .filter(|it| predicate.matches(it.as_doc()).unwrap())
                        .map(|it| format!("{:?}", id(it)))
                        .collect();
                    ids.sort();
                    ids
                };
                let given = client.candidates(&things, &predicate).unwrap();
                prop_assert_eq!(matching(&given), matching(&documents), "{:?}", filter);
                Ok(())
            })
            .unwrap();
    }
}

#[test]
fn a_server_that_will_not_do_is_told_at_the_start() {
    // One of its own, because it is set up badly for a while.
    let Some(server) = support::Server::start() else { return };
    let connect = |user: &str, password: &str| {
        let url = format!("mysql://{user}:{password}@localhost/?socket={}", server.socket().display());
        store_mariadb::MariaDbEngine::connect(&url, Default::default())
            .map(drop)
            .map_err(|error| error.message().to_owned())
    };
    server.sql("CREATE USER joe@localhost IDENTIFIED BY 's@cret'; GRANT ALL ON *.* TO joe@localhost");
    assert_eq!(connect("joe", "s%40cret"), Ok(()));
    assert!(connect("joe", "wrong").unwrap_err().contains("check user and password"));
    if server.try_sql("INSTALL SONAME 'auth_ed25519'").is_some() {
        server.sql("CREATE USER ed@localhost IDENTIFIED VIA ed25519 USING PASSWORD('s@cret'); GRANT ALL ON *.* TO ed@localhost");
        assert_eq!(connect("ed", "s%40cret"), Ok(()));
        assert!(connect("ed", "wrong").unwrap_err().contains("check user and password"));
    } else {
        eprintln!("not tested: this MariaDB has no auth_ed25519 plugin");
    }
    server.sql("SET GLOBAL max_allowed_packet = 16777216");
    let refused = connect("joe", "s%40cret").unwrap_err();
    server.sql("SET GLOBAL max_allowed_packet = 134217728");
    assert!(refused.contains("max_allowed_packet=128M"), "{refused}");
    let nowhere =
        store_mariadb::MariaDbEngine::connect("mysql://localhost:1", Default::default()).map(drop).unwrap_err();
    assert!(nowhere.message().contains("is the server running"), "{nowhere}");
}

#[test]
fn a_server_that_dies_is_missed_for_as_long_as_it_is_gone() {
    let Some(server) = support::Server::start() else { return };
    let (client, things) = (Client::open(server.engine()), namespace("dies"));
    for round in 0..3 {
        let document = doc! { "_id": round };
        let inserted = client.insert(&things, std::slice::from_ref(&document)).unwrap();
        assert!(inserted.statements[0].is_ok());
        server.kill();
        let error = client.find(&things, &doc! {}).unwrap_err();
        assert_eq!(error.code(), error::Code::HOST_UNREACHABLE, "{error}");
        let insert = Statements::Insert(vec![bytes::Bytes::from(doc! { "_id": 99 }.into_vec())]);
        let key = RetryKey { session: [9; 16], txn_number: round.into() };
        let error = client.write(&things, insert, Some(key)).unwrap_err();
        assert_eq!(error.labels(), ["RetryableWriteError"]);
        server.restart();
        assert!(!client.find(&things, &doc! {}).unwrap().is_empty());
    }
}

/// The server itself would let root write, as all users with the privilege READ_ONLY ADMIN.
#[test]
fn a_read_only_server_is_not_written_to_until_it_is_writable_again() {
    let Some(server) = support::Server::start() else { return };
    let (engine, things) = (server.engine(), namespace("replica"));
    let engine_of_user = {
        server.sql("CREATE USER joe@localhost IDENTIFIED BY 'x'");
        server.sql("GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, TRIGGER ON *.* TO joe@localhost");
        let url = format!("mysql://joe:x@localhost/?socket={}", server.socket().display());
        store_mariadb::MariaDbEngine::connect(&url, Default::default()).unwrap()
    };
    // Its connections are older than the change.
    let of_user = Client::open(engine_of_user);
    of_user.insert(&things, &[doc! { "_id": 1, "n": 0 }]).unwrap();
    server.sql("SET GLOBAL read_only = ON");

    let refused = store_mariadb::MariaDbEngine::connect(&server.url(), Default::default()).map(drop).unwrap_err();
    assert!(refused.message().contains("read_only is on"), "{refused}");
    let of_root = Client::open(engine);
    for client in [&of_root, &of_user] {
        let code = |outcome: error::Result<()>| outcome.unwrap_err().code();
        let not_writable = error::Code::HOST_UNREACHABLE;
        let two = [doc! { "_id": 2 }, doc! { "_id": 3 }];
        assert_eq!(code(client.insert(&things, &two).map(drop)), not_writable);
        assert_eq!(code(client.insert_with(&things, &two, true, None).map(drop)), not_writable);
        let key = RetryKey { session: [7; 16], txn_number: 1 };
        assert_eq!(code(client.insert_with(&things, &two, true, Some(key)).map(drop)), not_writable);
        assert_eq!(code(client.insert(&namespace("other"), &two).map(drop)), not_writable);
        let increment = doc! { "$inc": &doc! { "n": 1 } };
        assert_eq!(code(client.update(&things, &doc! { "_id": 1 }, &increment).map(drop)), not_writable);
        let deletes = Statements::Delete(vec![support::client::delete(&doc! {})]);
        assert_eq!(code(client.write(&things, deletes, None).map(drop)), not_writable);
        assert_eq!(client.find(&things, &doc! {}).unwrap(), [doc! { "_id": 1, "n": 0 }], "reads go on");
    }
    assert_eq!(server.sql("SELECT COUNT(*) FROM replica.things").trim(), "1");
    server.sql("SET GLOBAL read_only = OFF");
    for (client, id) in [(&of_root, 2), (&of_user, 3)] {
        let insert = || client.insert(&things, &[doc! { "_id": id }]);
        // A session that began earlier is read-only once more; drivers retry.
        let outcome = insert().or_else(|_| insert()).unwrap();
        assert!(outcome.statements[0].is_ok());
    }
}
