//! A prepared statement of a session.

use sql_classify::{DiagnosticsUse, SessionSettings, TableName};
use std::rc::Rc;
use store::Namespace;

/// A prepared statement.
pub struct PreparedStatement {
    pub effect: ExecutionEffect,
    pub diagnostics_use: DiagnosticsUse,
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

/// The effect of executing a statement, as far as its text determines it. Tables that change with
/// those are looked up at each execution.
#[derive(Clone)]
pub enum ExecutionEffect {
    Read(Rc<[Namespace]>),
    /// `sets_found_rows`: it may change FOUND_ROWS().
    Write {
        tables: Rc<[Namespace]>,
        sets_found_rows: bool,
    },
    /// Describes the server, or ends a transaction.
    Nothing,
    /// Calls functions that are not built in.
    CallsUnknown,
    Anything,
}

/// A prepared SELECT that depends on nothing but rows and its parameters.
pub struct PreparedSelect {
    pub sql: Rc<[u8]>,
    pub tables: Vec<TableName>,
    /// The settings with which the statement was prepared: its tables were resolved by them.
    pub settings: Rc<SessionSettings>,
}
