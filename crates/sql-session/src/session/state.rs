//! The state of a session.

use super::cached_select::CachedSelect;
use super::filter_state::Filtering;
use super::prepared_statement::PreparedStatement;
use super::split::{IdleConnections, Split};
use super::text_prepared::TextPrepared;
use crate::context::{CachedResult, SqlContext};
use crate::in_flight_writes::InFlightWrites;
use crate::login::{AuditedClient, Login};
use crate::packet_stream::PacketStream;
use crate::privileges::PrivilegeHistory;
use ahash::AHashMap;
use service::Lease;
use sql_classify::{ClassCache, SessionSettings};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

/// The first byte of a cache key: a statement in text, or a prepared one.
pub const KEY_OF_TEXT: u8 = 0;
pub const KEY_OF_PREPARED: u8 = 1;

/// A session of an SQL client.
pub struct Session {
    pub context: Arc<SqlContext>,
    /// The classes of statements, of all sessions of the worker.
    pub classes: Rc<RefCell<ClassCache>>,
    /// Connections of the service that no session uses at the moment.
    pub idle_connections: Rc<IdleConnections>,
    pub client: PacketStream,
    pub server: PacketStream,
    pub login: Login,
    /// The right to be on the server.
    pub lease: Lease,
    pub audited: AuditedClient,
    /// The session's status flags, as the server last reported them.
    pub status: Option<u16>,
    /// A backslash in a string literal is an escape.
    pub backslash_escapes: bool,
    /// The session's settings, if they are known.
    pub settings: Option<Rc<SessionSettings>>,
    /// The session may see private tables (temporary, locked, or through statements that did not
    /// parse): it bypasses the cache.
    pub may_see_private_tables: bool,
    pub in_flight: InFlightWrites,
    /// Characteristics of the next transaction are set, and no transaction has ended since.
    pub has_next_transaction_settings: bool,
    pub privileges: PrivilegeHistory,
    /// When the server last replied to a command.
    pub server_used: Instant,
    /// The last statement, if it was answered from the cache: the server has not received it.
    pub last_cached_select: Option<CachedSelect>,
    /// The cached result that determines FOUND_ROWS(), if the server has received later statements
    /// but not its SELECT.
    pub found_rows: Option<Arc<CachedResult>>,
    /// SHOW WARNINGS may return rows, by the statements that the server has received.
    pub has_warnings: bool,
    /// The running statement clears the warnings when it begins.
    pub resets_warnings: bool,
    /// The version of the definitions by which the running statement's effect was determined.
    pub definitions_version: Option<u64>,
    /// The running statement may be acknowledged before its rows are visible.
    pub delays_rows: bool,
    pub prepared: AHashMap<u32, PreparedStatement>,
    pub last_prepared: Option<u32>,
    /// Statements prepared by name.
    pub text_prepared: TextPrepared,
    /// The listener allows its clients to use the cache.
    pub listener_uses_cache: bool,
    /// The client has not switched the cache off.
    pub client_uses_cache: bool,
    /// The state of the router `read-write-split`, if it is the service's; away while it executes a
    /// command.
    pub split: Option<Box<Split>>,
    /// The service has that router.
    pub is_split: bool,
    pub filtering: Filtering,
}
