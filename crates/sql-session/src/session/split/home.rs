//! The session's own connection, which is to the primary: its statements, its loss, and its
//! replacement.

use super::carried;
use super::command::{AtHome, Command, Need, Outcome, set_statement, transaction_lost};
use super::exchange::{Failure, ServerLost, exchange, forward};
use super::further_connection::FurtherConnection;
use super::replay::{self, Replayed};
use super::split_state::Split;
use crate::login::{PACKET_BYTES_MAX, error_packet};
use crate::packet_stream::PacketStream;
use crate::reply_tracker::{AUTOCOMMIT, IN_TRANSACTION, ReplyKind, ReplyTracker};
use crate::session::awaited::Awaited;
use crate::session::state::Session;
use mariadb_wire::ERR;
use mariadb_wire::err::ErrPacket;
use service::{Assignment, Role, ServerSettings, SessionEnd, WantedRole};
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// How long connecting to a primary may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(3);

/// The pause before a primary is looked for again.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// ER_SERVER_SHUTDOWN.
const SHUTDOWN: u16 = 1053;
/// ER_UNKNOWN_COM_ERROR, by a Galera node that is not ready, and ER_OPTION_PREVENTS_STATEMENT, by a
/// server that is read-only. Neither has executed anything.
const NOT_READY: u16 = 1047;
const READ_ONLY: u16 = 1290;

/// The option that [`READ_ONLY`] names: there are others.
const READ_ONLY_OPTION: &[u8] = b"--read-only";

/// Returns whether a server says that it cannot execute statements that write, or any.
fn is_no_primary(error: &ErrPacket<'_>) -> bool {
    match error.code {
        SHUTDOWN | NOT_READY => true,
        READ_ONLY => memchr::memmem::find(error.message, READ_ONLY_OPTION).is_some(),
        _ => false,
    }
}

/// "Connection was killed", with the SQLSTATE of lost connections.
const LOST: (u16, &str) = (1927, "08S01");

/// So many times a statement is executed again after conflicts, with growing pauses.
const CONFLICTS_MAX: u32 = 5;
const CONFLICT_PAUSE: Duration = Duration::from_millis(10);

/// The longest error packet.
const ERROR_BYTES_MAX: usize = 64 << 10;

/// How a wait at the session's own connection ends.
enum Left {
    Ends(String),
    /// The server has sent something, before it closes the connection.
    ServerBytes,
}

