//! An asynchronous client of MariaDB: connections whose commands are pipelined, and pools of them.
//!
//! A [`ServerLocation`] says where MariaDB runs: a server behind a `mysql://` URL ([`ServerUrl`]),
//! or, with the feature `embedded`, a library in this process. [`establish`] opens a [`Connection`]
//! to it; both transports execute the same SQL. Errors are [`Failure`]s, which know whether a
//! statement was refused or the connection was lost.
//!
//! Each worker has a [`Pool`], which lends connections and shares them fairly among collections,
//! and a [`SharedConnection`], which pipelines the lookups of all its sessions. The [`Killer`] ends
//! statements that were abandoned; [`SessionOwner`] ends those that a crashed process left behind.

mod connection;
mod dedicated_connection;
mod establish;
mod event;
mod failure;
mod fair_shares;
mod identifier;
mod killer;
mod last_writes;
mod login;
pub mod named_lock;
mod own_writes;
mod pool;
mod pool_accounts;
mod primary_source;
mod server_url;
mod session_owner;
mod shared_connection;
mod text_connection;
mod tls_settings;
mod transport;

pub use connection::Connection;
pub use dedicated_connection::{DedicatedConnection, SessionKiller};
pub use establish::{LOCK_WAIT, NO_LOCK_WAIT, establish, establish_protocol};
pub use event::Event;
pub use failure::{Failure, Result, server_error};
pub use identifier::quote;
pub use killer::Killer;
pub use last_writes::LastWrites;
pub use login::ServerVersion;
pub use own_writes::{OwnWrites, TransactionId};
pub use pool::{Lease, Pool, PoolOptions, PoolServers};
pub use pool_accounts::{PoolAccount, PoolAccounts};
pub use primary_source::{PrimaryMonitor, PrimarySource};
pub use server_url::{Address, ServerLocation, ServerUrl};
pub use session_owner::SessionOwner;
pub use shared_connection::{LookupRow, SharedConnection};
pub use text_connection::{NamedRow, TextConnection, TextValues};
pub use tls_settings::{TlsMode, TlsSettings, tls_failure};
pub use transport::protocol::Protocol;
