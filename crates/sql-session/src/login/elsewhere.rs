//! Logging in to further servers as the client: the gateway opens connections for a session that it
//! needs beside its first.

use super::packet::{PACKET_BYTES_MAX, TLS, set_number, tls_request};
use super::proof::{HASH_BYTES, Key, Proof, StoredHash, stored_hashes};
use crate::packet_stream::PacketStream;
use mariadb_client::{TextConnection, TlsMode};
use mariadb_wire::auth_switch::AuthSwitch;
use mariadb_wire::client_login::{ClientLogin, HEAD_BYTES};
use mariadb_wire::err::ErrPacket;
use mariadb_wire::handshake::Handshake;
use mariadb_wire::{Capabilities, END, ERR, OK, auth};
use service::settings::Account;
use service::{Candidate, ServerSettings};
use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// How long the hashes of an account are kept.
const AGE_MAX: Duration = Duration::from_secs(10);

/// How long it is kept that they do not fit the login, or could not be read.
const FAILED_AGE_MAX: Duration = Duration::from_secs(1);

/// How long the server may take to answer the question for an account.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(3);

/// The hashes of so many users are kept.
const USERS_MAX: usize = 10_000;

/// COM_CHANGE_USER.
const CHANGE_USER: u8 = 0x11;

/// The place of the character set in the beginning of a login.
const CHARSET_AT: usize = 8;

/// An account that the gateway can log in as.
pub struct Identity {
    user: Vec<u8>,
    /// `None`: the account has no password.
    key: Option<Key>,
    /// Capabilities, packet size and character set of the client: the beginning of its login.
    head: [u8; HEAD_BYTES],
}

/// The hashes of accounts, which the gateway reads from the servers' account tables.
#[derive(Debug, Default)]
pub struct StoredHashes(Mutex<HashMap<Vec<u8>, Lookup>>);

/// The hashes of all accounts of a user's name, as last read.
#[derive(Debug)]
struct Lookup {
    read: Instant,
    hashes: Result<Vec<StoredHash>, String>,
    /// The log says why the gateway cannot log in for this user.
    is_logged: bool,
}

impl StoredHashes {
    /// Returns the key of an account, by its login on `server`. Fails with the reason why it is not
    /// known.
    async fn key(
        &self,
        user: &[u8],
        proof: &Proof,
        server: &ServerSettings,
        account: Option<&Account>,
    ) -> Result<Key, String> {
        let find = |hashes: Result<Vec<StoredHash>, String>| {
            let key = proof.key(&hashes?);
            key.ok_or_else(|| "its password's hash was not found on the server".to_owned())
        };
        let known = self.lock().get(user).map(|lookup| (lookup.read.elapsed(), lookup.hashes.clone()));
        if let Some((age, hashes)) = known
            && age < AGE_MAX
        {
            let found = find(hashes);
            // The password may have changed since.
            if found.is_ok() || age < FAILED_AGE_MAX {
                return found;
            }
        }
        let Some(account) = account else {
            return Err("the service has no account to read its password's hash".into());
        };
        let hashes = read(user, server, account).await;
        self.note(user, |lookup| (lookup.read, lookup.hashes) = (Instant::now(), hashes.clone()));
        find(hashes)
    }

    /// Returns whether the log has not yet said that the gateway cannot log in for a user.
    pub fn is_news(&self, user: &[u8]) -> bool {
        self.note(user, |lookup| !std::mem::replace(&mut lookup.is_logged, true))
    }

