//! OP_COMPRESSED: another message, compressed.
//!
//! Source: <https://github.com/mongodb/specifications/blob/master/source/compression/OP_COMPRESSED.md>

use crate::header::{HEADER_BYTES, Header, MESSAGE_BYTES_MAX, OpCode};
use crate::reader::Reader;
use crate::{Codecs, Compressor, DecodeError};
use bytes::Bytes;

/// The opcode, size and compressor of the inner message, between header and compressed bytes.
const PREFIX_BYTES: usize = 4 + 4 + 1;

/// Commands whose messages are never compressed: they come before compression is negotiated, or
/// carry secrets, whose length compression would reveal.
const NEVER_COMPRESSED: [&[u8]; 13] = [
    b"hello",
    b"isMaster",
    b"ismaster",
    b"saslStart",
    b"saslContinue",
    b"getnonce",
    b"authenticate",
    b"createUser",
    b"updateUser",
    b"copydbSaslStart",
    b"copydbgetnonce",
    b"copydb",
    b"logout",
];

/// Returns whether messages of a command may be compressed.
pub fn may_compress(command: &[u8]) -> bool {
    !NEVER_COMPRESSED.contains(&command)
}

/// Returns the inner message with a header of its own, as if it had come uncompressed. It may have
/// `bytes_max` bytes.
pub(crate) fn unpack(
    header: &Header,
    message: &[u8],
    bytes_max: usize,
    codecs: &mut Codecs,
) -> Result<(Header, Bytes, Compressor), DecodeError> {
    let mut reader = Reader::new(message, HEADER_BYTES);
    let opcode = OpCode(reader.i32("original opcode")?);
    let size =
        usize::try_from(reader.i32("uncompressed size")?).ok().filter(|&n| n <= MESSAGE_BYTES_MAX - HEADER_BYTES);
    let size = size.ok_or(DecodeError::Compression("the uncompressed size is no size of a message"))?;
    if HEADER_BYTES + size > bytes_max {
        return Err(DecodeError::TooLong { length: HEADER_BYTES + size, bytes_max });
    }
    let id = reader.byte("compressor id")?;
    let compressor = Compressor::from_id(id).ok_or(DecodeError::UnknownCompressor(id))?;
    if opcode == OpCode::COMPRESSED {
        return Err(DecodeError::NestedCompression);
    }
    let inner = Header { length: HEADER_BYTES + size, opcode, ..*header };
    let unpacked = codecs.decompress(compressor, reader.rest(), &inner.to_bytes(), size)?;
    Ok((inner, Bytes::from(unpacked), compressor))
}

/// Appends one whole message to `out`, compressed.
pub fn pack(message: &[u8], compressor: Compressor, codecs: &mut Codecs, out: &mut Vec<u8>) -> Result<(), DecodeError> {
    let header = Header::peek(message)?.ok_or(DecodeError::Truncated("header"))?;
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    out.extend_from_slice(&header.opcode.0.to_le_bytes());
    out.extend_from_slice(&((header.length - HEADER_BYTES) as i32).to_le_bytes());
    out.push(compressor as u8);
    debug_assert_eq!(out.len(), start + HEADER_BYTES + PREFIX_BYTES);
    codecs.compress(compressor, &message[HEADER_BYTES..], out)?;
    let outer = Header { length: out.len() - start, opcode: OpCode::COMPRESSED, ..header };
    out[start..start + HEADER_BYTES].copy_from_slice(&outer.to_bytes());
    Ok(())
}
