//! Writes of statements, which the caches get to know before a server executes them, and what
//! servers lack because SELECTs were answered from the cache.

use super::command::{Command, DiagnosticsEffect, Need};
use super::exchange::{Failure, ask};
use super::sharing;
use super::split_state::Split;
use crate::reply_tracker::{ReplyKind, ReplyTracker};
use crate::session::cached_select::CachedSelect;
use crate::session::catch_up::CatchUp;
use crate::session::prepared_statement::Execution;
use crate::session::state::Session;
use crate::session::statement_effect::StatementEffect;
use sql_classify::{CacheSwitch, Class, DiagnosticsKept, DiagnosticsUse, Effects, Statement, StatementKind};
use std::io;

/// So many connections are asked for the settings of a session.
const CONNECTIONS_MAX: u32 = 3;

impl Session {
    /// Announces what a statement in text changes, before the primary gets it. Returns false if
    /// that is not possible: then the client has got an error.
    pub(super) async fn announce(&mut self, split: &mut Split, class: &Class) -> io::Result<bool> {
        let statement = class.statement();
        let (uses, kept) = (statement.diagnostics_use, statement.diagnostics_kept(self.has_warnings));
        let effect = match self.context.observer.is_some() {
            true => self.effect_at_home(split, &statement.effects, uses).await?,
            false => Some(StatementEffect::Nothing),
        };
        let Some(effect) = effect else { return Ok(false) };
        let (effect, is_delayed) = self.note_statement(statement, effect).await;
        self.resets_warnings = statement.resets_warnings();
        if !self.split_catch_up(split, effect.refine(kept), uses).await? {
            return Ok(false);
        }
        self.begin_write(effect);
        self.delays_rows = is_delayed;
        Ok(true)
    }

    /// As [`Session::announce`], for the execution of a prepared statement. `now`: its effects in
    /// the current schema, if that may be another than when it was prepared. A connection that
    /// prepares it again does so in the current one.
    pub(super) async fn announce_execution(
        &mut self,
        split: &mut Split,
        execution: &Execution,
        now: Option<&Effects>,
    ) -> io::Result<bool> {
        if self.context.observer.is_none() {
            return Ok(true);
        }
        let mut effect = self.effect_of_resolved(&execution.effects).await;
        if let Some(effects) = now {
            let Some(more) = self.effect_at_home(split, effects, execution.diagnostics_use).await? else {
                return Ok(false);
            };
            effect = effect.and(more);
        }
        self.resets_warnings = execution.resets_warnings;
        let kept = effect.refine(execution.diagnostics_kept);
        if !self.split_catch_up(split, kept, execution.diagnostics_use).await? {
            return Ok(false);
        }
        self.begin_write(effect);
        self.delays_rows = execution.is_delayed;
        Ok(true)
    }

    /// As [`Session::announce`], for a command that may change anything. `is_known`: it is the
    /// definition of a schema, which leaves the session as it is.
    pub(super) async fn announce_anything(&mut self, split: &mut Split, is_known: bool) -> io::Result<bool> {
        if self.context.observer.is_none() {
            return Ok(true);
        }
        if !self.split_catch_up(split, DiagnosticsKept::All, DiagnosticsUse::Anything).await? {
            return Ok(false);
        }
        if !is_known {
            self.note_private_tables();
        }
        self.begin_write(StatementEffect::Everything);
        Ok(true)
    }

    /// Returns the effect of a statement on the primary, for which the session's settings may have
    /// to be asked for. `None`: there is no primary, and the client has got an error.
    async fn effect_at_home(
        &mut self,
        split: &mut Split,
        effects: &Effects,
        uses: DiagnosticsUse,
    ) -> io::Result<Option<StatementEffect>> {
        let mut connections = 0;
        loop {
            let asks = self.settings.is_none() && effects != &Effects::default();
            if asks && !self.reach_home(split, Need::Any).await? {
                return Ok(None);
            }
            match self.effect_of(effects, uses).await {
                Ok(effect) => return Ok(Some(effect)),
                Err(error) if connections == CONNECTIONS_MAX => return Err(error),
                Err(error) => self.leave_failed_home(split, error)?,
            }
            connections += 1;
        }
    }

    /// Leaves the session's own connection, which has failed, if it can have another.
    pub(super) fn leave_failed_home(&mut self, split: &mut Split, error: io::Error) -> io::Result<()> {
        if !split.can_move(false) {
            return Err(error);
        }
        self.lease.assignment.suspect();
        self.detach(split, error.to_string());
        Ok(())
    }

