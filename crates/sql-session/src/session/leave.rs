//! The end of a session that must leave its server.

use super::com;
use super::state::Session;
use crate::login::error_packet;
use crate::reply_tracker::{IN_TRANSACTION, ReplyKind};
use service::{Assignment, SessionEnd};
use std::io;

/// "Connection was killed", with the SQLSTATE of lost connections: connectors drop it from pools.
pub const LOST_CONNECTION: (u16, &str) = (1927, "08S01");

impl Session {
    /// Returns why the session must end now, while it runs no command.
    pub async fn must_leave(&mut self, assignment: &Assignment) -> io::Result<Option<&'static str>> {
        Ok(match assignment.end() {
            None => None,
            Some(SessionEnd::Now(reason)) => Some(reason),
            Some(SessionEnd::WhenIdle(reason)) => (!self.is_in_transaction().await?).then_some(reason),
        })
    }

    /// Returns whether a transaction is open. After an error, only the server knows.
    async fn is_in_transaction(&mut self) -> io::Result<bool> {
        if self.status.is_none() {
            self.status = self.read_status(&[1, 0, 0, 0, com::PING], ReplyKind::Single).await?;
        }
        Ok(self.status.is_none_or(|status| status & IN_TRANSACTION != 0))
    }

    /// Sends the client the reason why its session ends: in reply to its command, or to the next
    /// one, which it may be about to send. `sent`: the number of bytes that it had received before
    /// the command. If the reply has begun, no error can be sent.
    pub async fn send_reason(&mut self, sent: u64, reason: &str) {
        if self.client.sent == sent {
            let sentence = format!("The session on the server {} has ended: {reason}", self.lease.server.name);
            // The client may have left.
            let (code, state) = LOST_CONNECTION;
            let _ = self.client.send(&error_packet(1, code, state, &sentence)).await;
        }
    }
}
