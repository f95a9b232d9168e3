//! A session of the router `read-write-split`: each statement goes to the primary or to a replica.
//!
//! The session's own connection is to the primary; it opens further ones to replicas when it reads
//! there. What the statements need of each other is brought along by [`carried`]; a session whose
//! statements need more is bound to the primary. [`route`] decides, [`home`] is the connection to
//! the primary and its replacement, [`reads`] are statements on replicas, [`cached`] are those that
//! the cache may answer, [`announced`] reports writes to the caches, [`prepared`] are prepared
//! statements, [`exchange`] finds out which side has failed, and [`explain`] answers EXPLAIN ROUTE.

mod announced;
mod cached;
mod carried;
mod command;
mod commit_marker;
mod commit_outcome;
mod exchange;
mod explain;
mod further_connection;
mod hints;
mod home;
mod idle_connections;
mod lost_home;
mod prepared;
mod prepared_statement;
mod reach_home;
mod reads;
mod remains;
mod replay;
mod route;
mod sharing;
mod sharing_state;
mod split_state;
mod transaction_log;

pub use self::idle_connections::IdleConnections;
pub use self::split_state::Split;

use self::cached::Select;
use self::carried::{Carried, PreparedIds, SCHEMA, StateChange};
use self::command::{Command, Need, Outcome, Routed, command, is_read};
use self::commit_marker::CommitMarker;
use self::hints::hints;
use self::reads::ReplicaChoice;
use self::route::{Destination, route};
use self::sharing_state::Sharing;
use self::transaction_log::TransactionLog;
use super::com;
use super::invalid_cache_switch;
use super::state::Session;
use crate::login::elsewhere::Identity;
use crate::login::{self, UserChange};
use crate::packet_stream;
use crate::privileges::PrivilegeHistory;
use crate::reply_tracker::{AUTOCOMMIT, PACKET_MAX, ReplyKind};
use crate::running_command::RunningAt;
use ahash::AHashMap;
use mariadb_wire::client_login::ClientLogin;
use service::Router;
use service::gtid::GtidPosition;
use sql_classify::statement::STATEMENT_BYTES_MAX;
use sql_classify::{CacheSwitch, DiagnosticsKept, DiagnosticsUse, StatementKind};
use std::sync::Arc;
use std::{io, mem};

impl Session {
    /// Prepares a session for the router, if its service has this one.
    pub async fn begin_split(&mut self, running: &RunningAt) {
        let state = self.context.service.state();
        let Router::ReadWriteSplit(settings) = &state.settings.router else { return };
        let account = state.settings.account.as_ref();
        // A proof of the password is not kept longer than needed.
        let (response, proof) = (mem::take(&mut self.login.response), mem::take(&mut self.login.proof));
        let hashes = &self.context.stored_hashes;
        let identity = Identity::of((&response, &proof), hashes, &self.lease.server, account).await;
        if let Err(reason) = &identity {
            self.context.service.statistics.sessions_on_primary.increment();
            let (service, user) = (&state.settings.name, String::from_utf8_lossy(self.lease.user()));
            let sentence = "a session uses the primary alone, because Selkie cannot log in elsewhere for it";
            match self.context.stored_hashes.is_news(self.lease.user()) {
                true => tracing::warn!(service, %user, "{sentence}: {reason}"),
                false => tracing::debug!(service, %user, "{sentence}: {reason}"),
            }
        }
        let can_give_home = identity.as_ref().is_ok_and(Identity::can_change_user);
        let sharing = settings.multiplexes.then(|| Sharing::new(can_give_home));
        let mut carried = Carried::default();
        let payload = response.get(4..).unwrap_or_default();
        if let Ok(account) = ClientLogin::decode(payload)
            && !account.database.is_empty()
        {
            carried.add(vec![SCHEMA.to_owned()], &command(com::INIT_DB, account.database), false);
        }
        self.split = Some(Box::new(Split {
            settings: settings.clone(),
            identity: identity.map(Arc::new),
            sharing,
            replicas: Vec::new(),
            reading: None,
            carried,
            home_prepared: PreparedIds::default(),
            prepared: AHashMap::default(),
            last_prepared: 0,
            bound: None,
            pinned: None,
            has_table_locks: false,
            has_next_transaction: false,
            status: self.status.unwrap_or(AUTOCOMMIT),
            last_insert_id: 0,
            detached: None,
            lost_transaction: None,
            log: TransactionLog::default(),
            writes: false,
            marker: CommitMarker::default(),
            must_replay: false,
            has_written: false,
            has_written_elsewhere: false,
            position: GtidPosition::default(),
            last_replica: None,
            running: running.clone(),
            assignment: self.lease.assignment.clone(),
            home_id: self.login.session,
        }));
    }

