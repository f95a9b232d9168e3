//! A TLS connection over a socket.
//!
//! It reads and writes as the socket does: a write accepts as much as the socket has room for, so a
//! client that reads slowly delays its own replies and no memory is filled with them. At most one
//! batch of records is encrypted ahead of the socket.
//!
//! A connection belongs to one worker, so its state needs no lock.

use crate::unix_stream::UnixStream;
use rustls::Connection;
use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tls::rustls;
use tokio::io::{AsyncRead, Interest, ReadBuf, Ready};
use tokio::net::TcpStream;

/// The size of a read from the socket: four of the largest records.
const READ_BYTES: usize = 64 << 10;

/// Received records are decrypted while there are fewer bytes to read than this, the most that the
/// library holds.
const DECRYPTED_MAX: usize = 16 << 10;

/// The most pieces of one vectored write that are encrypted together.
const PIECES_MAX: usize = 4;

thread_local! {
    /// Received bytes on their way to the library, so that idle connections own no such buffer.
    static RECEIVED: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
}

/// The socket beneath.
#[derive(Debug)]
pub enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A TLS connection whose handshake is done.
#[derive(Debug)]
pub struct TlsStream {
    socket: Socket,
    state: RefCell<State>,
    /// Bytes of the last write that are encrypted, but of which the caller does not know. They are
    /// reported once the socket has them.
    unreported: Cell<usize>,
}

#[derive(Debug)]
struct State {
    session: Connection,
    /// Received bytes that are not decrypted.
    incoming: Vec<u8>,
    /// Decrypted bytes that are not read.
    readable: usize,
    /// The other side sends nothing more.
    has_ended: bool,
    /// The other side broke the protocol.
    is_broken: bool,
}

impl AsFd for TlsStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Socket::Tcp(stream) => stream.as_fd(),
            Socket::Unix(stream) => stream.as_fd(),
        }
    }
}

impl TlsStream {
    /// Shakes hands. `received`: bytes of the handshake that were already read from the socket.
    pub async fn establish(socket: Socket, session: Connection, received: Vec<u8>) -> io::Result<TlsStream> {
        let state = State { session, incoming: received, readable: 0, has_ended: false, is_broken: false };
        let mut stream = TlsStream { socket, state: RefCell::new(state), unreported: Cell::new(0) };
        std::future::poll_fn(|context| stream.poll_handshake(context)).await?;
        Ok(stream)
    }

    /// Returns the facts that the handshake has established.
    pub fn facts(&self) -> tls::TlsFacts {
        tls::TlsFacts::of(&self.state.borrow().session)
    }

    /// Returns the address that the client has connected to; `None` for Unix sockets.
    pub fn local_address(&self) -> Option<SocketAddr> {
        match &self.socket {
            Socket::Tcp(stream) => stream.local_addr().ok(),
            Socket::Unix(_) => None,
        }
    }

    fn poll_handshake(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let TlsStream { socket, state, .. } = self;
        let state = state.get_mut();
        loop {
            if !state.flush(socket, Some(context))? {
                return Poll::Pending;
            }
            if !state.session.is_handshaking() {
                return Poll::Ready(Ok(()));
            }
            if state.has_ended {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
            ready!(state.poll_receive(socket, context))?;
        }
    }

    pub fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let TlsStream { socket, state, .. } = self;
        let state = state.get_mut();
        let empty = buffer.filled().len();
        loop {
            state.read_decrypted(buffer)?;
            let has_read = buffer.filled().len() > empty;
            if buffer.remaining() == 0 || state.has_ended || has_read && state.incoming.is_empty() {
                return Poll::Ready(Ok(()));
            }
            match state.poll_receive(socket, context) {
                Poll::Ready(received) => received?,
                Poll::Pending if has_read => return Poll::Ready(Ok(())),
                Poll::Pending => {
                    // The library may have a reply of its own, such as new keys.
                    state.flush(socket, Some(context))?;
                    return Poll::Pending;
                }
            }
        }
    }

    /// Resolves when there is data to read: decrypted, or received by the socket.
    pub fn poll_read_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let state = self.state.borrow();
        if state.readable > 0 || state.has_ended || !state.incoming.is_empty() {
            return Poll::Ready(Ok(()));
        }
        self.socket.poll_read_ready(context)
    }

    /// Writes as much as the socket accepts. Fails with `WouldBlock` if that is nothing. The bytes
    /// of the next call must be those that this one has not accepted.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.try_write_vectored(&[IoSlice::new(bytes)])
    }

    /// As [`TlsStream::try_write`], of several slices.
    pub fn try_write_vectored(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.write(pieces, None)
    }

    /// As [`TlsStream::try_write`], but waits for room instead of failing.
    pub fn poll_write(&self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.write(&[IoSlice::new(bytes)], Some(context)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
            written => Poll::Ready(written),
        }
    }

    /// Waits for data from the socket, or for room to write.
    pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        match &self.socket {
            Socket::Tcp(stream) => stream.ready(interest).await,
            Socket::Unix(stream) => stream.ready(interest).await,
        }
    }

    fn write(&self, pieces: &[IoSlice<'_>], mut context: Option<&mut Context<'_>>) -> io::Result<usize> {
        let mut copied = [IoSlice::new(&[]); PIECES_MAX];
        let mut rest = first_pieces(pieces, &mut copied);
        let state = &mut *self.state.borrow_mut();
        let mut written = 0;
        loop {
            if !state.flush(&self.socket, context.as_deref_mut())? {
                return if written > 0 { Ok(written) } else { Err(io::ErrorKind::WouldBlock.into()) };
            }
            let reported = self.unreported.take().min(length(rest));
            IoSlice::advance_slices(&mut rest, reported);
            written += reported;
            if length(rest) == 0 {
                return Ok(written);
            }
            // The library accepts 64 KiB, its limit of encrypted bytes.
            let accepted = match &*rest {
                [only] => state.session.writer().write(only)?,
                several => state.session.writer().write_vectored(several)?,
            };
            if accepted == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.unreported.set(accepted);
        }
    }
}

