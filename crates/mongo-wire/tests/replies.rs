//! Replies as a client decodes them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

use bytes::BytesMut;
use document::doc;
use mongo_wire::client::{Reply, Trust, decode_reply};
use mongo_wire::{Codecs, Compressor, OpCode, ReplyFormat, ReplyTo, op_compressed, op_msg};

fn write(format: ReplyFormat, more_to_come: bool) -> Vec<u8> {
    let mut buffer = b"earlier".to_vec();
    let reply_to = ReplyTo { request_id: 7, format, compressor: None };
    let start = reply_to.begin(&mut buffer);
    buffer.extend_from_slice(doc! { "ok": 1.0 }.as_bytes());
    reply_to.finish(&mut buffer, start, 99, more_to_come);
    buffer.split_off(b"earlier".len())
}

fn read(bytes: &[u8]) -> Reply {
    let mut buffer = BytesMut::from(bytes);
    let decoded = decode_reply(&mut buffer, &mut Codecs::default(), Trust::Check);
    let Ok(Some(reply)) = decoded else { panic!("{decoded:?}") };
    assert!(buffer.is_empty());
    assert_eq!(reply.body(), doc! { "ok": 1.0 }.as_doc());
    assert_eq!((reply.header.request_id, reply.header.response_to), (99, 7));
    reply
}

#[test]
fn every_format() {
    let plain = read(&write(ReplyFormat::Msg { checksum: false }, false));
    assert_eq!((plain.header.opcode, plain.flags, plain.more_to_come()), (OpCode::MSG, 0, false));
    let summed = read(&write(ReplyFormat::Msg { checksum: true }, false));
    assert_eq!(summed.flags, op_msg::CHECKSUM_PRESENT);
    let more = read(&write(ReplyFormat::Msg { checksum: true }, true));
    assert_eq!(more.flags, op_msg::CHECKSUM_PRESENT | op_msg::MORE_TO_COME);
    assert!(more.more_to_come());
    assert_eq!(read(&write(ReplyFormat::Reply, false)).flags, 8);
    assert_eq!(read(&write(ReplyFormat::QueryFailure, false)).flags, 2);
}

/// The bytes of a 6.0.5 server's reply to a ping, except for the reply's own id.
#[test]
fn as_the_server_writes_it() {
    let expected = b"\x26\x00\x00\x00\x63\x00\x00\x00\x07\x00\x00\x00\xdd\x07\x00\x00\
        \x00\x00\x00\x00\x00\x11\x00\x00\x00\x01ok\x00\x00\x00\x00\x00\x00\x00\xf0\x3f\x00";
    assert_eq!(write(ReplyFormat::Msg { checksum: false }, false), expected);
}

#[test]
fn packed_and_unpacked() {
    let mut codecs = Codecs::default();
    for compressor in Compressor::ALL {
        let mut packed = Vec::new();
        let plain = write(ReplyFormat::Msg { checksum: true }, false);
        op_compressed::pack(&plain, compressor, &mut codecs, &mut packed).unwrap();
        assert_eq!(read(&packed).compressor, Some(compressor));
    }
}

#[test]
fn a_short_reply_is_an_error_or_not_there_yet() {
    let bytes = write(ReplyFormat::Msg { checksum: true }, false);
    for length in 0..bytes.len() {
        let mut cut = BytesMut::from(&bytes[..length]);
        assert!(decode_reply(&mut cut, &mut Codecs::default(), Trust::Check).unwrap().is_none());
        if length >= 16 {
            let mut cut = BytesMut::from(&bytes[..length]);
            cut[..4].copy_from_slice(&(length as i32).to_le_bytes());
            assert!(decode_reply(&mut cut, &mut Codecs::default(), Trust::Length).is_err());
        }
    }
}

#[test]
fn a_body_to_send_has_its_offset_in_a_cache_line() {
    for length in [5, 21, 63, 64, 1000, 100_000] {
        let body = vec![7; length];
        let kept = mongo_wire::op_msg::body_to_send(&body);
        assert_eq!(*kept, *body);
        assert_eq!(kept.as_ptr().addr() % 64, mongo_wire::op_msg::BODY_AT);
    }
}
