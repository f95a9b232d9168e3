//! The handshake with a server: TLS, and the login of an account.

mod proof;

use crate::failure::{Failure, Result, server_error};
use crate::server_url::{Address, ServerUrl};
use crate::tls_settings::{TlsMode, tls_failure};
use crate::transport::protocol::Protocol;
use crate::transport::stream::Stream;
use error::{Code, Error};
use mariadb_wire::auth_switch::AuthSwitch;
use mariadb_wire::err::ErrPacket;
use mariadb_wire::handshake::Handshake;
use mariadb_wire::handshake_response::HandshakeResponse;
use mariadb_wire::packet::{PacketReader, write_packet};
use mariadb_wire::{Capabilities, END, ERR, OK, auth};
use proof::{MORE_DATA, Proof};
use std::future::poll_fn;
use std::sync::Arc;

/// The largest packet accepted from the server: a document of 16 MiB at the worst growth of its
/// JSON encoding.
const PACKET_BYTES_MAX: usize = 256 << 20;

/// The largest packet accepted from a server that has not accepted the login.
const LOGIN_BYTES_MAX: usize = 64 << 10;

/// utf8mb4_general_ci, for the handshake only; the session's settings determine the collation of
/// statements.
const COLLATION: u8 = 45;

/// The oldest server that omits column definitions of statements it has prepared before.
const VERSION_MIN: (u16, u16) = (10, 6);

/// The most requests of the server during a login. A server asks for one other plugin, and a plugin
/// asks once or twice.
const ROUNDS_MAX: usize = 6;

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

/// The server's version, as its handshake states it.
#[derive(Clone, Debug)]
pub struct ServerVersion {
    /// `10.11.19`.
    pub version: String,
    /// Its first two numbers.
    pub series: (u16, u16),
}

/// A connection on which the login takes place.
struct Exchange<'a> {
    target: &'a ServerUrl,
    stream: Stream,
    incoming: PacketReader,
    outgoing: Vec<u8>,
    /// The number of the next packet to send.
    sequence: u8,
}

/// Connects and logs in. Returns the connection and the server's version.
pub async fn log_in(target: &ServerUrl) -> Result<(Protocol, ServerVersion)> {
    // Before connecting, so that a wrong file is reported whether or not the server can be reached.
    let config = target.tls.config().map_err(Failure::Other)?;
    let stream = Stream::connect(&target.address).await.map_err(|error| unreachable_server(&target.address, &error))?;
    let incoming = PacketReader::new(LOGIN_BYTES_MAX);
    let mut exchange = Exchange { target, stream, incoming, outgoing: Vec::new(), sequence: 0 };
    let greeting = exchange.receive().await?;
    if greeting.first() == Some(&ERR) {
        return Err(refusal(&greeting, target)?);
    }
    let handshake = Handshake::decode(&greeting)?;
    let version = check_version(&handshake, target)?;
    let mut capabilities = CAPABILITIES & handshake.capabilities;
    if let Some(config) = config
        && offers_tls(&handshake, target)?
    {
        capabilities = capabilities | Capabilities::TLS;
        exchange = exchange.start_tls(config, response(capabilities, target, &[], auth::NATIVE)).await?;
    }
    exchange.authenticate(&handshake, capabilities).await?;
    let Exchange { stream, incoming, .. } = exchange;
    if !incoming.is_empty() {
        return Err(Failure::Lost("MariaDB sent more than the end of the login".into()));
    }
    let mut connection = Protocol::new(stream, PacketReader::new(PACKET_BYTES_MAX), capabilities);
    connection.session = u64::from(handshake.connection_id);
    Ok((connection, version))
}

/// Returns whether the server offers TLS; fails if it must and does not.
fn offers_tls(handshake: &Handshake<'_>, target: &ServerUrl) -> Result<bool> {
    let offers = handshake.capabilities.contains(Capabilities::TLS);
    if offers || target.tls.mode == TlsMode::Preferred {
        return Ok(offers);
    }
    Err(Failure::Other(Error::new(
        Code::HOST_UNREACHABLE,
        format!(
            "MariaDB at {} offers no TLS, which the tls parameter of its URL requires: set ssl_cert and ssl_key in the \
             [mariadbd] section of its configuration",
            target.address
        ),
    )))
}

fn response<'a>(
    capabilities: Capabilities,
    target: &'a ServerUrl,
    auth_response: &'a [u8],
    auth_plugin: &'a str,
) -> HandshakeResponse<'a> {
    HandshakeResponse {
        capabilities,
        packet_bytes_max: PACKET_BYTES_MAX as u32,
        collation: COLLATION,
        user: &target.user,
        auth_response,
        auth_plugin,
        attributes: &[("program_name", "selkie"), ("_client_name", "selkie")],
    }
}

