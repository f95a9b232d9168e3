//! A prepared statement of a session.

use super::carried::StateChange;
use crate::session::prepared_statement::Execution;
use sql_classify::{Class, SessionSettings};
use std::rc::Rc;

/// A prepared statement of a session.
pub struct SplitPrepared {
    /// The packet that prepares it.
    pub packet: Rc<[u8]>,
    /// `None`: its text is too long to be classified.
    pub class: Option<Rc<Class>>,
    pub change: StateChange,
    pub execution: Rc<Execution>,
    /// The settings with which it was prepared, as far as something is cached.
    pub settings: Option<Rc<SessionSettings>>,
    pub params: usize,
    /// The parameters' types, as last sent by the client.
    pub types: Option<Rc<[u8]>>,
    /// Some of its parameters were sent ahead, to the session's own connection.
    pub has_long_data: bool,
}
