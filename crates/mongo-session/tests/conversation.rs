//! The protocol's rules: order, no reply, compression, checksums, exhaust, shutdown.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod support;

use document::{DocBuf, Value, doc};
use mongo_wire::client::{Command, encode_query};
use mongo_wire::{Compressor, OpCode, op_msg};
use std::time::{Duration, Instant};
use support::TestServer;

fn ping() -> DocBuf {
    doc! { "ping": 1, "$db": "admin" }
}

fn encode(command: Command<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    command.encode(&mut bytes);
    bytes
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = TestServer::start(1);
    let mut client = server.client();
    let body = ping();
    let many: Vec<u8> = (0..3000)
        .flat_map(|request_id| encode(Command { request_id, body: body.as_bytes(), ..Command::default() }))
        .collect();
    // Sent from another thread, so that the two sides do not wait for each other with full buffers.
    let mut sending = client.stream.try_clone().unwrap();
    let sender = std::thread::spawn(move || std::io::Write::write_all(&mut sending, &many).unwrap());
    for request_id in 0..3000 {
        assert_eq!(client.receive().unwrap().header.response_to, request_id);
    }
    sender.join().unwrap();
}

#[test]
fn an_unacknowledged_request_gets_no_reply() {
    let server = TestServer::start(1);
    let mut client = server.client();
    let (ping, unknown) = (ping(), doc! { "nonsense": 1, "$db": "admin" });
    for body in [&ping, &unknown, &doc! { "ping": 1 }] {
        client.send(&encode(Command {
            request_id: 1,
            body: body.as_bytes(),
            more_to_come: true,
            ..Command::default()
        }));
    }
    client.send(&encode(Command { request_id: 2, body: ping.as_bytes(), ..Command::default() }));
    assert_eq!(client.receive().unwrap().header.response_to, 2);
}

#[test]
fn replies_are_compressed_as_their_requests_were() {
    let server = TestServer::start(1);
    let mut client = server.client();
    for compressor in Compressor::ALL {
        for (body, expected) in [(ping(), Some(compressor)), (doc! { "hello": 1, "$db": "admin" }, None)] {
            let mut bytes = Vec::new();
            let command = Command { request_id: 5, body: body.as_bytes(), ..Command::default() };
            command.encode_compressed(compressor, &mut client.codecs, &mut bytes).unwrap();
            client.send(&bytes);
            let reply = client.receive().unwrap();
            assert_eq!((reply.compressor, reply.header.response_to), (expected, 5));
        }
    }
}

#[test]
fn replies_have_checksums_if_their_requests_had() {
    let server = TestServer::start(1);
    let mut client = server.client();
    let body = ping();
    client.send(&encode(Command { body: body.as_bytes(), checksum: true, ..Command::default() }));
    assert_eq!(client.receive().unwrap().flags, op_msg::CHECKSUM_PRESENT);
    client.send(&encode(Command { body: body.as_bytes(), ..Command::default() }));
    assert_eq!(client.receive().unwrap().flags, 0);
}

#[test]
fn op_query_is_answered_with_op_reply() {
    let server = TestServer::start(1);
    let mut client = server.client();
    let mut bytes = Vec::new();
    encode_query(9, "admin", doc! { "isMaster": 1 }.as_bytes(), &mut bytes);
    client.send(&bytes);
    let reply = client.receive().unwrap();
    assert_eq!((reply.header.opcode, reply.header.response_to), (OpCode::REPLY, 9));
    assert_eq!(reply.body().get("maxMessageSizeBytes"), Some(Value::Int32(48_000_000)));
}

#[test]
fn the_largest_message_is_accepted() {
    let server = TestServer::start(1);
    let mut client = server.client();
    let text = "x".repeat(15_000_000);
    let document = doc! { "text": text.as_str() };
    let documents = [document.as_bytes(); 3];
    let body = doc! { "nonsense": 1, "$db": "admin" };
    let mut bytes =
        encode(Command { body: body.as_bytes(), sequence: Some(("documents", &documents)), ..Command::default() });
    assert!(bytes.len() > 45_000_000);
    client.send(&bytes);
    assert_eq!(client.receive().unwrap().body().get("code"), Some(Value::Int32(59)));
    bytes.clear();
    assert!(client.is_alive());
}

