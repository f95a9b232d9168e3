//! Writes a reply around a body, in one buffer.
//!
//! [`ReplyTo::begin`] reserves the header, the command appends its BSON body, and
//! [`ReplyTo::finish`] fills in the header and adds the checksum if the request had one. Nothing is
//! copied unless the reply is compressed.

use crate::compressor::Compressor;
use crate::header::{HEADER_BYTES, Header, OpCode};
use crate::{op_msg_layout, op_reply};
use document::names;

/// The facts about a request that its reply depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyTo {
    pub request_id: i32,
    pub format: ReplyFormat,
    /// The compressor of the request; its reply uses the same, if the command may be compressed.
    pub compressor: Option<Compressor>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyFormat {
    /// OP_MSG, with a checksum if the request had one.
    Msg { checksum: bool },
    /// OP_REPLY with a command's reply.
    Reply,
    /// OP_REPLY flagged QueryFailure: the body is `{$err: …, code: …}`.
    QueryFailure,
}

/// The beginning of a reply in its buffer, for [`ReplyTo::finish`].
#[derive(Debug)]
#[must_use]
pub struct ReplyStart(usize);

impl ReplyTo {
    /// Reserves the header at the end of `buffer`. The body must be appended behind it.
    pub fn begin(&self, buffer: &mut Vec<u8>) -> ReplyStart {
        let start = ReplyStart(buffer.len());
        buffer.extend_from_slice(&[0; HEADER_BYTES]);
        match self.format {
            ReplyFormat::Msg { .. } => buffer.extend_from_slice(&[0; op_msg_layout::BODY_AT - HEADER_BYTES]),
            ReplyFormat::Reply => buffer.extend_from_slice(&op_reply::prefix(op_reply::AWAIT_CAPABLE)),
            ReplyFormat::QueryFailure => buffer.extend_from_slice(&op_reply::prefix(op_reply::QUERY_FAILURE)),
        }
        start
    }

    /// Returns the length of the header.
    fn front_bytes(&self) -> usize {
        match self.format {
            ReplyFormat::Msg { .. } => op_msg_layout::BODY_AT,
            ReplyFormat::Reply | ReplyFormat::QueryFailure => op_reply::BODY_AT,
        }
    }

    /// Completes the header of a message whose body is elsewhere, in two pieces. Returns the
    /// checksum to send after the body, if there is one. The body must not have escaped names.
    pub fn finish_around(
        &self,
        buffer: &mut [u8],
        start: ReplyStart,
        reply_id: i32,
        body: [&[u8]; 2],
    ) -> Option<[u8; op_msg_layout::CHECKSUM_BYTES]> {
        let ReplyStart(at) = start;
        let has_checksum = matches!(self.format, ReplyFormat::Msg { checksum: true });
        let bytes = buffer.len() - at + body[0].len() + body[1].len();
        self.finish_front(buffer, at, bytes, reply_id, false);
        has_checksum.then(|| {
            let front = crc32c::crc32c(&buffer[at..]);
            body.iter().fold(front, |checksum, piece| crc32c::crc32c_append(checksum, piece)).to_le_bytes()
        })
    }

    /// Completes the message from `start` to the end of `buffer`, and unescapes the body's field
    /// names, UTF-8 or not. `more_to_come`: another reply to the same request follows by itself.
    pub fn finish(&self, buffer: &mut Vec<u8>, start: ReplyStart, reply_id: i32, more_to_come: bool) {
        let ReplyStart(start) = start;
        names::restore_reply(buffer, start + self.front_bytes());
        let bytes = buffer.len() - start;
        if self.finish_front(buffer, start, bytes, reply_id, more_to_come) {
            let checksum = crc32c::crc32c(&buffer[start..]);
            buffer.extend_from_slice(&checksum.to_le_bytes());
        }
    }

    /// Writes the header and the flags of a message of `length` bytes without its checksum. Returns
    /// whether it has one.
    fn finish_front(&self, buffer: &mut [u8], start: usize, bytes: usize, reply_id: i32, more_to_come: bool) -> bool {
        let (opcode, checksum) = match self.format {
            ReplyFormat::Msg { checksum } => (OpCode::MSG, checksum),
            ReplyFormat::Reply | ReplyFormat::QueryFailure => (OpCode::REPLY, false),
        };
        let length = bytes + if checksum { op_msg_layout::CHECKSUM_BYTES } else { 0 };
        let header = Header { length, request_id: reply_id, response_to: self.request_id, opcode };
        buffer[start..start + HEADER_BYTES].copy_from_slice(&header.to_bytes());
        if opcode == OpCode::MSG {
            let more = if more_to_come { op_msg_layout::MORE_TO_COME } else { 0 };
            let flags = more | if checksum { op_msg_layout::CHECKSUM_PRESENT } else { 0 };
            buffer[start + HEADER_BYTES..start + HEADER_BYTES + 4].copy_from_slice(&flags.to_le_bytes());
        }
        checksum
    }
}
