//! Clients' messages: whole, cut at every length, and malformed in every known way.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

use bytes::BytesMut;
use document::{Doc, DocBuf, DocWriter, Kind, Value, doc};
use mongo_wire::client::{self, Command};
use mongo_wire::{Codecs, DecodeError, Message, OpCode, Request, RequestKind, decode};

fn ping() -> DocBuf {
    doc! { "ping": 1, "$db": "admin" }
}

fn message(opcode: OpCode, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&(16 + content.len() as i32).to_le_bytes());
    bytes.extend_from_slice(&7i32.to_le_bytes());
    bytes.extend_from_slice(&0i32.to_le_bytes());
    bytes.extend_from_slice(&opcode.0.to_le_bytes());
    bytes.extend_from_slice(content);
    bytes
}

fn op_msg(flags: u32, sections: &[&[u8]]) -> Vec<u8> {
    message(OpCode::MSG, &[&flags.to_le_bytes()[..], &sections.concat()].concat())
}

fn body(document: &DocBuf) -> Vec<u8> {
    [&[0][..], document.as_bytes()].concat()
}

fn sequence(identifier: &str, documents: &[DocBuf], length_off_by: i32) -> Vec<u8> {
    let mut content = identifier.as_bytes().to_vec();
    content.push(0);
    documents.iter().for_each(|document| content.extend_from_slice(document.as_bytes()));
    let length = content.len() as i32 + 4 + length_off_by;
    [&[1][..], &length.to_le_bytes(), &content].concat()
}

fn decode_bytes(bytes: &[u8]) -> Result<Option<Message>, DecodeError> {
    decode(&mut BytesMut::from(bytes), &mut Codecs::default())
}

fn request(bytes: &[u8]) -> Request {
    match decode_bytes(bytes) {
        Ok(Some(Message::Request(request))) => request,
        other => panic!("no request: {other:?}"),
    }
}

fn check_refused(bytes: &[u8], code: i32, message: &str) {
    match decode_bytes(bytes) {
        Ok(Some(Message::Refused(refused))) => {
            assert_eq!(refused.error.code().0, code, "{:?}", refused.error);
            assert!(refused.error.message().contains(message), "{:?} lacks {message:?}", refused.error);
            assert_eq!(refused.reply_to.request_id, 7);
        }
        other => panic!("expected error {code}, got {other:?}"),
    }
}

fn check_fatal(bytes: &[u8], expected: DecodeError) {
    match decode_bytes(bytes) {
        Err(error) => assert_eq!(error, expected),
        other => panic!("expected {expected:?}, got {other:?}"),
    }
}

/// A message that is cut is incomplete. If its header claims the shorter length, it is refused, but
/// never misread.
fn check_truncations(bytes: &[u8]) {
    for length in 0..bytes.len() {
        assert!(matches!(decode_bytes(&bytes[..length]), Ok(None)), "cut at {length}");
        if length >= 16 {
            let mut cut = bytes[..length].to_vec();
            cut[..4].copy_from_slice(&(length as i32).to_le_bytes());
            assert!(!matches!(decode_bytes(&cut), Ok(None)), "relabelled at {length}");
        }
    }
}

/// The first message of a driver to an unknown server.
#[test]
fn first_hello_of_a_driver() {
    let captured = b"\x44\x00\x00\x00\x41\xa7\x00\x00\x00\x00\x00\x00\xd4\x07\x00\x00\
        \x04\x00\x00\x00admin.$cmd\x00\x00\x00\x00\x00\xff\xff\xff\xff\
        \x1d\x00\x00\x00\x10ismaster\x00\x01\x00\x00\x00\x08helloOk\x00\x01\x00";
    let request = request(captured);
    assert_eq!(request.kind, RequestKind::Query { database: "admin".into() });
    assert_eq!(request.command_name(), "ismaster");
    assert_eq!(request.request_id, 0xA741);
    check_truncations(captured);
}

#[test]
fn op_msg_with_one_body() {
    let bytes = op_msg(0, &[&body(&ping())]);
    let request = request(&bytes);
    assert_eq!(request.body(), ping().as_doc());
    assert_eq!(request.kind, RequestKind::Msg { more_to_come: false, exhaust_allowed: false, checksum: false });
    assert!(!request.is_silent());
    check_truncations(&bytes);
}

