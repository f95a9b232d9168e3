//! Routers: how a service chooses the backends of a session.
//!
//! A router is a pure choice over the conditions and loads of backends. [`connections`] chooses one
//! backend for the whole session, when it logs in.

pub mod connections;
