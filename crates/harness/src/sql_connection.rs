//! A blocking connection to MariaDB that runs statements, as text or prepared.

mod compressed;

use crate::address::Address;
use crate::process::listening_pid;
use crate::target::{Target, percent_decode};
use anyhow::{Context, Result, bail};
use compressed::Compressed;
use mariadb_wire::auth_switch::AuthSwitch;
use mariadb_wire::err::ErrPacket;
use mariadb_wire::handshake::Handshake;
use mariadb_wire::handshake_response::HandshakeResponse;
use mariadb_wire::ok::OkPacket;
use mariadb_wire::packet::{PacketReader, write_packet};
use mariadb_wire::prepare_ok::PrepareOk;
use mariadb_wire::result_set::{Head, Next};
use mariadb_wire::{Capabilities, END, ERR, OK, Param, auth, com, com_stmt_execute};
use std::collections::HashMap;
use std::fmt;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// The address of MariaDB, and the login.
#[derive(Clone)]
pub struct SqlTarget {
    address: Address,
    user: String,
    password: String,
}

/// An error that the server returned for a statement.
#[derive(Debug)]
pub struct SqlError {
    pub code: u16,
    message: String,
}

pub struct SqlConnection {
    socket: Box<dyn Socket>,
    reader: PacketReader,
    statements: HashMap<String, u32>,
    capabilities: Capabilities,
    /// The packets to send; kept to reuse its memory.
    out: Vec<u8>,
}

trait Socket: Read + Write + Send {}
impl Socket for TcpStream {}
impl Socket for UnixStream {}
impl<S: Socket> Socket for Compressed<S> {}
impl<S: Socket + ?Sized> Socket for Box<S> {}

/// CLIENT_COMPRESS: the client can use the compressed protocol.
const COMPRESS: Capabilities = Capabilities(1 << 5);

const CAPABILITIES: Capabilities = Capabilities(
    Capabilities::FOUND_ROWS.0
        | Capabilities::PROTOCOL_41.0
        | Capabilities::TRANSACTIONS.0
        | Capabilities::SECURE_CONNECTION.0
        | Capabilities::PLUGIN_AUTH.0
        | Capabilities::PLUGIN_AUTH_LENGTH_ENCODED.0
        | Capabilities::DEPRECATE_EOF.0
        | Capabilities::CACHE_METADATA.0,
);
/// utf8mb4_general_ci
const COLLATION: u8 = 45;
const PACKET_BYTES_MAX: usize = 64 << 20;
const REPLY_TIMEOUT: Duration = Duration::from_secs(300);

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MariaDB returned error {}: {}", self.code, self.message)
    }
}

impl std::error::Error for SqlError {}

impl SqlTarget {
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Parses `mysql://user:password@host:port` or `mysql://user@localhost/?socket=/path`.
    pub fn parse(url: &str) -> Result<SqlTarget> {
        let rest = url.strip_prefix("mysql://").context("the URL of MariaDB begins with mysql://")?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        let (login, host) = authority.rsplit_once('@').unwrap_or(("root", authority));
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        let address = match query.strip_prefix("socket=") {
            Some(path) => Address::Unix(percent_decode(path).into()),
            None if query.is_empty() && host.contains(':') => Address::Tcp(host.to_owned()),
            None if query.is_empty() => Address::Tcp(format!("{host}:3306")),
            None => bail!("unknown options in the URL of MariaDB: {query}"),
        };
        Ok(SqlTarget { address, user: percent_decode(user), password: percent_decode(password) })
    }

    /// Returns the target to measure, with this name.
    pub fn named(&self, name: &str) -> Target {
        Target {
            name: name.to_owned(),
            address: self.address.clone(),
            server_pid: listening_pid(&self.address),
            backend_pids: Vec::new(),
        }
    }
}

impl SqlConnection {
    pub fn open(target: &SqlTarget) -> Result<SqlConnection> {
        Self::open_with(target, false)
    }

