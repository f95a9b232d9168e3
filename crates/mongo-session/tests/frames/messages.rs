//! Valid messages of clients, and the traffic of others.

use document::{DocBuf, doc};
use frame_mutator::{Change, Frame};
use mongo_wire::client::{Command, encode_query};
use mongo_wire::{Codecs, Compressor, OpCode, op_compressed};

/// Only other clients send this.
pub const CANARY: &[u8] = b"CANARY";

const HEADER_BYTES: usize = 16;
const CHECKSUM_PRESENT: u8 = 1;

/// A message, and how it is sent.
pub struct Kind {
    pub frame: Frame,
    /// The frame is compressed after it was changed.
    compressor: Option<Compressor>,
}

impl Kind {
    /// Returns the message without a change.
    pub fn whole(&self) -> Vec<u8> {
        self.pack(self.frame.bytes.clone())
    }

    pub fn changed(&self, change: &Change) -> Vec<u8> {
        self.pack(change.apply(&self.frame))
    }

    fn pack(&self, mut plain: Vec<u8>) -> Vec<u8> {
        correct_checksum(&mut plain);
        let Some(compressor) = self.compressor.filter(|_| plain.len() > HEADER_BYTES) else { return plain };
        // The header says how long the message would be; the sender is free to claim it.
        let claimed = i32::from_le_bytes(*plain.first_chunk().unwrap()).wrapping_sub(HEADER_BYTES as i32);
        let length = plain.len() as i32;
        plain[..4].copy_from_slice(&length.to_le_bytes());
        let mut packed = Vec::new();
        op_compressed::pack(&plain, compressor, &mut Codecs::default(), &mut packed).unwrap();
        packed[20..24].copy_from_slice(&claimed.to_le_bytes());
        packed
    }
}

/// Makes the checksum right, so that the message is read on.
fn correct_checksum(plain: &mut [u8]) {
    let is_msg = plain.get(12..16) == Some(&OpCode::MSG.0.to_le_bytes()[..]);
    if is_msg && plain.get(16).is_some_and(|flags| flags & CHECKSUM_PRESENT != 0) && plain.len() > 24 {
        let covered = plain.len() - 4;
        let checksum = crc32c::crc32c(&plain[..covered]);
        plain[covered..].copy_from_slice(&checksum.to_le_bytes());
    }
}

/// Returns all messages, plain and compressed.
pub fn kinds() -> Vec<Kind> {
    let mut kinds = Vec::new();
    for frame in plain() {
        for compressor in Compressor::ALL {
            let mut frame = frame.clone();
            frame.name.push_str(&format!(", compressed by {}", compressor.name()));
            let compressed = Kind { frame: frame.clone(), compressor: Some(compressor) };
            let mut outside = Frame::new(&format!("{}, from outside", frame.name), compressed.whole());
            let length = outside.bytes.len();
            for (at, width, start) in [(0, 4, 0), (16, 4, 25), (20, 4, 25), (24, 1, 25), (25, 1, 26), (25, 2, 27)] {
                outside = outside.with_length(at, width, start..length);
            }
            kinds.extend([compressed, Kind { frame: outside, compressor: None }]);
        }
        kinds.push(Kind { frame, compressor: None });
    }
    kinds
}

fn plain() -> Vec<Frame> {
    let filter =
        doc! { "name": "a name", "list": &doc! { "0": 1, "1": "two" }, "deep": &doc! { "a": &doc! { "b": "c" } } };
    let find = doc! { "find": "empty", "filter": &filter, "limit": 3, "$db": "test" };
    let insert = doc! { "insert": "stuff", "ordered": true, "$db": "test" };
    let unknown = doc! { "noSuchCommand": "with a text that may be repeated", "$db": "test" };
    let wrong = doc! { "find": "empty", "notAField": &doc! { "x": "some text" }, "$db": "test" };
    let namespace = doc! { "find": "empty", "$db": "a database" };
    let documents = [doc! { "_id": 1, "s": "text" }, doc! { "_id": 2, "d": &doc! { "x": 1.5 } }];
    let documents: Vec<&[u8]> = documents.iter().map(|document| document.as_bytes()).collect();
    vec![
        message("ping", &doc! { "ping": 1, "comment": "a comment", "$db": "admin" }, false),
        message("ping with checksum", &doc! { "ping": 1, "$db": "admin" }, true),
        message("find", &find, false),
        message("find with an unknown field", &wrong, false),
        message("unknown command", &unknown, false),
        message("other database", &namespace, true),
        with_sequence("insert", &insert, &documents),
        query("query", &doc! { "find": "empty", "filter": &doc! { "s": "text" } }),
        query("unknown command by OP_QUERY", &doc! { "noSuchCommand": "a text" }),
    ]
}

fn message(name: &str, body: &DocBuf, checksum: bool) -> Frame {
    let mut bytes = Vec::new();
    Command { request_id: 7, body: body.as_bytes(), checksum, ..Command::default() }.encode(&mut bytes);
    let length = bytes.len();
    Frame::new(name, bytes).with_length(0, 4, 0..length).with_bson(21)
}

fn with_sequence(name: &str, body: &DocBuf, documents: &[&[u8]]) -> Frame {
    let mut bytes = Vec::new();
    let command = Command { request_id: 7, body: body.as_bytes(), ..Command::default() };
    Command { sequence: Some(("documents", documents)), ..command }.encode(&mut bytes);
    let (length, sequence) = (bytes.len(), 21 + body.as_bytes().len() + 1);
    let mut frame =
        Frame::new(name, bytes).with_length(0, 4, 0..length).with_bson(21).with_length(sequence, 4, sequence..length);
    let mut at = sequence + 4 + "documents".len() + 1;
    for document in documents {
        frame = frame.with_bson(at);
        at += document.len();
    }
    frame
}

fn query(name: &str, body: &DocBuf) -> Frame {
    let mut bytes = Vec::new();
    encode_query(7, "test", body.as_bytes(), &mut bytes);
    let (length, at) = (bytes.len(), bytes.len() - body.as_bytes().len());
    Frame::new(name, bytes).with_length(0, 4, 0..length).with_bson(at)
}

/// Returns the messages of another client, in each compression.
pub fn of_others(letter: u8) -> Vec<Vec<u8>> {
    let text = format!("CANARY-{}-", char::from(letter)).repeat(200);
    let body = doc! { "find": "empty", "filter": &doc! { "secret": text.as_str() }, "$db": text.get(..30).unwrap() };
    let mut ends_in_text = doc! { "find": "empty", "$db": "test", "filter": &doc! { "a": 1 } };
    ends_in_text.append("comment", text.as_str());
    let mut messages = Vec::new();
    for body in [body, ends_in_text] {
        let mut plain = Vec::new();
        Command { request_id: 9, body: body.as_bytes(), ..Command::default() }.encode(&mut plain);
        for compressor in Compressor::ALL {
            let mut packed = Vec::new();
            op_compressed::pack(&plain, compressor, &mut Codecs::default(), &mut packed).unwrap();
            messages.push(packed);
        }
        messages.push(plain);
    }
    messages
}