impl Exchange<'_> {
    /// Requests TLS and performs its handshake.
    async fn start_tls(mut self, config: Arc<rustls::ClientConfig>, request: HandshakeResponse<'_>) -> Result<Self> {
        self.send(|out| request.encode_tls_request(out)).await?;
        if !self.incoming.is_empty() {
            // It may come from another machine, so it is not part of the protected connection.
            return Err(Failure::Lost("MariaDB sent something before TLS began".into()));
        }
        let host = match &self.target.address {
            Address::Tcp { host, .. } => host.as_str(),
            Address::Socket(_) => "localhost",
        };
        let failure =
            |why: String| Failure::Lost(format!("cannot use TLS with MariaDB at {}: {why}", self.target.address));
        let name = tls::server_name(host).map_err(|error| failure(error.to_string()))?;
        let stream = self.stream.start_tls(config, name).await.map_err(|error| failure(tls_failure(&error, host)))?;
        Ok(Exchange { stream, ..self })
    }

    /// Sends the account and the proof of its password, and answers the server's requests until it
    /// accepts or refuses.
    async fn authenticate(&mut self, handshake: &Handshake<'_>, capabilities: Capabilities) -> Result<()> {
        let plugin = match std::str::from_utf8(handshake.auth_plugin) {
            Ok(auth::ED25519) => auth::ED25519,
            _ => auth::NATIVE,
        };
        let mut proof = Proof::new(plugin, self.target, self.is_verified());
        let first = proof.first(&handshake.scramble).unwrap_or_default();
        let target = self.target;
        self.send(|out| response(capabilities, target, &first, plugin).encode(out)).await?;
        for _ in 0..ROUNDS_MAX {
            let reply = self.receive().await?;
            let answer = match reply.first() {
                Some(&OK) => return Ok(()),
                Some(&ERR) => return Err(refusal(&reply, target)?),
                Some(&END) => {
                    let switch = AuthSwitch::decode(&reply)?;
                    proof = Proof::new(&String::from_utf8_lossy(switch.plugin), target, self.is_verified());
                    Some(proof.first(switch.data)?)
                }
                Some(&MORE_DATA) => proof.next(reply.get(1..).unwrap_or_default())?,
                _ => return Err(Failure::Lost("MariaDB did not finish the login in a known way".into())),
            };
            if let Some(answer) = answer {
                self.send(|out| out.extend_from_slice(&answer)).await?;
            }
        }
        Err(Failure::Lost("MariaDB keeps changing the way to log in".into()))
    }

    /// Returns whether the server is verified, so that no other machine can read a password.
    fn is_verified(&self) -> bool {
        matches!(self.stream, Stream::Tls(_)) && self.target.tls.mode.verifies()
    }

    async fn receive(&mut self) -> Result<Vec<u8>> {
        loop {
            if let Some(range) = self.incoming.next_packet()? {
                self.sequence = self.incoming.sequence().wrapping_add(1);
                return Ok(self.incoming.payload(range).to_vec());
            }
            let (stream, incoming) = (&mut self.stream, &mut self.incoming);
            let read = poll_fn(|context| stream.poll_read(context, incoming.space())).await;
            match read.map_err(|error| Failure::io(&error))? {
                0 => return Err(Failure::Lost("MariaDB closed the connection".into())),
                count => self.incoming.filled(count),
            }
        }
    }

    async fn send(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        self.outgoing.clear();
        self.sequence = write_packet(self.sequence, &mut self.outgoing, write);
        let (stream, outgoing) = (&mut self.stream, &self.outgoing);
        let mut sent = 0;
        while let Some(rest) = outgoing.get(sent..).filter(|rest| !rest.is_empty()) {
            sent += poll_fn(|context| stream.poll_write(context, rest)).await.map_err(|error| Failure::io(&error))?;
        }
        poll_fn(|context| stream.poll_flush(context)).await.map_err(|error| Failure::io(&error))
    }
}

fn unreachable_server(address: &Address, error: &std::io::Error) -> Failure {
    let hint = match address {
        Address::Socket(_) => "is the server running, and is this its socket?",
        Address::Tcp { .. } => "is the server running, and does it listen there?",
    };
    Failure::Lost(format!("cannot connect to MariaDB at {address} ({error}): {hint}"))
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
            format!(
                "MariaDB refuses user '{}' ({message}): check user and password in the mysql:// URL, and whether the \
                 account requires TLS (REQUIRE SSL)",
                target.user
            ),
        )),
        Failure::Sql { code: server_error::TOO_MANY_CONNECTIONS, message } => {
            Failure::Full(format!("MariaDB takes no more connections ({message}): raise max_connections"))
        }
        other => other,
    })
}
