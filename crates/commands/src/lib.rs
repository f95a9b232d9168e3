//! Commands: from a decoded request to the bytes of its reply.
//!
//! What comes in is a [`mongo_wire::Request`], its bytes checked; what goes out is one BSON document at the end of a buffer.
//! [`run`] is the door: it looks the command up in the table of facts ([`table`]), checks what all commands share
//! ([`envelope`]), carries the command out against the worker's store and writes the reply. Errors become replies in
//! [`reply`] and nowhere else. Nothing here touches a socket or knows how documents are kept.
//!
//! In reading order: [`server`] (what lives how long), [`table`], [`dispatch`], [`envelope`], [`answers`] (the document
//! cache), [`arguments`], then a file per
//! command under `command/`; behind them [`read`] (plans, scans, batches), [`cursor`], [`logical_session`], [`running`]
//! (maxTimeMS, killOp), [`profiling`] and [`statistics`].

pub mod answers;
pub mod arguments;
mod between_servers;
mod by_uuid;
mod catalog_figures;
mod clock;
mod collection_uuid;
mod command;
#[cfg(test)]
mod compatibility;
pub mod cursor;
pub mod dispatch;
pub mod envelope;
pub mod host;
mod index_filters;
pub mod log_level;
pub mod log_lines;
pub mod logical_session;
pub mod profiling;
pub mod read;
pub mod reply;
pub mod running;
pub mod server;
pub mod shortage;
pub mod statistics;
mod strict_api;
pub mod table;
mod table_scan;
mod text_indexes;
pub mod time_to_live;
mod usage;
mod write;
pub mod write_lock;

pub use cursor::CursorLimits;
pub use dispatch::{AtOnce, Disposition, run, run_at_once};
pub use log_lines::LogLines;
pub use server::{ClientSession, Server, Settings, Topology, Worker};
pub use statistics::Statistics;
