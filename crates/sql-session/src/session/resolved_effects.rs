//! The effects of a statement, with the schemas of its tables and routines resolved.

use sql_classify::{Access, Effects, RoutineName, SchemaObject, SessionEffect, SessionSettings, TableName, Writes};

/// The effects of a statement that has been resolved: it may be executed later, in another schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedEffects {
    /// The accesses whose effects follow from definitions.
    pub accesses: Vec<Access>,
    pub changes: MoreChanges,
    pub session: SessionEffect,
}

/// Changes besides those by accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoreChanges {
    Nothing,
    AnyRows,
    Everything,
}

impl ResolvedEffects {
    /// The effects of statements that may do anything.
    pub fn unknown() -> ResolvedEffects {
        let (changes, session) = (MoreChanges::Everything, SessionEffect::Anything);
        ResolvedEffects { accesses: Vec::new(), changes, session }
    }

    /// Resolves the names of a statement. Without settings, the current schema is not known.
    pub fn new(effects: &Effects, settings: Option<&SessionSettings>) -> ResolvedEffects {
        let changes = match (effects.are_known(), &effects.writes) {
            (_, Writes::Everything) => MoreChanges::Everything,
            (true, _) => MoreChanges::Nothing,
            (false, _) => MoreChanges::AnyRows,
        };
        let session = if effects.calls.are_more { SessionEffect::Anything } else { effects.session };
        match accesses(effects, settings) {
            Some(accesses) => ResolvedEffects { accesses, changes, session },
            None => {
                let changes = if changes == MoreChanges::Nothing { MoreChanges::AnyRows } else { changes };
                ResolvedEffects { accesses: Vec::new(), changes, session: SessionEffect::Anything }
            }
        }
    }
}

fn accesses(effects: &Effects, settings: Option<&SessionSettings>) -> Option<Vec<Access>> {
    let no_tables = Vec::new();
    let written = if let Writes::Tables(tables) = &effects.writes { tables } else { &no_tables };
    let mut accesses = Vec::with_capacity(effects.reads.len() + written.len() + effects.calls.routines.len());
    for name in &effects.reads {
        accesses.push(Access::Read(table(name, settings)?));
    }
    for name in written {
        accesses.push(Access::Write(table(name, settings)?));
    }
    for RoutineName { kind, schema, name } in &effects.calls.routines {
        let schema = schema.as_deref().or(settings?.schema.as_deref())?;
        accesses.push(Access::Call(SchemaObject::routine(*kind, schema, name)));
    }
    Some(accesses)
}

fn table(name: &TableName, settings: Option<&SessionSettings>) -> Option<SchemaObject> {
    let namespaces = crate::in_flight_writes::namespaces(std::slice::from_ref(name), settings)?;
    namespaces.first().map(SchemaObject::table)
}
