//! One side of a session: its byte stream, and the bytes read from it.

use crate::byte_stream::ByteStream;
use crate::reply_gate::ReplyGate;
use crate::reply_tracker::{PACKET_MAX, ReplyTracker};
use bytes::BufMut;
use selkie_runtime::Stream;
use service::ServerSettings;
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Bytes read at once.
const READ_BYTES: usize = 64 << 10;

/// The other side must read so many bytes within its time.
const SEND_BYTES: usize = 64 << 10;

pub struct PacketStream {
    pub stream: ByteStream,
    /// The other side's address; `None` for a Unix socket.
    pub peer: Option<IpAddr>,
    /// How long the other side may pause within a packet, or before it reads; `None`: forever. Then
    /// reading or sending fails with `TimedOut`.
    pub stalled_after: Option<Duration>,
    /// Bytes sent so far.
    pub sent: u64,
    /// Observes and edits the reply that is sent to a client with filters.
    pub gate: Option<Box<ReplyGate>>,
    buffer: Vec<u8>,
    start: usize,
}

impl PacketStream {
    pub fn new(stream: Stream, peer: Option<IpAddr>) -> PacketStream {
        PacketStream {
            stream: ByteStream::new(stream),
            peer,
            stalled_after: None,
            sent: 0,
            gate: None,
            buffer: Vec::new(),
            start: 0,
        }
    }

    pub async fn connect(backend: &ServerSettings) -> io::Result<PacketStream> {
        let stream = TcpStream::connect((backend.host.as_str(), backend.port)).await?;
        stream.set_nodelay(true)?;
        let peer = stream.peer_addr()?.ip();
        Ok(PacketStream::new(Stream::Tcp(stream), Some(peer)))
    }

    /// Takes the connection with its unread bytes, and leaves a closed one.
    pub fn take(&mut self) -> PacketStream {
        let closed = PacketStream {
            stream: ByteStream::closed(),
            peer: self.peer,
            stalled_after: self.stalled_after,
            sent: self.sent,
            gate: None,
            buffer: Vec::new(),
            start: 0,
        };
        std::mem::replace(self, closed)
    }

    /// Closes the connection. Reading finds its end.
    pub fn close(&mut self) {
        self.stream.close();
        (self.buffer, self.start) = (Vec::new(), 0);
    }

    pub fn is_closed(&self) -> bool {
        self.stream.is_closed()
    }

