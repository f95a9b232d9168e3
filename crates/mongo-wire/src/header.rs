//! The sixteen-byte header of every message.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/#standard-message-header>

use crate::decode_error::DecodeError;

pub use crate::opcode::{HEADER_BYTES, MESSAGE_BYTES_MAX, OpCode};

/// A header whose length is possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The length of the whole message with this header, between [`HEADER_BYTES`] and
    /// [`MESSAGE_BYTES_MAX`].
    pub length: usize,
    pub request_id: i32,
    /// In a reply, the request's `request_id`.
    pub response_to: i32,
    pub opcode: OpCode,
}

impl Header {
    /// Decodes the header at the front of `bytes`. Returns `None` while it is incomplete. Fails for
    /// an impossible length as soon as its four bytes have arrived.
    pub fn peek(bytes: &[u8]) -> Result<Option<Header>, DecodeError> {
        let Some(length) = word(bytes, 0) else { return Ok(None) };
        let length = check_length(length)?;
        let (Some(request_id), Some(response_to), Some(opcode)) = (word(bytes, 4), word(bytes, 8), word(bytes, 12))
        else {
            return Ok(None);
        };
        Ok(Some(Header { length, request_id, response_to, opcode: OpCode(opcode) }))
    }

    /// Encodes the header. The caller must pass a length that fits; readers refuse any other.
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let length = i32::try_from(self.length).unwrap_or(-1);
        bytes[0..4].copy_from_slice(&length.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.request_id.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.response_to.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.opcode.0.to_le_bytes());
        bytes
    }
}

fn check_length(length: i32) -> Result<usize, DecodeError> {
    match usize::try_from(length) {
        Ok(length) if (HEADER_BYTES..=MESSAGE_BYTES_MAX).contains(&length) => Ok(length),
        _ => Err(DecodeError::MessageLength(length)),
    }
}

fn word(bytes: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}