    /// Gives the session a connection of its own again, if others may use it. Returns false if that
    /// is not possible: then the client has got an error.
    pub async fn end_parking(&mut self) -> io::Result<bool> {
        let Some(mut split) = self.split.take() else { return Ok(true) };
        let is_parked = split.is_parked() && split.reading.is_none();
        let is_reached = !is_parked || self.reach_home(&mut split, Need::Any).await?;
        self.split = Some(split);
        Ok(is_reached)
    }

    /// Runs the next command. Returns false if it is the last.
    pub async fn split_command(&mut self, split: &mut Split, command: u8, length: usize) -> io::Result<bool> {
        if command != com::QUIT
            && let Some(reason) = self.leave_lost_home(split)
        {
            self.client.packet(PACKET_MAX - 1).await.ok();
            self.send_reason(self.client.sent, &reason).await;
            return Ok(false);
        }
        let outcome = match command {
            com::QUERY if length <= STATEMENT_BYTES_MAX => {
                let packet = self.client.packet(STATEMENT_BYTES_MAX).await?;
                self.split_query(split, &packet).await?
            }
            com::QUERY => self.split_long_query(split, length).await?,
            com::STMT_PREPARE => {
                let packet = self.client.packet(PACKET_MAX - 1).await?;
                self.split_prepare(split, &packet).await?
            }
            com::STMT_EXECUTE => self.split_execute(split, length).await?,
            com::STMT_CLOSE => self.split_close(split).await?,
            com::STMT_RESET | com::STMT_FETCH => self.split_cursor(split, command).await?,
            com::STMT_SEND_LONG_DATA | com::STMT_BULK_EXECUTE => self.split_prepared_stream(split, command).await?,
            com::QUIT => {
                if split.detached.is_none() {
                    self.client.forward_command(&mut self.server).await?;
                }
                self.finish_writes();
                return Ok(false);
            }
            com::PING if split.detached.is_some() || split.reading.is_some() => {
                self.client.packet(PACKET_MAX - 1).await?;
                let [low, high] = split.status.to_le_bytes();
                self.client.send(&[7, 0, 0, 1, 0, 0, 0, low, high, 0, 0]).await?;
                Outcome::Continues
            }
            com::CHANGE_USER => return self.split_change_user(split).await,
            com::BINLOG_DUMP | com::TABLE_DUMP => {
                if !self.reach_home(split, Need::Any).await? {
                    return Ok(true);
                }
                self.client.forward_command(&mut self.server).await?;
                packet_stream::relay_both_ways(&mut self.client, &mut self.server).await?;
                return Ok(false);
            }
            other => {
                let packet = self.client.packet(PACKET_MAX - 1).await?;
                self.split_other(split, other, &packet).await?
            }
        };
        self.end_writes_outside(split);
        Ok(outcome == Outcome::Continues)
    }