#[test]
fn op_msg_flags() {
    let request = request(&op_msg(2 | 1 << 16 | 1 << 17, &[&body(&ping())]));
    assert_eq!(request.kind, RequestKind::Msg { more_to_come: true, exhaust_allowed: true, checksum: false });
    assert!(request.is_silent());
    for bit in 2..16 {
        check_fatal(&op_msg(1 << bit, &[&body(&ping())]), DecodeError::RequiredFlags(1 << bit));
    }
}

#[test]
fn op_msg_with_sequences_in_any_order() {
    let insert = doc! { "insert": "cars", "$db": "test" };
    let documents = [doc! { "_id": 1 }, doc! { "_id": 2, "Make": "Toyota" }];
    let (section, sequence) = (body(&insert), sequence("documents", &documents, 0));
    for sections in [[&section[..], &sequence], [&sequence, &section]] {
        let bytes = op_msg(0, &sections);
        let request = request(&bytes);
        assert_eq!(request.body(), insert.as_doc());
        let found: Vec<_> = request.sequence("documents").unwrap().map(|d| d.to_owned()).collect();
        assert_eq!(found, documents);
        assert!(request.sequence("updates").is_none());
        check_truncations(&bytes);
    }
}

#[test]
fn op_msg_checksum() {
    let mut bytes = Vec::new();
    Command { request_id: 7, body: ping().as_bytes(), checksum: true, ..Command::default() }.encode(&mut bytes);
    assert_eq!(request(&bytes).kind, RequestKind::Msg { more_to_come: false, exhaust_allowed: false, checksum: true });
    check_truncations(&bytes);
    for at in 20..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        check_fatal(&damaged, DecodeError::Checksum);
    }
    check_fatal(&op_msg(1, &[]), DecodeError::Truncated("checksum"));
}

/// The error codes, and whether the connection is closed, are those of a 6.0.5 server.
#[test]
fn op_msg_refusals() {
    let ping = body(&ping());
    let insert = body(&doc! { "insert": "c", "$db": "t" });
    let documents = [doc! { "_id": 1 }];
    let good = sequence("documents", &documents, 0);
    let mut bad_type = ping.clone();
    bad_type[5] = 0x33;
    let mut too_long = ping.clone();
    too_long[1] = 0xFF;

    check_refused(&op_msg(0, &[]), 40587, "must have a body");
    check_refused(&op_msg(0, &[&good]), 40587, "must have a body");
    check_refused(&op_msg(0, &[&ping, &ping]), 40430, "Multiple body sections");
    check_refused(&op_msg(0, &[&ping, &[0]]), 40430, "Multiple body sections");
    check_refused(&op_msg(0, &[&[2], &ping]), 13, "Security Token");
    check_refused(&op_msg(0, &[&[9], &ping]), 40432, "Unknown section kind 9");
    check_refused(&op_msg(0, &[&bad_type]), 22, "type 0x33");
    check_refused(&op_msg(0, &[&too_long]), 22, "length");
    check_refused(&op_msg(0, &[&insert, &good, &good]), 40431, "Duplicate document sequence: documents");
    let both = body(&doc! { "insert": "c", "documents": 1, "$db": "t" });
    check_refused(&op_msg(0, &[&both, &good]), 40433, "document sequence documents");
    check_refused(&op_msg(0, &[&insert, &sequence("documents", &documents, 9)]), 15, "document sequence");
    check_refused(&op_msg(0, &[&insert, &sequence("documents", &documents, -3)]), 22, "length");
    check_refused(&op_msg(0, &[&insert, &sequence("documents", &documents, -1000)]), 15, "document sequence");
    check_refused(&op_msg(0, &[&insert, &[1, 3, 0, 0, 0]]), 15, "document sequence");
    check_refused(&op_msg(0, &[&insert, &[1, 4, 0, 0, 0]]), 15, "identifier");
    check_refused(&op_msg(0, &[&insert, &[1, 6, 0, 0, 0, 0xFF, 0]]), 22, "UTF-8");
    assert_eq!(
        request(&op_msg(0, &[&insert, &sequence("documents", &[], 0)])).sequence("documents").unwrap().count(),
        0
    );

    let many: Vec<Vec<u8>> = (0..100).map(|n| sequence(&format!("s{n}"), &[], 0)).collect();
    let many: Vec<&[u8]> = many.iter().map(Vec::as_slice).collect();
    check_fatal(&op_msg(0, &many), DecodeError::TooManySequences);
}

#[test]
fn an_unacknowledged_request_is_refused_without_a_reply() {
    match decode_bytes(&op_msg(2, &[])) {
        Ok(Some(Message::Refused(refused))) => assert!(refused.silent),
        other => panic!("{other:?}"),
    }
}

