//! The bytes of one side of a session: a stream that may continue in TLS, and compressed.

use mariadb_wire::compressed::{Packer, Unpacker};
use selkie_runtime::Stream;
use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use tls::rustls::pki_types::ServerName;
use tls::rustls::{ClientConfig, ServerConfig};
use tokio::io::AsyncReadExt;

/// The most bytes that are decompressed at once.
const UNPACKED_BYTES: usize = 64 << 10;

/// Room for bytes that are not decompressed yet.
const PACKED_BYTES: usize = 16 << 10;

thread_local! {
    /// Compresses for all connections of the worker: its memory is large.
    static PACKER: RefCell<Packer> = RefCell::default();
}

#[derive(Debug)]
pub struct ByteStream {
    /// `None`: it is closed, or the handshake of TLS has failed.
    stream: Option<Stream>,
    compression: Option<Box<Compression>>,
}

/// The state of a connection that compresses.
#[derive(Debug, Default)]
struct Compression {
    unpacker: Unpacker,
    unpacked: Vec<u8>,
    /// How many frames had arrived when one was last sent.
    answered: u64,
    /// The sequence number of the next frame to send.
    number: u8,
}

impl ByteStream {
    pub fn new(stream: Stream) -> ByteStream {
        ByteStream { stream: Some(stream), compression: None }
    }

    pub fn closed() -> ByteStream {
        ByteStream { stream: None, compression: None }
    }

    /// Closes the connection.
    pub fn close(&mut self) {
        *self = ByteStream::closed();
    }

    pub fn is_closed(&self) -> bool {
        self.stream.is_none()
    }

    /// Compresses all bytes from now on that are sent, and decompresses those that are read.
    pub fn compress(&mut self) {
        self.compression = Some(Box::default());
    }

    /// Returns whether the bytes are encrypted.
    pub fn is_tls(&self) -> bool {
        matches!(self.stream, Some(Stream::Tls(_)))
    }

    pub fn is_unix_socket(&self) -> bool {
        matches!(self.stream, Some(Stream::Unix(_)))
    }

    /// Returns whether the other side has presented a certificate, which was verified.
    pub fn has_peer_certificate(&self) -> bool {
        let facts = self.stream.as_ref().and_then(Stream::tls_facts);
        facts.is_some_and(|facts| !facts.peer_certificates.is_empty())
    }

    /// Performs the handshake of TLS with a client.
    pub async fn accept_tls(&mut self, config: Arc<ServerConfig>) -> io::Result<()> {
        let stream = self.stream.take().ok_or(io::ErrorKind::NotConnected)?;
        self.stream = Some(stream.accept_tls(config, Vec::new()).await?);
        Ok(())
    }

    /// Performs the handshake of TLS with a server.
    pub async fn connect_tls(&mut self, config: Arc<ClientConfig>, host: ServerName<'static>) -> io::Result<()> {
        let stream = self.stream.take().ok_or(io::ErrorKind::NotConnected)?;
        self.stream = Some(stream.connect_tls(config, host).await?);
        Ok(())
    }

    /// Reads some bytes, at most as many as `buffer` has room for; returns 0 at the end.
    /// Cancel-safe.
    pub async fn read_buf(&mut self, buffer: &mut impl bytes::BufMut) -> io::Result<usize> {
        let Some(stream) = &mut self.stream else { return Ok(0) };
        let Some(compression) = &mut self.compression else { return stream.read_buf(buffer).await };
        loop {
            let count = compression.read(buffer)?;
            if count > 0 {
                return Ok(count);
            }
            let input = compression.unpacker.input();
            input.reserve(PACKED_BYTES);
            if stream.read_buf(input).await? == 0 {
                return Ok(0);
            }
        }
    }

    /// Becomes ready when there is something to read, or the end. For a compressed stream that may
    /// be too early.
    pub fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match (&self.stream, &self.compression) {
            (Some(stream), None) => stream.poll_read_ready(context),
            _ => Poll::Ready(Ok(())),
        }
    }

    pub async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(stream) = &self.stream else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let Some(compression) = &mut self.compression else { return stream.write_all(bytes).await };
        for piece in bytes.chunks(UNPACKED_BYTES) {
            let frames = compression.frames(piece);
            stream.write_all(&frames).await?;
        }
        Ok(())
    }
}

impl Compression {
    /// Moves decompressed bytes to `buffer`; returns how many.
    fn read(&mut self, buffer: &mut impl bytes::BufMut) -> io::Result<usize> {
        let room = buffer.remaining_mut().min(UNPACKED_BYTES);
        self.unpacked.clear();
        let unpacked = self.unpacker.unpack(&mut self.unpacked, room);
        unpacked.map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        buffer.put_slice(&self.unpacked);
        Ok(self.unpacked.len())
    }

    /// Encodes bytes to send. Frames are numbered from the last one that has arrived.
    fn frames(&mut self, bytes: &[u8]) -> Vec<u8> {
        if self.unpacker.frames() != self.answered {
            self.answered = self.unpacker.frames();
            self.number = self.unpacker.next_number();
        }
        let mut frames = Vec::with_capacity(bytes.len() / 2);
        self.number = PACKER.with_borrow_mut(|packer| packer.pack(bytes, self.number, &mut frames));
        frames
    }
}
