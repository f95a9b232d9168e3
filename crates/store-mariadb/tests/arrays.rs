//! Documents that an index refuses for their arrays.

#![allow(clippy::unwrap_used)]

mod support;

use document::{DocBuf, doc};
use store::{Namespace, Statements};
use support::client::{Client, delete, refusal, spec};
use support::server;

/// An index is not made over documents that it would refuse, and nothing is left of it.
#[test]
fn arrays_side_by_side_are_refused() {
    let Some(server) = server() else { return };
    let client = Client::open(server.engine());
    let parallel = Some(error::Code::CANNOT_INDEX_PARALLEL_ARRAYS);
    let one = |name: &str| {
        DocBuf::build(|writer| {
            writer.append("_id", name);
            writer.array(name).push(1);
        })
    };
    let both = DocBuf::build(|writer| {
        writer.append("_id", 1);
        writer.array("a").push(1);
        writer.array("b").push(2);
    });
    let within = DocBuf::build(|writer| {
        writer.append("_id", 1);
        let mut array = writer.array("a");
        let mut element = array.document();
        element.array("x").push(1);
        element.array("y").push(2);
    });
    let numbered = DocBuf::build(|writer| {
        writer.append("_id", 1);
        writer.array("c").document().append("0", 1);
    });
    for (number, (key, refused, code)) in [
        (doc! { "a": 1, "b": -1 }, &both, parallel),
        (doc! { "a.x": 1, "a.y": 1 }, &within, parallel),
        (doc! { "c.0": 1 }, &numbered, Some(error::Code(16746))),
    ]
    .into_iter()
    .enumerate()
    {
        let things = Namespace::new("index_parallel", &format!("things{number}"));
        let make = || client.run(client.store.create_indexes(&things, vec![spec("i", key.clone(), doc! {})]));
        assert_eq!(refusal(&client, &things, refused), None);
        assert_eq!(make().unwrap_err().code(), code.unwrap());
        assert_eq!(client.run(client.store.indexes(&things)).unwrap().unwrap().len(), 1);
        client.write(&things, Statements::Delete(vec![delete(&doc! {})]), None).unwrap();
        make().unwrap();
        assert_eq!(refusal(&client, &things, refused), code);
        for plain in [one("a"), one("b"), one("c")] {
            assert_eq!(refusal(&client, &things, &plain), None);
        }
    }
}
