//! A session of an SQL client: its commands, one after the other, and the server's replies.

mod awaited;
mod begin;
mod cached_select;
mod catch_up;
mod classification;
mod com;
mod connection_id;
mod filter_state;
mod filtering;
mod kill;
mod leave;
mod local_question;
mod mirror;
mod prepared;
mod prepared_statement;
mod query_packet;
mod resolved_effects;
mod result_cache;
mod split;
mod state;
mod statement_effect;
mod text_prepared;
mod write_effects;

pub use self::split::IdleConnections;

use self::awaited::Awaited;
use self::begin::{Begun, Shared, begin};
use self::query_packet::query_packet;
use self::state::{KEY_OF_TEXT, Session};
use self::statement_effect::StatementEffect;
use crate::counted_connection::CountedConnection;
use crate::login::{self, UserChange};
use crate::packet_stream;
use crate::privileges::PrivilegeHistory;
use crate::reply_tracker::{IN_TRANSACTION, NO_BACKSLASH_ESCAPES, ReplyKind, ReplyTracker};
use selkie_runtime::Connection;
use selkie_runtime::connection::Life;
use service::Assignment;
use sql_classify::statement::STATEMENT_BYTES_MAX;
use sql_classify::{
    CacheSwitch, Charset, DiagnosticsKept, DiagnosticsUse, DoubleQuotes, Lexis, ParseContext, StatementKind,
};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use tokio::time::timeout;

/// Serves a client until either side closes.
///
/// Most sessions are idle: this future has memory for an idle one only. The steps that need more
/// (the login, a command) are futures of their own while they run.
pub async fn serve(shared: Shared, connection: Connection) {
    let life = connection.life.clone();
    let (id, peer) = (connection.id, connection.peer);
    let counted = CountedConnection::new(shared.0.clone());
    let described = server::audit::Connection {
        id: connection.id,
        listener: connection.listener,
        client: connection.peer,
        local: connection.stream.local_address(),
        users: Arc::default(),
        roles: Arc::default(),
    };
    // The rest of the connection counts until the session ends.
    let stream = connection.stream;
    let outcome = match Box::pin(begin(shared, (stream, described), &life)).await {
        Ok(Some(mut begun)) => begun.serve(&life).await,
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    if outcome.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::TimedOut) {
        counted.0.server.sql_statistics.stalled.increment();
    }
    if let Err(error) = outcome
        && error.kind() != io::ErrorKind::UnexpectedEof
    {
        tracing::debug!(connection = id, ?peer, %error, "an SQL session has ended");
    }
}

/// Returns whether a text may use the diagnostics of the statement before.
fn uses_diagnostics(sql: &[u8]) -> bool {
    let upper = sql.to_ascii_uppercase();
    let words = ["ROWS", "ROW_COUNT", "WARNING", "ERROR", "DIAGNOSTICS", "CALL"];
    words.iter().any(|word| memchr::memmem::find(&upper, word.as_bytes()).is_some())
}

/// The error of a client that sets @selkie_cache to anything but 0 and 1.
fn invalid_cache_switch() -> Vec<u8> {
    let sentence = "@selkie_cache sets whether this session uses the result cache: set it to 0 or 1";
    login::error_packet(1, 1231, "42000", sentence)
}

