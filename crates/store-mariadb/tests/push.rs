//! What a `$push` by `_id` asks of the server, counted there.

#![allow(clippy::unwrap_used)]

mod support;

use document::{DocBuf, array, doc};
use store::{Namespace, RetryKey, Statements};
use support::Server;
use support::client::{Client, update};

const PUSHES: u64 = 20;

/// How many SELECTs, UPDATEs and other statements clients have sent.
fn statements(server: &Server) -> [u64; 3] {
    let text = server
        .sql("SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_select', 'Com_update', 'Com_insert', 'Com_commit')");
    let count = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().parse::<u64>().unwrap()
    };
    [count("Com_select"), count("Com_update"), count("Com_insert") + count("Com_commit")]
}

/// What `PUSHES` times the change asks of the server, in whole statements for each: SELECTs,
/// UPDATEs, others.
fn asked_for(server: &Server, mut change: impl FnMut(u64)) -> [u64; 3] {
    // Prepares the statements.
    change(1000);
    let before = statements(server);
    (0..PUSHES).for_each(&mut change);
    let after = statements(server);
    [0, 1, 2].map(|at| (after[at] - before[at]) / PUSHES)
}

fn slice_push(number: u64) -> DocBuf {
    let comments = array![&doc! { "n": number as i64, "text": "a \"comment\"" }];
    doc! { "$push": &doc! { "latest": &doc! { "$each": &comments, "$slice": -10 } } }
}

#[test]
fn a_push_by_id_is_one_statement() {
    let Some(server) = Server::start() else { return };
    let (client, posts) = (Client::open(server.engine()), Namespace::new("push", "posts"));
    client.insert(&posts, &[doc! { "_id": 1, "title": "t" }, doc! { "_id": 2, "latest": 5 }]).unwrap();
    let push = |number: u64| {
        let outcome = client.update(&posts, &doc! { "_id": 1 }, &slice_push(number)).unwrap();
        assert_eq!((outcome.matched, outcome.modified), (1, 1));
    };
    assert_eq!(asked_for(&server, push), [0, 1, 0]);
    let kept = server.sql("SELECT JSON_EXTRACT(doc, '$.latest[*].n') FROM push.posts WHERE id = '1'");
    let last: Vec<String> = (PUSHES - 10..PUSHES).map(|number| format!("{number}e0")).collect();
    assert_eq!(kept.trim(), format!("[{}]", last.join(", ")));

    // With the record of a retryable write, in one transaction.
    let retryable = |number: u64| {
        let key = RetryKey { session: [7; 16], txn_number: number as i64 };
        let statement = update(&doc! { "_id": 1 }, &slice_push(number)).unwrap();
        let outcome = client.write(&posts, Statements::Update(vec![statement]), Some(key)).unwrap();
        (outcome.retried, outcome.statements[0].as_ref().unwrap().modified)
    };
    let mut number = 0;
    let push = |_| {
        number += 1;
        assert_eq!(retryable(number), (false, 1));
    };
    assert_eq!(asked_for(&server, push), [0, 1, 2]);
    let before = client.find(&posts, &doc! { "_id": 1 }).unwrap();
    assert_eq!(retryable(PUSHES + 1), (true, 1), "sent again");
    assert_eq!(client.find(&posts, &doc! { "_id": 1 }).unwrap(), before);

    // What the server is not to decide is read first.
    let sorted = doc! { "$push": &doc! { "latest": &doc! { "$each": &array![1], "$sort": 1, "$slice": -10 } } };
    let push = |_| assert_eq!(client.update(&posts, &doc! { "_id": 1 }, &sorted).unwrap().modified, 1);
    assert_eq!(asked_for(&server, push)[..2], [1, 1]);
    let error = client.update(&posts, &doc! { "_id": 2 }, &slice_push(0)).unwrap_err();
    assert!(error.message().contains("must be an array but is of type int"), "{error}");
    assert_eq!(client.update(&posts, &doc! { "_id": 3 }, &slice_push(0)).unwrap().matched, 0);
}
