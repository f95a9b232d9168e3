//! OP_COMPRESSED in both directions, valid and malformed.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

use bytes::BytesMut;
use document::{DocBuf, doc};
use mongo_wire::client::Command;
use mongo_wire::{Codecs, Compressor, DecodeError, Message, decode, op_compressed};

const DAMAGED: DecodeError = DecodeError::Compression("the compressed bytes are damaged");
const WRONG_SIZE: DecodeError = DecodeError::Compression("the uncompressed size is not what the message says");

fn insert(size: usize) -> DocBuf {
    let text: String = (0..size).map(|n| char::from(b'a' + (n % 7) as u8)).collect();
    doc! { "insert": "cars", "text": text.as_str(), "$db": "test" }
}

fn compressed(opcode: i32, size: i32, compressor: u8, packed: &[u8]) -> Vec<u8> {
    let length = 16 + 9 + packed.len() as i32;
    [
        &length.to_le_bytes()[..],
        &7i32.to_le_bytes(),
        &0i32.to_le_bytes(),
        &2012i32.to_le_bytes(),
        &opcode.to_le_bytes(),
        &size.to_le_bytes(),
        &[compressor],
        packed,
    ]
    .concat()
}

fn decode_bytes(bytes: &[u8]) -> Result<Option<Message>, DecodeError> {
    decode(&mut BytesMut::from(bytes), &mut Codecs::default())
}

fn check_fatal(bytes: &[u8], expected: DecodeError) {
    match decode_bytes(bytes) {
        Err(error) => assert_eq!(error, expected),
        other => panic!("expected {expected:?}, got {other:?}"),
    }
}

#[test]
fn a_client_before_its_login_may_send_short_messages_only() {
    let up_to = |bytes_max, bytes: &[u8]| {
        mongo_wire::decode_up_to(bytes_max, &mut BytesMut::from(bytes), &mut Codecs::default())
    };
    let mut plain = Vec::new();
    Command { body: insert(20_000).as_bytes(), ..Command::default() }.encode(&mut plain);
    let length = plain.len();
    let too_long = |length| Err(DecodeError::TooLong { length, bytes_max: 16_384 });
    assert!(up_to(length, &plain).unwrap().is_some());
    // As soon as the header has arrived.
    assert_eq!(up_to(16_384, &plain[..16]).map(|message| message.is_some()), too_long(length));
    for compressor in Compressor::ALL {
        let mut packed = Vec::new();
        op_compressed::pack(&plain, compressor, &mut Codecs::default(), &mut packed).unwrap();
        assert!(packed.len() < 16_384);
        assert_eq!(up_to(16_384, &packed).map(|message| message.is_some()), too_long(length));
    }
}

#[test]
fn every_compressor_and_size() {
    let mut codecs = Codecs::default();
    for compressor in Compressor::ALL {
        for size in [0, 1, 100, 70_000, 2_000_000] {
            for checksum in [false, true] {
                let body = insert(size);
                let mut bytes = Vec::new();
                let command = Command { request_id: 7, body: body.as_bytes(), checksum, ..Command::default() };
                command.encode_compressed(compressor, &mut codecs, &mut bytes).unwrap();
                match decode(&mut BytesMut::from(&bytes[..]), &mut codecs) {
                    Ok(Some(Message::Request(request))) => {
                        assert_eq!(request.body(), body.as_doc());
                        assert_eq!(request.reply_to().compressor, Some(compressor));
                    }
                    other => panic!("{compressor:?} {size}: {other:?}"),
                }
            }
        }
    }
}

