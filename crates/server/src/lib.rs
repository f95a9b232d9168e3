//! The state of the process that serves MongoDB clients, without any command.
//!
//! The lifetimes differ: [`Server`] lives as long as the process, [`Worker`] as
//! long as its thread, [`ClientSession`] as long as a connection, a [`cursor`] until its read ends,
//! an [`operation`] until its reply is written. Commands read and change this state; the crate
//! `commands` holds them, and depends on this one.
//!
//! In reading order: [`server`], [`worker`], [`client_session`], [`access_control`] (users and
//! logins), [`user_store`] (users and roles as they are stored), [`user_polling`], then what they
//! hold: [`cursor`], [`logical_session`], [`transactions`], [`operation`] (time limits, `killOp`),
//! [`statistics`],
//! [`sql_statistics`], [`login_statistics`], [`usage`] (`top`, `$collStats`, `$indexStats`),
//! [`profiling`], [`fail_point`], [`cluster_clock`] (the times of writes),
//! [`document_cache`] (the cached replies), [`index_filters`], [`write_lock`], [`mod@tls`],
//! [`audit`]. [`redaction`] hides secrets of commands that are shown. [`memory_pressure`] decides
//! when a request must wait for memory. [`overload`] is the error of those that are refused.
//! [`login_throttle`] delays guesses of passwords.

pub mod access_control;
pub mod audit;
pub mod catalog_counts;
pub mod client_identity;
pub mod client_session;
pub mod clock;
pub mod cluster_clock;
pub mod cursor;
pub mod default_concerns;
pub mod document_cache;
pub mod fail_point;
pub mod host;
pub mod index_filters;
pub mod log_level;
pub mod log_lines;
pub mod logical_session;
pub mod login_statistics;
pub mod login_throttle;
pub mod memory_pressure;
pub mod operation;
pub mod overload;
pub mod profiling;
pub mod redaction;
pub mod server;
pub mod session_state;
pub mod settings;
pub mod snapshots;
pub mod sql_statistics;
pub mod statistics;
pub mod tls;
pub mod transactions;
pub mod usage;
pub mod user_polling;
pub mod user_store;
pub mod worker;
pub mod worker_shared;
pub mod write_lock;

pub use client_identity::ClientIdentity;
pub use client_session::ClientSession;
pub use cursor::CursorLimits;
pub use log_lines::LogLines;
pub use login_throttle::{LoginLimits, LoginThrottle};
pub use server::Server;
pub use settings::{Settings, Topology};
pub use statistics::Statistics;
pub use worker::Worker;
