//! Connecting: handshake, authentication, session settings.

use crate::connection::Connection;
use crate::failure::{Failure, Result, server_error};
use crate::server_url::{Address, ServerLocation, ServerUrl};
use crate::transport::Transport;
use crate::transport::protocol::Protocol;
use crate::transport::stream::Stream;
use error::{Code, Error};
use mariadb_wire::auth_switch::AuthSwitch;
use mariadb_wire::err::ErrPacket;
use mariadb_wire::handshake::Handshake;
use mariadb_wire::handshake_response::HandshakeResponse;
use mariadb_wire::packet::{PacketReader, write_packet};
use mariadb_wire::{Capabilities, END, ERR, OK, auth};
use std::future::poll_fn;
use std::time::Duration;

/// The largest packet accepted from the server: a document of 16 MiB at the worst growth of its
/// JSON encoding.
const PACKET_BYTES_MAX: usize = 256 << 20;

/// utf8mb4_general_ci, for the handshake only; [`SESSION`] sets the collation of statements.
const COLLATION: u8 = 45;

/// The oldest server that omits column definitions of statements it has prepared before.
const VERSION_MIN: (u16, u16) = (10, 6);

const CAPABILITIES: Capabilities = Capabilities(
    Capabilities::FOUND_ROWS.0
        | Capabilities::PROTOCOL_41.0
        | Capabilities::TRANSACTIONS.0
        | Capabilities::SECURE_CONNECTION.0
        | Capabilities::PS_MULTI_RESULTS.0
        | Capabilities::PLUGIN_AUTH.0
        | Capabilities::CONNECT_ATTRIBUTES.0
        | Capabilities::PLUGIN_AUTH_LENGTH_ENCODED.0
        | Capabilities::SESSION_TRACK.0
        | Capabilities::DEPRECATE_EOF.0
        | Capabilities::STMT_BULK_OPERATIONS.0
        | Capabilities::CACHE_METADATA.0,
);

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

/// The server's version, as its handshake states it.
#[derive(Clone, Debug)]
pub struct ServerVersion {
    /// `10.11.19`.
    pub version: String,
    /// Its first two numbers.
    pub series: (u16, u16),
}

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
    let stream = Stream::connect(&target.address).await.map_err(|error| unreachable_server(&target.address, &error))?;
    let mut connection = Protocol::new(stream, PacketReader::new(PACKET_BYTES_MAX), CAPABILITIES);
    let facts = log_in(&mut connection, target).await?;
    connection.queue_query(&format!("{SESSION}, {TRACKING} /*{}*/", " ".repeat(SESSION_BYTES)));
    connection.finish().await?;
    Ok((connection, facts))
}

fn unreachable_server(address: &Address, error: &std::io::Error) -> Failure {
    let hint = match address {
        Address::Socket(_) => "is the server running, and is this its socket?",
        Address::Tcp { .. } => "is the server running, and does it listen there?",
    };
    Failure::Lost(format!("cannot connect to MariaDB at {address} ({error}): {hint}"))
}

async fn log_in(connection: &mut Protocol, target: &ServerUrl) -> Result<ServerVersion> {
    let greeting = receive(connection).await?;
    if greeting.first() == Some(&ERR) {
        return Err(refusal(&greeting, target)?);
    }
    let handshake = Handshake::decode(&greeting)?;
    let facts = check_version(&handshake, target)?;
    connection.session = u64::from(handshake.connection_id);
    connection.capabilities = CAPABILITIES & handshake.capabilities;
    let plugin = match std::str::from_utf8(handshake.auth_plugin) {
        Ok(auth::ED25519) => auth::ED25519,
        _ => auth::NATIVE,
    };
    let response = HandshakeResponse {
        capabilities: connection.capabilities,
        packet_bytes_max: PACKET_BYTES_MAX as u32,
        collation: COLLATION,
        user: &target.user,
        auth_response: &prove(plugin, target, &handshake.scramble).unwrap_or_default(),
        auth_plugin: plugin,
        attributes: &[("program_name", "selkie"), ("_client_name", "selkie")],
    };
    send(connection, |out| response.encode(out)).await?;
    authenticate(connection, target).await?;
    Ok(facts)
}

