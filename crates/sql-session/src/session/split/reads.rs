//! Statements on replicas.

use super::carried::last_insert_id_statement;
use super::command::{Command, Need, Outcome, transaction_lost};
use super::exchange::{Failure, ask, exchange};
use super::further_connection::FurtherConnection;
use super::split_state::Split;
use crate::login::error_packet;
use crate::reply_tracker::{IN_TRANSACTION, ReplyKind, ReplyTracker};
use crate::result_rows::first_row;
use crate::session::query_packet::query_packet;
use crate::session::state::Session;
use mariadb_wire::err::ErrPacket;
use service::backend::Backend;
use service::gtid::GtidPosition;
use service::{CausalReads, ConnectError};
use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// ER_NOT_SUPPORTED_YET, and its SQLSTATE.
const NOT_SUPPORTED: (u16, &str) = (1235, "42000");

/// How long connecting to a replica may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);

/// How long a read waits for a connection to a replica that has as many as it may have.
const PATIENCE: Duration = Duration::from_millis(100);

/// How long a read waits on a replica for the writes before it.
const CAUSAL_WAIT: Duration = Duration::from_secs(10);

/// ER_SERVER_SHUTDOWN, ER_CONNECTION_KILLED, and ER_UNKNOWN_COM_ERROR of a Galera node that is not
/// ready.
const LOST_CODES: [u16; 3] = [1053, 1927, 1047];

fn says_lost(error: &ErrPacket<'_>) -> bool {
    LOST_CODES.contains(&error.code)
}

/// What a read asks for.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReplicaChoice<'c> {
    /// The replica of this name; by default the best.
    pub server: Option<&'c str>,
    /// How far it may be behind; by default as the service says.
    pub lag_max_seconds: Option<u64>,
    /// The read begins a transaction that only reads.
    pub begins: bool,
}

/// Why a replica did not execute a read.
enum Missed {
    /// The replica is of no use now.
    Lost,
    /// It is fine, but not for this statement now.
    NotNow(Box<FurtherConnection>),
    Failed(io::Error),
}

impl Session {
    /// Executes a read on a replica. Returns `None` if none can, so that the statement belongs on
    /// the primary.
    pub(super) async fn read_elsewhere(
        &mut self,
        split: &mut Split,
        read: &Command<'_>,
        choice: ReplicaChoice<'_>,
    ) -> io::Result<Option<Outcome>> {
        let Some(wanted) = self.wanted_position(split).await? else { return Ok(None) };
        let mut missed: Vec<Arc<Backend>> = Vec::new();
        while let Some(replica) = self.take_connection(split, choice, &mut missed).await {
            let backend = replica.assignment.backend().clone();
            split.running.set(replica.id, replica.lease.killer());
            self.lease.set_running(Some((backend.clone(), replica.id)));
            let done = self.try_read(split, replica, read, &wanted, choice.begins).await;
            self.lease.set_running(None);
            if split.reading.is_none() {
                self.note_running_at_home(split);
            }
            match done {
                Ok(()) => return Ok(Some(Outcome::Continues)),
                Err(Missed::Failed(error)) => return Err(error),
                Err(Missed::NotNow(replica)) => {
                    split.replicas.push(*replica);
                    return Ok(None);
                }
                Err(Missed::Lost) => {
                    backend.suspicion.notify_one();
                    self.context.service.statistics.reads_retried.increment();
                    missed.push(backend);
                }
            }
        }
        Ok(None)
    }

    /// Notes that the session's own connection executes its commands, if there is one.
    fn note_running_at_home(&self, split: &Split) {
        match split.is_parked() {
            true => split.running.clear(),
            false => split.running.set(split.home_id, self.lease.killer()),
        }
    }