/// Returns whether a server accepts connections.
async fn is_up(server: &ServerSettings) -> bool {
    let greeted = async {
        let mut stream = PacketStream::connect(server).await?;
        stream.peek_packet(PACKET_BYTES_MAX).await
    };
    matches!(timeout(CONNECT_LIMIT, greeted).await, Ok(Ok(greeting)) if greeting.get(4) != Some(&ERR))
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
        let deadline = Instant::now() + split.settings.primary_wait;
        let mut conflicts = 0;
        loop {
            if !self.reach_home(split, need).await? {
                return Ok(AtHome { reply: None, next: Outcome::Continues });
            }
            if split.must_replay {
                match self.replay(split, false).await? {
                    Replayed::Done => {}
                    Replayed::Lost if Instant::now() < deadline => {
                        tokio::time::sleep(RETRY_PAUSE).await;
                        continue;
                    }
                    Replayed::Lost => {
                        split.must_replay = false;
                        split.log.clear();
                        self.client.send(&transaction_lost("its server was lost")).await?;
                        return Ok(AtHome { reply: None, next: Outcome::Continues });
                    }
                    Replayed::Changed => return Ok(AtHome { reply: None, next: Outcome::Continues }),
                }
            }
            let mut reply = ReplyTracker::new(kind, self.login.deprecates_eof);
            match self.exchange_at_home(split, command, &mut reply, conflicts).await {
                Ok(()) => {
                    self.note_home_reply(split, &reply);
                    return Ok(AtHome { reply: Some(reply), next: Outcome::Continues });
                }
                Err(Failure::Client(error)) => return Err(error),
                Err(Failure::Server(lost)) => {
                    let is_conflict = lost.refusal.as_ref().is_some_and(|(code, _)| replay::CONFLICTS.contains(code));
                    let next = match is_conflict {
                        true => self.after_conflict(split, &mut conflicts).await?,
                        false => self.after_loss(split, command, lost, (need, deadline)).await?,
                    };
                    if let Some(next) = next {
                        return Ok(next);
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
        conflicts: u32,
    ) -> Result<(), Failure> {
        let (can_move, replays) = (split.can_move(false), split.settings.replays_transactions);
        let can_repeat = match split.is_in_transaction() {
            true => split.can_replay(false),
            false => split.status & AUTOCOMMIT != 0 && split.bound.is_none(),
        };
        let can_replay = replays && split.is_in_transaction() && split.can_replay(true);
        let hides_conflicts = replays && command.is_repeatable && can_repeat && conflicts < CONFLICTS_MAX;
        let is_hidden = |error: &ErrPacket<'_>| {
            (can_move || can_replay) && is_no_primary(error) || hides_conflicts && replay::is_conflict(error)
        };
        let backend = split.assignment.backend().clone();
        let _running = backend.activity.begin();
        let was_in_transaction = split.is_in_transaction();
        let (mut digest, sent) = (DefaultHasher::new(), self.client.sent);
        let packet = self.packet_for_home(split, command).await?;
        let Session { client, server, .. } = self;
        let hasher = replays.then_some(&mut digest);
        exchange(client, server, &mut split.assignment, &packet, reply, is_hidden, hasher).await?;
        if replays {
            let step = split.step(command, reply, was_in_transaction);
            split.log.record(step, command, digest.finish(), self.client.sent - sent);
        }
        Ok(())
    }

    /// Prepares to execute a statement again that has met a conflict: rolls its transaction back,
    /// and executes that again. Returns the end of the command if that is not possible.
    async fn after_conflict(&mut self, split: &mut Split, conflicts: &mut u32) -> io::Result<Option<AtHome>> {
        *conflicts += 1;
        tokio::time::sleep(CONFLICT_PAUSE * *conflicts).await;
        if !split.is_in_transaction() {
            return Ok(None);
        }
        Ok(match self.replay(split, true).await? {
            Replayed::Done | Replayed::Lost => None,
            Replayed::Changed => Some(AtHome { reply: None, next: Outcome::Continues }),
        })
    }

    /// Prepares to execute a statement again whose server was lost, on another primary. Returns the
    /// end of the command if that is not possible.
    async fn after_loss(
        &mut self,
        split: &mut Split,
        command: &Command<'_>,
        lost: ServerLost,
        (need, deadline): (Need, Instant),
    ) -> io::Result<Option<AtHome>> {
        self.lease.assignment.suspect();
        let is_refused = lost.refusal.is_some();
        let replays = split.is_in_transaction() && split.can_replay(true) && (is_refused || !command.may_commit());
        // Outside of a transaction, to begin one is as harmless as to read.
        let is_harmless = need == Need::Any || command.effect.begins && command.is_repeatable;
        let can_repeat = replays || split.can_move(false) && (is_refused || is_harmless);
        let may_repeat = can_repeat && !lost.has_begun && Instant::now() < deadline;
        if may_repeat && (is_refused || !self.is_killed().await) {
            self.detach(split, lost.reason);
            split.must_replay = replays;
            tokio::time::sleep(RETRY_PAUSE).await;
            return Ok(None);
        }
        if let Some((_, refusal)) = lost.refusal {
            self.client.send(&refusal).await?;
            return Ok(Some(AtHome { reply: None, next: Outcome::Continues }));
        }
        split.log.clear();
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
        self.client.forward_command(&mut self.server).await?;
        match forward(&mut self.client, &mut self.server, &mut split.assignment, &mut reply, |_| false, None).await {
            Ok(()) => {
                self.note_home_reply(split, &reply);
                Ok(Outcome::Continues)
            }
            Err(Failure::Client(error)) => Err(error),
            Err(Failure::Server(lost)) => Ok(self.lose_home(split, lost).await?.next),
        }
    }

    fn note_home_reply(&mut self, split: &mut Split, reply: &ReplyTracker) {
        self.context.service.statistics.to_primary.increment();
        split.last_replica = None;
        if let Some(status) = reply.status {
            split.status = status;
            self.status = Some(status);
            self.backslash_escapes = status & crate::reply_tracker::NO_BACKSLASH_ESCAPES == 0;
        }
        if reply.last_insert_id != 0 {
            split.last_insert_id = reply.last_insert_id;
        }
    }

    /// Returns whether the server has closed the session's own connection alone: after KILL, or a
    /// limit of time.
    async fn is_killed(&self) -> bool {
        self.lease.assignment.end().is_none() && is_up(&self.lease.server).await
    }

    /// Reports to the client that its statement has failed with the connection, and gives that up.
    pub(super) async fn lose_home(&mut self, split: &mut Split, lost: ServerLost) -> io::Result<AtHome> {
        let ServerLost { reason, has_begun, .. } = lost;
        if has_begun {
            return Err(io::Error::other(reason));
        }
        let server = &self.lease.server.name;
        if !split.can_move(true) || self.is_killed().await {
            let sentence = format!("The session on the server {server} has ended: {reason}");
            self.client.send(&error_packet(1, LOST.0, LOST.1, &sentence)).await?;
            return Ok(AtHome { reply: None, next: Outcome::Ends });
        }
        let sentence = format!(
            "The server {server} was lost while it executed the statement, whose outcome is not known: {reason}"
        );
        self.client.send(&error_packet(1, LOST.0, LOST.1, &sentence)).await?;
        self.detach(split, reason);
        Ok(AtHome { reply: None, next: Outcome::Continues })
    }

    /// Gives the session's own connection up.
    pub(super) fn detach(&mut self, split: &mut Split, reason: String) {
        tracing::debug!(server = self.lease.server.name, reason, "a session leaves its primary");
        split.detached = Some(reason);
        split.has_written_elsewhere |= split.has_written;
        split.status = split.status & !IN_TRANSACTION | split.status & AUTOCOMMIT;
        split.has_next_transaction = false;
        split.home_prepared.clear();
        self.server.close();
    }

    /// Notices that the server of the session's own connection has ended, or is no longer the
    /// primary. Returns why the session must end, if it cannot go over to another.
    pub(super) fn leave_lost_home(&mut self, split: &mut Split) -> Option<String> {
        if split.detached.is_some() {
            return None;
        }
        let reason = match self.lease.assignment.end_as(WantedRole::Primary) {
            Some(SessionEnd::Now(reason)) => reason,
            Some(SessionEnd::WhenIdle(reason)) if !split.is_in_transaction() => reason,
            _ => return None,
        };
        // It may be a replica because there was no primary: it stays where it is until it writes.
        if !split.is_in_transaction() && self.lease.assignment.end().is_none() {
            return None;
        }
        self.give_home_up(split, reason)
    }

    /// Gives the session's own connection up between two commands. Returns why the session must
    /// end, if it cannot go over to another.
    pub fn give_home_up(&mut self, split: &mut Split, reason: &str) -> Option<String> {
        if !split.can_move(true) {
            return Some(reason.to_owned());
        }
        if split.is_in_transaction() && split.can_replay(true) {
            self.detach(split, reason.to_owned());
            split.must_replay = true;
            return None;
        }
        split.log.clear();
        if split.is_in_transaction() {
            split.lost_transaction =
                Some(format!("the server {} is not used any more: {reason}", self.lease.server.name));
        }
        self.detach(split, reason.to_owned());
        None
    }

    /// Waits for a command, while the session's own connection may end.
    pub(in crate::session) async fn wait_at_home(&mut self, assignment: &mut Assignment) -> io::Result<Awaited> {
        while self.client.bytes().len() < 5 {
            let Some(mut split) = self.split.take() else { return Ok(Awaited::Nothing) };
            let left = match split.detached.is_some() {
                true => None,
                false => self.leave_idle_home(&mut split).await,
            };
            let is_detached = split.detached.is_some();
            self.split = Some(split);
            match left {
                Some(Left::Ends(reason)) => return Ok(Awaited::End(reason)),
                Some(Left::ServerBytes) => return Ok(Awaited::ServerBytes),
                None => {}
            }
            tokio::select! {
                biased;
                read = self.server.fill(), if !is_detached => {
                    if read.is_err() {
                        self.server.close();
                    }
                }
                read = self.client.fill() => read?,
                () = assignment.changed(), if !is_detached => {}
            }
        }
        Ok(Awaited::Command)
    }

    /// Gives the session's own connection up, if its server has closed it or is no longer used.
    async fn leave_idle_home(&mut self, split: &mut Split) -> Option<Left> {
        let reason = if !self.server.bytes().is_empty() {
            // An administrator has killed it, unless the whole server shuts down.
            let packet = self.server.peek_packet(ERROR_BYTES_MAX).await.ok()?;
            match ErrPacket::decode(packet.get(4..).unwrap_or_default()) {
                Ok(error) if error.code == SHUTDOWN => "it shuts down".to_owned(),
                _ => return Some(Left::ServerBytes),
            }
        } else if self.server.is_closed() {
            self.lease.assignment.suspect();
            let reason = "the connection to it was lost".to_owned();
            if self.is_killed().await {
                return Some(Left::Ends(reason));
            }
            reason
        } else {
            match self.lease.assignment.end() {
                Some(SessionEnd::Now(reason)) => reason.to_owned(),
                Some(SessionEnd::WhenIdle(reason)) if !split.is_in_transaction() => reason.to_owned(),
                _ => return None,
            }
        };
        self.give_home_up(split, &reason).map(Left::Ends)
    }

    /// Makes the session's own connection one that a command needs, and waits for it where
    /// necessary. Returns false if there is none: then the client has got an error.
    pub(super) async fn reach_home(&mut self, split: &mut Split, need: Need) -> io::Result<bool> {
        if let Some(reason) = split.lost_transaction.take() {
            self.client.send(&transaction_lost(&reason)).await?;
            return Ok(false);
        }
        let condition = self.lease.assignment.backend().condition();
        let need = if split.must_replay { Need::Primary } else { need };
        let suits = condition.role() == Role::Primary || need == Need::Any || !split.can_move(false);
        if split.detached.is_none() && suits {
            return Ok(true);
        }
        let deadline = Instant::now() + split.settings.primary_wait;
        loop {
            let reason = match self.try_home(split, need).await {
                Ok(()) => return Ok(true),
                Err(reason) => reason,
            };
            if Instant::now() >= deadline {
                let sentence = format!("The statement was not executed: {reason}");
                self.client.send(&error_packet(1, READ_ONLY, "HY000", &sentence)).await?;
                return Ok(false);
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    /// Connects to the primary, or to a replica if that suffices. Fails with the reason why that is
    /// not possible now.
    async fn try_home(&mut self, split: &mut Split, need: Need) -> Result<(), String> {
        let service = self.context.service.clone();
        let replica = || match need {
            Need::Primary => None,
            Need::Any => service.readers(split.settings.lag_max_seconds, |_| false).into_iter().next(),
        };
        let target = service.primary().or_else(replica).ok_or_else(|| service.why_no_primary())?;
        if split.detached.is_none() && Arc::ptr_eq(&target.backend, self.lease.assignment.backend()) {
            return Ok(());
        }
        let Ok(identity) = &split.identity else { return Err("Selkie cannot log in for this session".into()) };
        let limits = (CONNECT_LIMIT, CONNECT_LIMIT);
        let opened = FurtherConnection::open(&service, &target, identity, limits, self.login.deprecates_eof).await;
        let mut place = opened.map_err(|error| error.to_string())?;
        let lost = |failure| match failure {
            Failure::Server(lost) => lost.reason,
            Failure::Client(error) => error.to_string(),
        };
        if !place.catch_up(&split.carried, true).await.map_err(lost)? {
            return Err(format!("{} refuses a setting of the session", place.lease.server.name));
        }
        if split.last_insert_id != 0 {
            place.run(&carried::last_insert_id_statement(split.last_insert_id)).await.map_err(lost)?;
        }
        let FurtherConnection { mut lease, server, id, prepared, .. } = place;
        lease.replace(&mut self.lease, id);
        split.running.set(id, lease.killer());
        split.home_id = id;
        (self.lease, self.server) = (lease, server);
        split.assignment = self.lease.assignment.clone();
        split.home_prepared = prepared;
        split.detached = None;
        service.statistics.primary_changes.increment();
        Ok(())
    }
}
