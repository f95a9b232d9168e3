//! The login phase. The server authenticates the client. The gateway ends TLS on both sides, clears
//! the capabilities that would make the packets unreadable to it, and keeps passwords in clear text
//! off connections that others can read.

mod account;
mod attempt;
mod audited;
mod authentication;
pub mod elsewhere;
mod greeting;
mod packet;
mod proof;
#[cfg(test)]
mod tests;

pub use audited::AuditedClient;
pub use packet::{PACKET_BYTES_MAX, error_packet};
pub use proof::Proof;

use crate::context::SqlContext;
use crate::packet_stream::PacketStream;
use attempt::{Attempt, THROTTLED};
use authentication::{Outcome, Parties, REFUSED, Refusal, error_code};
use greeting::Greeting;
use mariadb_client::{TlsMode, tls_failure};
use mariadb_wire::Capabilities;
use mariadb_wire::client_login::{self, ClientLogin};
use mariadb_wire::handshake::Handshake;
use service::{Lease, UserConnection};
use std::io;

const BAD_HANDSHAKE: (u16, &str) = (1043, "08S01");
const TLS_REQUIRED: (u16, &str) = (3159, "08004");
const TLS_FAILED: (u16, &str) = (2026, "HY000");
/// ER_TOO_MANY_USER_CONNECTIONS.
const TOO_MANY_OF_USER: (u16, &str) = (1203, "42000");
const NOT_RECORDED: (u16, &str) = (1105, "HY000");

/// A successful login.
pub struct Login {
    /// The client's capabilities, as bytes. Results depend on them.
    pub capabilities: [u8; 8],
    pub deprecates_eof: bool,
    pub status: Option<u16>,
    /// The connection id of the session on the server.
    pub session: u64,
    /// The server's version, as 101106 for 10.11.6; 0 if it is not known.
    pub server_version: u32,
    /// The client's response to the handshake, as the server has received it.
    pub response: Vec<u8>,
    /// What the client has proved.
    pub proof: Proof,
    /// Counts as a session of its user.
    pub user_connection: Option<UserConnection>,
}

/// Returns the connection id in a server's greeting; `None` if the packet is an error.
pub fn connection_id(packet: &[u8]) -> Option<u64> {
    Greeting::connection_id(packet)
}