    /// Executes a statement in text.
    async fn split_query(&mut self, split: &mut Split, packet: &[u8]) -> io::Result<Outcome> {
        let sql = packet.get(5..).unwrap_or_default();
        if let Some(outcome) = self.answer_cached_text(split, packet).await? {
            return Ok(outcome);
        }
        if let Some(text) = explain::explained(sql) {
            return match self.split_route(split, text).await? {
                Some(route) => self.send_explanation(split, &route).await,
                None => Ok(Outcome::Continues),
            };
        }
        let Some(routed) = self.split_route(split, sql).await? else { return Ok(Outcome::Continues) };
        let Routed { class, route, lag_max_seconds, has_hint, change } = routed;
        let (mut command, is_read) = (Command::text(packet).of(&class, &change), is_read(&class));
        let statement = class.statement();
        if statement.cache_switch == Some(CacheSwitch::Invalid) {
            self.client.send(&invalid_cache_switch()).await?;
            return Ok(Outcome::Continues);
        }
        if statement.kind == StatementKind::PureSelect && !has_hint {
            let select = Select { command: &command, sql, tables: &statement.effects.reads, prepared: None };
            if let Some(outcome) = self.read_through_cache(split, &select).await? {
                return Ok(outcome);
            }
        }
        let leaves = split.leaves(&route.destination);
        let is_prepared = match leaves {
            true => {
                let kept = statement.diagnostics_kept(self.has_warnings);
                self.split_catch_up(split, kept, statement.diagnostics_use).await?
            }
            false => self.announce(split, &class).await?,
        };
        if !is_prepared {
            return Ok(Outcome::Continues);
        }
        if split.sharing.is_some() {
            command.diagnostics.counts_rows = sharing::counts_rows(sql);
            if let Some(outcome) = self.answer_id(split, sql).await? {
                return Ok(outcome);
            }
            if sharing::uses_diagnostics(&class)
                && let Some(outcome) = self.answer_diagnostics(split, sql, false).await?
            {
                return Ok(outcome);
            }
        }
        let done = match &route.destination {
            Destination::Primary => None,
            Destination::Last if split.last_replica.is_none() => None,
            Destination::Reading => self.read_in_transaction(split, &command, ReplyKind::Results).await?,
            destination => {
                let begins = *destination == Destination::ReplicaForTransaction;
                let server = match destination {
                    Destination::Named(name) => Some(name.clone()),
                    Destination::Last => split.last_replica.clone(),
                    _ => None,
                };
                let choice = ReplicaChoice { server: server.as_deref(), lag_max_seconds, begins };
                self.read_elsewhere(split, &command, choice).await?
            }
        };
        let outcome = match done {
            Some(outcome) => return Ok(outcome),
            None => {
                if leaves && !self.announce(split, &class).await? {
                    return Ok(Outcome::Continues);
                }
                let need = split.need(&class);
                self.at_home(split, &command, ReplyKind::Results, need).await?
            }
        };
        let Some(reply) = outcome.reply else { return Ok(outcome.next) };
        if !reply.failed {
            self.note_done(statement).await?;
            split.note_change(&change, packet);
            if statement.kind == StatementKind::NextTransaction {
                split.has_next_transaction = true;
            } else if statement.ends_transaction {
                split.has_next_transaction = false;
            }
        } else if matches!(change, StateChange::Bind(_)) {
            // It may have done a part of what it does.
            split.note_change(&change, packet);
        }
        split.has_written |= !is_read && split.settings.causal_reads == service::CausalReads::Session;
        Ok(outcome.next)
    }

    /// Finds where a statement goes. Returns `None` if that needs a connection, and there is none:
    /// then the client has got an error.
    async fn split_route(&mut self, split: &mut Split, sql: &[u8]) -> io::Result<Option<Routed>> {
        if split.is_parked() && self.depends_on_settings(sql) && !self.reach_home(split, Need::Any).await? {
            return Ok(None);
        }
        let lexis = match split.detached.is_none() && split.reading.is_none() {
            true => self.lexis(sql).await?,
            false => self.known_lexis(),
        };
        let class = self.class_by(sql, lexis, false).await;
        let text = std::str::from_utf8(sql).unwrap_or_default();
        let hints = hints(text, lexis);
        let route = route(class.statement(), class.facts(), hints.route, split.situation());
        let change = StateChange::of(text, lexis, class.facts());
        let (lag_max_seconds, has_hint) = (hints.lag_max_seconds, hints.route.is_some());
        Ok(Some(Routed { class, route, lag_max_seconds, has_hint, change }))
    }