/// Answers the server's authentication requests, plugin by plugin, until it accepts or refuses.
async fn authenticate(connection: &mut Protocol, target: &ServerUrl) -> Result<()> {
    // A server asks for one switch; no known server asks for more than a few.
    for _ in 0..4 {
        let answer = receive(connection).await?;
        match answer.first() {
            Some(&OK) => return Ok(()),
            Some(&ERR) => return Err(refusal(&answer, target)?),
            Some(&END) => {
                let switch = AuthSwitch::decode(&answer)?;
                let plugin = String::from_utf8_lossy(switch.plugin).into_owned();
                let proof = prove(&plugin, target, switch.data).ok_or_else(|| {
                    Failure::Other(Error::new(
                        Code::AUTHENTICATION_FAILED,
                        format!(
                            "MariaDB wants user '{}' to log in by the plugin '{plugin}', which is not supported: give it \
                             a password by mysql_native_password or ed25519",
                            target.user
                        ),
                    ))
                })?;
                send(connection, |out| out.extend_from_slice(&proof)).await?;
            }
            _ => return Err(Failure::Lost("MariaDB did not finish the login in a known way".into())),
        }
    }
    Err(Failure::Lost("MariaDB keeps changing the way to log in".into()))
}

/// Returns the proof of the password for this plugin; `None` if the plugin is not supported.
fn prove(plugin: &str, target: &ServerUrl, scramble: &[u8]) -> Option<Vec<u8>> {
    let password = target.password.as_bytes();
    match plugin {
        auth::NATIVE => Some(auth::native_password(password, scramble.get(..20).unwrap_or(scramble))),
        auth::ED25519 => Some(auth::ed25519(password, scramble.get(..32).unwrap_or(scramble)).to_vec()),
        auth::UNIX_SOCKET | "unix_socket" => Some(Vec::new()),
        _ => None,
    }
}

fn check_version(handshake: &Handshake<'_>, target: &ServerUrl) -> Result<ServerVersion> {
    let refuse = |message: String| Err(Failure::Other(Error::new(Code::UNSUPPORTED_FORMAT, message)));
    let Some((major, minor, patch)) = handshake.mariadb_version() else {
        let shown = String::from_utf8_lossy(handshake.server_version);
        return refuse(format!(
            "the server at {} is not MariaDB but '{shown}': MariaDB 10.6 or later is needed",
            target.address
        ));
    };
    if (major, minor) < VERSION_MIN {
        return refuse(format!(
            "MariaDB {major}.{minor}.{patch} at {} is too old: MariaDB 10.6 or later is needed",
            target.address
        ));
    }
    Ok(ServerVersion { version: format!("{major}.{minor}.{patch}"), series: (major, minor) })
}

/// Translates the server's refusal of a login.
fn refusal(payload: &[u8], target: &ServerUrl) -> Result<Failure> {
    let packet = ErrPacket::decode(payload)?;
    Ok(match Failure::from_packet(&packet) {
        Failure::Sql { code: server_error::ACCESS_DENIED, message } => Failure::Other(Error::new(
            Code::AUTHENTICATION_FAILED,
            format!("MariaDB refuses user '{}' ({message}): check user and password in the mysql:// URL", target.user),
        )),
        Failure::Sql { code: server_error::TOO_MANY_CONNECTIONS, message } => {
            Failure::Full(format!("MariaDB takes no more connections ({message}): raise max_connections"))
        }
        other => other,
    })
}

async fn receive(connection: &mut Protocol) -> Result<Vec<u8>> {
    loop {
        if let Some(range) = connection.incoming.next_packet()? {
            return Ok(connection.incoming.payload(range).to_vec());
        }
        poll_fn(|context| connection.poll_fill(context)).await?;
    }
}

async fn send(connection: &mut Protocol, write: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
    let sequence = connection.incoming.sequence().wrapping_add(1);
    write_packet(sequence, &mut connection.outgoing, write);
    poll_fn(|context| connection.poll_flush(context)).await
}
