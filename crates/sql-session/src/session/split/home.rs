//! Statements on the session's own connection, which is to the primary.

use super::command::{AtHome, Command, DiagnosticsEffect, Need, Outcome, set_statement};
use super::exchange::{Failure, ServerLost, ask, exchange, forward};
use super::lost_home::SHUTDOWN;
use super::reach_home::{READ_ONLY, RETRY_PAUSE};
use super::replay::{self, Replayed};
use super::split_state::Split;
use super::transaction_log::Step;
use crate::reply_tracker::{AUTOCOMMIT, NO_BACKSLASH_ESCAPES, ReplyKind, ReplyTracker};
use crate::session::query_packet::query_packet;
use crate::session::state::Session;
use crate::session::write_effects;
use mariadb_wire::err::ErrPacket;
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// ER_UNKNOWN_COM_ERROR, by a Galera node that is not ready: it has not executed anything.
const NOT_READY: u16 = 1047;

/// The option that [`READ_ONLY`] names: there are others.
const READ_ONLY_OPTION: &[u8] = b"--read-only";

/// So many times a statement is executed again after conflicts, with growing pauses.
const CONFLICTS_MAX: u32 = 5;
const CONFLICT_PAUSE: Duration = Duration::from_millis(10);

/// Conflicts are reported to the client after this time: a lock that is not free in time may take
/// long to say so.
const CONFLICTS_TIME: Duration = Duration::from_secs(30);

/// Returns whether a server says that it cannot execute statements that write, or any.
pub fn is_no_primary(error: &ErrPacket<'_>) -> bool {
    match error.code {
        SHUTDOWN | NOT_READY => true,
        READ_ONLY => memchr::memmem::find(error.message, READ_ONLY_OPTION).is_some(),
        _ => false,
    }
}

/// The attempts to execute a command.
struct Attempts {
    began: Instant,
    /// Until then it may wait for a primary.
    deadline: Instant,
    conflicts: u32,
}

impl Attempts {
    fn hides_conflicts(&self) -> bool {
        self.conflicts < CONFLICTS_MAX && self.began.elapsed() < CONFLICTS_TIME
    }
}

impl Session {
    /// Executes a command on the session's own connection. While there is no primary, it waits for
    /// one.
    pub(super) async fn at_home(
        &mut self,
        split: &mut Split,
        command: &Command<'_>,
        kind: ReplyKind,
        need: Need,
    ) -> io::Result<AtHome> {
        if command.abandons_transaction {
            split.forget_lost_transaction();
        }
        let began = Instant::now();
        let mut attempts = Attempts { began, deadline: began + split.settings.primary_wait, conflicts: 0 };
        loop {
            if !self.reach_home(split, need).await? {
                return Ok(AtHome::refused());
            }
            let mut reply = ReplyTracker::new(kind, self.login.deprecates_eof);
            match self.exchange_at_home(split, command, &mut reply, &attempts).await {
                Ok(()) => {
                    self.note_home_reply(split, &reply, command.diagnostics);
                    self.end_announced(split, &reply).await;
                    return Ok(AtHome { reply: Some(reply), next: Outcome::Continues });
                }
                Err(Failure::Client(error)) => return Err(error),
                Err(Failure::Server(lost)) => {
                    let is_conflict = lost.refusal.as_ref().is_some_and(|(code, _)| replay::CONFLICTS.contains(code));
                    let end = match is_conflict {
                        true => self.prepare_after_conflict(split, &mut attempts).await?,
                        false => self.prepare_after_loss(split, command, lost, need, &attempts).await?,
                    };
                    if let Some(end) = end {
                        return Ok(end);
                    }
                }
            }
        }
    }

