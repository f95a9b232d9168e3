//! Connections that sessions share (`multiplex`). Between two statements, a session gives its
//! connections to those that wait, unless they hold state that cannot be brought along. It gets its
//! own back if no other session has taken it meanwhile; otherwise one with the session's settings.

use super::command::Outcome;
use super::explain::integer_result;
use super::further_connection::FurtherConnection;
use super::idle_connections::Diagnostics;
use super::split_state::Split;
use crate::login::error_packet;
use crate::reply_tracker::AUTOCOMMIT;
use crate::session::local_question::LocalQuestion;
use crate::session::state::Session;
use service::ConnectError;
use service::backend::Backend;
use service::targets::Target;
use sql_classify::{Class, PrimaryReason, StatementKind};
use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

/// How often a session that waits for a connection looks for a free one: some become free without
/// notice, when other sessions end.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// ER_NOT_SUPPORTED_YET, and its SQLSTATE.
const NOT_SUPPORTED: (u16, &str) = (1235, "42000");

/// Returns whether a statement has SQL_CALC_FOUND_ROWS.
pub fn counts_rows(sql: &[u8]) -> bool {
    const WORD: &[u8] = b"SQL_CALC_FOUND_ROWS";
    sql.windows(WORD.len()).any(|part| part.eq_ignore_ascii_case(WORD))
}

/// Returns whether a statement uses what the statement before has left on its connection.
pub fn uses_diagnostics(class: &Class) -> bool {
    let statement = class.statement();
    let may_use = statement.kind == StatementKind::Show || class.facts().primary == Some(PrimaryReason::LastStatement);
    may_use && statement.diagnostics_use.is_explicit()
}

