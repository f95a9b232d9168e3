//! A further connection of a session, to a replica.

use super::carried::{Carried, PreparedIds};
use super::command::{Command, set_statement};
use super::exchange::{Failure, ask};
use crate::login::elsewhere::Identity;
use crate::packet_stream::PacketStream;
use crate::reply_tracker::{ReplyKind, ReplyTracker};
use crate::session::com;
use crate::session::query_packet::query_packet;
use service::gtid::GtidPosition;
use service::slots::Slot;
use service::targets::Target;
use service::{Assignment, ConnectError, Lease, Service};
use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// A connection to a server, in a state that lags behind the session's.
pub struct FurtherConnection {
    pub lease: Lease,
    pub assignment: Assignment,
    pub server: PacketStream,
    /// The connection's id on the server.
    pub id: u64,
    /// The version of the settings that it has.
    pub version: u64,
    pub prepared: PreparedIds,
    /// The server has everything up to here.
    pub caught_up: GtidPosition,
    /// The account that has logged in.
    pub identity: Arc<Identity>,
    pub deprecates_eof: bool,
}

impl FurtherConnection {
    pub async fn open(
        service: &Service,
        target: &Target,
        identity: &Arc<Identity>,
        (patience, limit): (Duration, Duration),
        deprecates_eof: bool,
    ) -> Result<FurtherConnection, ConnectError> {
        let open = |candidate| async { identity.connect(candidate, limit).await.map(|opened| (opened, 0)) };
        let opened = service.connect_to(target, patience, open).await?;
        Ok(FurtherConnection::new(opened, identity, deprecates_eof))
    }

    /// As [`FurtherConnection::open`], with the right to a connection.
    pub async fn open_in(
        service: &Service,
        target: &Target,
        identity: &Arc<Identity>,
        (slot, limit): (Slot, Duration),
        deprecates_eof: bool,
    ) -> Result<FurtherConnection, ConnectError> {
        let open = |candidate| async { identity.connect(candidate, limit).await.map(|opened| (opened, 0)) };
        let opened = service.connect_in(target, slot, open).await?;
        Ok(FurtherConnection::new(opened, identity, deprecates_eof))
    }

    /// A connection that has just logged in.
    fn new(
        (lease, (server, id)): (Lease, (PacketStream, u64)),
        identity: &Arc<Identity>,
        deprecates_eof: bool,
    ) -> FurtherConnection {
        let assignment = lease.assignment.clone();
        let (version, prepared, caught_up) = (0, PreparedIds::default(), GtidPosition::default());
        let identity = identity.clone();
        FurtherConnection { lease, assignment, server, id, version, prepared, caught_up, identity, deprecates_eof }
    }

    /// Makes the connection of another session a new one of this account. If it `keeps_login` and
    /// is of the same account, its schema is another's, and its privileges are those of its login.
    pub async fn take_over(&mut self, identity: &Arc<Identity>, keeps_login: bool) -> io::Result<()> {
        match keeps_login && self.identity.is_account_of(identity) {
            true => {
                let mut reply = ReplyTracker::new(ReplyKind::Single, self.deprecates_eof);
                self.server.send(&[1, 0, 0, 0, com::RESET_CONNECTION]).await?;
                self.server.read_reply(&mut reply, 0).await?;
                if reply.failed {
                    return Err(io::ErrorKind::ConnectionRefused.into());
                }
            }
            false => identity.change_user(&mut self.server).await?,
        }
        // Neither removes warnings.
        if !matches!(self.run("DO 0").await, Ok(Some(_))) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        self.identity = identity.clone();
        self.version = 0;
        self.prepared.clear();
        Ok(())
    }

    /// Sets what the session has set since. Returns false if the server refuses a setting.
    pub async fn catch_up(&mut self, carried: &Carried, is_primary: bool) -> Result<bool, Failure> {
        if self.version == carried.version() {
            return Ok(true);
        }
        for packet in carried.since(self.version, is_primary) {
            // Other commands set one thing, and get one packet.
            let kind = if packet.get(4) == Some(&com::QUERY) { ReplyKind::Results } else { ReplyKind::Single };
            let mut reply = ReplyTracker::new(kind, self.deprecates_eof);
            ask(&mut self.server, &packet, &mut reply, &mut self.assignment).await?;
            if reply.failed {
                return Ok(false);
            }
        }
        self.version = carried.version();
        Ok(true)
    }

    /// Executes a statement of the gateway's own. Returns the bytes of its reply, or `None` if the
    /// server refuses it.
    pub async fn run(&mut self, sql: &str) -> Result<Option<Vec<u8>>, Failure> {
        let mut reply = ReplyTracker::new(ReplyKind::Results, self.deprecates_eof);
        let bytes = ask(&mut self.server, &query_packet(sql), &mut reply, &mut self.assignment).await?;
        Ok((!reply.failed).then_some(bytes))
    }

    /// Returns the packet of a statement as this connection's server understands it; `None`: the
    /// server refuses to prepare it.
    pub async fn packet<'p>(&mut self, command: &Command<'p>) -> Result<Option<Cow<'p, [u8]>>, Failure> {
        let Some((id, preparing)) = &command.prepared else { return Ok(Some(Cow::Borrowed(command.packet))) };
        let Some(there) = self.prepare(*id, preparing).await? else { return Ok(None) };
        let mut packet = command.packet.to_vec();
        set_statement(&mut packet, there);
        Ok(Some(Cow::Owned(packet)))
    }

    /// Prepares a statement, if it is not yet. Returns the server's id of it; `None`: the server
    /// refuses it.
    async fn prepare(&mut self, id: u32, packet: &[u8]) -> Result<Option<u32>, Failure> {
        if let Some(&known) = self.prepared.get(&id) {
            return Ok(Some(known));
        }
        let mut reply = ReplyTracker::new(ReplyKind::Prepared, self.deprecates_eof);
        ask(&mut self.server, packet, &mut reply, &mut self.assignment).await?;
        let Some(there) = reply.statement.filter(|_| !reply.failed) else { return Ok(None) };
        self.prepared.insert(id, there);
        Ok(Some(there))
    }
}