/// Performs the login. Returns `None` if the server or the gateway refuses it.
pub async fn log_in(
    client: &mut PacketStream,
    server: &mut PacketStream,
    audited: &mut AuditedClient,
    (context, lease): (&SqlContext, &mut Lease),
) -> io::Result<Option<Login>> {
    let backend = lease.server.clone();
    let mut packet = server.packet(PACKET_BYTES_MAX).await?;
    let Some(greeting) = Greeting::adapt(&mut packet, context.tls.is_some(), lease.id()) else {
        client.send(&packet).await?;
        return Ok(None);
    };
    let config = match backend.tls.config() {
        Ok(config) => config.filter(|_| greeting.offers_tls),
        Err(error) => return refuse(client, 0, TLS_FAILED, error.message()).await,
    };
    if config.is_none() && !matches!(backend.tls.mode, TlsMode::Disabled | TlsMode::Preferred) {
        let sentence = "Selkie is configured to use TLS with MariaDB, which offers none";
        return refuse(client, 0, TLS_FAILED, sentence).await;
    }
    let scramble = Handshake::decode(packet.get(4..).unwrap_or_default()).map(|it| it.scramble).unwrap_or_default();
    client.send(&packet).await?;
    let Some(mut login) = receive_login(client, audited, context).await? else { return Ok(None) };
    let number = packet::number(&login);
    let asks_for = client_login::capabilities(login.get(4..).unwrap_or_default()).unwrap_or_default();
    let Some(capabilities) = packet::mask_login(&mut login, config.is_some()) else {
        let sentence = "Bad handshake: clients are of MySQL 4.1 or later, and TLS is used only if it is offered";
        return refuse_attempt(client, audited, number, BAD_HANDSHAKE, sentence).await;
    };
    let sent_as = 1 + u8::from(config.is_some());
    packet::set_number(&mut login, sent_as);
    let Ok(account) = ClientLogin::decode(login.get(4..).unwrap_or_default()) else {
        return refuse_attempt(client, audited, number, BAD_HANDSHAKE, "Bad handshake").await;
    };
    if let Err(error) = audited.begin(account.user, account.plugin) {
        return refuse_attempt(client, audited, number, NOT_RECORDED, error.message()).await;
    }
    let Some(attempt) = Attempt::begin(&context.server, client.peer, account.user).await else {
        return refuse_attempt(client, audited, number, REFUSED, THROTTLED).await;
    };
    if let Some(config) = config {
        let host = tls::server_name(&backend.host).map_err(io::Error::other)?;
        server.send(&packet::tls_request(&login)).await?;
        if !server.bytes().is_empty() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if let Err(error) = server.stream.connect_tls(config, host).await {
            let sentence = format!("Selkie cannot use TLS with MariaDB: {}", tls_failure(&error, &backend.host));
            tracing::warn!("{sentence}");
            return refuse_attempt(client, audited, number, TLS_FAILED, &sentence).await;
        }
    }
    let mut parties = Parties {
        is_verified: server.stream.is_tls() && backend.tls.mode.verifies(),
        client,
        server,
        audited,
        offset: number.wrapping_sub(sent_as),
        proof: Proof::new(account.plugin, &scramble, account.auth_response),
    };
    if let Some(sentence) = parties.clear_text_refusal(account.plugin) {
        return refuse_attempt(parties.client, parties.audited, number, REFUSED, sentence).await;
    }
    parties.server.send(&login).await?;
    let deprecates_eof = capabilities[3] & (Capabilities::DEPRECATE_EOF.low() >> 24) as u8 != 0;
    let user = Some(account.user);
    let finished = parties.finish(attempt, account.plugin, deprecates_eof, (context, user)).await?;
    let Finished::LoggedIn { status, user_connection } = finished else {
        return Ok(None);
    };
    if asks_for.contains(Capabilities::COMPRESS) {
        if !parties.client.bytes().is_empty() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        parties.client.stream.compress();
    }
    let proof = parties.proof;
    lease.set_user(account.user);
    let Greeting { session, server_version, .. } = greeting;
    let response = login;
    Ok(Some(Login { capabilities, deprecates_eof, status, session, server_version, response, proof, user_connection }))
}

/// The outcome of COM_CHANGE_USER.
pub enum UserChange {
    /// The session's status flags.
    Done(Option<u16>),
    /// The server has refused it. The session goes on with its user, and without its state.
    Refused,
    /// The session ends.
    Over,
}

/// Forwards a COM_CHANGE_USER and its authentication.
pub async fn change_user(
    client: &mut PacketStream,
    server: &mut PacketStream,
    audited: &mut AuditedClient,
    (login, context, lease): (&mut Login, &SqlContext, &mut Lease),
) -> io::Result<UserChange> {
    let over = |_: Option<()>| UserChange::Over;
    let packet = client.packet(PACKET_BYTES_MAX).await?;
    let [a, b, c, d, ..] = login.capabilities;
    let capabilities = Capabilities(u64::from(u32::from_le_bytes([a, b, c, d])));
    let Ok(account) = ClientLogin::decode_change(packet.get(4..).unwrap_or_default(), capabilities) else {
        return refuse_attempt(client, audited, 0, BAD_HANDSHAKE, "Bad handshake").await.map(over);
    };
    if let Err(error) = audited.begin(account.user, account.plugin) {
        return refuse_attempt(client, audited, 0, NOT_RECORDED, error.message()).await.map(over);
    }
    let Some(attempt) = Attempt::begin(&context.server, client.peer, account.user).await else {
        return refuse_attempt(client, audited, 0, REFUSED, THROTTLED).await.map(over);
    };
    let is_verified = server.stream.is_tls() && lease.server.tls.mode.verifies();
    let mut parties = Parties { is_verified, client, server, audited, offset: 0, proof: Proof::default() };
    if let Some(sentence) = parties.clear_text_refusal(account.plugin) {
        return refuse_attempt(parties.client, parties.audited, 0, REFUSED, sentence).await.map(over);
    }
    parties.server.send(&packet).await?;
    let is_same = login.user_connection.as_ref().is_some_and(|one| one.is_of(account.user));
    let user = (!is_same).then_some(account.user);
    Ok(match parties.finish(attempt, account.plugin, login.deprecates_eof, (context, user)).await? {
        Finished::LoggedIn { status, user_connection } => {
            if user_connection.is_some() {
                login.user_connection = user_connection;
            }
            lease.set_user(account.user);
            UserChange::Done(status)
        }
        Finished::Refused(Refusal::OfServer { .. }) => UserChange::Refused,
        Finished::Refused(Refusal::OfGateway) => UserChange::Over,
    })
}

