//! OP_MSG, to the extent that a load driver needs it: encoding commands and decoding replies.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/#op_msg>

use anyhow::{Context, Result, bail};
use document::{Doc, DocBuf, Value};

/// The database of all collections.
pub const DATABASE: &str = "selkie_bench";

/// Marks where a message is patched before it is sent. An int32 that is unlikely to occur
/// otherwise.
pub const MARKER: i32 = 0x5EED_F00D;

const OP_MSG: i32 = 2013;
const HEADER_BYTES: usize = 16;
/// After the header, the flag bits and the kind of the section.
const BODY_START: usize = HEADER_BYTES + 4 + 1;

/// A prebuilt message, which is copied to the socket unchanged.
#[derive(Clone, Debug)]
pub struct Message {
    bytes: Vec<u8>,
    patch_at: Option<usize>,
}

impl Message {
    /// Encodes a command on [`DATABASE`].
    pub fn command(body: DocBuf) -> Message {
        Self::build(body, DATABASE, None)
    }

    /// Encodes a command on another database.
    pub fn command_on(database: &str, body: DocBuf) -> Message {
        Self::build(body, database, None)
    }

    /// Encodes a command with a document sequence beside its body.
    pub fn with_sequence<'d>(body: DocBuf, identifier: &str, documents: impl Iterator<Item = Doc<'d>>) -> Message {
        Self::with_sequence_on(DATABASE, body, identifier, documents)
    }

    /// Like [`Message::with_sequence`], on another database.
    pub fn with_sequence_on<'d>(
        database: &str,
        body: DocBuf,
        identifier: &str,
        documents: impl Iterator<Item = Doc<'d>>,
    ) -> Message {
        let mut section = vec![1];
        section.extend_from_slice(&[0; 4]);
        section.extend_from_slice(identifier.as_bytes());
        section.push(0);
        documents.for_each(|document| section.extend_from_slice(document.as_bytes()));
        let length = (section.len() - 1) as i32;
        section[1..5].copy_from_slice(&length.to_le_bytes());
        Self::build(body, database, Some(&section))
    }

    fn build(mut body: DocBuf, database: &str, section: Option<&[u8]>) -> Message {
        body.append("$db", database);
        let mut bytes = vec![0; HEADER_BYTES + 4];
        bytes.push(0);
        bytes.extend_from_slice(body.as_bytes());
        bytes.extend_from_slice(section.unwrap_or_default());
        let length = bytes.len() as i32;
        for (at, field) in [(0, length), (4, 1), (12, OP_MSG)] {
            bytes[at..at + 4].copy_from_slice(&field.to_le_bytes());
        }
        let patch_at = bytes.windows(4).position(|window| window == MARKER.to_le_bytes());
        Message { bytes, patch_at }
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Replaces [`MARKER`] by `number`.
    pub fn patch(&mut self, number: i32) {
        if let Some(at) = self.patch_at {
            self.bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
    }
}

/// Returns the length of the first message in `bytes`, from its length prefix; `None` if the prefix
/// is incomplete.
pub fn message_length(bytes: &[u8]) -> Option<usize> {
    let prefix = bytes.first_chunk::<4>()?;
    usize::try_from(i32::from_le_bytes(*prefix)).ok()
}

/// Decodes the body of a reply from one whole message.
pub fn reply_body(message: &[u8]) -> Result<Doc<'_>> {
    let opcode = message.get(12..16).and_then(|bytes| bytes.try_into().ok()).map(i32::from_le_bytes);
    if opcode != Some(OP_MSG) || message.get(HEADER_BYTES + 4) != Some(&0) {
        bail!("the reply is not an OP_MSG that begins with a body");
    }
    Doc::from_prefix(&message[BODY_START..]).context("the reply's body is truncated")
}

/// Decodes the body of a reply; fails unless it has `ok: 1` and no write errors.
pub fn check_ok(message: &[u8]) -> Result<Doc<'_>> {
    let body = reply_body(message)?;
    let ok = matches!(body.get("ok"), Some(Value::Double(1.0) | Value::Int32(1)));
    if !ok || body.get("writeErrors").is_some() {
        bail!("the server answered {body:?}");
    }
    Ok(body)
}

/// Returns the id and the batch of the cursor in a reply to `find` or `getMore`.
pub fn cursor_batch(body: Doc<'_>) -> Result<(i64, Doc<'_>)> {
    let Some(Value::Document(cursor)) = body.get("cursor") else { bail!("the reply has no cursor") };
    let batch = cursor.get("firstBatch").or_else(|| cursor.get("nextBatch"));
    match (cursor.get("id"), batch) {
        (Some(Value::Int64(id)), Some(Value::Array(batch))) => Ok((id, batch)),
        _ => bail!("the reply's cursor lacks its id or batch"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::doc;

    #[test]
    fn a_message_is_encoded_with_its_length_and_body() {
        let message = Message::command(doc! { "ping": 1i32 });
        assert_eq!(message_length(message.as_bytes()), Some(message.as_bytes().len()));
        let body = reply_body(message.as_bytes()).unwrap();
        assert_eq!(body.get("ping"), Some(Value::Int32(1)));
        assert_eq!(body.get("$db"), Some(Value::String(DATABASE)));
    }

    #[test]
    fn the_marker_is_patched() {
        let mut message = Message::command(doc! { "find": "cars", "filter": &doc! { "_id": MARKER } });
        message.patch(4711);
        let Some(Value::Document(filter)) = reply_body(message.as_bytes()).unwrap().get("filter") else { panic!() };
        assert_eq!(filter.get("_id"), Some(Value::Int32(4711)));
    }

    #[test]
    fn broken_replies_are_errors() {
        let message = Message::command(doc! { "ok": 1.0 });
        for length in 0..message.as_bytes().len() {
            assert!(check_ok(&message.as_bytes()[..length]).is_err(), "{length}");
        }
        assert!(check_ok(message.as_bytes()).is_ok());
        assert!(check_ok(Message::command(doc! { "ok": 0.0 }).as_bytes()).is_err());
    }
}
