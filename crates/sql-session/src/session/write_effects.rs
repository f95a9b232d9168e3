//! What statements change, and reporting it to the change observer.

use super::state::Session;
use super::statement_effect::StatementEffect;
use crate::in_flight_writes;
use sql_classify::{SessionEffect, TableName, WriteEffects};
use std::io;
use store::Namespace;

impl Session {
    /// Returns the collections of tables. `must_not_query`: the statement uses the diagnostics of
    /// the one before, so the gateway must not send a statement in between.
    pub async fn namespaces(
        &mut self,
        tables: &[TableName],
        must_not_query: bool,
    ) -> io::Result<Option<Vec<Namespace>>> {
        let settings = if must_not_query { self.settings.clone() } else { self.settings().await? };
        Ok(in_flight_writes::namespaces(tables, settings.as_deref()))
    }

    /// Returns what writing to tables changes. Applies the effect on the session.
    pub async fn effect_of_writing(
        &mut self,
        tables: &[TableName],
        must_not_query: bool,
    ) -> io::Result<StatementEffect> {
        let namespaces = self.namespaces(tables, must_not_query).await?;
        Ok(self.effect_of_writing_to(namespaces.as_deref()).await)
    }

    /// As [`Session::effect_of_writing`], for tables whose schemas are known; `None`: they are not.
    pub async fn effect_of_writing_to(&mut self, namespaces: Option<&[Namespace]>) -> StatementEffect {
        if self.context.observer.is_none() {
            return StatementEffect::Nothing;
        }
        self.definitions_version = Some(self.context.definitions.version());
        let Some(namespaces) = namespaces else {
            self.note_private_tables();
            return StatementEffect::AnyRows;
        };
        let mut all = Some(Vec::new());
        for namespace in namespaces {
            let effects = self.write_effects(namespace).await;
            self.apply_session_effect(effects.session);
            all = all.zip(effects.tables).map(|(mut all, mut tables)| {
                all.append(&mut tables);
                all
            });
        }
        all.map_or(StatementEffect::AnyRows, StatementEffect::Tables)
    }

    /// Returns what reading tables changes: nothing, unless one is a view that calls a function.
    pub async fn effect_of_reading(
        &mut self,
        tables: &[TableName],
        must_not_query: bool,
    ) -> io::Result<StatementEffect> {
        if tables.is_empty() || self.context.observer.is_none() {
            return Ok(StatementEffect::Nothing);
        }
        let namespaces = self.namespaces(tables, must_not_query).await?;
        Ok(self.effect_of_reading_from(namespaces.as_deref()).await)
    }

    /// As [`Session::effect_of_reading`], for tables whose schemas are known; `None`: they are not.
    pub async fn effect_of_reading_from(&mut self, namespaces: Option<&[Namespace]>) -> StatementEffect {
        for namespace in namespaces.unwrap_or_default() {
            if self.write_effects(namespace).await.by_reading {
                self.note_private_tables();
                return StatementEffect::AnyRows;
            }
        }
        match namespaces {
            Some(_) => StatementEffect::Nothing,
            None => {
                self.note_private_tables();
                StatementEffect::AnyRows
            }
        }
    }

    async fn write_effects(&self, namespace: &Namespace) -> WriteEffects {
        let ignores_case = self.settings.as_ref().is_none_or(|settings| settings.ignores_case);
        self.context.definitions.write_effects(namespace, ignores_case).await
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