fn op_query(flags: i32, namespace: &str, wanted: i32, documents: &[&[u8]]) -> Vec<u8> {
    let head = [&flags.to_le_bytes()[..], namespace.as_bytes(), &[0], &0i32.to_le_bytes(), &wanted.to_le_bytes()];
    message(OpCode::QUERY, &[head.concat(), documents.concat()].concat())
}

#[test]
fn op_query_commands() {
    let is_master = doc! { "isMaster": 1 };
    for wanted in [1, -1] {
        let bytes = op_query(4, "admin.$cmd", wanted, &[is_master.as_bytes()]);
        assert_eq!(request(&bytes).body(), is_master.as_doc());
        check_truncations(&bytes);
    }
    let mut encoded = Vec::new();
    client::encode_query(7, "my.db", is_master.as_bytes(), &mut encoded);
    assert_eq!(request(&encoded).kind, RequestKind::Query { database: "my.db".into() });

    for key in ["$query", "query"] {
        let mut wrapped = DocBuf::new();
        wrapped.append(key, &is_master);
        wrapped.append("$readPreference", &doc! { "mode": "primary" });
        let bytes = op_query(0, "admin.$cmd", -1, &[wrapped.as_bytes()]);
        assert_eq!(request(&bytes).body(), is_master.as_doc());
    }
    let bytes = op_query(0, "admin.$cmd", -1, &[is_master.as_bytes(), doc! { "a": 1 }.as_bytes()]);
    assert_eq!(request(&bytes).body(), is_master.as_doc());
}

#[test]
fn op_query_refusals() {
    let is_master = doc! { "isMaster": 1 };
    let command = is_master.as_bytes();
    check_refused(&op_query(0, "admin.$cmd", 0, &[command]), 16979, "numberToReturn (0)");
    check_refused(&op_query(64, "admin.$cmd", -1, &[command]), 18527, "exhaust");
    check_refused(&op_query(0, "admin.$cmd", -1, &[&command[..9]]), 22, "bad object");
    check_refused(&op_query(0, "admin.$cmd", -1, &[command, b"x"]), 22, "bad object");
    check_refused(&op_query(0, "admin.$cmd", -1, &[command, command, b"x"]), 22, "bytes behind");
    check_refused(&op_query(0, "test.cars", -1, &[command]), 5739101, "OP_QUERY is no longer supported");
    check_fatal(&message(OpCode::QUERY, b"\0\0\0\0admin.$cmd"), DecodeError::Truncated("collection name"));
}

#[test]
fn old_and_unknown_opcodes() {
    check_refused(&message(OpCode::GET_MORE, &[0; 30]), 5739101, "OP_GET_MORE is no longer supported");
    for opcode in [OpCode::INSERT, OpCode::UPDATE, OpCode::DELETE, OpCode::KILL_CURSORS] {
        check_fatal(&message(opcode, &[0; 30]), DecodeError::RemovedOpcode(opcode));
    }
    for opcode in [0, 1, -1, 1000, 2010, 9999] {
        check_fatal(&message(OpCode(opcode), b"abc"), DecodeError::UnknownOpcode(opcode));
    }
    // "GET / HTTP/1.1" parsed as a header.
    check_fatal(b"GET / HTTP/1.1\r\n\r\n", DecodeError::MessageLength(0x2054_4547));
}

#[test]
fn lengths_are_checked_as_soon_as_they_arrive() {
    for length in [0, 1, 15, -1, i32::MIN, i32::MAX, 48_000_001] {
        check_fatal(&length.to_le_bytes(), DecodeError::MessageLength(length));
    }
    for length in [16i32, 48_000_000] {
        assert!(matches!(decode_bytes(&length.to_le_bytes()), Ok(None)));
        let header = [&length.to_le_bytes()[..], &[0; 8], &2013i32.to_le_bytes()].concat();
        assert_eq!(mongo_wire::needed(&header), Ok(length as usize));
    }
    assert_eq!(mongo_wire::needed(&[]), Ok(16));
}

#[test]
fn pipelined_messages_come_off_one_by_one() {
    let mut buffer = BytesMut::new();
    for request_id in 1..=3 {
        let mut bytes = Vec::new();
        Command { request_id, body: ping().as_bytes(), ..Command::default() }.encode(&mut bytes);
        buffer.extend_from_slice(&bytes);
    }
    buffer.truncate(buffer.len() - 1);
    for expected in 1..=2 {
        match decode(&mut buffer, &mut Codecs::default()) {
            Ok(Some(Message::Request(request))) => assert_eq!(request.request_id, expected),
            other => panic!("{other:?}"),
        }
    }
    assert!(matches!(decode(&mut buffer, &mut Codecs::default()), Ok(None)));
}

