//! Commands: from a decoded request to the bytes of its reply.
//!
//! The input is a [`mongo_wire::Request`] whose bytes have been checked; the output is one BSON
//! document, appended to a buffer. [`run`] looks the command up in the table of facts ([`table`]),
//! checks what all commands share ([`envelope`]), executes the command against the worker's store
//! and writes the reply. Errors become replies in [`reply`] and nowhere else. Nothing here touches
//! a socket, or knows how documents are stored. The state of the process (cursors, sessions,
//! statistics) is in the crate `server`.
//!
//! In reading order: [`dispatch`], `audit`, [`call`], [`envelope`], [`login`], [`table`],
//! [`authorization`], [`document_cache`], [`arguments`], then the commands under `command/`. They
//! use [`read`] (plans, scans, batches), [`write`], [`pipeline`] (stages that the server itself
//! answers, joins), `change_stream`, [`views`], [`time_series`], `collection_options` and
//! `index_definition`. [`ttl_monitor`] deletes expired documents in the background.

pub mod arguments;
mod audit;
pub mod authorization;
pub mod call;
mod change_stream;
mod collection_options;
mod command;
#[cfg(test)]
mod compatibility;
mod default_concerns;
pub mod dispatch;
pub mod document_cache;
pub mod envelope;
mod index_definition;
pub mod login;
pub mod pipeline;
pub mod read;
mod replica_set;
pub mod reply;
pub mod table;
pub mod time_series;
pub mod ttl_monitor;
pub mod views;
pub mod write;

pub use call::Disposition;
pub use dispatch::immediate::{ImmediateOutcome, run_immediately};
pub use dispatch::{may_be_shed, must_wait_for_memory, run, stop_reads_of};
pub use login::attempt::end_connection;
