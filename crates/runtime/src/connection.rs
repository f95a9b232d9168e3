//! A client's connection, and its state that the worker needs to close it in good order.

use crate::balance::{Balance, Seat};
use crate::gate::ConnectionLimits;
use crate::tls_stream::{Socket, TlsStream};
use crate::unix_stream::UnixStream;
use rustix::net::RecvFlags;
use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tls::rustls::pki_types::ServerName;
use tls::rustls::{self, ClientConfig, ClientConnection, ServerConfig, ServerConnection};
use tls::{TlsFacts, client_hello};
use tokio::io::{AsyncRead, Interest, ReadBuf, Ready};
use tokio::net::TcpStream;

/// How often a client that has sent data is checked for having hung up.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The pause after which more of a client's first bytes are awaited.
const PEEK_AGAIN_AFTER: Duration = Duration::from_millis(10);

/// A client's byte stream.
#[derive(Debug)]
pub enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream>),
}

/// The protocol that a client begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstBytes {
    Tls,
    Other,
    /// The client hung up without sending any.
    Nothing,
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Tls(stream) => stream.as_fd(),
        }
    }
}

/// A connection on the worker that serves it.
#[derive(Debug)]
pub struct Connection {
    pub stream: Stream,
    /// Counts from 1 since the process started.
    pub id: u64,
    /// The number of the listener that accepted it, in [`Options::listen`](crate::Options::listen).
    pub listener: usize,
    /// `None` for Unix sockets.
    pub peer: Option<SocketAddr>,
    pub life: Rc<Life>,
    /// `None` without TLS. See [`Connection::accept_tls`].
    pub tls: Option<Box<TlsFacts>>,
    /// Keeps the worker's count right.
    pub(crate) _seat: Seat,
}

/// State shared by the worker and the connection.
#[derive(Debug, Default)]
pub struct Life {
    busy: Cell<bool>,
    draining: Cell<bool>,
}

impl Life {
    /// Sets whether a request is running. While one is, a drain keeps the connection until its
    /// deadline. Otherwise the connection's future may be dropped at any moment.
    pub fn set_busy(&self, busy: bool) {
        self.busy.set(busy);
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.busy.get()
    }

    /// Returns whether the process is stopping: the connection must close once the current request
    /// is answered.
    pub fn is_draining(&self) -> bool {
        self.draining.get()
    }

    pub(crate) fn set_draining(&self) {
        self.draining.set(true);
    }
}

impl Connection {
    /// Returns a connection that no listener has accepted and no limit counts, for tests that run a
    /// service on a thread of their own. `None` if the process lacks file descriptors.
    pub fn unlisted(stream: Stream) -> Option<Connection> {
        let (seat, _) =
            Balance::new(0, ConnectionLimits::default(), Instant::now()).admit(0, None, Instant::now()).ok()?;
        Some(Connection { stream, id: 0, listener: 0, peer: None, life: Rc::default(), tls: None, _seat: seat })
    }

    /// Continues in TLS, as the server, and records the facts. `received`: bytes of the handshake
    /// that were already read from the stream.
    pub async fn accept_tls(mut self, config: Arc<ServerConfig>, received: Vec<u8>) -> io::Result<Connection> {
        self.stream = self.stream.accept_tls(config, received).await?;
        self.tls = self.stream.tls_facts().map(Box::new);
        Ok(self)
    }
}

impl Stream {
    /// Returns the address that the client has connected to; `None` for Unix sockets.
    pub fn local_address(&self) -> Option<SocketAddr> {
        match self {
            Stream::Tcp(stream) => stream.local_addr().ok(),
            Stream::Unix(_) => None,
            Stream::Tls(stream) => stream.local_address(),
        }
    }

    /// Continues in TLS, as the server. `received`: bytes of the handshake that were already read
    /// from the stream.
    pub async fn accept_tls(self, config: Arc<ServerConfig>, received: Vec<u8>) -> io::Result<Stream> {
        let session = ServerConnection::new(config).map_err(io::Error::other)?;
        self.shake_hands(rustls::Connection::Server(session), received).await
    }