impl Begun {
    /// Executes the client's commands until either side closes.
    async fn serve(&mut self, life: &Life) -> io::Result<()> {
        let Begun { session, running, assignment } = self;
        let is_split = session.is_split;
        while !life.is_draining() {
            if is_split && !Arc::ptr_eq(assignment.backend(), session.lease.assignment.backend()) {
                // It has gone over to another server.
                *assignment = session.lease.assignment.clone();
            }
            life.set_busy(false);
            let sent = session.client.sent;
            match session.wait_for_command(assignment).await {
                Ok(Awaited::Command) => {}
                Ok(Awaited::ServerBytes) => {
                    return Box::pin(packet_stream::relay_both_ways(&mut session.client, &mut session.server)).await;
                }
                Ok(Awaited::Nothing) => return Ok(()),
                Ok(Awaited::End(reason)) => {
                    session.send_reason(sent, &reason).await;
                    return Ok(());
                }
                Err(error) => {
                    if error.kind() != io::ErrorKind::TimedOut {
                        session.send_reason(sent, CONNECTION_LOST).await;
                    }
                    return Err(error);
                }
            }
            life.set_busy(true);
            let outcome = tokio::select! {
                biased;
                outcome = running.while_connected(Box::pin(session.filtered_command())) => outcome,
                reason = assignment.end_now(), if !is_split => {
                    session.send_reason(sent, reason).await;
                    session.finish_writes();
                    running.abandon();
                    return Ok(());
                }
            };
            match outcome {
                Some(Ok(true)) => {}
                Some(Ok(false)) => break,
                Some(Err(error)) => {
                    running.abandon();
                    // A client that has stopped within a packet gets no reply.
                    if error.kind() != io::ErrorKind::TimedOut {
                        assignment.suspect();
                        session.send_reason(sent, CONNECTION_LOST).await;
                    }
                    return Err(error);
                }
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        Ok(())
    }
}

/// Why a session ends whose connection to the server has failed.
const CONNECTION_LOST: &str = "the connection to it was lost";

impl Session {
    /// Waits for a command.
    async fn wait_for_command(&mut self, assignment: &mut Assignment) -> io::Result<Awaited> {
        let Some(limit) = self.context.timeouts.idle else { return self.wait_for_bytes(assignment).await };
        match timeout(limit, self.wait_for_bytes(assignment)).await {
            Ok(awaited) => awaited,
            Err(_) => {
                self.context.server.sql_statistics.idle.increment();
                // As after `wait_timeout`, the server rolls an open transaction back.
                self.finish_writes();
                Ok(Awaited::Nothing)
            }
        }
    }

    async fn wait_for_bytes(&mut self, assignment: &mut Assignment) -> io::Result<Awaited> {
        if self.split.is_some() {
            return self.wait_at_home(assignment).await;
        }
        while self.client.bytes().len() < 5 {
            if !self.server.bytes().is_empty() {
                return Ok(Awaited::ServerBytes);
            }
            if let Some(reason) = self.must_leave(assignment).await? {
                self.finish_writes();
                return Ok(Awaited::End(reason.to_owned()));
            }
            // The server first: a killed session gets no more results.
            let read = tokio::select! {
                biased;
                read = self.server.fill_when_sent() => read,
                read = self.client.fill_when_sent() => read,
                () = assignment.changed() => continue,
            };
            if read.is_err() {
                // Uncommitted changes are rolled back.
                self.finish_writes();
            }
            read?;
        }
        Ok(Awaited::Command)
    }

    /// Runs the next command, which has passed the filters. Returns false if it is the last.
    async fn command(&mut self) -> io::Result<bool> {
        let (length, payload) = self.client.peek(5).await?;
        let command = payload.first().copied().unwrap_or_default();
        if (command == com::PROCESS_KILL || command == com::QUERY && kill::may_be_kill(payload.get(1)))
            && self.kill().await?
        {
            return Ok(true);
        }
        if command == com::QUERY {
            self.replace_connection_id(length).await?;
        }
        let (length, payload) = self.client.peek(5).await?;
        let number = payload.get(1..5).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes);
        // Without caches there is no need to classify statements.
        let classifies = self.context.observer.is_some() && length <= STATEMENT_BYTES_MAX;
        if let Some(mut split) = self.split.take() {
            let outcome = self.split_command(&mut split, command, length).await;
            self.split = Some(split);
            return outcome;
        }
        match command {
            com::QUERY if classifies => {
                let packet = self.client.packet(STATEMENT_BYTES_MAX).await?;
                self.query(packet).await?;
            }
            com::STMT_PREPARE if classifies => {
                let packet = self.client.packet(STATEMENT_BYTES_MAX).await?;
                self.prepare(packet).await?;
            }
            com::STMT_EXECUTE if self.cacheable_select(number).is_some() => self.execute(number, length).await?,
            com::STMT_EXECUTE | com::STMT_BULK_EXECUTE => {
                let number = self.resolve_statement_id(number).unwrap_or(number);
                if let Some(prepared) = self.prepared.get_mut(&number) {
                    prepared.types = None;
                }
                self.execute_unparsed(self.execution_effect(number)).await?;
            }
            com::QUERY | com::PROCESS_INFO => {
                self.catch_up(DiagnosticsKept::All, DiagnosticsUse::Anything).await?;
                self.note_private_tables();
                self.forward(ReplyKind::Results, StatementEffect::Everything).await?;
            }
            com::STMT_PREPARE => {
                let reply = self.forward(ReplyKind::Prepared, StatementEffect::Nothing).await?;
                self.add_prepared(&reply, Rc::default(), None);
            }
            com::STMT_CLOSE => {
                self.prepared.remove(&number);
                self.client.forward_command(&mut self.server).await?;
            }
            com::STMT_SEND_LONG_DATA => {
                self.note_long_data(number, true);
                self.client.forward_command(&mut self.server).await?;
            }
            com::STMT_RESET => {
                self.note_long_data(number, false);
                self.forward(ReplyKind::Single, StatementEffect::Nothing).await?;
            }
            com::QUIT => {
                self.client.forward_command(&mut self.server).await?;
                self.finish_writes();
                return Ok(false);
            }
            com::CHANGE_USER => {
                let Session { client, server, audited, login, context, lease, .. } = self;
                let change = login::change_user(client, server, audited, (login, context, lease)).await?;
                self.reset_session();
                self.privileges = PrivilegeHistory::default();
                match change {
                    UserChange::Done(status) => self.status = status,
                    UserChange::Refused => self.status = None,
                    UserChange::Over => return Ok(false),
                }
                if self.context.cache.is_some() && self.listener_uses_cache {
                    self.settings().await?;
                }
            }
            com::RESET_CONNECTION => {
                self.forward(ReplyKind::Single, StatementEffect::Nothing).await?;
                self.reset_session();
                self.privileges.note_reload();
            }
            com::BINLOG_DUMP | com::TABLE_DUMP => {
                self.client.forward_command(&mut self.server).await?;
                packet_stream::relay_both_ways(&mut self.client, &mut self.server).await?;
            }
            com::INIT_DB => {
                self.catch_up(DiagnosticsKept::FoundRowsAndWarnings, DiagnosticsUse::Nothing).await?;
                self.settings = None;
                self.privileges.note_reload();
                self.forward(ReplyKind::Single, StatementEffect::Nothing).await?;
            }
            com::CREATE_DB | com::DROP_DB => {
                self.forward(ReplyKind::Single, StatementEffect::Everything).await?;
            }
            com::FIELD_LIST => {
                self.forward(ReplyKind::Fields, StatementEffect::Nothing).await?;
            }
            com::STMT_FETCH => {
                self.forward(ReplyKind::Rows, StatementEffect::Nothing).await?;
            }
            _ => {
                self.forward(ReplyKind::Single, StatementEffect::Nothing).await?;
            }
        }
        Ok(true)
    }

    /// Resets the session's state. An open transaction has been rolled back.
    fn reset_session(&mut self) {
        self.finish_writes();
        self.settings = None;
        self.may_see_private_tables = false;
        self.has_next_transaction_settings = false;
        self.last_cached_select = None;
        self.found_rows = None;
        self.has_warnings = false;
        self.prepared.clear();
        self.text_prepared.clear();
        self.last_prepared = None;
        self.client_uses_cache = true;
    }

    // --- statements

    async fn query(&mut self, packet: Vec<u8>) -> io::Result<()> {
        let sql = packet.get(5..).unwrap_or_default();
        if self.is_on_cached_server()
            && let Some((result, settings)) = self.cached_text(sql)
        {
            self.resets_warnings = true;
            return self.send_cached(result, &settings, packet, None).await;
        }
        let class = self.class(sql, false).await?;
        let statement = class.statement();
        match statement.cache_switch {
            Some(CacheSwitch::On) => self.client_uses_cache = true,
            Some(CacheSwitch::Off) => self.client_uses_cache = false,
            Some(CacheSwitch::Invalid) => return self.client.send(&invalid_cache_switch()).await,
            None => {}
        }
        if statement.kind == StatementKind::PureSelect
            && let Some(cache) = self.context.cache.clone()
            && let Some(settings) = self.settings_for_caching(sql).await?
        {
            self.resets_warnings = true;
            let mut key = self.cache_key(KEY_OF_TEXT, &settings, sql.len());
            key.extend_from_slice(sql);
            let tables = &statement.effects.reads;
            return self.answer_through_cache(&cache, &key, &settings, tables, (packet, None)).await;
        }
        let (uses, kept) = (statement.diagnostics_use, statement.diagnostics_kept(self.has_warnings));
        let effect = self.effect_of(&statement.effects, uses).await?;
        let (effect, is_delayed) = self.note_statement(statement, effect).await;
        self.resets_warnings = statement.resets_warnings();
        self.catch_up(effect.refine(kept), uses).await?;
        self.begin_write(effect);
        self.delays_rows = is_delayed;
        self.server.send(&packet).await?;
        let mut reply = ReplyTracker::new(ReplyKind::Results, self.login.deprecates_eof);
        self.relay(&mut reply, None).await?;
        if statement.ends_transaction && !reply.failed {
            self.has_next_transaction_settings = false;
        }
        self.record_status(&reply).await?;
        if let StatementKind::Prepare { name, text: Some(text) } = &statement.kind
            && !reply.failed
        {
            self.add_text_prepared(name, text).await?;
        }
        Ok(())
    }

    /// Returns the settings of the server's lexer, as far as this text depends on them.
    async fn lexis(&mut self, sql: &[u8]) -> io::Result<Lexis> {
        if self.depends_on_settings(sql) {
            // A query in between would change the diagnostics that the statement may use.
            let may_use = uses_diagnostics(sql);
            let is_asked =
                self.is_split || self.filtering.is_active() || self.context.cache.is_some() && self.listener_uses_cache;
            if !may_use && is_asked {
                self.settings().await?;
            }
        }
        Ok(self.known_lexis())
    }

    /// Returns whether the tokens of a text depend on settings that are not known.
    fn depends_on_settings(&self, sql: &[u8]) -> bool {
        self.settings.is_none() && (!sql.is_ascii() || memchr::memchr(b'"', sql).is_some())
    }

    /// Returns the settings of the server's lexer, as far as they are known.
    fn known_lexis(&self) -> Lexis {
        let settings = self.settings.as_ref();
        Lexis {
            double_quotes: settings.map_or(DoubleQuotes::Unknown, |settings| settings.double_quotes),
            plain_backslashes: !self.backslash_escapes,
            charset: settings.map_or(Charset::Other, |settings| settings.charset),
            server_version: self.login.server_version,
        }
    }

    fn parse_context(&self, is_prepared: bool) -> ParseContext {
        ParseContext { is_prepared, assume_pure: self.context.cache_filter.assume_pure, is_refused: false }
    }

    /// Notes that the session may see private tables and settings: it bypasses the cache from now
    /// on.
    fn note_private_tables(&mut self) {
        self.may_see_private_tables = true;
        self.settings = None;
        self.text_prepared.clear();
    }

    // --- forwarding

    /// Forwards a command and its reply.
    async fn forward(&mut self, kind: ReplyKind, effect: StatementEffect) -> io::Result<ReplyTracker> {
        self.begin_write(effect);
        self.client.forward_command(&mut self.server).await?;
        let mut reply = ReplyTracker::new(kind, self.login.deprecates_eof);
        self.relay(&mut reply, None).await?;
        self.record_status(&reply).await?;
        Ok(reply)
    }

    /// Forwards a reply, and copies it. A reply longer than the copy's limit leaves the copy empty,
    /// and its limit 0.
    async fn relay(&mut self, reply: &mut ReplyTracker, mut copy: Option<&mut (Vec<u8>, usize)>) -> io::Result<()> {
        while !reply.is_over() {
            if self.server.bytes().is_empty() {
                self.server.fill().await?;
            }
            let used = reply.feed(self.server.bytes());
            let bytes = &self.server.bytes()[..used];
            if let Some((copied, limit)) = copy.as_deref_mut() {
                match copied.len() + used <= *limit {
                    true => copied.extend_from_slice(bytes),
                    false => (*copied, *limit) = (Vec::new(), 0),
                }
            }
            if reply.is_over() {
                write_effects::note_new_definitions(&mut self.in_flight, &mut self.definitions_version, &self.context);
            }
            self.client.send(bytes).await?;
            self.server.consume(used);
            if reply.requests_file {
                self.client.forward_file(&mut self.server, reply.next_number).await?;
            }
        }
        self.server_used = Instant::now();
        Ok(())
    }

    async fn read_status(&mut self, packet: &[u8], kind: ReplyKind) -> io::Result<Option<u16>> {
        self.server.send(packet).await?;
        let mut reply = ReplyTracker::new(kind, self.login.deprecates_eof);
        self.server.read_reply(&mut reply, 0).await?;
        Ok(reply.status)
    }

    /// Records the session's status from a reply. Outside of a transaction, all writes are visible.
    async fn record_status(&mut self, reply: &ReplyTracker) -> io::Result<()> {
        if reply.statement.is_some() {
            return Ok(());
        }
        if std::mem::take(&mut self.delays_rows) {
            self.in_flight.outcome_unknown();
        }
        self.status = reply.status;
        self.has_warnings = reply.warned || reply.failed || self.has_warnings && !self.resets_warnings;
        if self.status.is_none() && !self.in_flight.is_empty() {
            // An error packet does not say whether a transaction is still open. This query does,
            // and keeps ROW_COUNT(), FOUND_ROWS() and the error.
            self.status = self.read_status(&query_packet("VALUES (0)"), ReplyKind::Results).await?;
            if self.status.is_none() {
                self.status = self.read_status(&[1, 0, 0, 0, com::PING], ReplyKind::Single).await?;
            }
        }
        if let Some(status) = self.status {
            self.backslash_escapes = status & NO_BACKSLASH_ESCAPES == 0;
            if status & IN_TRANSACTION == 0 {
                self.finish_writes();
            }
        }
        Ok(())
    }
}
