//! The client's side: encoding commands and decoding replies. For load drivers and tests; the
//! server uses none of it.

use crate::compressor::{Codecs, Compressor};
use crate::header::{HEADER_BYTES, Header, MESSAGE_BYTES_MAX, OpCode};
use crate::reader::Reader;
use crate::{DecodeError, op_compressed, op_msg, op_msg_layout, op_reply};
use bytes::{Bytes, BytesMut};
use document::{Doc, validate};
use std::ops::Range;

/// One command as OP_MSG.
#[derive(Clone, Copy, Debug, Default)]
pub struct Command<'a> {
    pub request_id: i32,
    /// With `$db`. Empty means `{}`.
    pub body: &'a [u8],
    /// Documents beside the body: identifier and documents.
    pub sequence: Option<(&'a str, &'a [&'a [u8]])>,
    pub checksum: bool,
    /// The request is unacknowledged (moreToCome): no reply follows.
    pub more_to_come: bool,
    pub exhaust_allowed: bool,
}

impl Command<'_> {
    /// Appends the message to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; HEADER_BYTES]);
        out.extend_from_slice(&self.flags().to_le_bytes());
        out.push(0);
        out.extend_from_slice(if self.body.is_empty() { Doc::EMPTY.as_bytes() } else { self.body });
        if let Some((identifier, documents)) = self.sequence {
            let size = 4 + identifier.len() + 1 + documents.iter().map(|document| document.len()).sum::<usize>();
            out.push(1);
            out.extend_from_slice(&(size as i32).to_le_bytes());
            out.extend_from_slice(identifier.as_bytes());
            out.push(0);
            documents.iter().for_each(|document| out.extend_from_slice(document));
        }
        let length = out.len() - start + if self.checksum { op_msg_layout::CHECKSUM_BYTES } else { 0 };
        let header = Header { length, request_id: self.request_id, response_to: 0, opcode: OpCode::MSG };
        out[start..start + HEADER_BYTES].copy_from_slice(&header.to_bytes());
        if self.checksum {
            let checksum = crc32c::crc32c(&out[start..]);
            out.extend_from_slice(&checksum.to_le_bytes());
        }
    }

    /// Appends the message to `out`, compressed.
    pub fn encode_compressed(
        &self,
        compressor: Compressor,
        codecs: &mut Codecs,
        out: &mut Vec<u8>,
    ) -> Result<(), DecodeError> {
        let mut plain = Vec::new();
        self.encode(&mut plain);
        op_compressed::pack(&plain, compressor, codecs, out)
    }

    fn flags(&self) -> u32 {
        let flag = |set: bool, bit: u32| if set { bit } else { 0 };
        flag(self.checksum, op_msg_layout::CHECKSUM_PRESENT)
            | flag(self.more_to_come, op_msg_layout::MORE_TO_COME)
            | flag(self.exhaust_allowed, op_msg_layout::EXHAUST_ALLOWED)
    }
}

/// Appends a command as OP_QUERY on `<database>.$cmd`.
pub fn encode_query(request_id: i32, database: &str, body: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES + 4]);
    out.extend_from_slice(database.as_bytes());
    out.extend_from_slice(b".$cmd\0");
    out.extend_from_slice(&0i32.to_le_bytes());
    out.extend_from_slice(&(-1i32).to_le_bytes());
    out.extend_from_slice(body);
    let header = Header { length: out.len() - start, request_id, response_to: 0, opcode: OpCode::QUERY };
    out[start..start + HEADER_BYTES].copy_from_slice(&header.to_bytes());
}

/// A server's reply.
#[derive(Clone, Debug)]
pub struct Reply {
    pub header: Header,
    /// The flags of OP_MSG or OP_REPLY.
    pub flags: u32,
    /// The compressor of the reply.
    pub compressor: Option<Compressor>,
    message: Bytes,
    body: Range<usize>,
}

impl Reply {
    pub fn body(&self) -> Doc<'_> {
        Doc::from_bytes(&self.message[self.body.clone()]).unwrap_or(Doc::EMPTY)
    }

    /// Another reply to the same request follows.
    pub fn more_to_come(&self) -> bool {
        self.header.opcode == OpCode::MSG && self.flags & op_msg_layout::MORE_TO_COME != 0
    }
}

/// How far a client checks a reply's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Validate all of the BSON.
    Check,
    /// Trust the body's length prefix: for a load driver, which must keep its own cost out of the
    /// measurement.
    Length,
}

/// Decodes the reply at the front of `buffer`. Returns `None` while it is incomplete.
pub fn decode_reply(buffer: &mut BytesMut, codecs: &mut Codecs, trust: Trust) -> Result<Option<Reply>, DecodeError> {
    let Some(header) = Header::peek(buffer)? else { return Ok(None) };
    if buffer.len() < header.length {
        return Ok(None);
    }
    let message = buffer.split_to(header.length).freeze();
    let (header, message, compressor) = if header.opcode == OpCode::COMPRESSED {
        let (header, message, compressor) = op_compressed::unpack(&header, &message, MESSAGE_BYTES_MAX, codecs)?;
        (header, message, Some(compressor))
    } else {
        (header, message, None)
    };
    let (flags, part) = match header.opcode {
        OpCode::MSG => {
            let (flags, sections) = op_msg::frame(&message)?;
            if message[..sections.end].get(sections.start) != Some(&0) {
                return Err(DecodeError::Reply("no body"));
            }
            (flags, sections.start + 1..sections.end)
        }
        OpCode::REPLY => {
            let flags = Reader::new(&message, HEADER_BYTES).u32("flags")?;
            (flags, op_reply::BODY_AT..message.len())
        }
        OpCode(other) => return Err(DecodeError::UnknownOpcode(other)),
    };
    let bytes = message.get(part.clone()).ok_or(DecodeError::Truncated("body"))?;
    let document = match trust {
        Trust::Check => validate::check(bytes).map_err(|_| DecodeError::Reply("the body is not BSON"))?,
        Trust::Length => Doc::from_prefix(bytes).ok_or(DecodeError::Truncated("body"))?,
    };
    let body = part.start..part.start + document.size();
    Ok(Some(Reply { header, flags, compressor, message, body }))
}
