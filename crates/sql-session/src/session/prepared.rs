//! Prepared statements: what executing one changes, and SELECTs through the result cache.

use super::prepared_statement::{Execution, PreparedSelect, PreparedStatement};
use super::state::{KEY_OF_PREPARED, Session};
use super::text_prepared::TextStatement;
use crate::execute_packet::{self, ExecutePacket};
use crate::reply_tracker::{PACKET_MAX, ReplyKind, ReplyTracker};
use sql_classify::statement::STATEMENT_BYTES_MAX;
use sql_classify::{DiagnosticsKept, DiagnosticsUse, StatementKind};
use std::io;
use std::rc::Rc;

/// The id that stands for the statement prepared last.
const LAST_PREPARED: u32 = u32::MAX;

/// Longer COM_STMT_EXECUTE packets are forwarded without being held whole.
const EXECUTION_BYTES_MAX: usize = PACKET_MAX - (256 << 10);

impl Session {
    pub async fn prepare(&mut self, packet: Vec<u8>) -> io::Result<()> {
        let sql = packet.get(5..).unwrap_or_default();
        let class = self.class(sql, true).await?;
        let statement = class.statement();
        let mut select = None;
        let mut execution = Execution::default();
        if statement.is_executed_at_once() {
            let has_names = statement.effects.has_names();
            // The current schema is resolved when the statement is prepared.
            let settings = if has_names { self.settings().await? } else { None };
            execution = Execution::of(statement, settings.as_deref());
            if statement.kind == StatementKind::PureSelect
                && self.context.cache.is_some()
                && let Some(settings) = settings
            {
                let tables = statement.effects.reads.clone();
                select = Some(Rc::new(PreparedSelect { sql: sql.into(), tables, settings }));
            }
        }
        self.catch_up(DiagnosticsKept::All, DiagnosticsUse::Anything).await?;
        self.server.send(&packet).await?;
        let mut reply = ReplyTracker::new(ReplyKind::Prepared, self.login.deprecates_eof);
        self.relay(&mut reply, None).await?;
        self.add_prepared(&reply, Rc::new(execution), select);
        self.record_status(&reply).await
    }

    /// Records a statement that the server has prepared by name. Its tables are resolved in the
    /// current schema.
    pub async fn add_text_prepared(&mut self, name: &str, text: &str) -> io::Result<()> {
        if !self.text_prepared.has_room() || self.context.observer.is_none() {
            return Ok(());
        }
        let class = self.class(text.as_bytes(), true).await?;
        let statement = class.statement();
        if statement.is_executed_at_once() {
            // A query now would change the diagnostics that PREPARE has set.
            let effects = self.resolve(&statement.effects, DiagnosticsUse::Other).await?;
            self.text_prepared.insert(name, TextStatement { effects, is_delayed: statement.is_delayed });
        }
        Ok(())
    }

    pub fn add_prepared(&mut self, reply: &ReplyTracker, execution: Rc<Execution>, select: Option<Rc<PreparedSelect>>) {
        self.last_prepared = reply.statement;
        if let Some(number) = reply.statement {
            let params = reply.params;
            let (types, has_unsent_types, has_long_data) = (None, false, false);
            let prepared = PreparedStatement { execution, select, params, types, has_unsent_types, has_long_data };
            self.prepared.insert(number, prepared);
        }
    }

    pub fn note_long_data(&mut self, number: u32, has_long_data: bool) {
        if let Some(prepared) = self.resolve_statement_id(number).and_then(|number| self.prepared.get_mut(&number)) {
            prepared.has_long_data = has_long_data;
        }
    }

    /// Returns the id of the statement that an id in a command stands for.
    pub fn resolve_statement_id(&self, number: u32) -> Option<u32> {
        if number == LAST_PREPARED { self.last_prepared } else { Some(number) }
    }

