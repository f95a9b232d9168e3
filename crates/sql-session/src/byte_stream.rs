//! The bytes of one side of a session: a stream that may continue in TLS.

use selkie_runtime::Stream;
use std::io;
use std::sync::Arc;
use tls::rustls::pki_types::ServerName;
use tls::rustls::{ClientConfig, ServerConfig};
use tokio::io::AsyncReadExt;

/// `None`: it is closed, or the handshake of TLS has failed.
#[derive(Debug)]
pub struct ByteStream(Option<Stream>);

impl ByteStream {
    pub fn new(stream: Stream) -> ByteStream {
        ByteStream(Some(stream))
    }

    pub fn closed() -> ByteStream {
        ByteStream(None)
    }

    /// Closes the connection.
    pub fn close(&mut self) {
        self.0 = None;
    }

    pub fn is_closed(&self) -> bool {
        self.0.is_none()
    }

    /// Returns whether the bytes are encrypted.
    pub fn is_tls(&self) -> bool {
        matches!(self.0, Some(Stream::Tls(_)))
    }

    pub fn is_unix_socket(&self) -> bool {
        matches!(self.0, Some(Stream::Unix(_)))
    }

    /// Returns whether the other side has presented a certificate, which was verified.
    pub fn has_peer_certificate(&self) -> bool {
        let facts = self.0.as_ref().and_then(Stream::tls_facts);
        facts.is_some_and(|facts| !facts.peer_certificates.is_empty())
    }

    /// Performs the handshake of TLS with a client.
    pub async fn accept_tls(&mut self, config: Arc<ServerConfig>) -> io::Result<()> {
        let stream = self.0.take().ok_or(io::ErrorKind::NotConnected)?;
        self.0 = Some(stream.accept_tls(config, Vec::new()).await?);
        Ok(())
    }

    /// Performs the handshake of TLS with a server.
    pub async fn connect_tls(&mut self, config: Arc<ClientConfig>, host: ServerName<'static>) -> io::Result<()> {
        let stream = self.0.take().ok_or(io::ErrorKind::NotConnected)?;
        self.0 = Some(stream.connect_tls(config, host).await?);
        Ok(())
    }

    /// Reads some bytes, at most as many as `buffer` has room for; returns 0 at the end.
    pub async fn read_buf(&mut self, buffer: &mut impl bytes::BufMut) -> io::Result<usize> {
        match &mut self.0 {
            Some(stream) => stream.read_buf(buffer).await,
            None => Ok(0),
        }
    }

    pub async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &self.0 {
            Some(stream) => stream.write_all(bytes).await,
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}
