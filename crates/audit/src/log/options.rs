//! The settings of an audit log.

use crate::chain::Key;
use crate::destination::{Destination, SYSLOG_SOCKET};
use crate::filter::Filter;
use std::path::PathBuf;

/// The reaction while the log cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// Logins and commands that would have to be logged are refused.
    Refuse,
    /// The server goes on. Events beyond a number are dropped and counted, and the count is logged
    /// later.
    Continue,
}

/// The settings of the log.
#[derive(Clone, Debug)]
pub struct Options {
    pub destination: Destination,
    pub key: Option<Key>,
    pub filter: Filter,
    /// Whether successful authorization checks are logged.
    pub authorization_success: bool,
    pub on_failure: OnFailure,
    /// Whether an event is on the disk, and not only with the operating system, before the
    /// command's reply is sent.
    pub sync: bool,
    /// Identifies the process in events that the server itself causes.
    pub process: [u8; 16],
    /// Returns the milliseconds since 1970.
    pub now_ms: fn() -> i64,
    /// The socket of the system's log.
    pub syslog_socket: PathBuf,
}

impl Options {
    /// Returns the default options for a destination.
    pub fn new(destination: Destination, process: [u8; 16], now_ms: fn() -> i64) -> Options {
        Options {
            destination,
            key: None,
            filter: Filter::default(),
            authorization_success: false,
            on_failure: OnFailure::Refuse,
            sync: false,
            process,
            now_ms,
            syslog_socket: SYSLOG_SOCKET.into(),
        }
    }
}
