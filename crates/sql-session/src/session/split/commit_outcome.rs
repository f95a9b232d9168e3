//! COMMIT whose outcome is found out if its server is lost (`commit-outcomes`).

use super::command::{AtHome, Command, Need, Outcome, transaction_lost};
use super::commit_marker;
use super::exchange::{Failure, ServerLost, ask};
use super::reach_home::RETRY_PAUSE;
use super::split_state::Split;
use crate::login::error_packet;
use crate::reply_tracker::{IN_TRANSACTION, ReplyKind, ReplyTracker};
use crate::session::leave::LOST_CONNECTION;
use crate::session::query_packet::query_packet;
use crate::session::state::Session;
use crate::session::write_effects;
use mariadb_wire::err::ErrPacket;
use std::io;
use tokio::time::{Instant, sleep};

/// The outcome of a COMMIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommitOutcome {
    Committed,
    /// It was not executed, and cannot be any more.
    NotCommitted,
}

/// Encodes the reply to a COMMIT.
fn ok_packet(status: u16) -> [u8; 11] {
    let [low, high] = (status & !IN_TRANSACTION).to_le_bytes();
    [7, 0, 0, 1, 0, 0, 0, low, high, 0, 0]
}

impl Split {
    /// Returns whether a command is a COMMIT whose transaction is to be marked.
    pub fn marks(&self, command: &Command<'_>) -> bool {
        self.settings.keeps_commit_outcomes
            && command.commits_alone
            && self.writes
            && self.is_in_transaction()
            && self.can_move(true)
            && !self.marker.is_unusable
            && !self.carried.sets("completion_type")
    }

    /// Notes what a statement does to the data of its transaction.
    pub fn note_writes(&mut self, command: &Command<'_>, status: Option<u16>) {
        let is_open = status.is_none_or(|status| status & IN_TRANSACTION != 0);
        let effect = command.effect;
        let begins_another = status.is_some()
            && !command.may_write
            && (effect.begins || effect.commits || effect.rolls_back && !effect.is_savepoint);
        self.writes = is_open && !begins_another && (self.writes || command.may_write);
    }
}