#[test]
fn truncated_and_damaged() {
    let mut codecs = Codecs::default();
    for compressor in Compressor::ALL {
        let body = insert(300);
        let mut bytes = Vec::new();
        let command = Command { request_id: 7, body: body.as_bytes(), ..Command::default() };
        command.encode_compressed(compressor, &mut codecs, &mut bytes).unwrap();
        for length in 0..bytes.len() {
            assert!(matches!(decode_bytes(&bytes[..length]), Ok(None)));
            if length >= 16 {
                let mut cut = bytes[..length].to_vec();
                cut[..4].copy_from_slice(&(length as i32).to_le_bytes());
                assert!(decode_bytes(&cut).is_err(), "{compressor:?} cut at {length}");
            }
        }
        for at in 16..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x55;
            // Must not panic. Damaged bytes may still decompress to a message, which is then
            // decoded.
            let _ = decode_bytes(&damaged);
        }
    }
}

#[test]
fn wrong_sizes_are_refused() {
    let mut codecs = Codecs::default();
    let body = insert(1000);
    for compressor in Compressor::ALL {
        let mut plain = Vec::new();
        Command { request_id: 7, body: body.as_bytes(), ..Command::default() }.encode(&mut plain);
        let mut bytes = Vec::new();
        op_compressed::pack(&plain, compressor, &mut codecs, &mut bytes).unwrap();
        let packed = &bytes[25..];
        let size = plain.len() as i32 - 16;
        assert!(decode_bytes(&compressed(2013, size, compressor as u8, packed)).is_ok());
        for wrong in [0, 1, size - 1, size + 1, size * 2, 47_999_984] {
            assert!(
                decode_bytes(&compressed(2013, wrong, compressor as u8, packed)).is_err(),
                "{compressor:?} {wrong}"
            );
        }
        for wrong in [-1, i32::MIN, i32::MAX, 47_999_985] {
            let expected = DecodeError::Compression("the uncompressed size is no size of a message");
            check_fatal(&compressed(2013, wrong, compressor as u8, packed), expected);
        }
    }
}

/// Decompression bombs are detected by their sizes, or stopped at the size that the message
/// announced.
#[test]
fn bombs() {
    let zeros = vec![0u8; 100_000_000];
    let zlib = {
        let mut state = flate2::Compress::new(flate2::Compression::best(), true);
        let mut out = Vec::with_capacity(1_000_000);
        state.compress_vec(&zeros, &mut out, flate2::FlushCompress::Finish).unwrap();
        out
    };
    let zstd = zstd::bulk::compress(&zeros, 3).unwrap();
    let snappy = snap::raw::Encoder::new().compress_vec(&zeros).unwrap();
    for announced in [100, 47_999_984] {
        check_fatal(&compressed(2013, announced, 1, &snappy), WRONG_SIZE);
        check_fatal(&compressed(2013, announced, 2, &zlib), WRONG_SIZE);
        check_fatal(&compressed(2013, announced, 3, &zstd), WRONG_SIZE);
    }
    check_fatal(&compressed(2013, 47_999_984, 2, &zlib[..1000]), WRONG_SIZE);
}

#[test]
fn malformed_compressed_messages() {
    check_fatal(&compressed(2013, 5, 9, b"xxxxx"), DecodeError::UnknownCompressor(9));
    // With the compressor id 0, MongoDB closes the connection too.
    check_fatal(&compressed(2013, 5, 0, b"xxxxx"), DecodeError::UnknownCompressor(0));
    let packed = snap::raw::Encoder::new().compress_vec(b"xxxxx").unwrap();
    check_fatal(&compressed(2012, 5, 1, &packed), DecodeError::NestedCompression);
    check_fatal(&compressed(2013, 4, 1, &packed), WRONG_SIZE);
    for compressor in 1..=3 {
        check_fatal(&compressed(2013, 100, compressor, b"\x64garbage"), DAMAGED);
    }
    check_fatal(&compressed(9999, 5, 1, &packed), DecodeError::UnknownOpcode(9999));
}

#[test]
fn secrets_and_greetings_are_not_compressed() {
    for name in ["hello", "isMaster", "ismaster", "saslStart", "saslContinue", "authenticate", "createUser"] {
        assert!(!op_compressed::may_compress(name.as_bytes()), "{name}");
    }
    for name in ["ping", "find", "helloWorld"] {
        assert!(op_compressed::may_compress(name.as_bytes()), "{name}");
    }
}
