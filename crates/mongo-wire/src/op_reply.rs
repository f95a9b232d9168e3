//! OP_REPLY: the reply to OP_QUERY. It always has one document.
//!
//! Source: <https://www.mongodb.com/docs/manual/legacy-opcodes/#op_reply>

use crate::header::HEADER_BYTES;

/// The server supports awaitData; every MongoDB server sets this.
pub const AWAIT_CAPABLE: i32 = 1 << 3;
/// The document is `{$err: …, code: …}`.
pub const QUERY_FAILURE: i32 = 1 << 1;

/// Flags, cursor id, starting position and number of documents, between header and document.
pub const BODY_AT: usize = HEADER_BYTES + 4 + 8 + 4 + 4;

/// The twenty bytes between header and document.
pub(crate) fn prefix(flags: i32) -> [u8; BODY_AT - HEADER_BYTES] {
    let mut bytes = [0; BODY_AT - HEADER_BYTES];
    bytes[0..4].copy_from_slice(&flags.to_le_bytes());
    let number_returned = 1i32;
    bytes[16..20].copy_from_slice(&number_returned.to_le_bytes());
    bytes
}