/// A driver's monitor: one request, replies for as long as it listens.
#[test]
fn a_streaming_hello_is_answered_repeatedly() {
    let server = TestServer::start(1);
    let mut client = server.client();
    let version = client.run(&doc! { "hello": 1, "$db": "admin" });
    let version = version.body().element("topologyVersion").unwrap();
    let Value::Document(version) = version.value() else { panic!("{version:?}") };
    let body = doc! { "hello": 1, "topologyVersion": version, "maxAwaitTimeMS": 50, "$db": "admin" };
    client.send(&encode(Command { request_id: 8, body: body.as_bytes(), exhaust_allowed: true, ..Command::default() }));
    for _ in 0..3 {
        let reply = client.receive().unwrap();
        assert!(reply.more_to_come());
        assert_eq!(reply.body().get("ok"), Some(Value::Double(1.0)));
    }
    server.stop();
    while let Some(reply) = client.receive() {
        assert_eq!(reply.header.opcode, OpCode::MSG);
    }
}

/// Returns the number of running aggregations of other clients.
fn running_aggregations(observer: &mut support::Client) -> usize {
    let reply = observer.run(&doc! { "currentOp": 1, "$db": "admin" });
    let Some(Value::Array(operations)) = reply.body().get("inprog") else { panic!("no inprog") };
    let commands = operations.values().filter_map(|it| it.as_document()?.get("command")?.as_document());
    commands.filter(|command| command.get("aggregate").is_some()).count()
}

/// Every document is compared with every document, which takes far longer than the test.
#[test]
fn a_read_ends_when_its_client_hangs_up() {
    let server = TestServer::start(1);
    let (mut client, mut observer) = (server.client(), server.client());
    let documents: Vec<DocBuf> = (0..5000).map(|id| doc! { "_id": id, "x": id }).collect();
    let documents: Vec<&[u8]> = documents.iter().map(DocBuf::as_bytes).collect();
    let insert = doc! { "insert": "a", "$db": "test" };
    client.send(&encode(Command {
        body: insert.as_bytes(),
        sequence: Some(("documents", &documents)),
        ..Command::default()
    }));
    assert_eq!(client.receive().unwrap().body().get("n"), Some(Value::Int32(5000)));

    let greater = doc! { "$expr": &doc! { "$gt": &document::array!["$x", "$$x"] } };
    let matching = document::array![&doc! { "$match": &greater }, &doc! { "$count": "n" }];
    let lookup = doc! { "from": "a", "let": &doc! { "x": "$x" }, "pipeline": &matching, "as": "greater" };
    let stages = document::array![&doc! { "$lookup": &lookup }, &doc! { "$count": "n" }];
    let body = doc! { "aggregate": "a", "pipeline": &stages, "cursor": &doc! {}, "$db": "test" };
    client.send(&encode(Command { body: body.as_bytes(), ..Command::default() }));
    let began = Instant::now();
    while running_aggregations(&mut observer) == 0 {
        assert!(began.elapsed() < Duration::from_secs(5));
    }
    drop(client);
    let hung_up = Instant::now();
    while running_aggregations(&mut observer) > 0 {
        assert!(hung_up.elapsed() < Duration::from_secs(2), "it goes on");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_drain_closes_idle_connections_and_wakes_waiting_requests() {
    let server = TestServer::start(2);
    let mut idle: Vec<_> = (0..20).map(|_| server.client()).collect();
    assert!(idle.iter_mut().all(|client| client.is_alive()));
    let mut waiting = server.client();
    let version = waiting.run(&doc! { "hello": 1, "$db": "admin" });
    let Some(Value::Document(version)) = version.body().get("topologyVersion") else { panic!("no topologyVersion") };
    let body = doc! { "hello": 1, "topologyVersion": version, "maxAwaitTimeMS": 10_000, "$db": "admin" };
    waiting.send(&encode(Command { body: body.as_bytes(), ..Command::default() }));
    std::thread::sleep(Duration::from_millis(50));

    let began = Instant::now();
    let address = server.address;
    server.stop();
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert!(idle.iter_mut().all(|client| client.receive().is_none()));
    assert!(std::net::TcpStream::connect(address).is_err());
}
