//! The audit log: security events as JSON lines in MongoDB's form, chained by hashes.
//!
//! An [`Event`] becomes one line ([`line`]), which the [`chain`] seals: the line contains the hash
//! of the line before it and its own. [`verify`] finds the first line that was changed, removed,
//! inserted or moved. These modules compute only. [`destination`] appends lines to a file or sends
//! them to syslog, and continues the chain of an existing file. [`AuditLog`] is what a server uses:
//! a queue, and a thread that seals and writes.
//!
//! In reading order: [`event`], [`line`], [`chain`], [`verify`], [`filter`], [`destination`],
//! [`log`].

pub mod chain;
pub mod destination;
pub mod event;
pub mod filter;
pub mod line;
pub mod log;
pub mod verify;

pub use chain::Key;
pub use destination::Destination;
pub use event::{Endpoint, Event, Name, Subject};
pub use filter::Filter;
pub use log::{AuditLog, OnFailure, Options, Unavailable};