    /// Opens a connection, with the compressed protocol if `compressed`.
    pub fn open_with(target: &SqlTarget, compressed: bool) -> Result<SqlConnection> {
        let socket: Box<dyn Socket> = match &target.address {
            Address::Tcp(host) => {
                let stream = TcpStream::connect(host).with_context(|| format!("connecting to {host}"))?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
                Box::new(stream)
            }
            Address::Tls { .. } | Address::Login { .. } => bail!("this client of MariaDB has no TLS"),
            Address::Unix(path) => {
                let stream = UnixStream::connect(path).with_context(|| format!("connecting to {}", path.display()))?;
                stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
                Box::new(stream)
            }
        };
        let reader = PacketReader::new(PACKET_BYTES_MAX);
        let statements = HashMap::new();
        let capabilities = Capabilities(CAPABILITIES.0 | if compressed { COMPRESS.0 } else { 0 });
        let mut connection = SqlConnection { socket, reader, statements, capabilities, out: Vec::new() };
        connection.log_in(target)?;
        if compressed {
            if !connection.capabilities.contains(COMPRESS) {
                bail!("MariaDB does not support the compressed protocol");
            }
            connection.socket = Box::new(Compressed::new(connection.socket));
        }
        Ok(connection)
    }

    fn log_in(&mut self, target: &SqlTarget) -> Result<()> {
        let greeting = self.receive()?;
        let handshake = Handshake::decode(&greeting)?;
        let proof = auth_response(auth::NATIVE, target, &handshake.scramble)?;
        self.capabilities = self.capabilities & handshake.capabilities;
        let response = HandshakeResponse {
            capabilities: self.capabilities,
            packet_bytes_max: PACKET_BYTES_MAX as u32,
            collation: COLLATION,
            user: &target.user,
            auth_response: &proof,
            auth_plugin: auth::NATIVE,
            attributes: &[],
        };
        self.send(self.reader.sequence().wrapping_add(1), |out| response.encode(out))?;
        loop {
            let answer = self.receive()?;
            match answer.first() {
                Some(&OK) => return Ok(()),
                Some(&END) => {
                    let switch = AuthSwitch::decode(&answer)?;
                    let proof = auth_response(&String::from_utf8_lossy(switch.plugin), target, switch.data)?;
                    self.send(self.reader.sequence().wrapping_add(1), |out| out.extend_from_slice(&proof))?;
                }
                _ => bail!("MariaDB answered the login with an unknown packet"),
            }
        }
    }

