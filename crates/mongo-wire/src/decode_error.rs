//! Why a connection's bytes cannot be understood, to the point that it must be closed.

use crate::header::{HEADER_BYTES, MESSAGE_BYTES_MAX, OpCode};
use std::fmt;

/// A violation after which a server of this protocol closes the connection without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The header's length is no length of a message.
    MessageLength(i32),
    /// A part of the message reaches past its end.
    Truncated(&'static str),
    /// An opcode that the protocol does not define, or that no client may send.
    UnknownOpcode(i32),
    /// An opcode of the time before OP_MSG, which has no reply that could carry an error.
    RemovedOpcode(OpCode),
    /// Flag bits that must be understood and are not.
    RequiredFlags(u32),
    /// The CRC-32C does not fit the message.
    Checksum,
    /// More document sequences than a command can have.
    TooManySequences,
    /// A compressor that is not known.
    UnknownCompressor(u8),
    /// The compressed bytes do not unpack to what the message says.
    Compression(&'static str),
    /// A compressed message within a compressed message.
    NestedCompression,
    /// A reply that is none: only a client sees this.
    Reply(&'static str),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::MessageLength(length) => {
                write!(f, "message length {length} is not within {HEADER_BYTES} and {MESSAGE_BYTES_MAX} bytes")
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
