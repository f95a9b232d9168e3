//! Commands from the outside: a command as a document in, its reply as a document out, against a
//! store in memory.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod catalog;
mod cursors;
mod foreign;
mod handshake;
mod reading;
mod support;
mod views;
mod writing;

use bson::{Bson, Document, doc};
use server::Topology;
use support::Bench;

/// Matches any value in an expected reply.
const ANY: &str = "<any>";

fn bench() -> Bench {
    Bench::new(Topology::Router)
}

/// Runs commands in order and compares each reply. `{code, errmsg}` alone means the whole error
/// reply.
#[track_caller]
fn check_replies(bench: &mut Bench, cases: Vec<(Document, Document)>) {
    for (command, mut expected) in cases {
        let reply = bench.run(command.clone());
        if expected.contains_key("code") && !expected.contains_key("ok") {
            let mut error =
                doc! { "ok": 0.0, "errmsg": expected.get("errmsg").unwrap(), "code": expected.get("code").unwrap() };
            error.insert("codeName", ANY);
            expected.into_iter().filter(|(key, _)| key != "code" && key != "errmsg").for_each(|(key, value)| {
                error.insert(key, value);
            });
            expected = error;
        } else if !expected.contains_key("ok") {
            expected.insert("ok", 1.0);
        }
        let fits = fits(&Bson::Document(reply.clone()), &Bson::Document(expected.clone()));
        assert!(fits, "\ncommand  {command}\nreply    {reply}\nexpected {expected}");
    }
}

/// Returns whether a value is as expected: the same fields in any order, the same types.
fn fits(value: &Bson, expected: &Bson) -> bool {
    match (value, expected) {
        (_, Bson::String(any)) if any == ANY => true,
        (Bson::Document(value), Bson::Document(expected)) => {
            value.len() == expected.len()
                && expected.iter().all(|(key, expected)| value.get(key).is_some_and(|value| fits(value, expected)))
        }
        (Bson::Array(value), Bson::Array(expected)) => {
            value.len() == expected.len() && value.iter().zip(expected).all(|(value, expected)| fits(value, expected))
        }
        _ => value == expected,
    }
}

/// Returns an error by its code and message.
fn error(code: i32, message: &str) -> Document {
    doc! { "code": code, "errmsg": message }
}

/// Inserts ten documents `{_id: 0…9, x: _id % 3}` into `a`.
fn ten_documents(bench: &mut Bench) {
    let documents: Vec<Document> = (0..10).map(|id| doc! { "_id": id, "x": id % 3 }).collect();
    bench.run_with(doc! { "insert": "a" }, "documents", &documents);
}
