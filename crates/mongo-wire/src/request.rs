//! A decoded request, whichever opcode it came in.

use crate::compressor::Compressor;
use crate::op_compressed::may_compress;
use crate::reply::{ReplyFormat, ReplyTo};
use bytes::Bytes;
use document::Doc;

/// One command from a client: a body and, with OP_MSG, document sequences beside it.
///
/// The bytes are checked BSON. Documents are borrowed from the message; [`Request::share`] makes a piece of it outlive the
/// request without copying.
#[derive(Clone, Debug)]
pub struct Request {
    /// The whole message (decompressed), which everything else points into.
    pub message: Bytes,
    pub request_id: i32,
    pub kind: RequestKind,
    /// Where the body lies in `message`.
    pub body: std::ops::Range<usize>,
    /// Sections of kind 1: identifier and the documents' bytes, one behind the other.
    pub sequences: Vec<Sequence>,
    /// How the message was packed, if it was.
    pub compressor: Option<Compressor>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// OP_MSG. `more_to_come`: no reply is wanted. `exhaust_allowed`: several replies may follow.
    Msg { more_to_come: bool, exhaust_allowed: bool, checksum: bool },
    /// OP_QUERY on `<database>.$cmd`, answered by OP_REPLY. The body has no `$db`.
    Query { database: String },
}

#[derive(Clone, Debug)]
pub struct Sequence {
    pub identifier: std::ops::Range<usize>,
    pub documents: std::ops::Range<usize>,
}

impl Request {
    pub fn body(&self) -> Doc<'_> {
        Doc::from_bytes(&self.message[self.body.clone()]).unwrap_or(Doc::EMPTY)
    }

    /// The command's name as the client spelled it: the key of the body's first element.
    pub fn command_name(&self) -> &str {
        self.body().first().map_or("", |first| first.key())
    }

    /// The client wants no reply, not even an error.
    pub fn is_silent(&self) -> bool {
        matches!(self.kind, RequestKind::Msg { more_to_come: true, .. })
    }

    /// What the reply to this request looks like.
    pub fn reply_to(&self) -> ReplyTo {
        let format = match self.kind {
            RequestKind::Msg { checksum, .. } => ReplyFormat::Msg { checksum },
            RequestKind::Query { .. } => ReplyFormat::Reply,
        };
        let compressor = self.compressor.filter(|_| may_compress(self.command_name().as_bytes()));
        ReplyTo { request_id: self.request_id, format, compressor }
    }

    /// The same request with another body, for commands that run again by themselves (exhaust).
    pub fn with_body(&self, body: document::DocBuf) -> Request {
        let message = Bytes::from(body.into_vec());
        Request { body: 0..message.len(), message, sequences: Vec::new(), kind: self.kind.clone(), ..*self }
    }

    /// The documents of the sequence with this identifier.
    pub fn sequence(&self, identifier: &str) -> Option<impl Iterator<Item = Doc<'_>>> {
        let sequence = self.sequences.iter().find(|s| &self.message[s.identifier.clone()] == identifier.as_bytes())?;
        let mut rest = &self.message[sequence.documents.clone()];
        Some(std::iter::from_fn(move || {
            let document = Doc::from_prefix(rest)?;
            rest = &rest[document.size()..];
            Some(document)
        }))
    }

    /// A piece of this request that outlives it, without copying. `piece` must borrow from this request.
    pub fn share(&self, piece: Doc<'_>) -> Bytes {
        self.message.slice_ref(piece.as_bytes())
    }
}
