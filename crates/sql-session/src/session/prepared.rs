//! Prepared statements: what executing one changes, and SELECTs through the result cache.

use super::prepared_statement::{ExecutionEffect, PreparedSelect, PreparedStatement};
use super::state::{KEY_OF_PREPARED, Session};
use super::statement_effect::StatementEffect;
use crate::execute_packet::{self, ExecutePacket};
use crate::in_flight_writes;
use crate::reply_tracker::{PACKET_MAX, ReplyKind, ReplyTracker};
use sql_classify::diagnostics::may_set_found_rows;
use sql_classify::statement::{self, STATEMENT_BYTES_MAX};
use sql_classify::{DiagnosticsKept, DiagnosticsUse, SessionSettings, StatementKind, TableName};
use std::io;
use std::rc::Rc;
use store::Namespace;

/// The id that stands for the statement prepared last.
const LAST_PREPARED: u32 = u32::MAX;

/// Longer COM_STMT_EXECUTE packets are forwarded without being held whole.
const EXECUTION_BYTES_MAX: usize = PACKET_MAX - (256 << 10);

impl Session {
    pub async fn prepare(&mut self, packet: Vec<u8>) -> io::Result<()> {
        let sql = packet.get(5..).unwrap_or_default();
        let mut select = None;
        let kind = statement::classify(sql, self.parse_context(true));
        let diagnostics_use = DiagnosticsUse::of(sql, &kind);
        let effect = match kind {
            StatementKind::PureSelect(tables) => {
                let settings = self.settings().await?;
                let effect = effect_on(ExecutionEffect::Read, &tables, settings.as_deref());
                if self.context.cache.is_some()
                    && let Some(settings) = settings
                {
                    select = Some(Rc::new(PreparedSelect { sql: sql.into(), tables, settings }));
                }
                effect
            }
            StatementKind::Read(tables) if tables.is_empty() => ExecutionEffect::Nothing,
            // The current schema is resolved when the statement is prepared.
            StatementKind::Read(tables) => effect_on(ExecutionEffect::Read, &tables, self.settings().await?.as_deref()),
            StatementKind::Write(tables) => {
                let sets_found_rows = may_set_found_rows(sql, &tables);
                let write = |tables| ExecutionEffect::Write { tables, sets_found_rows };
                effect_on(write, &tables, self.settings().await?.as_deref())
            }
            StatementKind::Show | StatementKind::Transaction => ExecutionEffect::Nothing,
            StatementKind::CallsUnknown => ExecutionEffect::CallsUnknown,
            StatementKind::Settings | StatementKind::NextTransaction | StatementKind::Unknown => {
                ExecutionEffect::Anything
            }
        };
        self.catch_up(DiagnosticsKept::All, DiagnosticsUse::Anything).await?;
        self.server.send(&packet).await?;
        let mut reply = ReplyTracker::new(ReplyKind::Prepared, self.login.deprecates_eof);
        self.relay(&mut reply, None).await?;
        self.add_prepared(&reply, (effect, diagnostics_use), select);
        self.record_status(&reply).await
    }

    pub fn add_prepared(
        &mut self,
        reply: &ReplyTracker,
        (effect, diagnostics_use): (ExecutionEffect, DiagnosticsUse),
        select: Option<Rc<PreparedSelect>>,
    ) {
        self.last_prepared = reply.statement;
        if let Some(number) = reply.statement {
            let params = reply.params;
            let (types, has_unsent_types, has_long_data) = (None, false, false);
            let prepared =
                PreparedStatement { effect, diagnostics_use, select, params, types, has_unsent_types, has_long_data };
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
            return self.execute_unparsed(self.execution_effect(number), DiagnosticsUse::Nothing).await;
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
                let mut key = self.cache_key(KEY_OF_PREPARED, &settings);
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
        let effect = self.effect_of(self.execution_effect(number)).await;
        self.catch_up(DiagnosticsKept::Nothing, DiagnosticsUse::Nothing).await?;
        self.begin_write(effect);
        self.server.send(packet).await?;
        let mut reply = ReplyTracker::new(ReplyKind::Results, self.login.deprecates_eof);
        self.relay(&mut reply, None).await?;
        self.record_status(&reply).await
    }

    fn execution_effect(&self, number: u32) -> ExecutionEffect {
        self.prepared.get(&number).map_or(ExecutionEffect::Anything, |prepared| prepared.effect.clone())
    }

    /// Forwards an execution whose parameters are not parsed.
    pub async fn execute_unparsed(&mut self, effect: ExecutionEffect, uses: DiagnosticsUse) -> io::Result<()> {
        let kept = match effect {
            ExecutionEffect::Write { sets_found_rows: true, .. } => DiagnosticsKept::MaybeFoundRows,
            ExecutionEffect::Write { .. } => DiagnosticsKept::FoundRows,
            ExecutionEffect::Read(_) => DiagnosticsKept::Nothing,
            ExecutionEffect::Nothing | ExecutionEffect::CallsUnknown | ExecutionEffect::Anything => {
                DiagnosticsKept::All
            }
        };
        let effect = self.effect_of(effect).await;
        self.catch_up(effect.refine(kept), uses).await?;
        self.forward(ReplyKind::Results, effect).await.map(drop)
    }

    async fn effect_of(&mut self, effect: ExecutionEffect) -> StatementEffect {
        self.resets_warnings = matches!(effect, ExecutionEffect::Read(_) | ExecutionEffect::Write { .. });
        match effect {
            ExecutionEffect::Read(tables) => self.effect_of_reading_from(Some(&tables)).await,
            ExecutionEffect::Write { tables, .. } => self.effect_of_writing_to(Some(&tables)).await,
            ExecutionEffect::Nothing => StatementEffect::Nothing,
            ExecutionEffect::CallsUnknown => {
                self.note_private_tables();
                StatementEffect::AnyRows
            }
            ExecutionEffect::Anything => {
                self.note_private_tables();
                StatementEffect::Everything
            }
        }
    }
}

/// Returns the effect on tables, whose schemas are those of the settings.
fn effect_on(
    kind: impl FnOnce(Rc<[Namespace]>) -> ExecutionEffect,
    tables: &[TableName],
    settings: Option<&SessionSettings>,
) -> ExecutionEffect {
    in_flight_writes::namespaces(tables, settings).map_or(ExecutionEffect::Anything, |tables| kind(tables.into()))
}