impl Session {
    /// Answers a question for the session's id, which its connections do not know. Returns `None`
    /// for other statements.
    pub(super) async fn answer_id(&mut self, split: &mut Split, sql: &[u8]) -> io::Result<Option<Outcome>> {
        match (self.lease.id(), LocalQuestion::of(sql)) {
            (Some(id), Some((LocalQuestion::ConnectionId, name))) => {
                let id = i64::try_from(id).unwrap_or_default();
                self.send_integer(split, name, id).await.map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Makes the connection of the last statement the session's again, for a statement that uses
    /// its diagnostics. If another session has taken it, answers the question, or refuses it.
    /// `is_prepared`: the reply has another form, so no question is answered.
    pub(super) async fn answer_diagnostics(
        &mut self,
        split: &mut Split,
        sql: &[u8],
        is_prepared: bool,
    ) -> io::Result<Option<Outcome>> {
        let is_there = self.reclaim(split);
        let Some(sharing) = &split.sharing else { return Ok(None) };
        let uses_rows = memchr::memmem::find(&sql.to_ascii_uppercase(), b"FOUND_ROWS").is_some();
        if is_there && !(uses_rows && sharing.has_moved) {
            return Ok(None);
        }
        let diagnostics = sharing.diagnostics.clone();
        if let Some(remains) = sharing.remains.clone() {
            // The other session may be reading them.
            remains.find().await;
        }
        match LocalQuestion::of(sql).filter(|_| !is_prepared) {
            Some((LocalQuestion::RowCount, name)) => {
                let count = sharing.row_count;
                self.send_integer(split, name, count).await.map(Some)
            }
            Some((LocalQuestion::FoundRows, name)) => {
                let counted = diagnostics.and_then(|diagnostics| diagnostics.borrow().found_rows);
                match sharing.found_rows.or(counted) {
                    Some(rows) => {
                        self.send_integer(split, name, i64::try_from(rows).unwrap_or(i64::MAX)).await.map(Some)
                    }
                    None => self.refuse_diagnostics().await.map(Some),
                }
            }
            // Without warnings, another connection has none either.
            Some((LocalQuestion::Warnings, _)) if diagnostics.is_none() => Ok(None),
            Some((LocalQuestion::Warnings, _)) => {
                let warnings = diagnostics.and_then(|diagnostics| diagnostics.borrow().warnings.clone());
                let Some(reply) = warnings else { return self.refuse_diagnostics().await.map(Some) };
                if let Some(sharing) = &mut split.sharing {
                    sharing.row_count = -1;
                }
                self.client.send(&reply).await?;
                Ok(Some(Outcome::Continues))
            }
            _ => self.refuse_diagnostics().await.map(Some),
        }
    }

    async fn refuse_diagnostics(&mut self) -> io::Result<Outcome> {
        let sentence = "The diagnostics of the last statement are gone: this service multiplexes, and another session \
                        uses its connection. SELECT ROW_COUNT(), SELECT FOUND_ROWS() and SHOW WARNINGS are supported";
        self.client.send(&error_packet(1, NOT_SUPPORTED.0, NOT_SUPPORTED.1, sentence)).await?;
        Ok(Outcome::Continues)
    }

    async fn send_integer(&mut self, split: &mut Split, name: &str, value: i64) -> io::Result<Outcome> {
        if let Some(sharing) = &mut split.sharing {
            (sharing.row_count, sharing.found_rows) = (-1, Some(1));
        }
        let reply = integer_result(name, value, self.form(), split.status);
        self.client.send(&reply).await?;
        Ok(Outcome::Continues)
    }

    /// Takes the connection back that has executed the last statement. Returns false if another
    /// session has it.
    fn reclaim(&mut self, split: &mut Split) -> bool {
        let Some(sharing) = &split.sharing else { return true };
        let Some(name) = &split.last_replica else {
            return !sharing.is_parked || self.unpark(split);
        };
        if split.replicas.iter().any(|replica| &replica.lease.server.name == name) {
            return true;
        }
        let state = self.context.service.state();
        let target = state.targets.iter().find(|target| &target.backend.settings().name == name);
        let taken = target.and_then(|target| self.idle_connections.take_own(&target.backend, sharing.owner));
        let is_there = taken.is_some();
        split.replicas.extend(taken);
        is_there
    }

    /// Makes the connection that the session used last its own again, if no other has taken it.
    pub(super) fn unpark(&mut self, split: &mut Split) -> bool {
        let Some(sharing) = &split.sharing else { return false };
        if !sharing.is_parked {
            return false;
        }
        let Some(connection) = self.idle_connections.take_own(self.lease.assignment.backend(), sharing.owner) else {
            return false;
        };
        if connection.version != split.carried.version() {
            // A setting was changed while it was away.
            return false;
        }
        self.adopt(split, connection);
        true
    }

    /// Makes a connection the session's own.
    pub(super) fn adopt(&mut self, split: &mut Split, connection: FurtherConnection) {
        let FurtherConnection { mut lease, server, id, prepared, .. } = connection;
        lease.replace(&mut self.lease, id);
        split.running.set(id, lease.killer());
        split.home_id = id;
        (self.lease, self.server) = (lease, server);
        split.assignment = self.lease.assignment.clone();
        split.home_prepared = prepared;
        split.detached = None;
        if let Some(sharing) = &mut split.sharing {
            (sharing.is_parked, sharing.can_give_home) = (false, true);
            sharing.remains = None;
        }
    }

    /// Gives the connections that the session does not need before its next statement to others.
    pub(super) fn share_connections(&mut self, split: &mut Split) {
        let can_move = split.can_move(false);
        let Some(sharing) = &mut split.sharing else { return };
        if split.reading.is_some() {
            return;
        }
        let diagnostics = |of_last: bool| sharing.diagnostics.clone().filter(|_| of_last);
        for replica in split.replicas.drain(..) {
            let is_last = split.last_replica.as_ref() == Some(&replica.lease.server.name);
            self.idle_connections.put(replica, sharing.owner, diagnostics(is_last), None);
        }
        let has_long_data = split.prepared.values().any(|prepared| prepared.has_long_data);
        // With autocommit off, a statement that fails may have begun a transaction.
        let may_be_in_transaction = sharing.lacks_status && split.status & AUTOCOMMIT == 0;
        let is_busy =
            may_be_in_transaction || has_long_data || !sharing.cursors.is_empty() || !self.server.bytes().is_empty();
        if split.detached.is_some() || is_busy || !sharing.can_give_home || !can_move {
            return;
        }
        let Ok(identity) = &split.identity else { return };
        let lease = self.lease.give_up();
        let connection = FurtherConnection {
            assignment: lease.assignment.clone(),
            lease,
            server: self.server.take(),
            id: split.home_id,
            version: split.carried.version(),
            prepared: std::mem::take(&mut split.home_prepared),
            caught_up: split.position.clone(),
            identity: identity.clone(),
            deprecates_eof: self.login.deprecates_eof,
        };
        let diagnostics = sharing.diagnostics.clone().filter(|_| split.last_replica.is_none());
        let unread = sharing.leave_remains();
        self.idle_connections.put(connection, sharing.owner, diagnostics, Some(unread));
        sharing.is_parked = true;
        split.running.clear();
        split.has_written_elsewhere |= split.has_written;
        split.detached = Some("it shares its connections".to_owned());
    }

    /// Connects to a server, or takes a connection there that no session uses.
    pub(super) async fn connect_further(
        &self,
        split: &Split,
        target: &Target,
        (patience, limit): (Duration, Duration),
    ) -> Result<FurtherConnection, ConnectError> {
        let Ok(identity) = &split.identity else { return Err(ConnectError::NotAdmitted) };
        let service = &self.context.service;
        let deprecates_eof = self.login.deprecates_eof;
        let Some(sharing) = &split.sharing else {
            return FurtherConnection::open(service, target, identity, (patience, limit), deprecates_eof).await;
        };
        let backend = &target.backend;
        if let Some(own) = self.idle_connections.take_own(backend, sharing.owner) {
            return Ok(own);
        }
        let deadline = Instant::now() + limit;
        loop {
            while let Some(idle) = self.idle_connections.take(backend, identity) {
                // A login reads the account's privileges, by which results are cached.
                let keeps_login = split.carried.sets(super::carried::SCHEMA) && self.context.cache.is_none();
                let taking_over = async {
                    let mut connection = idle.read_remains().await?;
                    connection.take_over(identity, keeps_login).await.ok().map(|()| connection)
                };
                // One that the server has closed meanwhile is dropped.
                if let Ok(Some(connection)) = timeout_at(deadline, taking_over).await {
                    service.statistics.connections_taken.increment();
                    return Ok(connection);
                }
            }
            // Others may be of clients with other capabilities.
            if backend.slots.is_full()
                && let Some(oldest) = self.idle_connections.take_oldest(backend)
            {
                oldest.close().await;
                continue;
            }
            let waiting = self.idle_connections.wait(backend);
            let released = waiting.server.released.notified();
            let slot = async {
                match waiting.may_open {
                    true => backend.slots.wait().await.ok(),
                    false => {
                        sleep(POLL_INTERVAL).await;
                        None
                    }
                }
            };
            self.idle_connections.want(backend);
            let slot = tokio::select! {
                biased;
                () = released => None,
                slot = slot => slot,
                () = sleep_until(deadline) => return Err(service.full()),
            };
            if let Some(slot) = slot {
                return FurtherConnection::open_in(service, target, identity, (slot, limit), deprecates_eof).await;
            }
        }
    }
}

impl FurtherConnection {
    /// Returns whether it is one to this server.
    pub fn is_to(&self, backend: &Arc<Backend>) -> bool {
        Arc::ptr_eq(self.assignment.backend(), backend)
    }

    /// Reads the diagnostics of the last statement, for the session that has executed it.
    pub(super) async fn keep_diagnostics(&mut self, diagnostics: &RefCell<Diagnostics>) -> io::Result<()> {
        let counted = self.run("SELECT FOUND_ROWS()").await.map_err(|_| io::ErrorKind::BrokenPipe)?;
        let row = counted.and_then(|bytes| crate::result_rows::first_row(&bytes, self.deprecates_eof));
        if let Some(rows) = row.and_then(|row| row.into_iter().next()??.parse().ok()) {
            diagnostics.borrow_mut().found_rows = Some(rows);
        }
        diagnostics.borrow_mut().warnings = self.run("SHOW WARNINGS").await.map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(())
    }
}
