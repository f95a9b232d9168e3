//! Errors of decoding after which the connection must be closed.

use crate::opcode::{HEADER_BYTES, MESSAGE_BYTES_MAX, OpCode};
use std::fmt;

/// A violation of the protocol after which a server closes the connection without a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The header's length is impossible.
    MessageLength(i32),
    /// The message is longer than this client's may be.
    TooLong { length: usize, bytes_max: usize },
    /// A part of the message extends beyond its end.
    Truncated(&'static str),
    /// An opcode that the protocol does not define, or that clients must not send.
    UnknownOpcode(i32),
    /// An opcode from before OP_MSG, which has no reply that could carry an error.
    RemovedOpcode(OpCode),
    /// Required flag bits that are unknown.
    RequiredFlags(u32),
    /// The CRC-32C does not match the message.
    Checksum,
    /// More document sequences than a command can have.
    TooManySequences,
    /// An unknown compressor.
    UnknownCompressor(u8),
    /// The decompressed bytes do not match the message's claims.
    Compression(&'static str),
    /// A compressed message within a compressed message.
    NestedCompression,
    /// A malformed reply, which only a client receives.
    Reply(&'static str),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::MessageLength(length) => {
                write!(f, "message length {length} is not within {HEADER_BYTES} and {MESSAGE_BYTES_MAX} bytes")
            }
            DecodeError::TooLong { length, bytes_max } => {
                write!(f, "a message of {length} bytes came before the login, where {bytes_max} bytes are the most")
            }
            DecodeError::Truncated(part) => write!(f, "the {part} reaches past the end of the message"),
            DecodeError::UnknownOpcode(opcode) => write!(f, "unknown opcode {opcode}"),
            DecodeError::RemovedOpcode(opcode) => {
                write!(f, "{opcode} is no longer supported; the client's driver needs an upgrade")
            }
            DecodeError::RequiredFlags(bits) => write!(f, "OP_MSG has unknown required flags {bits:#06x}"),
            DecodeError::Checksum => write!(f, "OP_MSG checksum does not match"),
            DecodeError::TooManySequences => write!(f, "OP_MSG has too many document sequences"),
            DecodeError::UnknownCompressor(id) => write!(f, "unknown compressor {id}"),
            DecodeError::Compression(what) => write!(f, "OP_COMPRESSED: {what}"),
            DecodeError::NestedCompression => write!(f, "OP_COMPRESSED within OP_COMPRESSED"),
            DecodeError::Reply(what) => write!(f, "not a reply: {what}"),
        }
    }
}

impl std::error::Error for DecodeError {}
