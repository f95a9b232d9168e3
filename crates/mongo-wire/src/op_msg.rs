//! OP_MSG: a body, document sequences, and perhaps a checksum.
//!
//! As with a MongoDB 6.0 server, an error that makes the framing doubtful (flags, checksum) closes
//! the connection, and an error within a section gets a reply.
//!
//! Source: <https://github.com/mongodb/specifications/blob/master/source/message/OP_MSG.md>

use crate::header::{HEADER_BYTES, Header, MESSAGE_BYTES_MAX};
pub use crate::op_msg_layout::{BODY_AT, CHECKSUM_BYTES, CHECKSUM_PRESENT, EXHAUST_ALLOWED, MORE_TO_COME};
use crate::reader::Reader;
use crate::reply::{ReplyFormat, ReplyTo};
use crate::request::{Request, RequestKind, Sequence};
use crate::{Compressor, DecodeError, Message, Refused};
use bytes::Bytes;
use document::names;
use document::validate::{self, Invalid};
use error::{Code, Error};
use std::ops::Range;

/// Unknown bits from 0 to 15 are errors; the others are ignored.
const REQUIRED_BITS: u32 = 0xFFFF;

/// No command has more than one; the limit keeps the search for duplicates short.
const SEQUENCES_MAX: usize = 16;

/// The size of a cache line.
const LINE_BYTES: usize = 64;

/// The best offset of a body that is sent from memory of its own, behind a header from elsewhere.
///
/// The kernel usually puts the header at the beginning of a page, and the body behind it.
/// Processors copy two to three times slower to an address less than 16 bytes further into its page
/// than the source, since they take each load for one of a recent store. So the body begins
/// [`BODY_AT`] bytes into a cache line.
pub fn body_to_send(body: &[u8]) -> Bytes {
    let mut bytes: Vec<u8> = Vec::with_capacity(body.len() + LINE_BYTES);
    let at = bytes.as_ptr().addr() % LINE_BYTES;
    let before = (BODY_AT + LINE_BYTES - at) % LINE_BYTES;
    bytes.resize(before, 0);
    bytes.extend_from_slice(body);
    Bytes::from(bytes).slice(before..)
}

/// The flags, the range of the sections, and whether there was a checksum (which matched).
pub(crate) fn frame(message: &[u8]) -> Result<(u32, Range<usize>), DecodeError> {
    let flags = Reader::new(message, HEADER_BYTES).u32("flags")?;
    let unknown = flags & REQUIRED_BITS & !(CHECKSUM_PRESENT | MORE_TO_COME);
    if unknown != 0 {
        return Err(DecodeError::RequiredFlags(unknown));
    }
    let sections_at = HEADER_BYTES + 4;
    if flags & CHECKSUM_PRESENT == 0 {
        return Ok((flags, sections_at..message.len()));
    }
    let (covered, checksum) = message.split_last_chunk::<CHECKSUM_BYTES>().ok_or(DecodeError::Truncated("checksum"))?;
    if covered.len() < sections_at {
        return Err(DecodeError::Truncated("checksum"));
    }
    if crc32c::crc32c(covered) != u32::from_le_bytes(*checksum) {
        return Err(DecodeError::Checksum);
    }
    Ok((flags, sections_at..covered.len()))
}

pub(crate) fn decode(header: Header, message: Bytes, compressor: Option<Compressor>) -> Result<Message, DecodeError> {
    let (flags, sections) = frame(&message)?;
    let kind = RequestKind::Msg {
        more_to_come: flags & MORE_TO_COME != 0,
        exhaust_allowed: flags & EXHAUST_ALLOWED != 0,
        checksum: flags & CHECKSUM_PRESENT != 0,
    };
    let mut message = message;
    let mut read = read_sections(&message[..sections.end], sections.start, validate::check_sent);
    if matches!(read, Err(Fault::Names)) {
        read = with_escaped_names(&message[..sections.end], sections.start).and_then(|escaped| {
            message = Bytes::from(escaped);
            read_sections(&message, sections.start, validate::check)
        });
    }
    match read {
        Ok(Sections { body, sequences }) => {
            Ok(Message::Request(Request { message, request_id: header.request_id, kind, body, sequences, compressor }))
        }
        Err(Fault::Close(error)) => Err(error),
        Err(fault) => Ok(Message::Refused(Refused {
            reply_to: ReplyTo {
                request_id: header.request_id,
                format: ReplyFormat::Msg { checksum: flags & CHECKSUM_PRESENT != 0 },
                compressor,
            },
            silent: flags & MORE_TO_COME != 0,
            error: fault.into_error(),
        })),
    }
}