    /// Takes a connection to the best replica, opened if necessary.
    async fn take_connection(
        &self,
        split: &mut Split,
        choice: ReplicaChoice<'_>,
        missed: &mut Vec<Arc<Backend>>,
    ) -> Option<FurtherConnection> {
        let service = &self.context.service;
        split.replicas.retain(|replica| replica.assignment.end().is_none());
        let is_at = |backend: &Arc<Backend>| {
            let replicas = &split.replicas;
            replicas.iter().position(|replica| Arc::ptr_eq(replica.assignment.backend(), backend))
        };
        let lag_max_seconds = choice.lag_max_seconds.or(split.settings.lag_max_seconds);
        let readers = service.readers(lag_max_seconds, |backend| is_at(backend).is_some());
        for target in readers {
            let is_named = choice.server.is_none_or(|name| target.backend.settings().name == name);
            if !is_named || missed.iter().any(|backend| Arc::ptr_eq(backend, &target.backend)) {
                continue;
            }
            if let Some(at) = is_at(&target.backend) {
                return Some(split.replicas.swap_remove(at));
            }
            if split.identity.is_err() {
                return None;
            }
            match self.connect_further(split, &target, (PATIENCE, CONNECT_LIMIT)).await {
                Ok(mut replica) => {
                    let is_prepared = match split.settings.causal_reads {
                        CausalReads::Off => true,
                        // It was prepared before.
                        _ if replica.version != 0 => true,
                        _ if target.backend.is_galera() => {
                            matches!(replica.run("SET SESSION wsrep_sync_wait = 1").await, Ok(Some(_)))
                        }
                        _ => true,
                    };
                    if is_prepared {
                        return Some(replica);
                    }
                }
                Err(ConnectError::Full(_)) => {}
                Err(error) => {
                    tracing::debug!(server = target.backend.settings().name, %error, "a session cannot read there");
                }
            }
            missed.push(target.backend);
        }
        None
    }

    /// Returns what a replica must have before it may execute a read; `None` if that cannot be
    /// found out, so that the primary has to.
    async fn wanted_position(&mut self, split: &mut Split) -> io::Result<Option<GtidPosition>> {
        let variable = match split.settings.causal_reads {
            CausalReads::Off => return Ok(Some(GtidPosition::default())),
            CausalReads::Session if !split.has_written => return Ok(Some(split.position.clone())),
            CausalReads::Session if !split.has_written_elsewhere => "@@last_gtid",
            CausalReads::Session | CausalReads::All => "@@gtid_binlog_pos",
        };
        if split.is_parked() && !self.reach_home(split, Need::Any).await? {
            return Ok(None);
        }
        if split.detached.is_some() {
            // Without a primary there are no later writes.
            return Ok(Some(split.position.clone()));
        }
        let mut reply = ReplyTracker::new(ReplyKind::Results, self.login.deprecates_eof);
        let question = query_packet(&format!("VALUES ({variable})"));
        let asked = ask(&mut self.server, &question, &mut reply, &mut split.assignment).await;
        let Ok(bytes) = asked else { return Ok(None) };
        let row = first_row(&bytes, self.login.deprecates_eof);
        let text = row.and_then(|row| row.into_iter().next()?).unwrap_or_default();
        let Some(position) = GtidPosition::parse(&text) else { return Ok(None) };
        split.position.extend(&position);
        (split.has_written, split.has_written_elsewhere) = (false, false);
        Ok(Some(split.position.clone()))
    }

    async fn try_read(
        &mut self,
        split: &mut Split,
        mut replica: FurtherConnection,
        read: &Command<'_>,
        wanted: &GtidPosition,
        begins: bool,
    ) -> Result<(), Missed> {
        let lost = |_: Failure| Missed::Lost;
        if !self.wait_for(&mut replica, wanted).await.map_err(lost)? {
            return Err(Missed::NotNow(Box::new(replica)));
        }
        // A schema may not have arrived yet.
        if !replica.catch_up(&split.carried, false).await.map_err(lost)? {
            return Err(Missed::NotNow(Box::new(replica)));
        }
        if begins && split.last_insert_id != 0 {
            let statement = last_insert_id_statement(split.last_insert_id);
            replica.run(&statement).await.map_err(lost)?;
        }
        let Some(packet) = replica.packet(read).await.map_err(lost)? else {
            return Err(Missed::NotNow(Box::new(replica)));
        };
        if let Some(sharing) = &mut split.sharing {
            // If it fails, FOUND_ROWS() there is about another statement.
            sharing.note_move(false);
        }
        let mut reply = ReplyTracker::new(ReplyKind::Results, self.login.deprecates_eof);
        let backend = replica.assignment.backend().clone();
        let running = backend.activity.begin();
        let FurtherConnection { server, assignment, .. } = &mut replica;
        let exchanged = exchange(&mut self.client, server, assignment, &packet, &mut reply, says_lost, |_, _| ()).await;
        match exchanged {
            Ok(()) => running.replied(),
            Err(Failure::Client(error)) => return Err(Missed::Failed(error)),
            Err(Failure::Server(lost)) if lost.has_begun => return Err(Missed::Failed(io::Error::other(lost.reason))),
            Err(Failure::Server(_)) => return Err(Missed::Lost),
        }
        drop(running);
        self.context.service.statistics.to_replicas.increment();
        split.last_replica = Some(replica.lease.server.name.clone());
        if let Some(sharing) = &mut split.sharing {
            sharing.note_reply(&reply, read.diagnostics);
        }
        let is_open = reply.status.is_some_and(|status| status & IN_TRANSACTION != 0);
        match begins && is_open {
            true => split.reading = Some(Box::new(replica)),
            false => split.replicas.push(replica),
        }
        Ok(())
    }