    /// Returns the prepared SELECT with this id, if its results can be cached.
    pub fn cacheable_select(&self, number: u32) -> Option<Rc<PreparedSelect>> {
        self.prepared.get(&self.resolve_statement_id(number)?)?.select.clone()
    }

    /// Executes a SELECT, from the cache or on the server. A packet sent to the server includes the
    /// types, which it may not have received.
    pub async fn execute(&mut self, number: u32, length: usize) -> io::Result<()> {
        let (Some(number), Some(select)) = (self.resolve_statement_id(number), self.cacheable_select(number)) else {
            return Ok(());
        };
        if length >= EXECUTION_BYTES_MAX {
            // Too long to be held and encoded again with the types that the server lacks.
            if self.prepared.get(&number).is_some_and(|prepared| prepared.has_unsent_types) {
                return Err(io::ErrorKind::InvalidData.into());
            }
            return self.execute_unparsed(self.execution_effect(number)).await;
        }
        let packet = self.client.packet(EXECUTION_BYTES_MAX).await?;
        let payload = packet.get(4..).unwrap_or_default();
        let prepared = self.prepared.get_mut(&number);
        let (params, has_long_data) = prepared.as_ref().map_or((0, false), |it| (it.params, it.has_long_data));
        let execution = ExecutePacket::parse(payload, params).filter(|_| !has_long_data);
        let types = match (&execution, prepared) {
            (Some(execution), Some(prepared)) => {
                prepared.types = execution.types.map(Rc::from).or(prepared.types.take());
                prepared.types.clone()
            }
            _ => None,
        };
        if let (Some(execution), Some(types)) = (&execution, &types) {
            let whole = execution.packet(types);
            if let Some(cache) = self.context.cache.clone()
                && execution.is_without_cursor()
                && length <= STATEMENT_BYTES_MAX
                && execute_packet::are_date_independent(types)
                && let Some(settings) = self.settings_for_caching(&select.sql).await?
                && settings.bytes == select.settings.bytes
            {
                let mut key = self.cache_key(KEY_OF_PREPARED, &settings, select.sql.len() + length);
                key.extend_from_slice(&(select.sql.len() as u32).to_le_bytes());
                key.extend_from_slice(&select.sql);
                execution.write_key(types, &mut key);
                let statement = (whole, Some(select.sql.clone()));
                self.answer_through_cache(&cache, &key, &settings, &select.tables, statement).await?;
                let is_from_cache = self.last_cached_select.is_some();
                if let Some(prepared) = self.prepared.get_mut(&number) {
                    prepared.has_unsent_types = is_from_cache;
                }
                return Ok(());
            }
            return self.send_and_relay(number, &whole).await;
        }
        self.send_and_relay(number, &packet).await
    }

    async fn send_and_relay(&mut self, number: u32, packet: &[u8]) -> io::Result<()> {
        let execution = self.execution_effect(number);
        self.resets_warnings = execution.resets_warnings;
        let effect = self.effect_of_resolved(&execution.effects).await;
        self.catch_up(DiagnosticsKept::Nothing, DiagnosticsUse::Nothing).await?;
        self.begin_write(effect);
        self.server.send(packet).await?;
        let mut reply = ReplyTracker::new(ReplyKind::Results, self.login.deprecates_eof);
        self.relay(&mut reply, None).await?;
        self.record_status(&reply).await
    }

    pub fn execution_effect(&self, number: u32) -> Rc<Execution> {
        self.prepared.get(&number).map(|prepared| prepared.execution.clone()).unwrap_or_default()
    }

    /// Forwards an execution whose parameters are not parsed.
    pub async fn execute_unparsed(&mut self, execution: Rc<Execution>) -> io::Result<()> {
        self.resets_warnings = execution.resets_warnings;
        let effect = self.effect_of_resolved(&execution.effects).await;
        self.catch_up(effect.refine(execution.diagnostics_kept), execution.diagnostics_use).await?;
        self.delays_rows = execution.is_delayed;
        self.forward(ReplyKind::Results, effect).await.map(drop)
    }
}