#[test]
fn too_deep_nesting_is_reported_with_its_path() {
    let deep = (0..201).fold(DocBuf::new(), |inner, _| doc! { "a": &inner });
    let command = doc! { "ping": 1, "comment": &deep };
    let expected = format!("with field name 'comment{}' in object", ".a".repeat(200));
    check_refused(&op_msg(0, &[&body(&command)]), 15, &expected);
    check_refused(&op_msg(0, &[&body(&named(b"n\xE9", &deep))]), 15, "nested object depth");
}

/// A document of one field with this name.
fn named(name: &[u8], value: &DocBuf) -> DocBuf {
    let mut bytes = Vec::new();
    DocWriter::begin(&mut bytes).append_raw(Kind::Document, name, value.as_bytes());
    DocBuf::from_vec(bytes).unwrap()
}

#[test]
fn field_names_that_are_not_utf8_are_escaped_and_come_back_in_replies() {
    let odd = named(b"n\xE9", &named(b"\xFF.\xF4\x8F\xBF\xBF", &doc! { "": 1 }));
    let insert = doc! { "insert": "c", "$db": "d", "writeConcern": &odd };
    let documents = sequence("documents", &[doc! { "_id": 1 }, odd.clone()], 0);
    let mut bytes = op_msg(1, &[&body(&insert), &documents, &[0; 4]]);
    let covered = bytes.len() - 4;
    let checksum = crc32c::crc32c(&bytes[..covered]);
    bytes[covered..].copy_from_slice(&checksum.to_le_bytes());
    let request = request(&bytes);
    assert_eq!(request.command_name(), "insert");
    let sent: Vec<Doc<'_>> = request.sequence("documents").unwrap().collect();
    assert_eq!(sent[0], doc! { "_id": 1 }.as_doc());
    assert_eq!(sent[1].first().map(|it| it.key()), Some("n\u{10FFFF}é"));
    assert_eq!(Some(Value::Document(sent[1])), request.body().get("writeConcern"));
    // A reply has the original names.
    let mut reply = Vec::new();
    let start = request.reply_to().begin(&mut reply);
    reply.extend_from_slice(sent[1].as_bytes());
    request.reply_to().finish(&mut reply, start, 1, false);
    let end = reply.len() - 4;
    assert_eq!(&reply[21..end], odd.as_bytes());
    assert_eq!(reply[end..], crc32c::crc32c(&reply[..end]).to_le_bytes());
    assert_eq!(reply[..4], (reply.len() as u32).to_le_bytes());
    // Other errors are reported as without such names.
    let mut broken = odd.as_bytes().to_vec();
    let last = broken.len() - 1;
    broken[last] = 1;
    check_refused(&op_msg(0, &[&[0], &broken]), 22, "length");
    check_refused(&op_msg(0, &[&body(&odd), &body(&odd)]), 40430, "Multiple body");
}

/// Every byte of a message with such names is changed to every value: it is decoded to valid
/// documents, or refused.
#[test]
fn damaged_messages_with_names_that_are_not_utf8() {
    let odd = named(b"n\xE9", &named(b"\xF4\x8F\xBF\xBF", &doc! { "a": "b" }));
    let whole = op_msg(0, &[&body(&odd), &sequence("documents", &[odd.clone(), odd.clone()], 0)]);
    check_truncations(&whole);
    let mut accepted = 0;
    for at in 16..whole.len() {
        for byte in 0..=u8::MAX {
            let mut damaged = whole.clone();
            damaged[at] = byte;
            let Ok(Some(Message::Request(request))) = decode_bytes(&damaged) else { continue };
            accepted += 1;
            assert!(document::validate::check(request.body().as_bytes()).is_ok());
            for document in request.sequence("documents").into_iter().flatten() {
                assert!(document::validate::check(document.as_bytes()).is_ok());
            }
            let mut reply = Vec::new();
            let start = request.reply_to().begin(&mut reply);
            reply.extend_from_slice(request.body().as_bytes());
            request.reply_to().finish(&mut reply, start, 1, false);
            assert!(request.reply_to().compressor.is_none() && Doc::from_bytes(&reply[21..]).is_some());
        }
    }
    assert!(accepted > 1000, "{accepted}");
}