    fn note<T>(&self, user: &[u8], change: impl FnOnce(&mut Lookup) -> T) -> T {
        let mut users = self.lock();
        if users.len() >= USERS_MAX && !users.contains_key(user) {
            users.clear();
        }
        let unknown = || Lookup { read: Instant::now(), hashes: Ok(Vec::new()), is_logged: false };
        change(users.entry(user.to_vec()).or_insert_with(unknown))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Lookup>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the hashes of all accounts of a user's name.
async fn read(user: &[u8], server: &ServerSettings, account: &Account) -> Result<Vec<StoredHash>, String> {
    let explain = |error: mariadb_client::Failure| {
        format!("{} cannot read it ({error}); grant SELECT ON mysql.global_priv to this user", account.user)
    };
    let url = server.url(&account.user, &account.password);
    let mut connection = TextConnection::connect(&url, LOOKUP_TIMEOUT).await.map_err(explain)?;
    let hex: String = user.iter().map(|byte| format!("{byte:02X}")).collect();
    let sql = format!("SELECT Priv FROM mysql.global_priv WHERE User = CONVERT(X'{hex}' USING utf8mb4)");
    let rows = connection.rows(&sql).await.map_err(explain)?;
    Ok(rows.iter().flatten().flatten().flat_map(|account| stored_hashes(account)).collect())
}

impl Identity {
    /// Returns the identity of a client that has logged in to `server`. Fails with the reason why
    /// the gateway cannot log in elsewhere for it.
    ///
    /// `response`: the client's packet.
    pub async fn of(
        (response, proof): (&[u8], &Proof),
        hashes: &StoredHashes,
        server: &ServerSettings,
        account: Option<&Account>,
    ) -> Result<Identity, String> {
        let payload = response.get(4..).unwrap_or_default();
        let (Ok(login), Some(head)) = (ClientLogin::decode(payload), payload.first_chunk()) else {
            return Err("its login could not be read".into());
        };
        if !proof.is_native() {
            return Err(
                "only the plugin mysql_native_password lets Selkie log in elsewhere without the password".into()
            );
        }
        let key = match proof.is_empty() {
            true => None,
            false => Some(hashes.key(login.user, proof, server, account).await?),
        };
        Ok(Identity { user: login.user.to_vec(), key, head: *head })
    }

    /// Returns whether another identity is the same account with the same password.
    pub fn is_account_of(&self, other: &Identity) -> bool {
        self.user == other.user && self.key == other.key
    }

    /// Returns whether connections for both have the same capabilities, character set and packet
    /// size.
    pub fn has_form_of(&self, other: &Identity) -> bool {
        let (one, two) = (self.capabilities(false), other.capabilities(false));
        one == two && self.head[4..] == other.head[4..]
    }

    /// Returns whether the client's own connection can go over to another account.
    pub fn can_change_user(&self) -> bool {
        let needed = Capabilities::SECURE_CONNECTION | Capabilities::PLUGIN_AUTH;
        self.client_capabilities() & needed.low() == needed.low()
    }

    /// Makes a connection one of this account, with the state of a new one (COM_CHANGE_USER).
    pub async fn change_user(&self, stream: &mut PacketStream) -> io::Result<()> {
        let mut payload = vec![CHANGE_USER];
        payload.extend_from_slice(&self.user);
        // No proof yet, no schema; the character set, the plugin, no attributes.
        payload.extend_from_slice(&[0, 0, 0, self.head[CHARSET_AT], 0]);
        payload.extend_from_slice(auth::NATIVE.as_bytes());
        payload.extend_from_slice(&[0, 0]);
        let mut packet = (payload.len() as u32).to_le_bytes()[..3].to_vec();
        packet.push(0);
        packet.extend_from_slice(&payload);
        stream.send(&packet).await?;
        self.finish(stream).await
    }

    fn client_capabilities(&self) -> u32 {
        let [a, b, c, d, ..] = self.head;
        u32::from_le_bytes([a, b, c, d])
    }

    /// Returns the capabilities of further connections.
    fn capabilities(&self, has_tls: bool) -> u32 {
        let kept = !(Capabilities::CONNECT_WITH_DB
            | Capabilities::CONNECT_ATTRIBUTES
            | Capabilities::PLUGIN_AUTH_LENGTH_ENCODED
            | Capabilities::TLS)
            .low();
        let added = (Capabilities::SECURE_CONNECTION | Capabilities::PLUGIN_AUTH).low();
        self.client_capabilities() & kept | added | if has_tls { TLS } else { 0 }
    }

    /// Connects to a server and logs in. Returns the connection and its id.
    pub async fn connect(&self, candidate: Candidate, limit: Duration) -> io::Result<(PacketStream, u64)> {
        timeout(limit, self.log_in(&candidate.server)).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    async fn log_in(&self, server: &ServerSettings) -> io::Result<(PacketStream, u64)> {
        let mut stream = PacketStream::connect(server).await?;
        let greeting = stream.packet(PACKET_BYTES_MAX).await?;
        let payload = greeting.get(4..).unwrap_or_default();
        if payload.first() == Some(&ERR) {
            return Err(refused(payload));
        }
        let greeting = Handshake::decode(payload).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        let offers_tls = greeting.capabilities.contains(Capabilities::TLS);
        let config = server.tls.config().map_err(|error| io::Error::other(error.message().to_owned()))?;
        let config = config.filter(|_| offers_tls);
        if config.is_none() && !matches!(server.tls.mode, TlsMode::Disabled | TlsMode::Preferred) {
            return Err(io::Error::other("it offers no TLS"));
        }
        let mut response = self.response(&greeting.scramble, config.is_some());
        if let Some(config) = config {
            let host = tls::server_name(&server.host).map_err(io::Error::other)?;
            stream.send(&tls_request(&response)).await?;
            stream.stream.connect_tls(config, host).await?;
            set_number(&mut response, 2);
        }
        stream.send(&response).await?;
        self.finish(&mut stream).await?;
        Ok((stream, u64::from(greeting.connection_id)))
    }

    /// Answers the server until it has decided.
    async fn finish(&self, stream: &mut PacketStream) -> io::Result<()> {
        loop {
            let packet = stream.packet(PACKET_BYTES_MAX).await?;
            let (number, payload) = (packet.get(3).copied().unwrap_or_default(), packet.get(4..).unwrap_or_default());
            match payload.first() {
                Some(&OK) => return Ok(()),
                Some(&ERR) => return Err(refused(payload)),
                Some(&END) => {
                    let switch =
                        AuthSwitch::decode(payload).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
                    if switch.plugin != auth::NATIVE.as_bytes() {
                        return Err(io::Error::other("the account has another plugin there"));
                    }
                    let answer = self.prove(switch.data);
                    let mut packet = vec![answer.len() as u8, 0, 0, number.wrapping_add(1)];
                    packet.extend_from_slice(&answer);
                    stream.send(&packet).await?;
                }
                _ => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
    }

    fn prove(&self, scramble: &[u8]) -> Vec<u8> {
        let scramble = scramble.get(..HASH_BYTES).unwrap_or(scramble);
        self.key.as_ref().map(|key| key.prove(scramble).to_vec()).unwrap_or_default()
    }

    /// Encodes the response to a handshake. It names no schema: the session's state does.
    fn response(&self, scramble: &[u8], has_tls: bool) -> Vec<u8> {
        let mut payload = self.capabilities(has_tls).to_le_bytes().to_vec();
        payload.extend_from_slice(&self.head[4..]);
        payload.extend_from_slice(&self.user);
        payload.push(0);
        let proof = self.prove(scramble);
        payload.push(proof.len() as u8);
        payload.extend_from_slice(&proof);
        payload.extend_from_slice(auth::NATIVE.as_bytes());
        payload.push(0);
        let mut packet = (payload.len() as u32).to_le_bytes()[..3].to_vec();
        packet.push(1);
        packet.extend_from_slice(&payload);
        packet
    }
}

/// Returns the server's refusal as an error.
fn refused(payload: &[u8]) -> io::Error {
    match ErrPacket::decode(payload) {
        Ok(error) => io::Error::other(format!("{} ({})", String::from_utf8_lossy(error.message), error.code)),
        Err(_) => io::ErrorKind::InvalidData.into(),
    }
}