    /// Runs a prepared statement without a result set and returns the number of rows that it found
    /// to change. Fails with [`SqlError`] if the server refuses the statement.
    pub fn execute(&mut self, sql: &str, params: &[Param<'_>]) -> Result<u64> {
        let statement = match self.statements.get(sql) {
            Some(statement) => *statement,
            None => self.prepare(sql)?,
        };
        self.send(0, |out| com_stmt_execute::encode(statement, params, out))?;
        Ok(OkPacket::decode(&self.receive()?)?.affected_rows)
    }

    fn prepare(&mut self, sql: &str) -> Result<u32> {
        self.send(0, |out| com::stmt_prepare(sql, out))?;
        let prepared = PrepareOk::decode(&self.receive()?)?;
        for _ in 0..prepared.params + prepared.columns {
            self.receive()?;
        }
        self.statements.insert(sql.to_owned(), prepared.statement);
        Ok(prepared.statement)
    }

    /// Runs a statement without a result set, as text.
    pub fn query(&mut self, sql: &str) -> Result<()> {
        self.send(0, |out| com::query(sql, out))?;
        OkPacket::decode(&self.receive()?)?;
        Ok(())
    }

    /// Runs a SELECT as text and returns the number of its rows.
    pub fn count_rows(&mut self, sql: &str) -> Result<u64> {
        self.send(0, |out| com::query(sql, out))?;
        let Head::ResultSet { columns, .. } = Head::decode(&self.receive()?, CAPABILITIES)? else {
            bail!("a SELECT without a result set");
        };
        for _ in 0..columns {
            self.receive()?;
        }
        let mut rows = 0;
        while let Next::Row(_) = Next::decode(&self.receive()?)? {
            rows += 1;
        }
        Ok(rows)
    }

    fn send(&mut self, sequence: u8, write: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        self.out.clear();
        write_packet(sequence, &mut self.out, write);
        self.socket.write_all(&self.out).context("sending to MariaDB")
    }

    /// Runs a prepared SELECT and passes each row to `take`, encoded as in the protocol.
    pub fn rows(&mut self, sql: &str, params: &[Param<'_>], take: impl FnMut(&[u8])) -> Result<()> {
        let statement = match self.statements.get(sql) {
            Some(statement) => *statement,
            None => self.prepare(sql)?,
        };
        self.send(0, |out| com_stmt_execute::encode(statement, params, out))?;
        self.take_rows(take)
    }

    /// Like [`SqlConnection::rows`], but sends the statement as text, so that its rows are text.
    pub fn text_rows(&mut self, sql: &str, take: impl FnMut(&[u8])) -> Result<()> {
        self.send(0, |out| com::query(sql, out))?;
        self.take_rows(take)
    }

    fn take_rows(&mut self, mut take: impl FnMut(&[u8])) -> Result<()> {
        let capabilities = self.capabilities;
        let mut definitions = match Head::decode(self.next_payload()?, capabilities)? {
            Head::ResultSet { columns, definitions_follow } => {
                if definitions_follow {
                    columns
                } else {
                    0
                }
            }
            Head::Ok(_) => return Ok(()),
            Head::Err(packet) => return Err(sql_error(&packet)),
        };
        loop {
            let payload = self.next_payload()?;
            if definitions > 0 {
                definitions -= 1;
                continue;
            }
            match Next::decode(payload)? {
                Next::Row(row) => take(row),
                Next::End(_) => return Ok(()),
                Next::Err(packet) => return Err(sql_error(&packet)),
            }
        }
    }

    fn next_payload(&mut self) -> Result<&[u8]> {
        loop {
            if let Some(range) = self.reader.next_packet()? {
                return Ok(self.reader.payload(range));
            }
            self.fill()?;
        }
    }

    fn fill(&mut self) -> Result<()> {
        let count = self.socket.read(self.reader.space()).context("receiving from MariaDB")?;
        if count == 0 {
            bail!("MariaDB closed the connection");
        }
        self.reader.filled(count);
        Ok(())
    }

    /// Receives a packet; fails if it is an error.
    fn receive(&mut self) -> Result<Vec<u8>> {
        loop {
            if let Some(range) = self.reader.next_packet()? {
                let payload = self.reader.payload(range).to_vec();
                if payload.first() == Some(&ERR) {
                    return Err(sql_error(&ErrPacket::decode(&payload)?));
                }
                return Ok(payload);
            }
            self.fill()?;
        }
    }
}

fn sql_error(packet: &ErrPacket<'_>) -> anyhow::Error {
    SqlError { code: packet.code, message: String::from_utf8_lossy(packet.message).into_owned() }.into()
}

fn auth_response(plugin: &str, target: &SqlTarget, scramble: &[u8]) -> Result<Vec<u8>> {
    let password = target.password.as_bytes();
    match plugin {
        auth::NATIVE => Ok(auth::native_password(password, scramble.get(..20).unwrap_or(scramble))),
        auth::ED25519 => Ok(auth::ed25519(password, scramble.get(..32).unwrap_or(scramble)).to_vec()),
        _ => bail!("MariaDB asks for a login by {plugin}, which is not supported here"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        for (url, address, user) in [
            ("mysql://root@127.0.0.1:3307", "127.0.0.1:3307", "root"),
            ("mysql://joe:secret@db/", "db:3306", "joe"),
            ("mysql://root@localhost/?socket=%2Ftmp%2Fa.sock", "/tmp/a.sock", "root"),
        ] {
            let target = SqlTarget::parse(url).unwrap();
            assert_eq!((target.address.to_string().as_str(), target.user.as_str()), (address, user));
        }
        assert!(SqlTarget::parse("mongodb://a").is_err());
        assert!(SqlTarget::parse("mysql://a/?tls=true").is_err());
    }
}