    /// Exchanges a command and its reply, and keeps them to execute the transaction again.
    async fn exchange_at_home(
        &mut self,
        split: &mut Split,
        command: &Command<'_>,
        reply: &mut ReplyTracker,
        attempts: &Attempts,
    ) -> Result<(), Failure> {
        let (can_move, replays) = (split.can_move(false), split.settings.replays_transactions);
        let was_in_transaction = split.is_in_transaction();
        let can_repeat = match was_in_transaction {
            true => split.can_replay(false),
            false => split.status & AUTOCOMMIT != 0 && split.bound.is_none(),
        };
        let can_replay = replays && was_in_transaction && split.can_replay(true);
        let hides_conflicts = replays && command.is_repeatable && can_repeat && attempts.hides_conflicts();
        let is_hidden = |error: &ErrPacket<'_>| {
            (can_move || can_replay) && is_no_primary(error) || hides_conflicts && replay::is_conflict(error)
        };
        let backend = split.assignment.backend().clone();
        let _running = backend.activity.begin();
        let (mut digest, sent) = (DefaultHasher::new(), self.client.sent);
        let marked = match split.marks(command) {
            true => self.commit_marked(split, reply, is_hidden).await?,
            false => None,
        };
        match marked {
            Some(bytes) => digest.write(&bytes),
            None => {
                let packet = self.packet_for_home(split, command).await?;
                let Session { client, server, in_flight, definitions_version, context, .. } = self;
                let observe = |bytes: &[u8], reply: &ReplyTracker| {
                    if replays {
                        digest.write(bytes);
                    }
                    if reply.is_over() {
                        write_effects::note_new_definitions(in_flight, definitions_version, context);
                    }
                };
                exchange(client, server, &mut split.assignment, &packet, reply, is_hidden, observe).await?;
            }
        }
        split.note_writes(command, reply.status);
        if !replays || !command.concerns_transaction {
            return Ok(());
        }
        if reply.status.is_none() && was_in_transaction {
            // Some errors roll the transaction back, which an error packet does not say.
            reply.status = self.ask_status(split).await;
        }
        let step = match reply.status {
            Some(status) => match split.step(command, status, was_in_transaction) {
                // Neither the file nor the reports would come again.
                Step::Begins | Step::Continues if reply.has_interim => Step::Unrepeatable,
                step => step,
            },
            None if was_in_transaction => Step::Unrepeatable,
            None => Step::Outside,
        };
        split.log.record(step, command, digest.finish(), self.client.sent - sent);
        Ok(())
    }

    /// Returns the status flags of the session's own connection; `None` if it does not answer. The
    /// query keeps ROW_COUNT(), FOUND_ROWS() and the error of the statement before.
    pub(super) async fn ask_status(&mut self, split: &mut Split) -> Option<u16> {
        let mut reply = ReplyTracker::new(ReplyKind::Results, self.login.deprecates_eof);
        ask(&mut self.server, &query_packet("VALUES (0)"), &mut reply, &mut split.assignment).await.ok()?;
        reply.status
    }

    /// Prepares to execute a statement again that has met a conflict: rolls its transaction back,
    /// and executes that again. Returns the end of the command if that is not possible.
    async fn prepare_after_conflict(
        &mut self,
        split: &mut Split,
        attempts: &mut Attempts,
    ) -> io::Result<Option<AtHome>> {
        attempts.conflicts += 1;
        sleep(CONFLICT_PAUSE * attempts.conflicts).await;
        if !split.is_in_transaction() {
            return Ok(None);
        }
        Ok(match self.replay(split, true).await? {
            // If the replay has failed, it is repeated before the statement is sent.
            Replayed::Done | Replayed::Again(_) => None,
            Replayed::Changed => Some(AtHome::refused()),
        })
    }

    /// Prepares to execute a statement again whose server was lost, on another primary. Returns the
    /// end of the command if that is not possible.
    async fn prepare_after_loss(
        &mut self,
        split: &mut Split,
        command: &Command<'_>,
        lost: ServerLost,
        need: Need,
        attempts: &Attempts,
    ) -> io::Result<Option<AtHome>> {
        self.lease.assignment.suspect();
        let was_marked = std::mem::take(&mut split.marker.is_pending);
        // A server that shuts down may have executed the statement.
        let is_refused = lost.refusal.as_ref().is_some_and(|(code, _)| *code != SHUTDOWN);
        let is_in_transaction = split.is_in_transaction();
        let replays = is_in_transaction
            && split.can_replay(true)
            && !command.abandons_transaction
            && (is_refused || command.is_repeatable && !command.may_commit());
        // To begin a transaction is as harmless as to read. A lost one is rolled back.
        let is_harmless = match is_in_transaction {
            true => command.abandons_transaction && split.can_move(true),
            false => split.can_move(false) && (need == Need::Any || command.effect.begins && command.is_repeatable),
        };
        let can_repeat = replays || is_harmless || is_refused && split.can_move(false);
        let may_repeat = can_repeat && !lost.has_begun && Instant::now() < attempts.deadline;
        if may_repeat && (is_refused || !self.is_killed().await) {
            if !replays {
                split.log.clear();
            }
            self.detach(split, lost.reason);
            split.must_replay = replays;
            sleep(RETRY_PAUSE).await;
            return Ok(None);
        }
        if was_marked && !is_refused && split.can_move(true) && !self.is_killed().await {
            return self.settle_commit(split, lost.reason, attempts.deadline).await;
        }
        if is_refused && let Some((_, refusal)) = lost.refusal {
            self.client.send(&refusal).await?;
            return Ok(Some(AtHome::refused()));
        }
        self.lose_home(split, lost).await.map(Some)
    }

    /// Returns the packet of a command with the ids of this connection's server.
    pub(super) async fn packet_for_home<'p>(
        &mut self,
        split: &mut Split,
        command: &Command<'p>,
    ) -> Result<Cow<'p, [u8]>, Failure> {
        let Some((id, preparing)) = &command.prepared else { return Ok(Cow::Borrowed(command.packet)) };
        let there = self.prepare_at_home(split, *id, preparing).await?;
        let mut packet = command.packet.to_vec();
        // A statement that the server refuses gets the error of one that is not known.
        set_statement(&mut packet, there.unwrap_or_default());
        Ok(Cow::Owned(packet))
    }

    /// As [`Session::at_home`], for a command that is forwarded as it arrives.
    pub(super) async fn stream_at_home(&mut self, split: &mut Split, kind: ReplyKind) -> io::Result<Outcome> {
        if !self.reach_home(split, Need::Primary).await? {
            self.client.skip_command().await?;
            return Ok(Outcome::Continues);
        }
        let mut reply = ReplyTracker::new(kind, self.login.deprecates_eof);
        split.log.spoil();
        split.writes = true;
        self.client.forward_command(&mut self.server).await?;
        let Session { client, server, in_flight, definitions_version, context, .. } = self;
        let observe = |_: &[u8], reply: &ReplyTracker| {
            if reply.is_over() {
                write_effects::note_new_definitions(in_flight, definitions_version, context);
            }
        };
        match forward(client, server, &mut split.assignment, &mut reply, |_| false, observe).await {
            Ok(()) => {
                let unknown = DiagnosticsEffect { counts_rows: true, ..DiagnosticsEffect::default() };
                self.note_home_reply(split, &reply, unknown);
                self.end_announced(split, &reply).await;
                Ok(Outcome::Continues)
            }
            Err(Failure::Client(error)) => Err(error),
            Err(Failure::Server(lost)) => Ok(self.lose_home(split, lost).await?.next),
        }
    }

    pub(super) fn note_home_reply(&mut self, split: &mut Split, reply: &ReplyTracker, diagnostics: DiagnosticsEffect) {
        if let Some(sharing) = &mut split.sharing {
            sharing.note_move(split.last_replica.is_none());
            sharing.note_reply(reply, diagnostics);
        }
        self.context.service.statistics.to_primary.increment();
        self.server_used = std::time::Instant::now();
        split.last_replica = None;
        if let Some(status) = reply.status {
            split.status = status;
            self.status = Some(status);
            self.backslash_escapes = status & NO_BACKSLASH_ESCAPES == 0;
        }
        if reply.last_insert_id != 0 {
            split.last_insert_id = reply.last_insert_id;
        }
        if let Some(sharing) = &mut split.sharing {
            sharing.is_insert_id_unsure |= reply.last_insert_id != 0 || reply.failed;
        }
    }
}
