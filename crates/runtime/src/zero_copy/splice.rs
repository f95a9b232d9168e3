//! Sends pages without a copy: vmsplice(2) maps them into a pipe, splice(2) moves them to the
//! socket.
//!
//! A write to a socket copies the bytes into pages that the kernel allocates, and the receiver
//! copies them again. For a reply that is in memory the first copy is most of the work. Over TCP
//! this saves up to a third of the time for messages of the sizes in [`BYTES`]; over Unix sockets
//! there is no difference.

use crate::connection::Stream;
use crate::zero_copy::paged_bytes::PagedBytes;
use rustix::io::Errno;
use rustix::net::SendFlags;
use rustix::pipe::{IoSliceRaw, PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice, vmsplice};
use std::cell::{Cell, RefCell};
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use tokio::io::Interest;
use tokio::net::TcpStream;

/// The message sizes for which it is faster than a copy. With larger ones, the receiver at times
/// reads faster than the next pages come, and is woken for each 64 KiB of them, which costs more
/// than the copy.
pub const BYTES: Range<usize> = 64 << 10..1 << 20;

/// The best offset in their first page of bytes that follow a header of some twenty. Then the first
/// segment (65,483 bytes with the header) has exactly 16 pages and is sent at once; with less in
/// it, it is held back for more, and the receiver begins to read later. Moreover the receiver
/// mostly reads to another page offset; processors copy to a slightly higher offset two to three
/// times slower.
pub const PAGE_OFFSET: usize = 37;

/// The capacity of a pipe. Half of the unprivileged maximum (fs.pipe-max-size).
const PIPE_BYTES: usize = 512 << 10;

/// The most pipes in use at a time, and the most idle ones. A message to a slow client holds one.
const USED_MAX: usize = 16;
const IDLE_MAX: usize = 2;

/// The pipes of one worker.
#[derive(Default)]
pub struct Pipes(Rc<Pool>);

#[derive(Debug, Default)]
struct Pool {
    free: RefCell<Vec<Pipe>>,
    used: Cell<usize>,
    /// The system does not allow it.
    refused: Cell<bool>,
}

#[derive(Debug)]
struct Pipe {
    read_end: OwnedFd,
    write_end: OwnedFd,
}

/// A message on its way over TCP: header, pages and trailer, of which some bytes are in a pipe and
/// some are sent.
#[derive(Debug)]
pub struct SplicedMessage {
    pipe: PipeLease,
    header: Vec<u8>,
    pages: PagedBytes,
    trailer: Vec<u8>,
    /// The header's length.
    pages_at: usize,
    /// Bytes of all three that have been in the pipe; the header never is.
    piped: usize,
    sent: usize,
}

/// A pipe in use. It returns to the pool when a message is sent, or was abandoned with none of it
/// in the pipe.
#[derive(Debug)]
struct PipeLease {
    pipe: Option<Pipe>,
    pool: Rc<Pool>,
}

impl Pipes {
    /// Begins to send a message. Returns header and trailer if it must be copied instead, because
    /// of its size or because the stream is not plain TCP.
    pub fn begin(
        &self,
        stream: &Stream,
        header: Vec<u8>,
        pages: &PagedBytes,
        trailer: Vec<u8>,
    ) -> Result<SplicedMessage, (Vec<u8>, Vec<u8>)> {
        if !BYTES.contains(&pages.len()) || !matches!(stream, Stream::Tcp(_)) {
            return Err((header, trailer));
        }
        let Some(pipe) = self.take() else { return Err((header, trailer)) };
        let pages_at = header.len();
        Ok(SplicedMessage { pipe, header, pages: pages.clone(), trailer, pages_at, piped: pages_at, sent: 0 })
    }

