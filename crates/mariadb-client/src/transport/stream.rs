//! A TCP connection or a Unix socket, with or without TLS, as one type.

use crate::server_url::Address;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use selkie_runtime::UnixStream;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

#[derive(Debug)]
pub enum Stream {
    Plain(Socket),
    Tls(Box<TlsStream<Socket>>),
}

#[derive(Debug)]
pub enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    pub async fn connect(address: &Address) -> io::Result<Stream> {
        Ok(Stream::Plain(match address {
            Address::Tcp { host, port } => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                stream.set_nodelay(true)?;
                Socket::Tcp(stream)
            }
            Address::Socket(path) => Socket::Unix(UnixStream::connect(path).await?),
        }))
    }

    /// Performs the handshake of TLS. Fails with `InvalidInput` if the connection has it already.
    pub async fn start_tls(self, config: Arc<ClientConfig>, host: ServerName<'static>) -> io::Result<Stream> {
        let Stream::Plain(socket) = self else { return Err(io::ErrorKind::InvalidInput.into()) };
        Ok(Stream::Tls(Box::new(TlsConnector::from(config).connect(host, socket).await?)))
    }

    /// Reads into `buffer`, which must not be empty; returns the number of bytes, 0 at the end.
    pub fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        // Unlike `try_read`, this remembers that a short read has emptied the socket, which saves a
        // system call per answer.
        let mut buffer = ReadBuf::new(buffer);
        let ready = match self {
            Stream::Plain(socket) => Pin::new(socket).poll_read(context, &mut buffer),
            Stream::Tls(stream) => Pin::new(stream).poll_read(context, &mut buffer),
        };
        ready.map_ok(|()| buffer.filled().len())
    }

    /// Writes some bytes. With TLS they may remain in the connection until
    /// [`Stream::poll_flush`].
    pub fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Stream::Plain(socket) => Pin::new(socket).poll_write(context, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    pub fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Stream::Plain(_) => Poll::Ready(Ok(())),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    /// Returns whether written bytes wait for [`Stream::poll_flush`].
    pub fn needs_flush(&self) -> bool {
        match self {
            Stream::Plain(_) => false,
            Stream::Tls(stream) => stream.get_ref().1.wants_write(),
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Socket::Unix(stream) => stream.poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Socket::Unix(stream) => stream.poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Socket::Unix(_) => Poll::Ready(Ok(())),
        }
    }
}