    /// Returns bytes that have been read and not consumed, to be changed before they are forwarded.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.buffer.get_mut(self.start..).unwrap_or_default()
    }

    /// Returns whether the other side is a process of this machine.
    pub fn is_local(&self) -> bool {
        self.peer.is_none_or(|address| address.is_loopback())
    }

    /// Bytes that have been read and not consumed.
    pub fn bytes(&self) -> &[u8] {
        self.buffer.get(self.start..).unwrap_or_default()
    }

    pub fn consume(&mut self, bytes: usize) {
        self.start += bytes;
        if self.start >= self.buffer.len() {
            self.start = 0;
            self.buffer.clear();
            if self.buffer.capacity() > 4 * READ_BYTES {
                self.buffer = Vec::new();
            }
        }
    }

    /// Reads more bytes. Fails with `UnexpectedEof` when the other side has closed. Cancel-safe.
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

    /// As [`PacketStream::fill`], without a buffer until there is something to read.
    pub async fn fill_when_sent(&mut self) -> io::Result<()> {
        if self.bytes().is_empty() {
            let readable = |context: &mut Context<'_>| {
                let ready = self.stream.poll_readable(context);
                if ready.is_pending() {
                    self.free_buffer();
                }
                ready
            };
            poll_fn(readable).await?;
        }
        self.fill().await
    }

    /// Returns whether the other side has sent nothing, and not closed.
    pub fn is_quiet(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        if !self.bytes().is_empty() || self.stream.poll_readable(&mut context).is_pending() {
            return self.bytes().is_empty();
        }
        pin!(self.fill()).poll(&mut context).is_pending()
    }

    /// Frees the buffer if it is empty, as the connection is idle.
    pub fn free_buffer(&mut self) {
        if self.bytes().is_empty() {
            (self.buffer, self.start) = (Vec::new(), 0);
        }
    }

    /// As [`PacketStream::fill`], while the other side must not pause.
    async fn fill_soon(&mut self) -> io::Result<()> {
        match self.stalled_after {
            None => self.fill().await,
            Some(limit) => timeout(limit, self.fill()).await?,
        }
    }

    /// Waits until `wanted` bytes of the next packet (or all of it) have been read. Returns its
    /// length and the bytes read.
    pub async fn peek(&mut self, wanted: usize) -> io::Result<(usize, &[u8])> {
        loop {
            if let Some(length) = packet_length(self.bytes())
                && self.bytes().len() >= 4 + length.min(wanted)
            {
                return Ok((length, self.bytes().get(4..).unwrap_or_default()));
            }
            self.fill_soon().await?;
        }
    }

    /// Returns the next packet, header and payload, without consuming it. Fails with `InvalidData`
    /// if the payload is longer than `limit`.
    pub async fn peek_packet(&mut self, limit: usize) -> io::Result<Vec<u8>> {
        let (length, _) = self.peek(0).await?;
        if length > limit {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.peek(length).await?;
        Ok(self.bytes().get(..4 + length).unwrap_or_default().to_vec())
    }

    /// Consumes the next packet and returns its header and payload. Fails with `InvalidData` if the
    /// payload is longer than `limit`.
    pub async fn packet(&mut self, limit: usize) -> io::Result<Vec<u8>> {
        let packet = self.peek_packet(limit).await?;
        self.consume(packet.len());
        Ok(packet)
    }

    /// As [`PacketStream::packet`], but reads nothing behind the packet: TLS may begin there.
    pub async fn packet_alone(&mut self, limit: usize) -> io::Result<Vec<u8>> {
        while packet_length(self.bytes()).is_none() {
            self.fill_at_most(4 - self.bytes().len()).await?;
        }
        let length = packet_length(self.bytes()).unwrap_or_default();
        if length > limit {
            return Err(io::ErrorKind::InvalidData.into());
        }
        while self.bytes().len() < 4 + length {
            self.fill_at_most(4 + length - self.bytes().len()).await?;
        }
        self.packet(limit).await
    }

    async fn fill_at_most(&mut self, bytes: usize) -> io::Result<()> {
        let mut limited = (&mut self.buffer).limit(bytes.min(READ_BYTES));
        match self.stream.read_buf(&mut limited).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sent += bytes.len() as u64;
        let edited = self.gate.as_mut().and_then(|gate| gate.pass(bytes));
        let bytes = edited.as_deref().unwrap_or(bytes);
        let Some(limit) = self.stalled_after else { return self.stream.write_all(bytes).await };
        for piece in bytes.chunks(SEND_BYTES) {
            timeout(limit, self.stream.write_all(piece)).await??;
        }
        Ok(())
    }

    /// Reads the reply to a command of the gateway's own. Returns its bytes, or `None` if they are
    /// more than `limit`.
    pub async fn read_reply(&mut self, reply: &mut ReplyTracker, limit: usize) -> io::Result<Option<Vec<u8>>> {
        let mut taken = Some(Vec::new());
        while !reply.is_over() {
            if self.bytes().is_empty() {
                self.fill().await?;
            }
            let used = reply.feed(self.bytes());
            if reply.requests_file {
                return Err(io::ErrorKind::InvalidData.into());
            }
            taken = taken.filter(|taken| taken.len() + used <= limit);
            if let Some(taken) = &mut taken {
                taken.extend_from_slice(self.bytes().get(..used).unwrap_or_default());
            }
            self.consume(used);
        }
        Ok(taken)
    }

    /// Replaces the statement of the next command, which has been read whole. Returns false if that
    /// is not possible.
    pub fn replace_statement(&mut self, text: &[u8]) -> bool {
        let Some(&[a, b, c, number, command]) = self.bytes().first_chunk() else { return false };
        let length = u32::from_le_bytes([a, b, c, 0]) as usize;
        let Some(behind) = self.bytes().get(4 + length..) else { return false };
        if text.len() + 1 >= PACKET_MAX {
            return false;
        }
        let mut bytes = (text.len() as u32 + 1).to_le_bytes()[..3].to_vec();
        bytes.extend_from_slice(&[number, command]);
        bytes.extend_from_slice(text);
        bytes.extend_from_slice(behind);
        (self.buffer, self.start) = (bytes, 0);
        true
    }

    /// Reads a command with all its packets, and drops it.
    pub async fn skip_command(&mut self) -> io::Result<()> {
        self.take_command(None).await
    }

    /// Forwards a command with all its packets, without holding it whole.
    pub async fn forward_command(&mut self, to: &mut PacketStream) -> io::Result<()> {
        self.take_command(Some(to)).await
    }

    /// Forwards a file that the server has requested: packets, of which an empty one is the last.
    /// Only some bytes of it are held at a time. `number`: the sequence number of the first packet.
    pub async fn forward_file(&mut self, to: &mut PacketStream, mut number: u8) -> io::Result<()> {
        if self.gate.as_ref().is_some_and(|gate| gate.has_ended()) {
            // The client has got a filter's error, and sends no file.
            return to.send(&[0, 0, 0, number]).await;
        }
        let mut continues = false;
        loop {
            let length = self.take_packet(&mut Some(to), number).await?;
            if length == 0 && !continues {
                return Ok(());
            }
            continues = length == PACKET_MAX;
            number = number.wrapping_add(1);
        }
    }

    async fn take_command(&mut self, mut to: Option<&mut PacketStream>) -> io::Result<()> {
        let mut number = 0_u8;
        while self.take_packet(&mut to, number).await? == PACKET_MAX {
            number = number.wrapping_add(1);
        }
        Ok(())
    }

    /// Takes a packet, and forwards it with a sequence number: clients that compress number frames
    /// instead. Returns the length of its payload.
    async fn take_packet(&mut self, to: &mut Option<&mut PacketStream>, number: u8) -> io::Result<usize> {
        let (length, _) = self.peek(0).await?;
        if let Some(byte) = self.bytes_mut().get_mut(3) {
            *byte = number;
        }
        let mut left = 4 + length;
        while left > 0 {
            if self.bytes().is_empty() {
                self.fill_soon().await?;
            }
            let some = self.bytes().len().min(left);
            if let Some(to) = to {
                to.send(self.bytes().get(..some).unwrap_or_default()).await?;
            }
            self.consume(some);
            left -= some;
        }
        Ok(length)
    }
}

/// Returns the payload's length from a packet's header.
fn packet_length(bytes: &[u8]) -> Option<usize> {
    let [a, b, c, _] = *bytes.first_chunk()?;
    Some(u32::from_le_bytes([a, b, c, 0]) as usize)
}

/// Forwards bytes both ways until a side closes.
pub async fn relay_both_ways(client: &mut PacketStream, server: &mut PacketStream) -> io::Result<()> {
    loop {
        server.send(client.bytes()).await?;
        client.consume(client.bytes().len());
        client.send(server.bytes()).await?;
        server.consume(server.bytes().len());
        tokio::select! {
            read = client.fill() => read?,
            read = server.fill() => read?,
        }
    }
}
