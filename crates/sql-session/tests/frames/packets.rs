//! Packets as both sides send them, with the places of their lengths.

use frame_mutator::{Field, Frame};

/// The capabilities of the clients: protocol 4.1, schema, transactions, secure connection, several
/// results, plugins, attributes, and a length before the proof; and with them the end of a result
/// set as an OK packet.
pub const CAPABILITIES: u32 = 1 | 1 << 3 | 1 << 9 | 1 << 13 | 1 << 15 | 1 << 17 | 1 << 19 | 1 << 20 | 1 << 21 | 1 << 24;
pub const LENGTH_OF_PROOF: u32 = 1 << 21;
pub const DEPRECATES_EOF: u32 = 1 << 24;

/// Appends a packet.
pub fn put(out: &mut Vec<u8>, number: u8, payload: &[u8]) {
    out.extend_from_slice(&(payload.len() as u32).to_le_bytes()[..3]);
    out.push(number);
    out.extend_from_slice(payload);
}

/// A payload with the places of its lengths.
#[derive(Default)]
pub struct Payload {
    pub bytes: Vec<u8>,
    fields: Vec<Field>,
}

impl Payload {
    pub fn new(bytes: &[u8]) -> Payload {
        Payload { bytes: bytes.to_vec(), fields: Vec::new() }
    }

    pub fn with(mut self, bytes: &[u8]) -> Payload {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Appends bytes after their length, in as few bytes as it takes.
    pub fn with_length_encoded(mut self, bytes: &[u8]) -> Payload {
        let length = (bytes.len() as u32).to_le_bytes();
        let width = match bytes.len() {
            0..=250 => 1,
            251..=0xFFFF => {
                self.bytes.push(0xFC);
                2
            }
            _ => {
                self.bytes.push(0xFD);
                3
            }
        };
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&length[..width]);
        self.bytes.extend_from_slice(bytes);
        self.fields.push(Field { at, width, counts: at + width..self.bytes.len() });
        if width > 1 {
            // The byte that says how wide the length is.
            self.fields.push(Field { at: at - 1, width: 1, counts: at..self.bytes.len() });
        }
        self
    }

    /// Appends a payload after its length.
    pub fn with_payload(mut self, inner: Payload) -> Payload {
        let fields = inner.fields;
        self = self.with_length_encoded(&inner.bytes);
        let start = self.bytes.len() - inner.bytes.len();
        self.fields.extend(fields.into_iter().map(|field| moved(field, start)));
        self
    }

    /// Marks the last bytes as a number that counts nothing in this packet, such as columns that
    /// follow.
    pub fn counting(mut self, width: usize) -> Payload {
        let end = self.bytes.len();
        self.fields.push(Field { at: end - width, width, counts: end..end });
        self
    }
}

fn moved(field: Field, by: usize) -> Field {
    Field { at: field.at + by, width: field.width, counts: field.counts.start + by..field.counts.end + by }
}

/// Returns the frame of several packets, numbered from `first`.
pub fn frame(name: &str, first: u8, payloads: Vec<Payload>) -> Frame {
    let mut frame = Frame::new(name, Vec::new());
    for (number, payload) in (first..).zip(payloads) {
        let at = frame.bytes.len();
        put(&mut frame.bytes, number, &payload.bytes);
        let end = frame.bytes.len();
        frame = frame.with_length(at, 3, at + 4..end);
        frame.fields.extend(payload.fields.into_iter().map(|field| moved(field, at + 4)));
    }
    frame
}
