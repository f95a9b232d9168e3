//! A decoded request of any opcode.

use crate::compressor::Compressor;
use crate::op_compressed::may_compress;
use crate::reply::{ReplyFormat, ReplyTo};
use bytes::Bytes;
use document::Doc;

/// One command of a client: a body and, with OP_MSG, document sequences.
///
/// The bytes are valid BSON. Documents borrow from the message; [`Request::share`] makes a part of
/// it outlive the request without a copy.
#[derive(Clone, Debug)]
pub struct Request {
    /// The whole message (decompressed), to which everything else points.
    pub message: Bytes,
    pub request_id: i32,
    pub kind: RequestKind,
    /// The range of the body in `message`.
    pub body: std::ops::Range<usize>,
    /// Sections of kind 1: the identifier and the bytes of the documents, concatenated.
    pub sequences: Vec<Sequence>,
    /// The compressor of the message, if it was compressed.
    pub compressor: Option<Compressor>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// OP_MSG. `more_to_come`: the request is unacknowledged. `exhaust_allowed`: several replies
    /// may follow.
    Msg { more_to_come: bool, exhaust_allowed: bool, checksum: bool },
    /// OP_QUERY on `<database>.$cmd`, which OP_REPLY answers. The body has no `$db`.
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

    /// Returns the command's name as the client wrote it: the key of the body's first element.
    pub fn command_name(&self) -> &str {
        self.body().first().map_or("", |first| first.key())
    }

    /// Returns whether the request is unacknowledged: it gets no reply, not even an error.
    pub fn is_silent(&self) -> bool {
        matches!(self.kind, RequestKind::Msg { more_to_come: true, .. })
    }

    /// Returns the facts that the reply depends on.
    pub fn reply_to(&self) -> ReplyTo {
        let format = match self.kind {
            RequestKind::Msg { checksum, .. } => ReplyFormat::Msg { checksum },
            RequestKind::Query { .. } => ReplyFormat::Reply,
        };
        let compressor = self.compressor.filter(|_| may_compress(self.command_name().as_bytes()));
        ReplyTo { request_id: self.request_id, format, compressor }
    }

    /// Returns the same request with another body, for commands that are repeated (exhaust).
    pub fn with_body(&self, body: document::DocBuf) -> Request {
        let message = Bytes::from(body.into_vec());
        Request { body: 0..message.len(), message, sequences: Vec::new(), kind: self.kind.clone(), ..*self }
    }

    /// Returns the documents of the sequence with an identifier.
    pub fn sequence(&self, identifier: &str) -> Option<impl Iterator<Item = Doc<'_>>> {
        let sequence = self.sequences.iter().find(|s| &self.message[s.identifier.clone()] == identifier.as_bytes())?;
        let mut rest = &self.message[sequence.documents.clone()];
        Some(std::iter::from_fn(move || {
            let document = Doc::from_prefix(rest)?;
            rest = &rest[document.size()..];
            Some(document)
        }))
    }

    /// Returns a part of this request that outlives it, without a copy. `piece` must borrow from
    /// this request.
    pub fn share(&self, piece: Doc<'_>) -> Bytes {
        self.message.slice_ref(piece.as_bytes())
    }
}