    /// Executes a statement that is too long to be classified.
    async fn split_long_query(&mut self, split: &mut Split, length: usize) -> io::Result<Outcome> {
        if split.reading.is_some() {
            if length >= PACKET_MAX {
                self.client.skip_command().await?;
                return self.refuse_in_transaction("statements of 16 MiB").await;
            }
            let packet = self.client.packet(PACKET_MAX - 1).await?;
            let command = Command::text(&packet);
            let done = self.read_in_transaction(split, &command, ReplyKind::Results).await?;
            return Ok(done.unwrap_or(Outcome::Continues));
        }
        let (_, payload) = self.client.peek(64).await?;
        let words = String::from_utf8_lossy(payload.get(1..).unwrap_or_default()).to_ascii_uppercase();
        match words.split(|letter: char| !letter.is_ascii_alphabetic()).find(|word| !word.is_empty()) {
            Some("INSERT" | "REPLACE" | "UPDATE" | "DELETE") => {}
            Some("SELECT") => split.pinned = split.pinned.or(Some("it has executed a long SELECT")),
            _ => split.bound = split.bound.or(Some("it has executed a long statement that is not understood")),
        }
        if !self.announce_anything(split, false).await? {
            self.client.skip_command().await?;
            return Ok(Outcome::Continues);
        }
        split.has_written = true;
        self.stream_at_home(split, ReplyKind::Results).await
    }

    async fn split_other(&mut self, split: &mut Split, command: u8, packet: &[u8]) -> io::Result<Outcome> {
        let kind = if command == com::FIELD_LIST { ReplyKind::Fields } else { ReplyKind::Single };
        let kind = if command == com::PROCESS_INFO { ReplyKind::Results } else { kind };
        if command == com::RESET_CONNECTION {
            split.forget_lost_transaction();
        }
        let only_shows = [com::FIELD_LIST, com::PROCESS_INFO, com::STATISTICS, com::PING].contains(&command);
        let may_repeat = only_shows || [com::INIT_DB, com::SET_OPTION, com::RESET_CONNECTION].contains(&command);
        let need = if may_repeat { Need::Any } else { Need::Primary };
        let is_ready = match command {
            com::CREATE_DB | com::DROP_DB => self.announce_anything(split, true).await?,
            com::INIT_DB => {
                self.privileges.note_reload();
                let kept = DiagnosticsKept::FoundRowsAndWarnings;
                self.split_catch_up(split, kept, DiagnosticsUse::Nothing).await?
            }
            _ => true,
        };
        if !is_ready {
            return Ok(Outcome::Continues);
        }
        let sent = Command { concerns_transaction: !only_shows, ..Command::text(packet) };
        let outcome = self.at_home(split, &sent, kind, need).await?;
        let Some(reply) = &outcome.reply else { return Ok(outcome.next) };
        if !reply.failed {
            match command {
                com::INIT_DB => {
                    split.carried.add(vec![SCHEMA.to_owned()], packet, false);
                    self.settings = None;
                }
                com::SET_OPTION => split.carried.add(vec!["multi statements".to_owned()], packet, false),
                com::RESET_CONNECTION => {
                    split.reset();
                    self.reset_session();
                    self.privileges.note_reload();
                }
                com::CREATE_DB | com::DROP_DB => split.has_written = true,
                _ => {}
            }
        }
        Ok(outcome.next)
    }

    async fn split_change_user(&mut self, split: &mut Split) -> io::Result<bool> {
        split.forget_lost_transaction();
        if !self.reach_home(split, Need::Any).await? {
            return Ok(true);
        }
        let Session { client, server, audited, login, context, lease, .. } = self;
        let change = login::change_user(client, server, audited, (login, context, lease)).await?;
        split.reset();
        self.reset_session();
        self.privileges = PrivilegeHistory::default();
        match change {
            UserChange::Done(status) => {
                split.status = status.unwrap_or(AUTOCOMMIT);
                self.status = status;
                // Further connections would have the rights of the user before.
                split.identity = Err("its user has changed".to_owned());
            }
            UserChange::Refused => split.status = AUTOCOMMIT,
            UserChange::Over => return Ok(false),
        }
        Ok(true)
    }
}
