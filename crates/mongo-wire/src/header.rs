//! The sixteen-byte header of every message.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/#standard-message-header>

use crate::decode_error::DecodeError;
use std::fmt;

pub const HEADER_BYTES: usize = 16;

/// The largest message, header included (`maxMessageSizeBytes`).
pub const MESSAGE_BYTES_MAX: usize = 48_000_000;

// One document of the largest size must fit into one message, with room for the command around it.
const _: () = assert!(MESSAGE_BYTES_MAX > 2 * document::DOCUMENT_BYTES_MAX_INTERNAL);

/// A message's opcode. Other numbers than those named here may occur.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct OpCode(pub i32);

impl OpCode {
    pub const REPLY: OpCode = OpCode(1);
    pub const UPDATE: OpCode = OpCode(2001);
    pub const INSERT: OpCode = OpCode(2002);
    pub const QUERY: OpCode = OpCode(2004);
    pub const GET_MORE: OpCode = OpCode(2005);
    pub const DELETE: OpCode = OpCode(2006);
    pub const KILL_CURSORS: OpCode = OpCode(2007);
    pub const COMPRESSED: OpCode = OpCode(2012);
    pub const MSG: OpCode = OpCode(2013);
}

impl fmt::Display for OpCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            OpCode::REPLY => f.write_str("OP_REPLY"),
            OpCode::UPDATE => f.write_str("OP_UPDATE"),
            OpCode::INSERT => f.write_str("OP_INSERT"),
            OpCode::QUERY => f.write_str("OP_QUERY"),
            OpCode::GET_MORE => f.write_str("OP_GET_MORE"),
            OpCode::DELETE => f.write_str("OP_DELETE"),
            OpCode::KILL_CURSORS => f.write_str("OP_KILL_CURSORS"),
            OpCode::COMPRESSED => f.write_str("OP_COMPRESSED"),
            OpCode::MSG => f.write_str("OP_MSG"),
            OpCode(other) => write!(f, "opcode {other}"),
        }
    }
}

impl fmt::Debug for OpCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

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