    fn take(&self) -> Option<PipeLease> {
        let pool = &self.0;
        if pool.refused.get() || pool.used.get() >= USED_MAX {
            return None;
        }
        let free = pool.free.borrow_mut().pop();
        let pipe = free.map_or_else(Pipe::new, Ok);
        // A shortage of file descriptors may pass.
        let is_for_now = |error: &io::Error| matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE));
        if let Err(error) = pipe.as_ref()
            && !is_for_now(error)
        {
            pool.refused.set(true);
            tracing::info!(%error, "large cached replies are copied into sockets: pipes cannot be used for them");
        }
        let pipe = pipe.ok()?;
        pool.used.set(pool.used.get() + 1);
        Some(PipeLease { pipe: Some(pipe), pool: pool.clone() })
    }
}

impl Pipe {
    /// Returns an empty pipe that was tested with a page.
    fn new() -> io::Result<Pipe> {
        static PAGE: [u8; 64] = [7; 64];
        let (read_end, write_end) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        fcntl_setpipe_size(&write_end, PIPE_BYTES)?;
        let pipe = Pipe { read_end, write_end };
        let lent = pipe.map(&PAGE)?;
        let mut back = [0; PAGE.len()];
        let read = rustix::io::read(&pipe.read_end, &mut back)?;
        if lent != PAGE.len() || read != PAGE.len() || back != PAGE {
            return Err(io::Error::other("a pipe returned other bytes than were written to it"));
        }
        Ok(pipe)
    }

    /// Maps as many of the bytes into the pipe as it has room for, without a copy. The bytes must
    /// never change.
    fn map(&self, bytes: &[u8]) -> Result<usize, Errno> {
        // SAFETY: the bytes are only read, and the kernel holds their pages.
        unsafe { vmsplice(&self.write_end, &[IoSliceRaw::from_slice(bytes)], SpliceFlags::NONBLOCK) }
    }
}

impl Drop for PipeLease {
    fn drop(&mut self) {
        self.pool.used.set(self.pool.used.get().saturating_sub(1));
        let mut free = self.pool.free.borrow_mut();
        if let Some(pipe) = self.pipe.take().filter(|_| free.len() < IDLE_MAX) {
            free.push(pipe);
        }
    }
}

impl Drop for SplicedMessage {
    fn drop(&mut self) {
        // A pipe with data left in it would send that to the next client.
        if self.sent.max(self.pages_at) < self.piped {
            self.pipe.pipe = None;
        }
    }
}

impl SplicedMessage {
    /// Returns the length of the whole message.
    pub fn length(&self) -> usize {
        self.pages_at + self.pages.len() + self.trailer.len()
    }

    /// Returns the header's memory for reuse, once everything is sent.
    pub fn into_header(mut self) -> Vec<u8> {
        std::mem::take(&mut self.header)
    }

