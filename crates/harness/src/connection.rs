//! A blocking connection that sends prebuilt messages and reads whole replies into a reused buffer.

mod login;
mod tls_socket;

use crate::address::{Address, Login};
use crate::message::{Message, check_ok, message_length};
use anyhow::{Context, Result, bail};
use document::{Doc, DocBuf, Value, doc};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use tls_socket::TlsSocket;

/// A server that takes longer over one reply counts as hanging.
const REPLY_TIMEOUT: Duration = Duration::from_secs(300);

/// The longest valid reply: a batch of 16 MiB, and room for the rest.
const REPLY_BYTES_MAX: usize = 48_000_000;

enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsSocket>),
}

pub struct Connection {
    socket: Socket,
    buffer: Vec<u8>,
    filled: usize,
    /// The user that the handshake logs in.
    login: Option<Login>,
}

impl Connection {
    pub fn open(address: &Address) -> Result<Connection> {
        let socket = match address {
            Address::Tcp(host) | Address::Login { host, .. } => Socket::Tcp(connect(host)?),
            Address::Tls { host, ca } => {
                let name = host.rsplit_once(':').map_or(host.as_str(), |(name, _)| name);
                Socket::Tls(Box::new(TlsSocket::establish(connect(host)?, name, ca)?))
            }
            Address::Unix(path) => {
                let stream = UnixStream::connect(path).with_context(|| format!("connecting to {}", path.display()))?;
                stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
                Socket::Unix(stream)
            }
        };
        let login = match address {
            Address::Login { login, .. } => Some(login.clone()),
            _ => None,
        };
        Ok(Connection { socket, buffer: vec![0; 16 * 1024], filled: 0, login })
    }

    /// Opens a connection and sends `hello` on it.
    pub fn open_with_handshake(address: &Address) -> Result<Connection> {
        let mut connection = Connection::open(address)?;
        connection.handshake()?;
        Ok(connection)
    }

    /// Sends `hello` like a driver, so that the server sets up its state for the connection, then
    /// logs in.
    pub fn handshake(&mut self) -> Result<()> {
        let driver = doc! { "name": "selkie-bench", "version": env!("CARGO_PKG_VERSION") };
        let os = doc! { "type": "Linux" };
        let client = doc! { "driver": &driver, "os": &os };
        self.run(doc! { "hello": 1i32, "client": &client })?;
        self.forget_reply();
        match self.login.take() {
            Some(login) => self.log_in(&login),
            None => Ok(()),
        }
    }

    fn log_in(&mut self, login: &Login) -> Result<()> {
        let (first, options) = (login::first_message(login), doc! { "skipEmptyExchange": true });
        let start =
            doc! { "saslStart": 1i32, "mechanism": "SCRAM-SHA-256", "payload": payload(&first), "options": &options };
        let (conversation, answer) = self.exchange_payloads(start)?;
        let last = login::last_message(login, &answer)?;
        let next = doc! { "saslContinue": 1i32, "conversationId": conversation, "payload": payload(&last) };
        self.exchange_payloads(next)?;
        self.forget_reply();
        Ok(())
    }

    /// Sends a message of a login. Returns the conversation and the server's message.
    fn exchange_payloads(&mut self, command: DocBuf) -> Result<(i32, String)> {
        let reply = self.run_on("admin", command).context("logging in")?;
        match (reply.get("conversationId"), reply.get("payload")) {
            (Some(Value::Int32(conversation)), Some(Value::Binary { bytes, .. })) => {
                Ok((conversation, String::from_utf8_lossy(bytes).into_owned()))
            }
            _ => bail!("the reply to a login has no payload: {reply:?}"),
        }
    }

    pub fn send(&mut self, message: &Message) -> Result<()> {
        match &mut self.socket {
            Socket::Tcp(stream) => stream.write_all(message.as_bytes()),
            Socket::Unix(stream) => stream.write_all(message.as_bytes()),
            Socket::Tls(socket) => socket.write_all(message.as_bytes()),
        }
        .context("sending")
    }

    /// Reads from the socket once. Returns whether the reply is complete; [`Connection::reply`]
    /// then returns it.
    pub fn receive_some(&mut self) -> Result<bool> {
        let free = &mut self.buffer[self.filled..];
        let count = match &mut self.socket {
            Socket::Tcp(stream) => stream.read(free),
            Socket::Unix(stream) => stream.read(free),
            Socket::Tls(_) => return self.receive_decrypted(),
        }
        .context("receiving")?;
        if count == 0 {
            bail!("the server closed the connection");
        }
        self.add(count)
    }

    /// As [`Connection::receive_some`], of TLS: takes all that was decrypted, as the socket may
    /// have nothing more to read.
    fn receive_decrypted(&mut self) -> Result<bool> {
        let Socket::Tls(socket) = &mut self.socket else { return Ok(false) };
        if !socket.receive().context("receiving")? {
            bail!("the server closed the connection");
        }
        let mut is_complete = false;
        loop {
            let Socket::Tls(socket) = &mut self.socket else { return Ok(false) };
            let free = self.buffer.get_mut(self.filled..).unwrap_or_default();
            // The buffer is full once the reply is complete; then nothing more may come.
            if free.is_empty() && is_complete {
                return Ok(true);
            }
            match socket.take(free).context("receiving")? {
                0 => return Ok(is_complete),
                count => is_complete = self.add(count)?,
            }
        }
    }

    /// Adds bytes in the buffer to the reply. Returns whether it is complete.
    fn add(&mut self, count: usize) -> Result<bool> {
        self.filled += count;
        let Some(length) = message_length(&self.buffer[..self.filled]) else { return Ok(false) };
        if length > REPLY_BYTES_MAX {
            bail!("a reply of {length} bytes");
        }
        if length > self.buffer.len() {
            self.buffer.resize(length, 0);
        }
        if self.filled > length {
            bail!("more than one reply to one request");
        }
        Ok(self.filled == length)
    }

    /// Returns the whole reply, including its header.
    pub fn reply(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }

    /// Discards the reply, to make room for the next one.
    pub fn forget_reply(&mut self) {
        self.filled = 0;
    }

    /// Sends a message and reads its whole reply.
    pub fn round_trip(&mut self, message: &Message) -> Result<&[u8]> {
        self.forget_reply();
        self.send(message)?;
        while !self.receive_some()? {}
        Ok(&self.buffer[..self.filled])
    }

    /// Runs a command and returns the body of its reply; fails if the command does.
    pub fn run(&mut self, body: DocBuf) -> Result<Doc<'_>> {
        check_ok(self.round_trip(&Message::command(body))?)
    }

    /// Like [`Connection::run`], on another database.
    pub fn run_on(&mut self, database: &str, body: DocBuf) -> Result<Doc<'_>> {
        check_ok(self.round_trip(&Message::command_on(database, body))?)
    }

    /// Drops a collection. Succeeds if there is none, for which older servers return error 26.
    pub fn drop_collection(&mut self, collection: &str) -> Result<()> {
        self.round_trip(&Message::command(doc! { "drop": collection })).map(drop)
    }
}

fn payload(message: &str) -> Value<'_> {
    Value::Binary { subtype: 0, bytes: message.as_bytes() }
}

fn connect(host: &str) -> Result<TcpStream> {
    let stream = TcpStream::connect(host).with_context(|| format!("connecting to {host}"))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
    Ok(stream)
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Socket::Tcp(stream) => stream.as_fd(),
            Socket::Unix(stream) => stream.as_fd(),
            Socket::Tls(socket) => socket.stream.as_fd(),
        }
    }
}
