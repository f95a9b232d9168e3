//! Filters on a session's path: before the router gets a command, and after its reply.

use super::com;
use super::filter_state::Running;
use super::mirror::{Copy, MirrorLink, MirrorOf, ReplyDigest, RowDigest, is_mirrored};
use super::state::Session;
use super::uses_diagnostics;
use crate::login::elsewhere::Identity;
use crate::login::error_packet;
use crate::reply_gate::ReplyGate;
use crate::reply_tracker::{ReplyKind, ReplyTracker};
use crate::result_rows;
use ahash::AHashSet;
use mariadb_wire::Reader;
use sql_classify::StatementKind;
use sql_classify::statement::STATEMENT_BYTES_MAX;
use sql_filter::mask_rule::fold;
use sql_filter::{Action, Outcome, Refusal, Statement, Verdict};
use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use tokio::time::sleep;

/// The views that a user may use. The session's settings must change neither the number of rows nor
/// their letters.
const VIEWS_QUERY: &str = "SELECT HEX(CONVERT(TABLE_NAME USING utf8mb4)) FROM information_schema.TABLES \
    WHERE TABLE_TYPE = 'VIEW' LIMIT 1000000";

/// The longest name of a schema, with its command.
const SCHEMA_BYTES_MAX: usize = 256;

/// Returns the kind of reply that a command gets; `None`: it gets none.
fn reply_kind(command: u8) -> Option<ReplyKind> {
    match command {
        com::QUERY | com::PROCESS_INFO | com::STMT_EXECUTE | com::STMT_BULK_EXECUTE => Some(ReplyKind::Results),
        com::STMT_PREPARE => Some(ReplyKind::Prepared),
        com::STMT_FETCH => Some(ReplyKind::Rows),
        com::FIELD_LIST => Some(ReplyKind::Fields),
        com::STMT_CLOSE | com::STMT_SEND_LONG_DATA | com::QUIT => None,
        // Their replies are no reply to a command: a login, or an endless stream.
        com::CHANGE_USER | com::BINLOG_DUMP | com::TABLE_DUMP => None,
        _ => Some(ReplyKind::Single),
    }
}

/// Returns whether the settings of the lexer are the same after a statement.
fn keeps_settings(statement: &sql_classify::Statement) -> bool {
    match statement.kind {
        StatementKind::PureSelect | StatementKind::Show | StatementKind::Transaction => true,
        StatementKind::Read | StatementKind::Write => statement.effects.calls.is_empty(),
        _ => false,
    }
}

/// Returns the names of views, folded, from the rows of the query for them.
fn view_names(rows: &[u8]) -> Option<AHashSet<String>> {
    let (mut reader, mut names) = (Reader::new(rows, "text row"), AHashSet::default());
    while !reader.is_empty() {
        let digits = reader.length_encoded_bytes().ok()?;
        let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let bytes: Vec<u8> = digits.chunks(2).map(pair).collect::<Option<_>>()?;
        names.insert(fold(std::str::from_utf8(&bytes).ok()?));
    }
    Some(names)
}

impl Session {
    /// Runs the next command, after the filters. Returns false if it is the last.
    pub async fn filtered_command(&mut self) -> io::Result<bool> {
        if !self.filtering.has_filters() {
            return self.command().await;
        }
        if !self.begin_filtered().await? {
            return Ok(true);
        }
        let outcome = self.command().await;
        self.end_filtered();
        outcome
    }

