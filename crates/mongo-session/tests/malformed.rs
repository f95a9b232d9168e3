//! Malformed messages sent to a running server. Each ends in an error reply or a closed connection;
//! the server continues, and other connections are not affected.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod support;

use document::doc;
use mongo_wire::client::Command;
use mongo_wire::{Compressor, OpCode};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};
use support::TestServer;

fn message(length: Option<i32>, opcode: i32, content: &[u8]) -> Vec<u8> {
    let length = length.unwrap_or(16 + content.len() as i32);
    [&length.to_le_bytes()[..], &7i32.to_le_bytes(), &0i32.to_le_bytes(), &opcode.to_le_bytes(), content].concat()
}

fn ping(checksum: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let body = doc! { "ping": 1, "$db": "admin" };
    Command { request_id: 7, body: body.as_bytes(), checksum, ..Command::default() }.encode(&mut bytes);
    bytes
}

fn compressed(size: i32, compressor: u8, packed: &[u8]) -> Vec<u8> {
    let content = [&2013i32.to_le_bytes()[..], &size.to_le_bytes(), &[compressor], packed].concat();
    message(None, 2012, &content)
}

/// Pseudo-random bytes, the same each time.
fn garbage(length: usize) -> Vec<u8> {
    let mut state = 0x2545_F491_4F6C_DD1Du64;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        })
        .collect()
}

#[test]
fn a_malformed_message_closes_only_its_own_connection() {
    let server = TestServer::start(2);
    let mut bystanders = [server.client(), server.client()];
    let mut damaged = ping(true);
    damaged[30] ^= 1;
    let zeros = zstd_bomb();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("garbage", garbage(5000)),
        ("http", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec()),
        ("length 0", message(Some(0), 2013, b"")),
        ("length 15", message(Some(15), 2013, b"")),
        ("negative length", message(Some(-1), 2013, b"")),
        ("oversized", message(Some(48_000_001), 2013, b"")),
        ("largest number", message(Some(i32::MAX), 2013, b"")),
        ("no content", message(None, 2013, b"")),
        ("bad checksum", damaged),
        ("required flags", message(None, 2013, &[&0xFFFCu32.to_le_bytes()[..], &ping(false)[20..]].concat())),
        ("unknown opcode", message(None, 9999, b"abc")),
        ("reply as request", message(None, OpCode::REPLY.0, &[0; 40])),
        ("OP_INSERT", message(None, OpCode::INSERT.0, &[0; 40])),
        ("OP_KILL_CURSORS", message(None, OpCode::KILL_CURSORS.0, &[0; 40])),
        ("short OP_QUERY", message(None, OpCode::QUERY.0, b"\0\0\0\0admin.$cmd")),
        ("broken snappy", compressed(100, 1, b"\x64garbage")),
        ("broken zlib", compressed(100, 2, b"garbage")),
        ("broken zstd", compressed(100, 3, b"garbage")),
        ("zstd bomb", compressed(100, 3, &zeros)),
        ("unknown compressor", compressed(100, 77, b"garbage")),
        ("compressed lie", compressed(i32::MAX, 2, b"garbage")),
        ("compressed within", message(None, 2012, &[&2012i32.to_le_bytes()[..], &[5, 0, 0, 0, 0], b"12345"].concat())),
    ];
    for (name, bytes) in cases {
        let mut client = server.client();
        // The server may close before everything is written.
        let _ = client.stream.write_all(&bytes);
        assert!(client.receive().is_none(), "{name}: expected a closed connection");
        for bystander in &mut bystanders {
            assert!(bystander.is_alive(), "after {name}");
        }
    }
}

fn zstd_bomb() -> Vec<u8> {
    let mut plain = Vec::new();
    let zeros = vec![0; 10_000_000];
    Command { body: &zeros, ..Command::default() }.encode(&mut plain);
    let mut packed = Vec::new();
    mongo_wire::op_compressed::pack(&plain, Compressor::Zstd, &mut Default::default(), &mut packed).unwrap();
    packed.split_off(25)
}

#[test]
fn errors_within_a_message_are_answered_and_the_connection_continues() {
    let server = TestServer::start(1);
    let mut client = server.client();
    let mut bad_bson = ping(false);
    bad_bson[25] = 0x33;
    let cases: Vec<(Vec<u8>, i32)> = vec![
        (bad_bson, 22),
        (message(None, 2013, &[0; 4]), 40587),
        (message(None, 2013, &[&ping(false)[16..], &ping(false)[20..]].concat()), 40430),
        (message(None, 2013, &[0, 0, 0, 0, 9]), 40432),
        (message(None, OpCode::GET_MORE.0, &[0; 30]), 5739101),
    ];
    for (bytes, code) in cases {
        client.send(&bytes);
        let reply = client.receive().unwrap();
        assert_eq!(reply.body().get("code"), Some(document::Value::Int32(code)));
        assert!(client.is_alive());
    }
}

#[test]
fn an_unfinished_message_affects_no_other_client() {
    let server = TestServer::start(1);
    let whole = ping(false);
    let mut silent: Vec<_> = (1..whole.len()).step_by(7).map(|cut| (cut, server.client())).collect();
    for (cut, client) in &mut silent {
        client.send(&whole[..*cut]);
    }
    assert!(server.client().is_alive());
    // The rest may arrive late.
    let (cut, mut late) = silent.swap_remove(2);
    late.send(&whole[cut..]);
    assert!(late.receive().is_some());
    // Or never: the client hangs up.
    let (_, gone) = silent.swap_remove(0);
    gone.stream.shutdown(Shutdown::Both).unwrap();
    assert!(server.client().is_alive());
    let began = Instant::now();
    server.stop();
    assert!(began.elapsed() < Duration::from_secs(1), "silent connections must not hold up the end");
}

#[test]
fn a_message_that_arrives_byte_by_byte() {
    let server = TestServer::start(1);
    let mut client = server.client();
    for byte in ping(true) {
        client.send(&[byte]);
    }
    assert!(client.receive().is_some());
}

#[test]
fn a_client_that_hangs_up_while_its_reply_is_sent() {
    let server = TestServer::start(1);
    for _ in 0..20 {
        let mut client = server.client();
        for _ in 0..100 {
            client.send(&ping(false));
        }
        drop(client);
    }
    assert!(server.client().is_alive());
    let mut rest = Vec::new();
    let mut client = server.client();
    client.send(&ping(false));
    client.stream.shutdown(Shutdown::Write).unwrap();
    client.stream.read_to_end(&mut rest).unwrap();
    let length = rest.first_chunk().map(|bytes| u32::from_le_bytes(*bytes) as usize);
    assert_eq!(length, Some(rest.len()), "a client that closes its sending side still gets its reply");
}
