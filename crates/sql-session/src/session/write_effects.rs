//! What statements change, and who is told of it.

use super::Session;
use crate::pending;
use crate::reach::{Reach, SessionEffect};
use crate::statement::Table;
use std::io;
use store::Namespace;

/// What a command changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    Nothing,
    Tables(Vec<Namespace>),
    /// Rows of any table.
    AnyRows,
    /// Definitions, too.
    Everything,
}

impl Session {
    /// The collections that tables hold. `must_not_ask`: the statement asks of the one before it,
    /// which there may be none between.
    pub async fn namespaces(&mut self, tables: &[Table], must_not_ask: bool) -> io::Result<Option<Vec<Namespace>>> {
        let settings = if must_not_ask { self.settings.clone() } else { self.settings().await? };
        Ok(pending::namespaces(tables, settings.as_deref()))
    }

    /// What writing to tables changes; takes note of what it does to the session.
    pub async fn effect_of_writing(&mut self, tables: &[Table], must_not_ask: bool) -> io::Result<Effect> {
        let namespaces = self.namespaces(tables, must_not_ask).await?;
        Ok(self.effect_of_writing_to(namespaces.as_deref()).await)
    }

    /// The same, of tables whose schemas are known; `None`: they are not.
    pub async fn effect_of_writing_to(&mut self, namespaces: Option<&[Namespace]>) -> Effect {
        if self.service.watch.is_none() {
            return Effect::Nothing;
        }
        self.effect_version = Some(self.service.definitions.version());
        let Some(namespaces) = namespaces else {
            self.become_odd();
            return Effect::AnyRows;
        };
        let mut all = Some(Vec::new());
        for namespace in namespaces {
            let reach = self.reach(namespace).await;
            self.note_session_effect(reach.session);
            all = all.zip(reach.tables).map(|(mut all, mut tables)| {
                all.append(&mut tables);
                all
            });
        }
        all.map_or(Effect::AnyRows, Effect::Tables)
    }

    /// What reading tables changes: nothing, unless one is a view that calls a function.
    pub async fn effect_of_reading(&mut self, tables: &[Table], must_not_ask: bool) -> io::Result<Effect> {
        if tables.is_empty() || self.service.watch.is_none() {
            return Ok(Effect::Nothing);
        }
        let namespaces = self.namespaces(tables, must_not_ask).await?;
        Ok(self.effect_of_reading_from(namespaces.as_deref()).await)
    }

    /// The same, of tables whose schemas are known; `None`: they are not.
    pub async fn effect_of_reading_from(&mut self, namespaces: Option<&[Namespace]>) -> Effect {
        for namespace in namespaces.unwrap_or_default() {
            if self.reach(namespace).await.by_reading {
                self.become_odd();
                return Effect::AnyRows;
            }
        }
        match namespaces {
            Some(_) => Effect::Nothing,
            None => {
                self.become_odd();
                Effect::AnyRows
            }
        }
    }

    async fn reach(&self, namespace: &Namespace) -> Reach {
        let ignores_case = self.settings.as_ref().is_none_or(|settings| settings.ignores_case);
        self.service.definitions.reach(namespace, ignores_case).await
    }

    fn note_session_effect(&mut self, effect: SessionEffect) {
        match effect {
            SessionEffect::None => {}
            SessionEffect::Settings => self.settings = None,
            SessionEffect::Anything => self.become_odd(),
        }
    }

    pub fn announce(&mut self, effect: Effect) {
        let Some(watch) = &self.service.watch else { return };
        match effect {
            Effect::Nothing => {}
            Effect::Tables(tables) => self.pending.announce(watch, Some(tables)),
            Effect::AnyRows => {
                self.effect_version = None;
                self.pending.announce(watch, None);
            }
            Effect::Everything => {
                self.service.definitions.forget();
                self.effect_version = None;
                self.pending.announce_definitions(watch);
            }
        }
    }

    /// Everybody sees what was announced, or it has been undone.
    pub fn settle(&mut self) {
        if self.pending.may_change_definitions() {
            self.service.definitions.forget();
        }
        self.pending.settle();
    }
}
