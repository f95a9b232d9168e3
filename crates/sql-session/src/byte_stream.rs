//! The bytes of one side of a session: a socket, or TLS over it.

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ServerConfig};
use selkie_runtime::Stream;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

#[derive(Debug)]
pub enum ByteStream {
    Plain(Stream),
    Tls(Box<TlsStream<Socket>>),
    /// The handshake of TLS has failed.
    Closed,
}

/// A socket as the TLS library uses it.
#[derive(Debug)]
pub struct Socket(Stream);

impl ByteStream {
    /// Returns whether the bytes are encrypted.
    pub fn is_tls(&self) -> bool {
        matches!(self, ByteStream::Tls(_))
    }

    /// Returns whether the other side has presented a certificate, which was verified.
    pub fn has_peer_certificate(&self) -> bool {
        match self {
            ByteStream::Tls(stream) => stream.get_ref().1.peer_certificates().is_some_and(|chain| !chain.is_empty()),
            _ => false,
        }
    }

    pub fn is_unix_socket(&self) -> bool {
        matches!(self, ByteStream::Plain(Stream::Unix(_)))
    }

    /// Performs the handshake of TLS with a client.
    pub async fn accept_tls(&mut self, config: Arc<ServerConfig>) -> io::Result<()> {
        let socket = self.take_socket()?;
        let stream = TlsAcceptor::from(config).accept(socket).await?;
        *self = ByteStream::Tls(Box::new(TlsStream::Server(stream)));
        Ok(())
    }

    /// Performs the handshake of TLS with a server.
    pub async fn connect_tls(&mut self, config: Arc<ClientConfig>, host: ServerName<'static>) -> io::Result<()> {
        let socket = self.take_socket()?;
        let stream = TlsConnector::from(config).connect(host, socket).await?;
        *self = ByteStream::Tls(Box::new(TlsStream::Client(stream)));
        Ok(())
    }

    fn take_socket(&mut self) -> io::Result<Socket> {
        match std::mem::replace(self, ByteStream::Closed) {
            ByteStream::Plain(stream) => Ok(Socket(stream)),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Reads some bytes, at most as many as `buffer` has room for; returns 0 at the end.
    pub async fn read_buf(&mut self, buffer: &mut impl bytes::BufMut) -> io::Result<usize> {
        match self {
            ByteStream::Plain(stream) => stream.read_buf(buffer).await,
            ByteStream::Tls(stream) => stream.read_buf(buffer).await,
            ByteStream::Closed => Ok(0),
        }
    }

    pub async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            ByteStream::Plain(stream) => stream.write_all(bytes).await,
            ByteStream::Tls(stream) => {
                stream.write_all(bytes).await?;
                stream.flush().await
            }
            ByteStream::Closed => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Says that nothing follows, where the protocol has such a message.
    pub async fn shut_down(&mut self) -> io::Result<()> {
        match self {
            ByteStream::Tls(stream) => stream.shutdown().await,
            _ => Ok(()),
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().0 {
            Stream::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Unix(stream) => stream.poll_write(context, bytes),
            Stream::Tls(stream) => stream.poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Stream::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Unix(_) | Stream::Tls(_) => Poll::Ready(Ok(())),
        }
    }
}