    /// Sends as much as the socket accepts. Returns whether everything is sent.
    pub fn try_send(&mut self, stream: &Stream) -> io::Result<bool> {
        let Stream::Tcp(stream) = stream else { return Err(io::ErrorKind::Unsupported.into()) };
        let length = self.length();
        while self.sent < length {
            match self.try_send_some(stream) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(sent) => self.sent += sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn try_send_some(&mut self, stream: &TcpStream) -> io::Result<usize> {
        if let Some(header) = self.header.get(self.sent..).filter(|header| !header.is_empty()) {
            let flags = SendFlags::MORE | SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            return stream.try_io(Interest::WRITABLE, || Ok(rustix::net::send(stream, header, flags)?));
        }
        // The pipe is refilled only when it is empty: adding to a remainder would mean many small
        // writes.
        if self.piped == self.sent {
            self.fill()?;
        }
        let Some(pipe) = &self.pipe.pipe else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let (count, flags) = (self.piped - self.sent, SpliceFlags::NONBLOCK | SpliceFlags::MOVE);
        stream.try_io(Interest::WRITABLE, || Ok(splice(&pipe.read_end, None, stream, None, count, flags)?))
    }

    /// Sends the rest, waiting for the socket where necessary.
    pub async fn send(&mut self, stream: &Stream) -> io::Result<()> {
        while !self.try_send(stream)? {
            stream.ready(Interest::WRITABLE).await?;
        }
        Ok(())
    }

    /// Fills the empty pipe.
    fn fill(&mut self) -> io::Result<()> {
        let Some(pipe) = &self.pipe.pipe else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let trailer_at = self.pages_at + self.pages.len();
        while self.piped < self.length() {
            let put = match self.pages.get(self.piped - self.pages_at..).filter(|pages| !pages.is_empty()) {
                Some(pages) => pipe.map(pages),
                None => {
                    rustix::io::write(&pipe.write_end, self.trailer.get(self.piped - trailer_at..).unwrap_or_default())
                }
            };
            match put {
                Ok(count) => self.piped += count,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream as Far};
    use std::time::Duration;

    fn pages(length: usize, seed: u8) -> PagedBytes {
        let bytes: Vec<u8> = (0..length).map(|number| (number / 7) as u8 ^ seed).collect();
        PagedBytes::copy_of(&bytes, PAGE_OFFSET).unwrap()
    }

    /// A connection whose buffers are far smaller than the messages.
    fn connected() -> (Stream, Far) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = Far::connect(listener.local_addr().unwrap()).unwrap();
        let (far, _) = listener.accept().unwrap();
        socket2::SockRef::from(&near).set_send_buffer_size(16 << 10).unwrap();
        socket2::SockRef::from(&far).set_recv_buffer_size(16 << 10).unwrap();
        near.set_nonblocking(true).unwrap();
        (Stream::Tcp(TcpStream::from_std(near).unwrap()), far)
    }

    #[tokio::test(flavor = "current_thread")]
    async fn messages_arrive_whole_after_their_pages_are_dropped() {
        let pipes = Pipes::default();
        for (number, length) in [BYTES.start, 70_000, 600_000, BYTES.end - 1].into_iter().enumerate() {
            let (stream, mut far) = connected();
            let pages = pages(length, number as u8);
            let expected = [&b"header"[..], &pages, b"end"].concat();
            let reader = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(20));
                let mut received = Vec::new();
                far.read_to_end(&mut received).map(|_| received).unwrap()
            });
            let mut spliced = pipes.begin(&stream, b"header".to_vec(), &pages, b"end".to_vec()).unwrap();
            drop(pages);
            spliced.send(&stream).await.unwrap();
            assert_eq!(spliced.length(), expected.len());
            assert_eq!(spliced.into_header(), b"header");
            // A new mapping could get the pages if they were free.
            let other = PagedBytes::copy_of(&vec![9; length], 0).unwrap();
            drop(stream);
            assert!(reader.join().unwrap() == expected, "message {number}");
            drop(other);
        }
        assert_eq!(pipes.0.free.borrow().len(), 1);
        assert_eq!(pipes.0.used.get(), 0);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_pipe_with_data_left_is_not_reused() {
        let pipes = Pipes::default();
        let (stream, far) = connected();
        let large = pages(BYTES.end - 1, 0);
        let mut spliced = pipes.begin(&stream, vec![1], &large, Vec::new()).ok().unwrap();
        assert!(!spliced.try_send(&stream).unwrap());
        drop(far);
        assert!(spliced.send(&stream).await.is_err());
        drop(spliced);
        assert!(pipes.0.free.borrow().is_empty());

        let used: Vec<_> = (0..USED_MAX).map(|_| pipes.take().unwrap()).collect();
        let is_refused = |size| {
            let begun = pipes.begin(&stream, vec![1], &pages(size, 0), vec![2]);
            begun.is_err_and(|(header, trailer)| header == [1] && trailer == [2])
        };
        assert!(is_refused(BYTES.start));
        drop(used);
        assert_eq!(pipes.0.free.borrow().len(), IDLE_MAX);
        assert!(is_refused(BYTES.start - 1) && is_refused(BYTES.end) && !is_refused(BYTES.start));
    }
}