/// Receives the client's login, after the handshake of TLS if it asks for that. Returns `None` if
/// it must and does not.
async fn receive_login(
    client: &mut PacketStream,
    audited: &mut AuditedClient,
    context: &SqlContext,
) -> io::Result<Option<Vec<u8>>> {
    let Some(client_tls) = &context.tls else { return client.packet(PACKET_BYTES_MAX).await.map(Some) };
    let packet = client.packet_alone(PACKET_BYTES_MAX).await?;
    let capabilities = client_login::capabilities(packet.get(4..).unwrap_or_default());
    if capabilities.is_ok_and(|capabilities| capabilities.contains(Capabilities::TLS)) {
        client.stream.accept_tls(client_tls.server.current().config.clone()).await?;
        return client.packet(PACKET_BYTES_MAX).await.map(Some);
    }
    if client_tls.is_required && !client.stream.is_unix_socket() {
        context.server.sql_statistics.logins_without_tls.increment();
        let sentence = "Connections using insecure transport are prohibited: connect with TLS (--ssl)";
        return refuse_attempt(client, audited, packet::number(&packet), TLS_REQUIRED, sentence).await;
    }
    Ok(Some(packet))
}

/// Sends an error, after which the connection is closed.
async fn refuse<T>(
    client: &mut PacketStream,
    number: u8,
    (code, state): (u16, &str),
    sentence: &str,
) -> io::Result<Option<T>> {
    client.send(&error_packet(number, code, state, sentence)).await?;
    Ok(None)
}

/// As [`refuse`], in answer to the packet `number` by which the client wants to log in.
async fn refuse_attempt<T>(
    client: &mut PacketStream,
    audited: &mut AuditedClient,
    number: u8,
    error: (u16, &str),
    sentence: &str,
) -> io::Result<Option<T>> {
    audited.failed(error.0).await;
    refuse(client, number.wrapping_add(1), error, sentence).await
}

/// The end of a login.
enum Finished {
    /// With the session's status flags, and the session as one of its user.
    LoggedIn {
        status: Option<u16>,
        user_connection: Option<UserConnection>,
    },
    Refused(Refusal),
}

impl Parties<'_> {
    /// Forwards packets until the server has decided, checks what the account requires of its
    /// client's connection, counts the session as one of `user`, and forwards the decision.
    async fn finish(
        &mut self,
        attempt: Attempt<'_>,
        plugin: &[u8],
        deprecates_eof: bool,
        (context, user): (&SqlContext, Option<&[u8]>),
    ) -> io::Result<Finished> {
        let (reply, status) = match self.authenticate(plugin).await? {
            Outcome::Accepted { reply, status } => (reply, status),
            Outcome::Refused(refusal) => {
                if refusal == (Refusal::OfServer { is_wrong_password: true }) {
                    attempt.failed();
                }
                return Ok(Finished::Refused(refusal));
            }
        };
        attempt.succeeded();
        if self.server.stream.is_tls()
            && let Some(refusal) = self.account_refusal(packet::number(&reply), deprecates_eof).await?
        {
            self.audited.failed(error_code(&refusal)).await;
            self.client.send(&refusal).await?;
            return Ok(Finished::Refused(Refusal::OfGateway));
        }
        let user_connection = user.and_then(|user| context.service.add_user(user));
        if let (Some(user), None) = (user, &user_connection) {
            context.server.sql_statistics.connections_rejected.increment();
            let user = String::from_utf8_lossy(user);
            let sentence = format!("User {user} already has more than 'max_user_connections' active connections");
            tracing::warn!(service = context.service.name(), %user, "refusing a session beyond connections-per-user");
            self.audited.failed(TOO_MANY_OF_USER.0).await;
            let (code, state) = TOO_MANY_OF_USER;
            self.client.send(&error_packet(packet::number(&reply), code, state, &sentence)).await?;
            return Ok(Finished::Refused(Refusal::OfGateway));
        }
        self.audited.succeeded().await;
        self.client.send(&reply).await?;
        Ok(Finished::LoggedIn { status, user_connection })
    }
}
