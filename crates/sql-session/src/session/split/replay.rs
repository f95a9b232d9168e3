//! Executing the open transaction again: on another primary after the loss of one, or on the same
//! after a conflict with another transaction.
//!
//! The client has seen the replies. Each statement must get the same reply again; otherwise the
//! transaction is rolled back, and the client gets the error.

use super::command::{Command, transaction_lost};
use super::exchange::{Failure, ask};
use super::split_state::Split;
use super::transaction_log::digest;
use crate::reply_tracker::{ReplyKind, ReplyTracker};
use crate::session::query_packet::query_packet;
use crate::session::state::Session;
use mariadb_wire::err::ErrPacket;
use std::io;

/// ER_LOCK_WAIT_TIMEOUT, ER_LOCK_DEADLOCK, and ER_CHECKREAD: a row has changed since the snapshot.
pub const CONFLICTS: [u16; 3] = [1205, 1213, 1020];

/// The outcome of executing a transaction again.
pub enum Replayed {
    Done,
    /// It must be executed once more: the server was lost meanwhile, or a statement has met a
    /// conflict. With the reason.
    Again(String),
    /// A reply differs. The client has got an error.
    Changed,
}

/// What the replies of a transaction are, compared with those that the client has seen.
enum Replies {
    Same,
    Different,
    /// One is a conflict with another transaction.
    Conflict,
}

/// Returns whether a statement has failed because of another transaction.
pub fn is_conflict(error: &ErrPacket<'_>) -> bool {
    CONFLICTS.contains(&error.code)
}

impl Session {
    /// Executes the transaction of the log on the session's own connection. `rolls_back`: it may be
    /// open there.
    pub(super) async fn replay(&mut self, split: &mut Split, rolls_back: bool) -> io::Result<Replayed> {
        match self.try_replay(split, rolls_back).await {
            Ok(Replies::Same) => {
                split.must_replay = false;
                self.context.service.statistics.transactions_replayed.increment();
                Ok(Replayed::Done)
            }
            Ok(Replies::Conflict) => {
                split.must_replay = true;
                Ok(Replayed::Again("it was executed again, and met another transaction".into()))
            }
            Ok(Replies::Different) => {
                split.must_replay = false;
                split.log.clear();
                self.context.service.statistics.replays_failed.increment();
                let reason = "it was executed again, and a reply differs from the one before";
                self.client.send(&transaction_lost(reason)).await?;
                Ok(Replayed::Changed)
            }
            Err(Failure::Client(error)) => Err(error),
            Err(Failure::Server(lost)) => {
                self.detach(split, lost.reason.clone());
                split.must_replay = true;
                Ok(Replayed::Again(lost.reason))
            }
        }
    }

    /// Executes the statements, and compares their replies. Unless all are the same, the
    /// transaction is rolled back.
    async fn try_replay(&mut self, split: &mut Split, rolls_back: bool) -> Result<Replies, Failure> {
        if rolls_back {
            self.ask_home(split, "ROLLBACK").await?;
        }
        let sets_time = !split.carried.sets("timestamp");
        let mut replies = Replies::Same;
        for entry in split.log.entries() {
            if sets_time {
                let (seconds, micros) = (entry.micros / 1_000_000, entry.micros % 1_000_000);
                self.ask_home(split, &format!("SET timestamp = {seconds}.{micros:06}")).await?;
            }
            let command = Command { prepared: entry.prepared.clone(), ..Command::text(&entry.packet) };
            let packet = self.packet_for_home(split, &command).await?;
            let mut reply = ReplyTracker::new(ReplyKind::Results, self.login.deprecates_eof);
            let bytes = ask(&mut self.server, &packet, &mut reply, &mut split.assignment).await?;
            if let Some(status) = reply.status {
                split.status = status;
            }
            if digest(&bytes) != entry.digest {
                replies = match ErrPacket::decode(bytes.get(4..).unwrap_or_default()) {
                    Ok(error) if reply.failed && is_conflict(&error) => Replies::Conflict,
                    _ => Replies::Different,
                };
                break;
            }
        }
        if !matches!(replies, Replies::Same) {
            self.ask_home(split, "ROLLBACK").await?;
        }
        if sets_time {
            self.ask_home(split, "SET timestamp = DEFAULT").await?;
        }
        Ok(replies)
    }

    /// Executes a statement of the gateway's own.
    async fn ask_home(&mut self, split: &mut Split, sql: &str) -> Result<(), Failure> {
        let mut reply = ReplyTracker::new(ReplyKind::Results, self.login.deprecates_eof);
        ask(&mut self.server, &query_packet(sql), &mut reply, &mut split.assignment).await?;
        if let Some(status) = reply.status {
            split.status = status;
        }
        Ok(())
    }
}