    /// Waits until a replica has these transactions. Returns false if that takes too long.
    async fn wait_for(&self, replica: &mut FurtherConnection, wanted: &GtidPosition) -> Result<bool, Failure> {
        let backend = replica.assignment.backend().clone();
        if wanted.is_empty() || replica.caught_up.includes(wanted) || backend.is_galera() || backend.includes(wanted) {
            return Ok(true);
        }
        let statistics = &self.context.service.statistics;
        statistics.causal_waits.increment();
        let seconds = CAUSAL_WAIT.as_secs();
        let reply = replica.run(&format!("SELECT MASTER_GTID_WAIT('{wanted}', {seconds})")).await?;
        let row = reply.and_then(|bytes| first_row(&bytes, self.login.deprecates_eof));
        if row.and_then(|row| row.into_iter().next()?).as_deref() != Some("0") {
            statistics.causal_timeouts.increment();
            return Ok(false);
        }
        replica.caught_up.extend(wanted);
        Ok(true)
    }

    /// Executes a statement of a transaction that only reads. Returns `None` if there is none any
    /// more.
    pub(super) async fn read_in_transaction(
        &mut self,
        split: &mut Split,
        read: &Command<'_>,
        kind: ReplyKind,
    ) -> io::Result<Option<Outcome>> {
        let Some(mut replica) = split.reading.take() else { return Ok(None) };
        split.running.set(replica.id, replica.lease.killer());
        self.lease.set_running(Some((replica.assignment.backend().clone(), replica.id)));
        let mut reply = ReplyTracker::new(kind, self.login.deprecates_eof);
        let exchanged = self.exchange_in_transaction(split, &mut replica, read, &mut reply).await;
        self.lease.set_running(None);
        self.note_running_at_home(split);
        match exchanged {
            Ok(()) => {}
            Err(Failure::Client(error)) => return Err(error),
            Err(Failure::Server(lost)) if lost.has_begun => return Err(io::Error::other(lost.reason)),
            Err(Failure::Server(lost)) => {
                replica.assignment.suspect();
                let reason = format!("the server {} was lost: {}", replica.lease.server.name, lost.reason);
                self.client.send(&transaction_lost(&reason)).await?;
                return Ok(Some(Outcome::Continues));
            }
        }
        self.context.service.statistics.to_replicas.increment();
        split.last_replica = Some(replica.lease.server.name.clone());
        if let Some(sharing) = &mut split.sharing {
            sharing.note_reply(&reply, read.diagnostics);
        }
        // After an error, the transaction is still open.
        match reply.status.is_some_and(|status| status & IN_TRANSACTION == 0) {
            true => split.replicas.push(*replica),
            false => split.reading = Some(replica),
        }
        Ok(Some(Outcome::Continues))
    }

    /// Refuses a command that the transaction on a replica cannot execute.
    pub(super) async fn refuse_in_transaction(&mut self, what: &str) -> io::Result<Outcome> {
        let sentence = format!("This service does not support {what} in READ ONLY transactions");
        self.client.send(&error_packet(1, NOT_SUPPORTED.0, NOT_SUPPORTED.1, &sentence)).await?;
        Ok(Outcome::Continues)
    }

    async fn exchange_in_transaction(
        &mut self,
        split: &Split,
        replica: &mut FurtherConnection,
        read: &Command<'_>,
        reply: &mut ReplyTracker,
    ) -> Result<(), Failure> {
        replica.catch_up(&split.carried, false).await?;
        // A statement that the replica cannot prepare gets the error of one that is not known.
        let packet = replica.packet(read).await?.unwrap_or(Cow::Borrowed(read.packet));
        let FurtherConnection { server, assignment, .. } = replica;
        exchange(&mut self.client, server, assignment, &packet, reply, says_lost, |_, _| ()).await
    }
}