impl Session {
    /// Marks the open transaction and commits it. Returns the bytes that the client has got; `None`
    /// if it cannot be marked: then it is still open.
    pub(super) async fn commit_marked(
        &mut self,
        split: &mut Split,
        reply: &mut ReplyTracker,
        says_lost: impl Fn(&ErrPacket<'_>) -> bool,
    ) -> Result<Option<Vec<u8>>, Failure> {
        let statement = query_packet(&split.marker.commit());
        let mut marked = ReplyTracker::new(ReplyKind::Results, self.login.deprecates_eof);
        let mut bytes = ask(&mut self.server, &statement, &mut marked, &mut split.assignment).await?;
        match ErrPacket::decode(bytes.get(4..).unwrap_or_default()) {
            Ok(error) if marked.failed && commit_marker::UNUSABLE.contains(&error.code) => {
                split.marker.is_pending = false;
                if error.code != commit_marker::READ_ONLY_TRANSACTION {
                    split.marker.is_unusable = true;
                    let reason = String::from_utf8_lossy(error.message);
                    tracing::warn!(server = self.lease.server.name, "commits of a session are not marked: {reason}");
                }
                return Ok(None);
            }
            Ok(error) if marked.failed && says_lost(&error) => {
                let reason = String::from_utf8_lossy(error.message).into_owned();
                let refusal = Some((error.code, bytes));
                return Err(Failure::Server(ServerLost { reason, has_begun: false, refusal }));
            }
            _ => {}
        }
        split.marker.is_pending = false;
        if !marked.failed {
            // As the server replies to COMMIT.
            bytes = ok_packet(marked.status.unwrap_or(split.status)).to_vec();
        }
        reply.feed(&bytes);
        let Session { in_flight, definitions_version, context, .. } = self;
        write_effects::note_new_definitions(in_flight, definitions_version, context);
        self.client.send(&bytes).await.map_err(Failure::Client)?;
        Ok(Some(bytes))
    }

    /// Finds out whether the COMMIT took effect that a lost server has executed. Returns the end of
    /// the command; `None` if its transaction is executed again.
    pub(super) async fn settle_commit(
        &mut self,
        split: &mut Split,
        reason: String,
        deadline: Instant,
    ) -> io::Result<Option<AtHome>> {
        let server = self.lease.server.name.clone();
        let replays = split.settings.replays_transactions && split.can_replay(true);
        self.detach(split, reason.clone());
        let outcome = match self.ask_for_commit(split, deadline).await {
            Err(Failure::Client(error)) => return Err(error),
            Err(Failure::Server(lost)) => Err(lost.reason),
            Ok(outcome) => Ok(outcome),
        };
        let statistics = &self.context.service.statistics;
        match outcome {
            Ok(CommitOutcome::NotCommitted) if replays => {
                statistics.commits_lost.increment();
                split.must_replay = true;
                return Ok(None);
            }
            Ok(CommitOutcome::NotCommitted) => {
                statistics.commits_lost.increment();
                self.finish_writes();
                let reason = format!("the server {server} was lost before it had committed ({reason})");
                self.client.send(&transaction_lost(&reason)).await?;
            }
            Ok(CommitOutcome::Committed) => {
                statistics.commits_found.increment();
                let mut reply = ReplyTracker::new(ReplyKind::Single, self.login.deprecates_eof);
                let packet = ok_packet(split.status);
                reply.feed(&packet);
                (split.writes, split.must_replay) = (false, false);
                split.log.clear();
                self.client.send(&packet).await?;
                self.note_home_reply(split, &reply, Default::default());
                self.end_announced(split, &reply).await;
                return Ok(Some(AtHome { reply: Some(reply), next: Outcome::Continues }));
            }
            Err(unknown) => {
                self.in_flight.outcome_unknown();
                let sentence = format!(
                    "The server {server} was lost while it executed COMMIT, whose outcome is not known: {reason}; \
                     {unknown}"
                );
                self.client.send(&error_packet(1, LOST_CONNECTION.0, LOST_CONNECTION.1, &sentence)).await?;
            }
        }
        split.writes = false;
        split.log.clear();
        Ok(Some(AtHome::refused()))
    }

    /// Asks a primary for the outcome, until the deadline.
    async fn ask_for_commit(&mut self, split: &mut Split, deadline: Instant) -> Result<CommitOutcome, Failure> {
        let unknown = |reason| Failure::Server(ServerLost { reason, has_begun: false, refusal: None });
        loop {
            self.find_home(split, Need::Primary, deadline).await.map_err(unknown)?;
            let reason = match self.ask_home_for_commit(split).await {
                Ok(Ok(outcome)) => return Ok(outcome),
                Ok(Err(reason)) => reason,
                Err(Failure::Server(lost)) => lost.reason,
                Err(failure) => return Err(failure),
            };
            self.detach(split, reason.clone());
            if Instant::now() >= deadline {
                return Err(unknown(reason));
            }
            sleep(RETRY_PAUSE).await;
        }
    }

    /// Asks the session's own connection for the outcome. Returns the server's error if it has one.
    async fn ask_home_for_commit(&mut self, split: &mut Split) -> Result<Result<CommitOutcome, String>, Failure> {
        let mut inserted = 0;
        // With autocommit off, the row must be committed as well.
        for statement in [split.marker.question(), "COMMIT".to_owned()] {
            let mut reply = ReplyTracker::new(ReplyKind::Results, self.login.deprecates_eof);
            let bytes = ask(&mut self.server, &query_packet(&statement), &mut reply, &mut split.assignment).await?;
            if reply.failed {
                let error = ErrPacket::decode(bytes.get(4..).unwrap_or_default());
                let reason = error.map(|error| String::from_utf8_lossy(error.message).into_owned());
                return Ok(Err(reason.unwrap_or_default()));
            }
            inserted += reply.affected_rows;
            split.status = reply.status.unwrap_or(split.status);
        }
        Ok(Ok(if inserted == 0 { CommitOutcome::Committed } else { CommitOutcome::NotCommitted }))
    }
}
