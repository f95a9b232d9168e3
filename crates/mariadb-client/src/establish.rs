//! Connecting: the login, then the settings of the session.

use crate::connection::Connection;
use crate::failure::{Failure, Result};
use crate::login::{self, ServerVersion};
use crate::server_url::{ServerLocation, ServerUrl};
use crate::transport::Transport;
use crate::transport::protocol::Protocol;
use std::time::Duration;

/// Settings of every session, whatever the server's defaults are: texts compare byte by byte, wrong
/// values are errors, each statement is a transaction, and readers never lock. READ COMMITTED keeps
/// writers from locking the gaps between documents.
const SESSION: &str = "SET NAMES utf8mb4 COLLATE utf8mb4_nopad_bin, \
     SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', SESSION autocommit = 1, \
     SESSION tx_isolation = 'READ-COMMITTED', SESSION sql_select_limit = DEFAULT, SESSION time_zone = '+00:00', \
     SESSION innodb_lock_wait_timeout = 20, SESSION lock_wait_timeout = 60, SESSION check_constraint_checks = 1, \
     @selkie_gateway = 1";

/// Session tracking: the server reports the GTID of each transaction with its answer.
const TRACKING: &str = "SESSION session_track_system_variables = 'last_gtid', SESSION session_track_schema = 0";

/// Length of the packet that sets a session up. The server's buffer for a connection grows to the
/// largest packet it has received, and the server sends when that buffer is full. With the default
/// (`net_buffer_length`, 16 KiB) a page of rows wakes the client twice as often. With a larger one
/// the client waits longer for the last part, which it reads when the server has finished.
const SESSION_BYTES: usize = 32 << 10;

/// Restores waiting for locked rows, as [`SESSION`] sets it.
pub const LOCK_WAIT: &str = "SET SESSION innodb_lock_wait_timeout = 20";

/// Makes a statement that meets a locked row fail with 1205.
pub const NO_LOCK_WAIT: &str = "SET SESSION innodb_lock_wait_timeout = 0";

/// Connects, authenticates and sets the session up.
pub async fn establish(location: &ServerLocation, timeout: Duration) -> Result<(Connection, ServerVersion)> {
    match location {
        ServerLocation::Server(target) => {
            let (protocol, facts) = establish_protocol(target, timeout).await?;
            Ok((Connection::new(Transport::Protocol(protocol)), facts))
        }
        #[cfg(feature = "embedded")]
        ServerLocation::Embedded(database) => {
            let mut transport = crate::transport::embedded::Embedded::open(database)?;
            transport.run_on_caller(SESSION)?;
            let version = database.version().split('-').next().unwrap_or_default().to_owned();
            let facts = ServerVersion { version, series: database.series() };
            Ok((Connection::new(Transport::Embedded(transport)), facts))
        }
    }
}

/// As [`establish`], but returns the transport, for callers that speak the protocol themselves.
pub async fn establish_protocol(target: &ServerUrl, timeout: Duration) -> Result<(Protocol, ServerVersion)> {
    match tokio::time::timeout(timeout, set_up(target)).await {
        Ok(outcome) => outcome,
        Err(_) => {
            Err(Failure::Lost(format!("no answer from MariaDB at {} within {} s", target.address, timeout.as_secs())))
        }
    }
}

async fn set_up(target: &ServerUrl) -> Result<(Protocol, ServerVersion)> {
    let (mut connection, version) = login::log_in(target).await?;
    connection.queue_query(&format!("{SESSION}, {TRACKING} /*{}*/", " ".repeat(SESSION_BYTES)));
    connection.finish().await?;
    Ok((connection, version))
}