struct Sections {
    body: Range<usize>,
    sequences: Vec<Sequence>,
}

enum Fault {
    Close(DecodeError),
    Answer(Error),
    /// Field names must be escaped.
    Names,
}

impl Fault {
    fn into_error(self) -> Error {
        match self {
            Fault::Answer(error) => error,
            Fault::Names => invalid(Invalid::Utf8),
            Fault::Close(error) => Error::new(Code::OVERFLOW, error.to_string()),
        }
    }
}

fn invalid(invalid: Invalid) -> Error {
    let code = if invalid == Invalid::Depth { Code::OVERFLOW } else { Code::INVALID_BSON };
    Error::new(code, invalid.to_string())
}

impl From<DecodeError> for Fault {
    /// An error in a section leaves the framing intact: the next message begins where the header
    /// says.
    fn from(error: DecodeError) -> Self {
        Fault::Answer(Error::new(Code::OVERFLOW, error.to_string()))
    }
}

impl From<Invalid> for Fault {
    fn from(invalid: Invalid) -> Self {
        match invalid {
            Invalid::Utf8 => Fault::Names,
            invalid => Fault::Answer(self::invalid(invalid)),
        }
    }
}

fn answer<T>(code: i32, message: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Answer(Error::new(Code(code), message)))
}

/// Returns the message with escaped field names, some of which are not UTF-8. That is rare, so it
/// may cost another copy.
fn with_escaped_names(message: &[u8], at: usize) -> Result<Vec<u8>, Fault> {
    let mut escaped = Vec::with_capacity(message.len() + message.len() / 4);
    escaped.extend_from_slice(message.get(..at).unwrap_or_default());
    let mut reader = Reader::new(message, at);
    while !reader.is_empty() {
        let kind = reader.byte("section")?;
        escaped.push(kind);
        if kind == 1 {
            escape_sequence(&mut reader, &mut escaped)?;
        } else {
            escape_document(&mut reader, &mut escaped)?;
        }
    }
    Ok(escaped)
}

