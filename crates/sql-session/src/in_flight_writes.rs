//! A session's in-flight writes: begun, and not yet known to be committed or rolled back.

use sql_classify::{SessionSettings, TableName};
use std::sync::Arc;
use store::{ChangeObserver, Changes, InFlightWrite, Namespace};

/// The writes of a session. The outcome of those in flight when it is dropped is unknown.
#[derive(Default)]
pub struct InFlightWrites {
    writes: Vec<Box<dyn InFlightWrite>>,
    changes: Changes,
    /// Definitions may change, too.
    may_change_definitions: bool,
}

impl InFlightWrites {
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Begins a write to tables; `None`: to any.
    pub fn begin(&mut self, observer: &Arc<dyn ChangeObserver>, tables: Option<Vec<Namespace>>) {
        let everything = || vec![Namespace::new("", "")];
        let mut changes = Changes::default();
        for namespace in tables.unwrap_or_else(everything) {
            // A table's write is in flight until it is finished; it is not begun twice.
            if !self.changes.covers(&namespace) {
                changes.add_unspecified(&namespace);
                self.changes.add_unspecified(&namespace);
            }
        }
        if !changes.is_empty() {
            self.writes.push(observer.begin_write(changes));
        }
    }

    /// Marks the outcome as unknown: when the changes become visible cannot be known.
    pub fn outcome_unknown(&mut self) {
        self.writes.drain(..).for_each(InFlightWrite::outcome_unknown);
        self.changes = Changes::default();
    }

    /// Begins a write that may change any table and any definition.
    pub fn begin_definitions(&mut self, observer: &Arc<dyn ChangeObserver>) {
        self.may_change_definitions = true;
        self.begin(observer, None);
    }

    pub fn may_change_definitions(&self) -> bool {
        self.may_change_definitions
    }

    /// Finishes the writes: they are visible to every reader, or rolled back.
    pub fn finish(&mut self) {
        self.writes.clear();
        self.changes = Changes::default();
        self.may_change_definitions = false;
    }
}

impl Drop for InFlightWrites {
    fn drop(&mut self) {
        self.outcome_unknown();
    }
}

/// Returns the collections of tables; `None` if a schema is not known.
pub fn namespaces(tables: &[TableName], settings: Option<&SessionSettings>) -> Option<Vec<Namespace>> {
    let ignores_case = settings?.ignores_case;
    let lower = |name: &str| if ignores_case { name.to_lowercase() } else { name.to_owned() };
    let namespace = |table: &TableName| {
        let schema = table.schema.as_deref().or(settings?.schema.as_deref())?;
        // The gateway makes up a table name that begins with ~: it does not give the collection's.
        let name = if table.name.starts_with('~') { "" } else { &table.name };
        Some(Namespace::new(&lower(schema), &lower(name)))
    };
    tables.iter().map(namespace).collect()
}
