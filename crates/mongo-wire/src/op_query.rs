//! OP_QUERY: the first message of drivers to an unknown server, and every message of drivers from
//! before OP_MSG.
//!
//! Only commands (`<database>.$cmd`) are supported, but all of them. MongoDB has refused most of
//! them since 5.1, and with them the drivers that use nothing else.
//!
//! Source: <https://www.mongodb.com/docs/manual/legacy-opcodes/#op_query>

use crate::header::{HEADER_BYTES, Header};
use crate::legacy;
use crate::reader::Reader;
use crate::reply::{ReplyFormat, ReplyTo};
use crate::request::{Request, RequestKind};
use crate::{Compressor, DecodeError, Message, Refused};
use bytes::Bytes;
use document::Kind;
use document::validate;
use error::{Code, Error};
use std::ops::Range;

const EXHAUST: i32 = 1 << 6;

pub(crate) fn decode(header: Header, message: Bytes, compressor: Option<Compressor>) -> Result<Message, DecodeError> {
    let mut reader = Reader::new(&message, HEADER_BYTES);
    let flags = reader.i32("flags")?;
    let namespace = reader.cstring("collection name")?;
    let _skip = reader.i32("number to skip")?;
    let wanted = reader.i32("number to return")?;
    let database = std::str::from_utf8(namespace).ok().and_then(|name| name.strip_suffix(".$cmd"));
    let Some(database) = database else { return Ok(legacy::refused(&header, compressor)) };

    match read_command(&message, reader, flags, wanted) {
        Ok(body) => Ok(Message::Request(Request {
            request_id: header.request_id,
            kind: RequestKind::Query { database: database.to_owned() },
            body,
            sequences: Vec::new(),
            compressor,
            message,
        })),
        Err(error) => Ok(Message::Refused(Refused {
            reply_to: ReplyTo { request_id: header.request_id, format: ReplyFormat::Reply, compressor },
            silent: false,
            error,
        })),
    }
}

/// The position of the command in the message.
fn read_command(message: &[u8], mut reader: Reader<'_>, flags: i32, wanted: i32) -> Result<Range<usize>, Error> {
    if wanted != 1 && wanted != -1 {
        let message = format!("Bad numberToReturn ({wanted}) for $cmd type ns - can only be 1 or -1");
        return Err(Error::new(Code(16979), message));
    }
    if flags & EXHAUST != 0 {
        return Err(Error::new(Code(18527), "The 'exhaust' OP_QUERY flag is invalid for commands"));
    }
    let at = reader.position();
    let body = read_document(&mut reader)?;
    if !reader.is_empty() {
        // A projection, which commands do not use.
        read_document(&mut reader)?;
    }
    if !reader.is_empty() {
        return Err(invalid("bytes behind the last document"));
    }
    Ok(unwrap_query(message, at..at + body))
}

/// Drivers wrap a command as `{$query: {…}, $readPreference: {…}}` when they send options beside
/// it.
fn unwrap_query(message: &[u8], body: Range<usize>) -> Range<usize> {
    let document = document::Doc::from_bytes(&message[body.clone()]).unwrap_or(document::Doc::EMPTY);
    match document.first() {
        Some(first) if matches!(first.key_bytes(), b"$query" | b"query") && first.kind == Kind::Document => {
            let inner = first.raw_value();
            let start = inner.as_ptr().addr() - message.as_ptr().addr();
            start..start + inner.len()
        }
        _ => body,
    }
}

fn read_document(reader: &mut Reader<'_>) -> Result<usize, Error> {
    let size = validate::check_sent(reader.rest()).map_err(invalid)?.size();
    reader.take(size, "document").map_err(invalid)?;
    Ok(size)
}

fn invalid(what: impl std::fmt::Display) -> Error {
    Error::new(Code::INVALID_BSON, format!("Client Error: bad object in message: {what}"))
}