fn escape_sequence(reader: &mut Reader<'_>, escaped: &mut Vec<u8>) -> Result<(), Fault> {
    let start = escaped.len();
    let mut inner = Reader::new(sequence(reader)?.1, 0);
    let identifier = inner.cstring("document sequence identifier")?;
    escaped.extend_from_slice(&[0; LENGTH_BYTES]);
    escaped.extend_from_slice(identifier);
    escaped.push(0);
    while !inner.is_empty() {
        escape_document(&mut inner, escaped)?;
    }
    let length = (escaped.len() - start) as u32;
    escaped[start..start + LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

fn escape_document(reader: &mut Reader<'_>, escaped: &mut Vec<u8>) -> Result<(), Fault> {
    let size = names::escape_document(reader.rest(), escaped, MESSAGE_BYTES_MAX);
    let size = size.map_err(|invalid| match invalid {
        Invalid::Depth => fault(invalid, reader.rest()),
        // As above, if the escaped names are too long.
        _ => Fault::Names,
    })?;
    reader.take(size, "document")?;
    Ok(())
}

/// Parses `message[at..]` as sections; `message` ends before the checksum.
fn read_sections(message: &[u8], at: usize, check: Check) -> Result<Sections, Fault> {
    let mut reader = Reader::new(message, at);
    let mut body = None;
    let mut sequences = Vec::new();
    while !reader.is_empty() {
        match reader.byte("section")? {
            0 if body.is_some() => return answer(40430, "Multiple body sections in message"),
            0 => body = Some(read_document(&mut reader, check)?),
            1 => {
                let sequence = read_sequence(&mut reader, check)?;
                if sequences.len() == SEQUENCES_MAX {
                    return Err(Fault::Close(DecodeError::TooManySequences));
                }
                sequences.push(sequence);
            }
            2 => return answer(13, "Unsupported Security Token provided"),
            kind => return answer(40432, format!("Unknown section kind {kind}")),
        }
    }
    let Some(body) = body else { return answer(40587, "OP_MSG messages must have a body") };
    if !sequences.is_empty() {
        check_identifiers(message, &body, &sequences)?;
    }
    Ok(Sections { body, sequences })
}

/// Returns the error of the document at the front of `bytes`.
#[cold]
fn fault(invalid: Invalid, bytes: &[u8]) -> Fault {
    let path = document::Doc::from_prefix(bytes).and_then(validate::path_beyond_depth);
    match (invalid, path) {
        (Invalid::Depth, Some(path)) => Fault::Answer(Error::new(
            Code::OVERFLOW,
            format!(
                "BSONObj exceeds maximum nested object depth in element with field name '{path}' in object with \
                 unknown _id"
            ),
        )),
        (invalid, _) => invalid.into(),
    }
}

/// The checks that a document must pass.
type Check = fn(&[u8]) -> Result<document::Doc<'_>, Invalid>;

fn read_document(reader: &mut Reader<'_>, check: Check) -> Result<Range<usize>, Fault> {
    let at = reader.position();
    let size = check(reader.rest()).map_err(|invalid| fault(invalid, reader.rest()))?.size();
    reader.take(size, "document")?;
    Ok(at..at + size)
}

/// The length prefix of a sequence, which includes itself.
const LENGTH_BYTES: usize = 4;

/// The position of a sequence after its length, and its bytes.
fn sequence<'m>(reader: &mut Reader<'m>) -> Result<(usize, &'m [u8]), DecodeError> {
    let length = usize::try_from(reader.i32("document sequence")?).ok().and_then(|n| n.checked_sub(LENGTH_BYTES));
    let length = length.ok_or(DecodeError::Truncated("document sequence"))?;
    let at = reader.position();
    Ok((at, reader.take(length, "document sequence")?))
}

fn read_sequence(reader: &mut Reader<'_>, check: Check) -> Result<Sequence, Fault> {
    let (at, section) = sequence(reader)?;
    let mut inner = Reader::new(section, 0);
    let identifier = inner.cstring("document sequence identifier")?;
    if std::str::from_utf8(identifier).is_err() {
        return Err(Fault::Answer(invalid(Invalid::Utf8)));
    }
    let documents_at = inner.position();
    while !inner.is_empty() {
        read_document(&mut inner, check)?;
    }
    Ok(Sequence { identifier: at..at + identifier.len(), documents: at + documents_at..at + section.len() })
}

/// A sequence is a field of the body, so its name must differ from those of fields and other
/// sequences.
fn check_identifiers(message: &[u8], body: &Range<usize>, sequences: &[Sequence]) -> Result<(), Fault> {
    let name = |sequence: &Sequence| &message[sequence.identifier.clone()];
    let text = |sequence: &Sequence| String::from_utf8_lossy(name(sequence)).into_owned();
    for (index, sequence) in sequences.iter().enumerate() {
        if sequences[..index].iter().any(|earlier| name(earlier) == name(sequence)) {
            return answer(40431, format!("Duplicate document sequence: {}", text(sequence)));
        }
    }
    let body = document::Doc::from_bytes(&message[body.clone()]).unwrap_or(document::Doc::EMPTY);
    for element in body.elements() {
        if let Some(sequence) = sequences.iter().find(|sequence| name(sequence) == element.key_bytes()) {
            let text = text(sequence);
            return answer(40433, format!("Duplicate field between body and document sequence {text}"));
        }
    }
    Ok(())
}
