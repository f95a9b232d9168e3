//! The MongoDB wire protocol as bytes: messages in, messages out, no I/O.
//!
//! [`decode`] takes one whole message off the front of a buffer,
//! or asks for more bytes. It validates everything once (lengths, flags, checksum, compression,
//! BSON), so that reading a [`Request`] cannot fail later. [`ReplyTo`] writes
//! a reply around a body that the command appends itself.
//!
//! In reading order: [`header`], [`op_msg`], [`op_query`], [`op_compressed`], `legacy` (opcodes
//! that are refused), [`request`], [`reply`], and [`client`], the client's side for load drivers
//! and tests.
//!
//! Nothing here does I/O, waits or reads a clock. No length is trusted, and no memory is allocated
//! by it, before it is checked against [`header::MESSAGE_BYTES_MAX`].
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/>

pub mod client;
pub mod compressor;
mod decode_error;
pub mod header;
mod legacy;
mod message;
pub mod op_compressed;
pub mod op_msg;
mod op_msg_layout;
pub mod op_query;
pub mod op_reply;
mod opcode;
mod reader;
pub mod reply;
pub mod request;

pub use compressor::{Codecs, Compressor};
pub use decode_error::DecodeError;
pub use header::{Header, MESSAGE_BYTES_MAX, OpCode};
pub use message::{Message, Refused};
pub use reply::{ReplyFormat, ReplyTo};
pub use request::{Request, RequestKind};

use bytes::{Bytes, BytesMut};

/// Decodes the message at the front of `buffer`, without a copy unless it is compressed. Returns
/// `None` if more bytes are needed; [`needed`] returns how many. After an error the connection must
/// be closed.
pub fn decode(buffer: &mut BytesMut, codecs: &mut Codecs) -> Result<Option<Message>, DecodeError> {
    decode_up_to(MESSAGE_BYTES_MAX, buffer, codecs)
}

/// As [`decode`], of a client whose messages may have `bytes_max` bytes, compressed or not.
pub fn decode_up_to(
    bytes_max: usize,
    buffer: &mut BytesMut,
    codecs: &mut Codecs,
) -> Result<Option<Message>, DecodeError> {
    let Some(header) = Header::peek(buffer)? else { return Ok(None) };
    check_length(header.length, bytes_max)?;
    if buffer.len() < header.length {
        return Ok(None);
    }
    let message = buffer.split_to(header.length).freeze();
    if header.opcode == OpCode::COMPRESSED {
        let (header, message, compressor) = op_compressed::unpack(&header, &message, bytes_max, codecs)?;
        return decode_whole(header, message, Some(compressor)).map(Some);
    }
    decode_whole(header, message, None).map(Some)
}

fn check_length(length: usize, bytes_max: usize) -> Result<(), DecodeError> {
    if length > bytes_max { Err(DecodeError::TooLong { length, bytes_max }) } else { Ok(()) }
}

/// Returns the length of the message at the front of `buffer`, or of a header while that is
/// incomplete.
pub fn needed(buffer: &[u8]) -> Result<usize, DecodeError> {
    Ok(Header::peek(buffer)?.map_or(header::HEADER_BYTES, |header| header.length))
}

fn decode_whole(header: Header, message: Bytes, compressor: Option<Compressor>) -> Result<Message, DecodeError> {
    match header.opcode {
        OpCode::MSG => op_msg::decode(header, message, compressor),
        OpCode::QUERY => op_query::decode(header, message, compressor),
        OpCode::COMPRESSED => Err(DecodeError::NestedCompression),
        _ => legacy::decode(header, compressor),
    }
}
