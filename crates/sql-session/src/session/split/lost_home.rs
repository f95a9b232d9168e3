//! The loss of the session's own connection, and the error that the client gets.

use super::command::{AtHome, Outcome};
use super::exchange::ServerLost;
use super::split_state::Split;
use crate::login::{PACKET_BYTES_MAX, error_packet};
use crate::packet_stream::PacketStream;
use crate::reply_tracker::IN_TRANSACTION;
use crate::session::awaited::Awaited;
use crate::session::leave::LOST_CONNECTION;
use crate::session::state::Session;
use mariadb_wire::ERR;
use mariadb_wire::err::ErrPacket;
use service::{Assignment, ServerSettings, SessionEnd, WantedRole};
use std::io;
use std::time::Duration;
use tokio::time::timeout;

/// How long a server may take to greet.
const GREETING_LIMIT: Duration = Duration::from_secs(3);

/// ER_SERVER_SHUTDOWN.
pub const SHUTDOWN: u16 = 1053;

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
    matches!(timeout(GREETING_LIMIT, greeted).await, Ok(Ok(greeting)) if greeting.get(4) != Some(&ERR))
}

impl Session {
    /// Returns whether the server has closed the session's own connection alone: after KILL, or a
    /// limit of time.
    pub(super) async fn is_killed(&self) -> bool {
        self.lease.assignment.end().is_none() && Box::pin(is_up(&self.lease.server)).await
    }

    /// Reports to the client that its statement has failed with the connection, and gives that up.
    pub(super) async fn lose_home(&mut self, split: &mut Split, lost: ServerLost) -> io::Result<AtHome> {
        let ServerLost { reason, has_begun, .. } = lost;
        if has_begun {
            return Err(io::Error::other(reason));
        }
        split.log.clear();
        self.in_flight.outcome_unknown();
        let server = &self.lease.server.name;
        let (code, state) = LOST_CONNECTION;
        if !split.can_move(true) || self.is_killed().await {
            let sentence = format!("The session on the server {server} has ended: {reason}");
            self.client.send(&error_packet(1, code, state, &sentence)).await?;
            return Ok(AtHome { reply: None, next: Outcome::Ends });
        }
        let sentence = format!(
            "The server {server} was lost while it executed the statement, whose outcome is not known: {reason}"
        );
        self.client.send(&error_packet(1, code, state, &sentence)).await?;
        self.detach(split, reason);
        Ok(AtHome { reply: None, next: Outcome::Continues })
    }

    /// Gives the session's own connection up.
    pub(super) fn detach(&mut self, split: &mut Split, reason: String) {
        tracing::debug!(server = self.lease.server.name, reason, "a session leaves its primary");
        split.detached = Some(reason);
        split.has_written_elsewhere |= split.has_written;
        split.status &= !IN_TRANSACTION;
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
        let was_in_transaction = split.is_in_transaction();
        if was_in_transaction && split.can_replay(true) {
            self.detach(split, reason.to_owned());
            split.must_replay = true;
            return None;
        }
        split.log.clear();
        // Uncommitted changes are rolled back.
        self.finish_writes();
        if was_in_transaction {
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
            self.share_connections(&mut split);
            let left = match split.detached.is_some() {
                true => None,
                false => self.leave_idle_home(&mut split).await,
            };
            let (is_detached, is_parked) = (split.detached.is_some(), split.is_parked());
            self.split = Some(split);
            match left {
                Some(Left::Ends(reason)) => return Ok(Awaited::End(reason)),
                Some(Left::ServerBytes) => return Ok(Awaited::ServerBytes),
                None => {}
            }
            tokio::select! {
                biased;
                () = self.lease.ended(), if is_parked => {
                    return Ok(Awaited::End("it was killed".to_owned()));
                }
                read = self.server.fill_when_sent(), if !is_detached => {
                    if read.is_err() {
                        self.server.close();
                    }
                }
                read = self.client.fill_when_sent() => read?,
                () = assignment.changed(), if !is_detached => {}
            }
        }
        Ok(Awaited::Command)
    }

    /// Gives the session's own connection up, if its server has closed it or is no longer used.
    async fn leave_idle_home(&mut self, split: &mut Split) -> Option<Left> {
        let reason = if !self.server.bytes().is_empty() {
            // An administrator has killed it, unless the whole server shuts down.
            let packet = Box::pin(self.server.peek_packet(ERROR_BYTES_MAX)).await.ok()?;
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
}