    /// Lets the filters check the next command. Returns false if the client has got an error
    /// instead.
    async fn begin_filtered(&mut self) -> io::Result<bool> {
        let (length, payload) = self.client.peek(5).await?;
        let command = payload.first().copied().unwrap_or_default();
        let number = payload.get(1..5).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes);
        let kind = reply_kind(command);
        let (deprecates_eof, is_extended) = self.form();
        self.client.gate = kind.map(|kind| Box::new(ReplyGate::new(kind, deprecates_eof)));
        let user = self.lease.user();
        if self.filtering.client.user.as_bytes() != user {
            self.filtering.client.user = String::from_utf8_lossy(user).into_owned();
        }
        let started = Instant::now();
        let schema = if command == com::INIT_DB { Some(self.peek_schema(length).await?) } else { None };
        let call = self.filtered_call(command, number, length).await?;
        if !self.find_views(&call).await? {
            self.client.gate = None;
            self.client.skip_command().await?;
            return Ok(false);
        }
        let id = self.filtering.statement_id(number);
        let mut running = Running { schema, started, call, id, copy: None, seen: 0 };
        let refusal = self.check(&mut running).await?;
        let mut editors = self.filtering.editors(&running, command);
        if refusal.is_none() && self.filtering.mirror_server().is_some() {
            running.copy = self.copy_for_mirror(command).await?;
            if let Some((_, digest)) = running.copy.as_ref().filter(|_| kind == Some(ReplyKind::Results)) {
                editors.insert(0, Box::new(RowDigest(digest.clone())));
            }
        }
        self.filtering.running = Some(running);
        let Some(Refusal { code, state, message }) = refusal else {
            if let Some(gate) = &mut self.client.gate {
                gate.edit(
                    editors,
                    is_extended,
                    [com::STMT_EXECUTE, com::STMT_BULK_EXECUTE, com::STMT_FETCH].contains(&command),
                );
            }
            return Ok(true);
        };
        self.client.skip_command().await?;
        self.client.send(&error_packet(1, code, state, &message)).await?;
        self.end_filtered();
        Ok(false)
    }

    /// Asks the server for the views that the client may use, if a filter must know them. Returns
    /// false if no server can be reached: then the client has got an error.
    async fn find_views(&mut self, call: &Option<(Rc<Statement>, Action)>) -> io::Result<bool> {
        let Some((statement, action)) = call else { return Ok(true) };
        let user = &self.filtering.client.user;
        let is_needed = self.filtering.pipeline.filters.iter().any(|filter| filter.needs_views(user));
        if !is_needed || *action == Action::Execute || self.filtering.has_recent_views() {
            return Ok(true);
        }
        if uses_diagnostics(statement.text().unwrap_or_default().as_bytes()) {
            return Ok(true);
        }
        if !self.end_parking().await? {
            return Ok(false);
        }
        if !self.can_ask() {
            return Ok(true);
        }
        let reply = self.query_server(VIEWS_QUERY).await?;
        let rows = reply.and_then(|packets| result_rows::rows(&packets, self.login.deprecates_eof));
        self.filtering.set_views(rows.and_then(|rows| view_names(&rows)));
        Ok(true)
    }

    /// Returns the next command and a place for the digest of its rows, if a second server gets a
    /// copy. Opens the connection to that server with the first one.
    async fn copy_for_mirror(&mut self, command: u8) -> io::Result<Option<(Vec<u8>, Rc<Cell<u64>>)>> {
        let Some(server) = self.filtering.mirror_server() else { return Ok(None) };
        if command == com::CHANGE_USER {
            // The gateway cannot log in as the next user there.
            (self.filtering.mirror, self.filtering.has_no_mirror) = (None, true);
        }
        if self.filtering.has_no_mirror || !is_mirrored(command) {
            return Ok(None);
        }
        if self.filtering.mirror.as_ref().is_none_or(|mirror| mirror.server != server.name) {
            let identity = self.own_identity().await;
            if let Err(reason) = &identity {
                tracing::warn!(server = server.name, reason, "a session is not mirrored");
                self.filtering.has_no_mirror = true;
            }
            let (deprecates_eof, is_extended) = self.form();
            let (schema, counters) = (self.filtering.client.schema.clone(), self.filtering.pipeline.counters.clone());
            self.filtering.mirror = identity.ok().map(|identity| {
                MirrorLink::open(MirrorOf { identity, server, schema, deprecates_eof, is_extended, counters })
            });
        }
        let (length, _) = self.client.peek(5).await?;
        if length > STATEMENT_BYTES_MAX || self.filtering.mirror.is_none() {
            self.filtering.pipeline.counters.dropped.increment();
            return Ok(None);
        }
        let packet = self.client.peek_packet(STATEMENT_BYTES_MAX).await?;
        Ok(Some((packet, Rc::default())))
    }

    /// Returns the client's identity, by which the gateway logs in to a further server.
    async fn own_identity(&self) -> Result<Arc<Identity>, String> {
        if let Some(split) = &self.split {
            return split.identity.clone();
        }
        let state = self.context.service.state();
        let (login, hashes) = (&self.login, &self.context.stored_hashes);
        let account = state.settings.account.as_ref();
        let identity = Identity::of((&login.response, &login.proof), hashes, &self.lease.server, account).await;
        identity.map(Arc::new)
    }

    /// Gives a command that has ended to the queue for the second server.
    fn send_to_mirror(&self, running: &mut Running, gate: Option<&ReplyGate>) {
        let (Some((packet, digest)), Some(mirror)) = (running.copy.take(), &self.filtering.mirror) else { return };
        let command = packet.get(4).copied().unwrap_or_default();
        let answer = |gate: &ReplyGate| {
            let (rows, error) = (gate.reply.rows, gate.reply.error);
            (!gate.has_cursor() && !gate.has_ended()).then(|| ReplyDigest { rows, digest: digest.get(), error })
        };
        let prepared = gate.and_then(|gate| gate.reply.statement);
        let copy = Copy {
            packet,
            kind: reply_kind(command),
            id: prepared.unwrap_or(running.id),
            expected: gate.and_then(answer),
            form: running.call.as_ref().and_then(|(statement, _)| statement.redacted()),
        };
        if !mirror.push(copy) {
            self.filtering.pipeline.counters.dropped.increment();
        }
    }

    /// Returns whether the session has a server that it may ask now.
    fn can_ask(&self) -> bool {
        self.split.as_ref().is_none_or(|split| split.detached.is_none() && split.reading.is_none())
    }

    /// Asks the filters in their order about a command. Returns the error of the first that refuses
    /// it.
    async fn check(&mut self, running: &mut Running) -> io::Result<Option<Refusal>> {
        let Some((statement, action)) = &mut running.call else { return Ok(None) };
        for filter in self.filtering.pipeline.filters.clone() {
            running.seen += 1;
            match filter.check(&self.filtering.call(statement, *action)) {
                Verdict::Pass => {}
                Verdict::Refuse(refusal) => return Ok(Some(refusal)),
                Verdict::Wait(time) => sleep(time).await,
                Verdict::Replace(text) => {
                    if self.client.replace_statement(text.as_bytes()) {
                        let is_prepared = *action == Action::Prepare;
                        *statement = Rc::new(self.filtered_statement(text.as_bytes(), is_prepared).await?);
                    }
                }
            }
        }
        Ok(None)
    }

    /// Returns the statement of the next command, if filters check that.
    async fn filtered_call(
        &mut self,
        command: u8,
        number: u32,
        length: usize,
    ) -> io::Result<Option<(Rc<Statement>, Action)>> {
        let lexis = self.known_lexis();
        let unknown = || Rc::new(Statement::unknown(lexis));
        Ok(match command {
            com::QUERY | com::STMT_PREPARE | com::CREATE_DB | com::DROP_DB | com::PROCESS_INFO => {
                let is_prepared = command == com::STMT_PREPARE;
                let action = if is_prepared { Action::Prepare } else { Action::Query };
                if length > STATEMENT_BYTES_MAX {
                    return Ok(Some((unknown(), action)));
                }
                let (_, payload) = self.client.peek(length).await?;
                let rest = payload.get(1..length).unwrap_or_default();
                let quoted = || String::from_utf8_lossy(rest).replace('`', "``");
                let sql = match command {
                    com::CREATE_DB => format!("CREATE DATABASE `{}`", quoted()).into_bytes(),
                    com::PROCESS_INFO => b"SHOW PROCESSLIST".to_vec(),
                    com::DROP_DB => format!("DROP DATABASE `{}`", quoted()).into_bytes(),
                    _ => rest.to_vec(),
                };
                Some((Rc::new(self.filtered_statement(&sql, is_prepared).await?), action))
            }
            com::STMT_EXECUTE | com::STMT_BULK_EXECUTE => {
                let known = self.filtering.prepared.get(&self.filtering.statement_id(number)).cloned();
                Some((known.unwrap_or_else(unknown), Action::Execute))
            }
            // They send rows of any table.
            com::BINLOG_DUMP | com::TABLE_DUMP => Some((unknown(), Action::Query)),
            com::STMT_CLOSE => {
                self.filtering.prepared.remove(&number);
                self.filtering.cursors.remove(&number);
                None
            }
            com::CHANGE_USER | com::RESET_CONNECTION => {
                self.filtering.reset();
                None
            }
            _ => None,
        })
    }

    /// Returns the schema that the next command, COM_INIT_DB, chooses.
    async fn peek_schema(&mut self, length: usize) -> io::Result<String> {
        let length = length.min(SCHEMA_BYTES_MAX);
        let (_, payload) = self.client.peek(length).await?;
        Ok(String::from_utf8_lossy(payload.get(1..length).unwrap_or_default()).into_owned())
    }

    /// Returns a statement with the settings by which the server reads it.
    async fn filtered_statement(&mut self, sql: &[u8], is_prepared: bool) -> io::Result<Statement> {
        // A session that reads elsewhere, or has no server, must not ask for its settings now.
        let can_ask = self.can_ask();
        // The result cache has stricter rules for them than the lexer.
        if self.settings.is_none() && self.context.cache.is_none() {
            self.settings = self.filtering.settings.take();
        }
        let lexis = if can_ask { self.lexis(sql).await? } else { self.known_lexis() };
        self.filtering.settings = self.settings.clone();
        let class = self.class_by(sql, lexis, is_prepared).await;
        Ok(Statement::new(sql, lexis, class))
    }

    /// Notes what a command has done to the session.
    fn note_filtered(&mut self, running: &Running, reply: &ReplyTracker) {
        let filtering = &mut self.filtering;
        if reply.failed {
            return;
        }
        if let Some(schema) = &running.schema {
            filtering.client.schema = schema.clone();
            filtering.settings = None;
        }
        let Some((statement, action)) = &running.call else { return };
        if *action == Action::Prepare {
            if let Some(id) = reply.statement {
                filtering.last_prepared = id;
                filtering.prepared.insert(id, statement.clone());
            }
            return;
        }
        if !keeps_settings(statement.classified()) {
            // It may have changed the role.
            filtering.views_read = None;
        }
        let has_settings = filtering.settings.is_some() || self.is_split && self.settings.is_some();
        if has_settings && !keeps_settings(statement.classified()) {
            filtering.settings = None;
            if self.is_split {
                self.settings = None;
            }
        }
        if let Some(schema) = statement.chosen_schema() {
            filtering.client.schema = schema;
        }
    }

    /// Reports the end of a command to the filters that have seen it.
    fn end_filtered(&mut self) {
        let gate = self.client.gate.take();
        let Some(mut running) = self.filtering.running.take() else { return };
        self.send_to_mirror(&mut running, gate.as_deref());
        let Some(mut gate) = gate else { return };
        let editors = gate.take_editors();
        if gate.has_cursor() {
            self.filtering.cursors.insert(running.id, editors);
        }
        let reply = gate.reply;
        self.note_filtered(&running, &reply);
        let Some((statement, action)) = &running.call else { return };
        let server = match self.split.as_ref().and_then(|split| split.last_replica.as_deref()) {
            Some(replica) => replica,
            None => &self.lease.server.name,
        };
        let has_reached_server = running.seen == self.filtering.pipeline.filters.len();
        let outcome = Outcome {
            duration: running.started.elapsed(),
            server: has_reached_server.then_some(server),
            rows: reply.rows,
            error: gate.refusal.or(reply.error),
        };
        for filter in self.filtering.pipeline.filters.iter().take(running.seen) {
            filter.finished(&self.filtering.call(statement, *action), &outcome);
        }
    }
}
