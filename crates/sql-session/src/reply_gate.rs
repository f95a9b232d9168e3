//! The reply to a command of a client with filters, as it is sent.

use crate::reply_tracker::{ReplyKind, ReplyTracker};

/// Observes the reply to a command.
pub struct ReplyGate {
    /// Follows the reply of the server, or the error of a filter.
    pub reply: ReplyTracker,
}

impl ReplyGate {
    pub fn new(kind: ReplyKind, deprecates_eof: bool) -> ReplyGate {
        ReplyGate { reply: ReplyTracker::new(kind, deprecates_eof) }
    }

    /// Observes the next bytes.
    pub fn pass(&mut self, bytes: &[u8]) {
        self.reply.feed(bytes);
    }
}
