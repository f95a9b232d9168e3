//! What statements change, and reporting it to the change observer.

use super::resolved_effects::{MoreChanges, ResolvedEffects};
use super::state::Session;
use super::statement_effect::StatementEffect;
use crate::context::SqlContext;
use crate::in_flight_writes::InFlightWrites;
use sql_classify::{DiagnosticsUse, Effects, SessionEffect, Statement, StatementKind};
use std::io;

/// Announces changes of any table if definitions have changed since the running statement's effect
/// was determined: it may have fired a trigger that was created meanwhile.
pub fn note_new_definitions(in_flight: &mut InFlightWrites, version: &mut Option<u64>, context: &SqlContext) {
    if let Some(observer) = &context.observer
        && let Some(version) = version.take()
        && version != context.definitions.version()
    {
        in_flight.begin(observer, None);
    }
}

impl Session {
    /// Returns the effect of a statement. Applies the effect on the session.
    ///
    /// `uses`: if the statement uses the diagnostics of the one before, the gateway must not send a
    /// statement in between.
    pub async fn effect_of(&mut self, effects: &Effects, uses: DiagnosticsUse) -> io::Result<StatementEffect> {
        if self.context.observer.is_none() || effects == &Effects::default() {
            return Ok(StatementEffect::Nothing);
        }
        let resolved = self.resolve(effects, uses).await?;
        Ok(self.effect_of_resolved(&resolved).await)
    }

    /// Resolves the names of a statement in the current schema.
    pub async fn resolve(&mut self, effects: &Effects, uses: DiagnosticsUse) -> io::Result<ResolvedEffects> {
        let may_use = uses.is_explicit() || uses == DiagnosticsUse::Anything && self.has_warnings;
        let settings = if may_use { self.settings.clone() } else { self.settings().await? };
        Ok(ResolvedEffects::new(effects, settings.as_deref()))
    }

    /// As [`Session::effect_of`], for a statement whose names have been resolved.
    pub async fn effect_of_resolved(&mut self, effects: &ResolvedEffects) -> StatementEffect {
        if self.context.observer.is_none() {
            return StatementEffect::Nothing;
        }
        self.definitions_version = Some(self.context.definitions.version());
        let ignores_case = self.settings.as_ref().is_none_or(|settings| settings.ignores_case);
        let mut tables = Some(Vec::new());
        let mut session = effects.session;
        for access in &effects.accesses {
            let effects = self.context.definitions.effects(access.clone(), ignores_case).await;
            session = session.max(effects.session);
            tables = tables.zip(effects.tables).map(|(mut all, mut tables)| {
                all.append(&mut tables);
                all
            });
        }
        self.apply_session_effect(session);
        match (effects.changes, tables) {
            (MoreChanges::Everything, _) => StatementEffect::Everything,
            (MoreChanges::AnyRows, _) | (_, None) => StatementEffect::AnyRows,
            (MoreChanges::Nothing, Some(tables)) if tables.is_empty() => StatementEffect::Nothing,
            (MoreChanges::Nothing, Some(tables)) => StatementEffect::Tables(tables),
        }
    }

    /// Notes what a statement in text changes in the session, before a server executes it. Returns
    /// its effect with that of what it executes, and whether it may be acknowledged before its rows
    /// are visible.
    pub async fn note_statement(
        &mut self,
        statement: &Statement,
        mut effect: StatementEffect,
    ) -> (StatementEffect, bool) {
        let mut is_delayed = statement.is_delayed;
        match &statement.kind {
            StatementKind::Settings | StatementKind::NextTransaction => {
                self.settings = None;
                self.has_next_transaction_settings |= statement.kind == StatementKind::NextTransaction;
                if statement.reloads_privileges {
                    self.privileges.note_reload();
                }
            }
            StatementKind::Other if statement.reloads_privileges => self.privileges.note_reload(),
            StatementKind::Execute { name } => {
                let prepared = self.text_prepared.execution(name);
                is_delayed |= prepared.is_delayed;
                effect = effect.and(self.effect_of_resolved(&prepared.effects).await);
            }
            StatementKind::Prepare { name, .. } | StatementKind::Deallocate { name } => self.text_prepared.remove(name),
            _ => {}
        }
        (effect, is_delayed)
    }

    fn apply_session_effect(&mut self, effect: SessionEffect) {
        match effect {
            SessionEffect::None => {}
            SessionEffect::Settings => self.settings = None,
            SessionEffect::Anything => self.note_private_tables(),
        }
    }

    /// Reports a write to the observer, before the server receives the statement.
    pub fn begin_write(&mut self, effect: StatementEffect) {
        let Some(observer) = &self.context.observer else { return };
        match effect {
            StatementEffect::Nothing => {}
            StatementEffect::Tables(tables) => self.in_flight.begin(observer, Some(tables)),
            StatementEffect::AnyRows => {
                self.definitions_version = None;
                self.in_flight.begin(observer, None);
            }
            StatementEffect::Everything => {
                self.context.definitions.invalidate();
                self.definitions_version = None;
                self.in_flight.begin_definitions(observer);
            }
        }
    }

    /// Finishes the writes in flight: they are visible to every reader, or rolled back.
    pub fn finish_writes(&mut self) {
        if self.in_flight.may_change_definitions() {
            self.context.definitions.invalidate();
        }
        self.in_flight.finish();
    }
}