    /// Continues in TLS, as the client. `name`: the name that the server's certificate must have.
    pub async fn connect_tls(self, config: Arc<ClientConfig>, name: ServerName<'static>) -> io::Result<Stream> {
        let session = ClientConnection::new(config, name).map_err(io::Error::other)?;
        self.shake_hands(rustls::Connection::Client(session), Vec::new()).await
    }

    async fn shake_hands(self, session: rustls::Connection, received: Vec<u8>) -> io::Result<Stream> {
        let socket = match self {
            Stream::Tcp(stream) => Socket::Tcp(stream),
            Stream::Unix(stream) => Socket::Unix(stream),
            Stream::Tls(_) => return Err(io::Error::new(io::ErrorKind::Unsupported, "TLS within TLS")),
        };
        Ok(Stream::Tls(Box::new(TlsStream::establish(socket, session, received).await?)))
    }

    /// Returns the facts of a TLS connection: protocol, cipher, the other side's certificates.
    pub fn tls_facts(&self) -> Option<TlsFacts> {
        match self {
            Stream::Tcp(_) | Stream::Unix(_) => None,
            Stream::Tls(stream) => Some(stream.facts()),
        }
    }

    /// Waits for the client's first bytes, and returns whether they are TLS. They remain to be
    /// read.
    pub async fn first_bytes(&self) -> io::Result<FirstBytes> {
        let mut bytes = [0; client_hello::BYTES];
        loop {
            self.ready(Interest::READABLE).await?;
            match self.peek(&mut bytes) {
                Ok(0) => return Ok(FirstBytes::Nothing),
                Ok(count) => match client_hello::is_tls(bytes.get(..count).unwrap_or_default()) {
                    Some(true) => return Ok(FirstBytes::Tls),
                    Some(false) => return Ok(FirstBytes::Other),
                    // The socket stays ready, so it does not report the bytes that are missing.
                    None => tokio::time::sleep(PEEK_AGAIN_AFTER).await,
                },
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => tokio::time::sleep(PEEK_AGAIN_AFTER).await,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Copies received bytes, which remain to be read.
    fn peek(&self, bytes: &mut [u8]) -> io::Result<usize> {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let mut peek = || Ok(rustix::net::recv(self, &mut *bytes, flags)?.0);
        match self {
            Stream::Tcp(stream) => stream.try_io(Interest::READABLE, peek),
            Stream::Unix(_) | Stream::Tls(_) => peek(),
        }
    }

    /// As [`Stream::try_write`], of several slices.
    pub fn try_write_vectored(&self, pieces: &[io::IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.try_write_vectored(pieces),
            Stream::Unix(stream) => stream.try_write_vectored(pieces),
            Stream::Tls(stream) => stream.try_write_vectored(pieces),
        }
    }

    /// Writes as much as the socket accepts. Fails with `WouldBlock` if that is nothing. The bytes
    /// of the next call must be those that this one has not accepted: over TLS, some of them may
    /// already be encrypted.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.try_write(bytes),
            Stream::Unix(stream) => stream.try_write(bytes),
            Stream::Tls(stream) => stream.try_write(bytes),
        }
    }

    /// Writes everything, waiting for the socket where necessary.
    pub async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.try_write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.ready(Interest::WRITABLE).await.map(|_| ())?
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Resolves when the other side has hung up, or has closed its half of the connection. Reads
    /// nothing, so data that it has sent before remains.
    pub async fn hung_up(&self) {
        while let Ok(ready) = self.ready(Interest::READABLE).await {
            if ready.is_read_closed() {
                return;
            }
            // While there is data to read, the socket stays ready and reports nothing more.
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Waits for room to write.
    pub async fn writable(&self) -> io::Result<()> {
        self.ready(Interest::WRITABLE).await.map(drop)
    }

    pub(crate) async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        match self {
            Stream::Tcp(stream) => stream.ready(interest).await,
            Stream::Unix(stream) => stream.ready(interest).await,
            Stream::Tls(stream) => stream.ready(interest).await,
        }
    }

    /// Whether there is something to read, without needing a buffer.
    pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Stream::Tcp(stream) => stream.poll_read_ready(cx),
            Stream::Unix(stream) => stream.poll_read_ready(cx),
            Stream::Tls(stream) => stream.poll_read_ready(cx),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Unix(stream) => stream.poll_read(cx, buffer),
            Stream::Tls(stream) => stream.poll_read(cx, buffer),
        }
    }
}
