//! A client's connection, and its state that the worker needs to close it in good order.

use crate::balance::Seat;
use crate::unix_stream::UnixStream;
use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, Interest, ReadBuf, Ready};
use tokio::net::TcpStream;

/// How often a client that has sent data is checked for having hung up.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A client's byte stream.
#[derive(Debug)]
pub enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
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

impl Stream {
    /// Returns the address that the client has connected to; `None` for Unix sockets.
    pub fn local_address(&self) -> Option<SocketAddr> {
        match self {
            Stream::Tcp(stream) => stream.local_addr().ok(),
            Stream::Unix(_) => None,
        }
    }

    /// As [`Stream::try_write`], of several slices.
    pub fn try_write_vectored(&self, pieces: &[io::IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.try_write_vectored(pieces),
            Stream::Unix(stream) => stream.try_write_vectored(pieces),
        }
    }

    /// Writes as much as the socket accepts. Fails with `WouldBlock` if that is nothing.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.try_write(bytes),
            Stream::Unix(stream) => stream.try_write(bytes),
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
        }
    }

    /// Whether there is something to read, without needing a buffer.
    pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Stream::Tcp(stream) => stream.poll_read_ready(cx),
            Stream::Unix(stream) => stream.poll_read_ready(cx),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Unix(stream) => stream.poll_read(cx, buffer),
        }
    }
}
