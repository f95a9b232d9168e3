//! ObjectIds: 4 bytes of time, 5 random bytes of the process, 3 bytes of a counter.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/bson-types/#objectid>

use std::fmt;

#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub [u8; 12]);

impl ObjectId {
    /// Builds an ObjectId from its parts: seconds since 1970, the process's random value, a counter
    /// of which the low 24 bits are used.
    pub fn from_parts(seconds: u32, process: [u8; 5], counter: u32) -> Self {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&seconds.to_be_bytes());
        bytes[4..9].copy_from_slice(&process);
        bytes[9..].copy_from_slice(&counter.to_be_bytes()[1..]);
        ObjectId(bytes)
    }

    /// Parses 24 hexadecimal digits.
    pub fn parse_hex(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != 24 {
            return None;
        }
        let mut bytes = [0; 12];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let high = (pair[0] as char).to_digit(16)?;
            let low = (pair[1] as char).to_digit(16)?;
            *byte = (high << 4 | low) as u8;
        }
        Some(ObjectId(bytes))
    }

    /// Returns the id's time, in seconds since 1970.
    pub fn seconds(self) -> u32 {
        u32::from_be_bytes([self.0[0], self.0[1], self.0[2], self.0[3]])
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectId({self})")
    }
}
