//! One side of a session: a socket and what has been read from it.

use crate::answer::PACKET_MAX;
use selkie_runtime::Stream;
use std::io;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// As much is read at once.
const READ_BYTES: usize = 64 << 10;

/// Where the MariaDB server is. Not a Unix socket: there, the server asks the system who is connected, and would be told of this process.
#[derive(Clone, Debug)]
pub struct Backend {
    pub host: String,
    pub port: u16,
}

pub struct Peer {
    pub stream: Stream,
    buffer: Vec<u8>,
    start: usize,
}

impl Peer {
    pub fn new(stream: Stream) -> Peer {
        Peer { stream, buffer: Vec::new(), start: 0 }
    }

    pub async fn connect(backend: &Backend) -> io::Result<Peer> {
        let stream = TcpStream::connect((backend.host.as_str(), backend.port)).await?;
        stream.set_nodelay(true)?;
        Ok(Peer::new(Stream::Tcp(stream)))
    }

    /// What has been read and not been taken.
    pub fn bytes(&self) -> &[u8] {
        self.buffer.get(self.start..).unwrap_or_default()
    }

    pub fn take(&mut self, bytes: usize) {
        self.start += bytes;
        if self.start >= self.buffer.len() {
            self.start = 0;
            self.buffer.clear();
            if self.buffer.capacity() > 4 * READ_BYTES {
                self.buffer = Vec::new();
            }
        }
    }

    /// Reads more. May be dropped while it waits. An error when the other side has closed.
    pub async fn fill(&mut self) -> io::Result<()> {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        self.buffer.reserve(READ_BYTES);
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// The length of the packet that comes next and its first bytes, as soon as `wanted` of them (or all) are there.
    pub async fn peek(&mut self, wanted: usize) -> io::Result<(usize, &[u8])> {
        loop {
            if let Some(length) = packet_length(self.bytes())
                && self.bytes().len() >= 4 + length.min(wanted)
            {
                return Ok((length, self.bytes().get(4..).unwrap_or_default()));
            }
            self.fill().await?;
        }
    }

    /// Takes a packet that is not longer than `limit`: its header and its payload.
    pub async fn packet(&mut self, limit: usize) -> io::Result<Vec<u8>> {
        let (length, _) = self.peek(0).await?;
        if length > limit {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.peek(length).await?;
        let packet = self.bytes().get(..4 + length).unwrap_or_default().to_vec();
        self.take(4 + length);
        Ok(packet)
    }

    pub async fn send(&self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Passes a command on as it comes, with all packets that it has.
    pub async fn pass_command(&mut self, to: &Peer) -> io::Result<()> {
        loop {
            let (length, _) = self.peek(0).await?;
            let mut left = 4 + length;
            while left > 0 {
                if self.bytes().is_empty() {
                    self.fill().await?;
                }
                let some = self.bytes().len().min(left);
                to.send(&self.bytes()[..some]).await?;
                self.take(some);
                left -= some;
            }
            if length < PACKET_MAX {
                return Ok(());
            }
        }
    }
}

/// The length that a packet's header tells.
fn packet_length(bytes: &[u8]) -> Option<usize> {
    let [a, b, c, _] = *bytes.first_chunk()?;
    Some(u32::from_le_bytes([a, b, c, 0]) as usize)
}

/// Passes on whatever comes, both ways, until a side closes.
pub async fn pass_everything(client: &mut Peer, server: &mut Peer) -> io::Result<()> {
    loop {
        server.send(client.bytes()).await?;
        client.take(client.bytes().len());
        client.send(server.bytes()).await?;
        server.take(server.bytes().len());
        tokio::select! {
            read = client.fill() => read?,
            read = server.fill() => read?,
        }
    }
}
