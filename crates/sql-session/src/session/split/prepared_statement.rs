//! A prepared statement of a session.

use super::carried::StateChange;
use sql_classify::Class;
use std::rc::Rc;

/// A prepared statement of a session.
pub struct SplitPrepared {
    /// The packet that prepares it.
    pub packet: Rc<[u8]>,
    /// `None`: its text is too long to be classified.
    pub class: Option<Rc<Class>>,
    pub change: StateChange,
    pub params: usize,
    /// The parameters' types, as last sent by the client.
    pub types: Option<Rc<[u8]>>,
    /// Some of its parameters were sent ahead, to the session's own connection.
    pub has_long_data: bool,
}
