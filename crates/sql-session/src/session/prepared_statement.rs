//! A prepared statement of a session.

use super::resolved_effects::ResolvedEffects;
use sql_classify::{DiagnosticsKept, DiagnosticsUse, SessionSettings, Statement, TableName};
use std::rc::Rc;

/// A prepared statement.
pub struct PreparedStatement {
    pub execution: Rc<Execution>,
    /// The statement is a SELECT whose results can be cached.
    pub select: Option<Rc<PreparedSelect>>,
    /// The number of parameters.
    pub params: usize,
    /// The parameters' types, as last sent by the client.
    pub types: Option<Rc<[u8]>>,
    /// The server has not received these types: the execution was answered from the cache.
    pub has_unsent_types: bool,
    /// Some of its parameters were sent ahead (COM_STMT_SEND_LONG_DATA).
    pub has_long_data: bool,
}

/// The effect of executing a statement, as far as its text determines it. Definitions are looked up
/// at each execution.
#[derive(Debug)]
pub struct Execution {
    pub effects: ResolvedEffects,
    pub diagnostics_use: DiagnosticsUse,
    pub diagnostics_kept: DiagnosticsKept,
    pub resets_warnings: bool,
    /// It may be acknowledged before its rows are visible.
    pub is_delayed: bool,
}

impl Execution {
    /// The execution of a statement whose effects are known when it is prepared. Without settings,
    /// the current schema is not known.
    pub fn of(statement: &Statement, settings: Option<&SessionSettings>) -> Execution {
        Execution {
            effects: ResolvedEffects::new(&statement.effects, settings),
            diagnostics_use: statement.diagnostics_use,
            diagnostics_kept: statement.diagnostics_kept_when_executed(),
            resets_warnings: statement.resets_warnings(),
            is_delayed: statement.is_delayed,
        }
    }
}

impl Default for Execution {
    /// The execution of a statement that may do anything.
    fn default() -> Execution {
        Execution {
            effects: ResolvedEffects::unknown(),
            diagnostics_use: DiagnosticsUse::Anything,
            diagnostics_kept: DiagnosticsKept::All,
            resets_warnings: false,
            is_delayed: false,
        }
    }
}

/// A prepared SELECT that depends on nothing but rows and its parameters.
pub struct PreparedSelect {
    pub sql: Rc<[u8]>,
    pub tables: Vec<TableName>,
    /// The settings with which the statement was prepared: its tables were resolved by them.
    pub settings: Rc<SessionSettings>,
}
