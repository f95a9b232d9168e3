//! Writes that are under way: announced, and not yet known to be seen by everybody or undone.

use crate::settings::Settings;
use crate::statement::Table;
use std::sync::Arc;
use store::{ChangeObserver, Changes, InFlightWrite, Namespace};

/// What a session has announced. What is still here when it is dropped may have happened or not.
#[derive(Default)]
pub struct Pending {
    announced: Vec<Box<dyn InFlightWrite>>,
    changes: Changes,
    /// Definitions may change, too.
    defines: bool,
}

impl Pending {
    pub fn is_empty(&self) -> bool {
        self.announced.is_empty()
    }

    /// Announces that anything may happen to tables; to everything, where they are not known.
    pub fn announce(&mut self, watch: &Arc<dyn ChangeObserver>, tables: Option<Vec<Namespace>>) {
        let everything = || vec![Namespace::new("", "")];
        let mut changes = Changes::default();
        for namespace in tables.unwrap_or_else(everything) {
            // InFlightWrite is announced until it is settled.
            if !self.changes.covers(&namespace) {
                changes.add_unspecified(&namespace);
                self.changes.add_unspecified(&namespace);
            }
        }
        if !changes.is_empty() {
            self.announced.push(watch.begin_write(changes));
        }
    }

    /// When the changes will be seen is not known.
    pub fn lose(&mut self) {
        self.announced.drain(..).for_each(InFlightWrite::outcome_unknown);
        self.changes = Changes::default();
    }

    /// Announces that anything may happen, to definitions too.
    pub fn announce_definitions(&mut self, watch: &Arc<dyn ChangeObserver>) {
        self.defines = true;
        self.announce(watch, None);
    }

    pub fn may_change_definitions(&self) -> bool {
        self.defines
    }

    /// Everybody sees the changes now, or they have been undone.
    pub fn settle(&mut self) {
        self.announced.clear();
        self.changes = Changes::default();
        self.defines = false;
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.lose();
    }
}

/// The collections that tables hold. `None`: it cannot be told which.
pub fn namespaces(tables: &[Table], settings: Option<&Settings>) -> Option<Vec<Namespace>> {
    let ignores_case = settings?.ignores_case;
    let lower = |name: &str| if ignores_case { name.to_lowercase() } else { name.to_owned() };
    let namespace = |table: &Table| {
        let schema = table.schema.as_deref().or(settings?.schema.as_deref())?;
        // A name that is made up does not tell the collection's.
        let name = if table.name.starts_with('~') { "" } else { &table.name };
        Some(Namespace::new(&lower(schema), &lower(name)))
    };
    tables.iter().map(namespace).collect()
}
