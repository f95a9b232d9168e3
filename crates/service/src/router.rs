//! Routers: how a service chooses the backends of a session.
//!
//! A router is a pure choice over the conditions and loads of backends. [`connections`] chooses one
//! backend for the whole session, when it logs in. [`read_write_split`] chooses one for each read.

pub mod connections;
pub mod read_write_split;
