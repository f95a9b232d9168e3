//! A valid message, and where its lengths are.

use std::ops::Range;

/// A length within a message, little-endian.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub at: usize,
    /// In bytes, from 1 to 8.
    pub width: usize,
    /// The bytes that it counts.
    pub counts: Range<usize>,
}

/// A valid message.
#[derive(Clone, Debug)]
pub struct Frame {
    pub name: String,
    pub bytes: Vec<u8>,
    pub fields: Vec<Field>,
}

impl Frame {
    pub fn new(name: &str, bytes: Vec<u8>) -> Frame {
        Frame { name: name.to_owned(), bytes, fields: Vec::new() }
    }

    /// Adds a length.
    pub fn with_length(mut self, at: usize, width: usize, counts: Range<usize>) -> Frame {
        self.fields.push(Field { at, width, counts });
        self
    }

    /// Adds the lengths within the BSON document at `at`.
    pub fn with_bson(mut self, at: usize) -> Frame {
        self.add_document(at);
        self
    }

    /// Returns the value of a length; 0 if it is not within the message.
    pub fn value(&self, field: &Field) -> i64 {
        let mut value = [0; 8];
        for (to, from) in value.iter_mut().zip(self.bytes.get(field.at..field.at + field.width).unwrap_or_default()) {
            *to = *from;
        }
        i64::from_le_bytes(value)
    }

    /// Adds the lengths of a document. Returns its end.
    fn add_document(&mut self, at: usize) -> usize {
        let end = at + self.length(at);
        self.fields.push(Field { at, width: 4, counts: at..end });
        let mut next = at + 4;
        while let Some(&kind) = self.bytes.get(next).filter(|kind| **kind != 0 && next < end) {
            let name = self.bytes.get(next + 1..).unwrap_or_default();
            let value = next + 2 + name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
            next = self.add_value(kind, value);
        }
        end
    }

    /// Adds the lengths of a value. Returns its end.
    fn add_value(&mut self, kind: u8, at: usize) -> usize {
        match kind {
            0x03 | 0x04 => self.add_document(at),
            0x02 | 0x05 | 0x0D | 0x0E => {
                let start = at + 4 + usize::from(kind == 0x05);
                let end = start + self.length(at);
                self.fields.push(Field { at, width: 4, counts: start..end });
                end
            }
            0x0F => {
                let end = at + self.length(at);
                self.fields.push(Field { at, width: 4, counts: at..end });
                let scope = self.add_value(0x02, at + 4);
                self.add_document(scope);
                end
            }
            0x01 | 0x09 | 0x11 | 0x12 => at + 8,
            0x07 => at + 12,
            0x08 => at + 1,
            0x10 => at + 4,
            0x13 => at + 16,
            // Others have no value, or are not used in frames.
            _ => at,
        }
    }

    fn length(&self, at: usize) -> usize {
        let bytes = self.bytes.get(at..).and_then(|bytes| bytes.first_chunk()).copied().unwrap_or_default();
        usize::try_from(i32::from_le_bytes(bytes)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_bson_are_found() {
        // {a: "hi", b: {c: 1, d: <binary of 2>}}
        let inner = [&[22, 0, 0, 0, 0x10, b'c', 0, 1, 0, 0, 0, 0x05, b'd', 0, 2, 0, 0, 0, 0][..], &[7, 7, 0]].concat();
        let mut bytes = vec![0, 0, 0, 0, 0x02, b'a', 0, 3, 0, 0, 0, b'h', b'i', 0, 0x03, b'b', 0];
        bytes.extend(&inner);
        bytes.push(0);
        bytes[0] = bytes.len() as u8;
        let frame = Frame::new("document", bytes).with_bson(0);
        let found: Vec<_> = frame.fields.iter().map(|field| (field.at, field.counts.clone())).collect();
        assert_eq!(found, [(0, 0..40), (7, 11..14), (17, 17..39), (31, 36..38)]);
        assert_eq!(frame.value(&frame.fields[3]), 2);
    }
}