    /// Notes the end of a statement whose changes were announced. Outside of a transaction, they
    /// are visible or rolled back.
    pub(super) async fn end_announced(&mut self, split: &mut Split, reply: &ReplyTracker) {
        if self.context.observer.is_none() || reply.statement.is_some() {
            return;
        }
        if std::mem::take(&mut self.delays_rows) {
            self.in_flight.outcome_unknown();
        }
        self.has_warnings = reply.warned || reply.failed || self.has_warnings && !self.resets_warnings;
        if reply.status.is_none() && !self.in_flight.is_empty() {
            // An error packet does not say whether a transaction is still open.
            match self.ask_status(split).await {
                Some(status) => (split.status, self.status) = (status, Some(status)),
                None => self.in_flight.outcome_unknown(),
            }
        }
        self.end_writes_outside(split);
    }

    /// Finishes the writes that were announced, unless a transaction is open or is to be executed
    /// again.
    pub(super) fn end_writes_outside(&mut self, split: &Split) {
        if !split.is_in_transaction() && !split.must_replay && !self.in_flight.is_empty() {
            self.finish_writes();
        }
    }

    /// Records what a statement that has succeeded leaves for later statements.
    pub(super) async fn note_done(&mut self, statement: &Statement) -> io::Result<()> {
        if statement.ends_transaction {
            self.has_next_transaction_settings = false;
        }
        match statement.cache_switch {
            Some(CacheSwitch::On) => self.client_uses_cache = true,
            Some(CacheSwitch::Off) => self.client_uses_cache = false,
            _ => {}
        }
        if let StatementKind::Prepare { name, text: Some(text) } = &statement.kind {
            self.add_text_prepared(name, text).await?;
        }
        Ok(())
    }

    /// Brings the diagnostics of the session's own connection up to the last statement, as far as
    /// the next one needs it. Returns false if there is no connection: then the client has got an
    /// error.
    pub(super) async fn split_catch_up(
        &mut self,
        split: &mut Split,
        kept: DiagnosticsKept,
        uses: DiagnosticsUse,
    ) -> io::Result<bool> {
        match self.lacks(kept, uses) {
            CatchUp::Nothing => {
                self.note_cached_rows(split);
                Ok(true)
            }
            CatchUp::Repeat(select) => self.repeat(split, &select).await,
            CatchUp::Restore(result) => {
                if !self.reach_home(split, Need::Any).await? {
                    return Ok(false);
                }
                if let Err(error) = self.restore_found_rows(&result, uses).await {
                    self.leave_failed_home(split, error)?;
                }
                split.last_replica = None;
                Ok(true)
            }
        }
    }

    /// Keeps the number of a cached result's rows with the other diagnostics of the session, if it
    /// shares its connections.
    fn note_cached_rows(&mut self, split: &mut Split) {
        if let Some(sharing) = &mut split.sharing
            && let Some(result) = self.found_rows.take()
        {
            let mut reply = ReplyTracker::new(ReplyKind::Results, self.login.deprecates_eof);
            reply.feed(&result.0);
            sharing.note_reply(&reply, DiagnosticsEffect::default());
            sharing.note_move(false);
        }
    }

    /// Executes a SELECT on the session's own connection that was answered from the cache.
    async fn repeat(&mut self, split: &mut Split, select: &CachedSelect) -> io::Result<bool> {
        if !self.reach_home(split, Need::Any).await? {
            return Ok(false);
        }
        let command = Command { prepared: select.prepared.clone(), ..Command::text(&select.packet) };
        let mut reply = ReplyTracker::new(ReplyKind::Results, self.login.deprecates_eof);
        let asked = match self.packet_for_home(split, &command).await {
            Ok(packet) => ask(&mut self.server, &packet, &mut reply, &mut split.assignment).await.map(drop),
            Err(failure) => Err(failure),
        };
        match asked {
            Ok(()) => {}
            Err(Failure::Client(error)) => return Err(error),
            // Its diagnostics are lost with the connection.
            Err(Failure::Server(lost)) => {
                self.leave_failed_home(split, io::Error::other(lost.reason))?;
                return Ok(true);
            }
        }
        self.has_warnings = false;
        let counts_rows = split.sharing.is_some() && sharing::counts_rows(&select.packet);
        let diagnostics = DiagnosticsEffect { counts_rows, resets_warnings: true, keeps_found_rows: false };
        self.note_home_reply(split, &reply, diagnostics);
        Ok(true)
    }
}
