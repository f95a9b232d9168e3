//! Decodes arbitrary bytes of a client: framing, decompression, checksums, and everything that a
//! command reads of a request.
//!
//! Checks that decoded parts are within the message, that the reply to a request can be encoded and
//! decoded, and that the same bytes in two pieces decode to the same requests.
//!
//! Run: `cargo +nightly fuzz run wire_decode fuzz/seeds/wire_decode`

#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use mongo_wire::client::{Trust, decode_reply};
use mongo_wire::{Codecs, DecodeError, Message, Request, decode, needed, op_compressed};
use std::cell::RefCell;

thread_local! {
    // Reused between runs, like a worker reuses it between messages: bad input must not affect the
    // next.
    static CODECS: RefCell<Codecs> = RefCell::default();
}

/// The decoded requests of a stream, in a form that can be compared.
fn decode_all(pieces: &[&[u8]], codecs: &mut Codecs) -> (Vec<String>, Option<DecodeError>) {
    let mut buffer = BytesMut::new();
    let mut seen = Vec::new();
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            match decode(&mut buffer, codecs) {
                Ok(Some(Message::Request(request))) => seen.push(read(&request, codecs)),
                Ok(Some(Message::Refused(refused))) => seen.push(format!("{:?} {}", refused.error, refused.silent)),
                Ok(None) => {
                    assert!(needed(&buffer).is_ok_and(|needed| needed > buffer.len()));
                    break;
                }
                Err(error) => return (seen, Some(error)),
            }
        }
    }
    (seen, None)
}

/// Reads everything that a command may read, and encodes a reply.
fn read(request: &Request, codecs: &mut Codecs) -> String {
    let body = request.body();
    assert_eq!(body.size(), request.body.len());
    let shared = request.share(body);
    assert_eq!(&shared[..], body.as_bytes());
    let mut seen = format!("{:?} {:?}", request.kind, body);
    for sequence in &request.sequences {
        let identifier = std::str::from_utf8(&request.message[sequence.identifier.clone()]).expect("checked");
        let size: usize = request.sequence(identifier).expect("it is there").map(|document| document.size()).sum();
        assert_eq!(size, sequence.documents.len(), "the documents fill their section");
        seen.push_str(identifier);
    }
    if document::names::has_mark(body.as_bytes()) {
        // The reply has other names.
        return seen;
    }
    let mut reply = Vec::new();
    let reply_to = request.reply_to();
    let start = reply_to.begin(&mut reply);
    reply.extend_from_slice(body.as_bytes());
    reply_to.finish(&mut reply, start, 1, false);
    if let Some(compressor) = reply_to.compressor {
        let mut packed = Vec::new();
        op_compressed::pack(&reply, compressor, codecs, &mut packed).expect("a whole message");
        reply = packed;
    }
    let reply = decode_reply(&mut BytesMut::from(&reply[..]), codecs, Trust::Check).expect("our own").expect("whole");
    assert_eq!(reply.body().as_bytes(), body.as_bytes());
    seen
}

fuzz_target!(|bytes: &[u8]| {
    CODECS.with_borrow_mut(|codecs| {
        let whole = decode_all(&[bytes], codecs);
        let (head, tail) = bytes.split_at(bytes.len() / 2);
        assert_eq!(whole, decode_all(&[head, tail], codecs));
        let _ = decode_reply(&mut BytesMut::from(bytes), codecs, Trust::Check);
    });
});