/// Copies the first pieces, so that they can be shortened.
fn first_pieces<'c, 'p>(pieces: &[IoSlice<'p>], copied: &'c mut [IoSlice<'p>; PIECES_MAX]) -> &'c mut [IoSlice<'p>] {
    let mut count = 0;
    for (copy, piece) in copied.iter_mut().zip(pieces.iter().filter(|piece| !piece.is_empty())) {
        *copy = *piece;
        count += 1;
    }
    copied.get_mut(..count).unwrap_or_default()
}

fn length(pieces: &[IoSlice<'_>]) -> usize {
    pieces.iter().map(|piece| piece.len()).sum()
}

impl State {
    /// Sends the encrypted bytes. Returns whether the socket has taken all of them. With a context,
    /// the task is woken when there is room again.
    fn flush(&mut self, socket: &Socket, context: Option<&mut Context<'_>>) -> io::Result<bool> {
        let mut writer = SocketWriter { socket, context };
        while self.session.wants_write() {
            match self.session.write_tls(&mut writer) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Receives and decrypts something.
    fn poll_receive(&mut self, socket: &mut Socket, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.incoming.is_empty() {
            let mut received = std::mem::take(&mut self.incoming);
            let taken = self.take_in(socket, &received)?;
            received.drain(..taken);
            self.incoming = received;
            return Poll::Ready(Ok(()));
        }
        RECEIVED.with_borrow_mut(|space| {
            let mut buffer = ReadBuf::new(space);
            ready!(socket.poll_read(context, &mut buffer))?;
            if buffer.filled().is_empty() {
                self.has_ended = true;
            }
            let taken = self.take_in(socket, buffer.filled())?;
            self.incoming.extend_from_slice(buffer.filled().get(taken..).unwrap_or_default());
            Poll::Ready(Ok(()))
        })
    }

    /// Decrypts received bytes until enough can be read. Returns the number of bytes taken.
    fn take_in(&mut self, socket: &Socket, received: &[u8]) -> io::Result<usize> {
        let mut rest = received;
        while !rest.is_empty() && self.readable < DECRYPTED_MAX && !self.has_ended {
            self.session.read_tls(&mut rest)?;
            match self.session.process_new_packets() {
                Ok(state) => {
                    self.readable = state.plaintext_bytes_to_read();
                    self.has_ended = state.peer_has_closed();
                }
                Err(error) => {
                    self.is_broken = true;
                    // The alert is sent if there is room for it: the other side may log it.
                    let _ = self.flush(socket, None);
                    return Err(io::Error::new(io::ErrorKind::InvalidData, error));
                }
            }
        }
        Ok(if self.has_ended { received.len() } else { received.len() - rest.len() })
    }

    fn read_decrypted(&mut self, buffer: &mut ReadBuf<'_>) -> io::Result<()> {
        while self.readable > 0 && buffer.remaining() > 0 {
            let space = buffer.initialize_unfilled();
            let count = io::Read::read(&mut self.session.reader(), space)?;
            buffer.advance(count);
            self.readable = if count == 0 { 0 } else { self.readable.saturating_sub(count) };
        }
        Ok(())
    }
}

impl Drop for TlsStream {
    /// Announces the end, if there is room for it, so that the client knows that nothing is
    /// missing.
    fn drop(&mut self) {
        let TlsStream { socket, state, .. } = self;
        let state = state.get_mut();
        if !state.is_broken && !state.session.is_handshaking() {
            state.session.send_close_notify();
            let _ = state.flush(socket, None);
        }
    }
}

impl Socket {
    fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self {
            Socket::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Socket::Unix(stream) => stream.poll_read(context, buffer),
        }
    }

    fn poll_read_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Socket::Tcp(stream) => stream.poll_read_ready(context),
            Socket::Unix(stream) => stream.poll_read_ready(context),
        }
    }

    fn try_write_vectored(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.try_write_vectored(pieces),
            Socket::Unix(stream) => stream.try_write_vectored(pieces),
        }
    }

    fn poll_write_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Socket::Tcp(stream) => stream.poll_write_ready(context),
            Socket::Unix(stream) => stream.poll_write_ready(context),
        }
    }
}

/// A socket as the library writes to it.
struct SocketWriter<'s, 'c, 'w> {
    socket: &'s Socket,
    /// The task to wake when there is room again.
    context: Option<&'c mut Context<'w>>,
}

impl Write for SocketWriter<'_, '_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        loop {
            match (self.socket.try_write_vectored(pieces), &mut self.context) {
                (Err(error), Some(context)) if error.kind() == io::ErrorKind::WouldBlock => {
                    match self.socket.poll_write_ready(context) {
                        Poll::Ready(room) => room?,
                        Poll::Pending => return Err(error),
                    }
                }
                (written, _) => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
