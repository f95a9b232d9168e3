//! Sending pages without copying them: they are lent to a pipe, and go from there to the socket.
//!
//! A socket that is written to copies what it is given into pages that it allocates, and the receiver copies it again. Of a reply that a
//! server has in memory the first copy is most of what it does. See vmsplice(2), splice(2). Over TCP it takes up to a third
//! less time for messages of the sizes in [`BYTES`]; over Unix sockets there is no difference.

use crate::connection::Stream;
use crate::paged_bytes::PagedBytes;
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

/// Sizes with which it takes less time than a copy. With more than that, the receiver at times reads faster than the next pages come, and
/// is woken for each 64 KiB of them, which costs more than the copy.
pub const BYTES: Range<usize> = 64 << 10..1 << 20;

/// How far into its first page the bytes best begin that are sent behind a front of some twenty: what fills the first segment, 65,483 bytes with
/// the front, is 16 pages then and goes at once; with less in these it is held back for what follows, and the receiver begins to read later.
/// And a receiver mostly reads to some other place in a page than from this one: to a little further on, processors copy two to three times slower.
pub const PAGE_OFFSET: usize = 37;

/// What a pipe is to hold. As much as a system gives who asks for no privilege would be twice that.
const PIPE_BYTES: usize = 512 << 10;

/// Pipes in use at a time, and those that are kept for the next time. Who waits for a slow client holds one.
const USED_MAX: usize = 16;
const KEPT_MAX: usize = 2;

/// The pipes of one worker.
#[derive(Default)]
pub struct Pipes(Rc<Pool>);

#[derive(Debug, Default)]
struct Pool {
    free: RefCell<Vec<Pipe>>,
    used: Cell<usize>,
    /// The system does not let it be done.
    refused: Cell<bool>,
}

#[derive(Debug)]
struct Pipe {
    end: OwnedFd,
    start: OwnedFd,
}

/// A message on its way over TCP: a front, pages, and an end, of which some bytes are in a pipe and some are sent.
#[derive(Debug)]
pub struct Spliced {
    pipe: Lent,
    front: Vec<u8>,
    pages: PagedBytes,
    end: Vec<u8>,
    /// How long the front is.
    pages_at: usize,
    /// Bytes of all three that are in the pipe or were; the front never is.
    piped: usize,
    sent: usize,
}

/// A pipe in use. It goes back when a message is sent, or was given up with nothing of it in the pipe.
#[derive(Debug)]
struct Lent {
    pipe: Option<Pipe>,
    pool: Rc<Pool>,
}

impl Pipes {
    /// Begins to send a message. Gives front and end back where it has to be copied instead.
    pub fn begin(
        &self,
        stream: &Stream,
        front: Vec<u8>,
        pages: &PagedBytes,
        end: Vec<u8>,
    ) -> Result<Spliced, (Vec<u8>, Vec<u8>)> {
        if !BYTES.contains(&pages.len()) || !matches!(stream, Stream::Tcp(_)) {
            return Err((front, end));
        }
        let Some(pipe) = self.take() else { return Err((front, end)) };
        let pages_at = front.len();
        Ok(Spliced { pipe, front, pages: pages.clone(), end, pages_at, piped: pages_at, sent: 0 })
    }

    fn take(&self) -> Option<Lent> {
        let pool = &self.0;
        if pool.refused.get() || pool.used.get() >= USED_MAX {
            return None;
        }
        let free = pool.free.borrow_mut().pop();
        let pipe = free.map_or_else(Pipe::new, Ok);
        // Where files are scarce, they may not be the next time.
        let is_for_now = |error: &io::Error| matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE));
        if let Err(error) = pipe.as_ref()
            && !is_for_now(error)
        {
            pool.refused.set(true);
            tracing::info!(%error, "large kept replies are copied into sockets: pipes cannot be used for them");
        }
        let pipe = pipe.ok()?;
        pool.used.set(pool.used.get() + 1);
        Some(Lent { pipe: Some(pipe), pool: pool.clone() })
    }
}

impl Pipe {
    /// A pipe that was tried with a page, and is empty.
    fn new() -> io::Result<Pipe> {
        static PAGE: [u8; 64] = [7; 64];
        let (end, start) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        fcntl_setpipe_size(&start, PIPE_BYTES)?;
        let pipe = Pipe { end, start };
        let lent = pipe.refer_to(&PAGE)?;
        let mut back = [0; PAGE.len()];
        let read = rustix::io::read(&pipe.end, &mut back)?;
        if lent != PAGE.len() || read != PAGE.len() || back != PAGE {
            return Err(io::Error::other("what was put into a pipe did not come out of it"));
        }
        Ok(pipe)
    }

    /// Puts in as much of bytes that never change as there is room for, and no copy of them.
    fn refer_to(&self, bytes: &[u8]) -> Result<usize, Errno> {
        // SAFETY: the bytes are only read, and the kernel keeps their pages.
        unsafe { vmsplice(&self.start, &[IoSliceRaw::from_slice(bytes)], SpliceFlags::NONBLOCK) }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.pool.used.set(self.pool.used.get().saturating_sub(1));
        let mut free = self.pool.free.borrow_mut();
        if let Some(pipe) = self.pipe.take().filter(|_| free.len() < KEPT_MAX) {
            free.push(pipe);
        }
    }
}

impl Drop for Spliced {
    fn drop(&mut self) {
        // What is left would be sent to the next client.
        if self.sent.max(self.pages_at) < self.piped {
            self.pipe.pipe = None;
        }
    }
}

impl Spliced {
    /// Bytes of the whole message.
    pub fn length(&self) -> usize {
        self.pages_at + self.pages.len() + self.end.len()
    }

    /// The front, once all is sent: its memory is of use again.
    pub fn into_front(mut self) -> Vec<u8> {
        std::mem::take(&mut self.front)
    }

    /// Sends what the socket takes now. Gives whether that was all there is left.
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
        if let Some(front) = self.front.get(self.sent..).filter(|front| !front.is_empty()) {
            let flags = SendFlags::MORE | SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            return stream.try_io(Interest::WRITABLE, || Ok(rustix::net::send(stream, front, flags)?));
        }
        // One filling after the other: adding to what is left would be many small ones.
        if self.piped == self.sent {
            self.fill()?;
        }
        let Some(pipe) = &self.pipe.pipe else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let (count, flags) = (self.piped - self.sent, SpliceFlags::NONBLOCK | SpliceFlags::MOVE);
        stream.try_io(Interest::WRITABLE, || Ok(splice(&pipe.end, None, stream, None, count, flags)?))
    }

    /// Sends all that is left, waiting for the socket where need be.
    pub async fn send(&mut self, stream: &Stream) -> io::Result<()> {
        while !self.try_send(stream)? {
            stream.ready(Interest::WRITABLE).await?;
        }
        Ok(())
    }

    /// Puts into the empty pipe what it takes.
    fn fill(&mut self) -> io::Result<()> {
        let Some(pipe) = &self.pipe.pipe else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let end_at = self.pages_at + self.pages.len();
        while self.piped < self.length() {
            let put = match self.pages.get(self.piped - self.pages_at..).filter(|pages| !pages.is_empty()) {
                Some(pages) => pipe.refer_to(pages),
                None => rustix::io::write(&pipe.start, self.end.get(self.piped - end_at..).unwrap_or_default()),
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
    async fn messages_arrive_whole_whatever_becomes_of_their_pages() {
        let pipes = Pipes::default();
        for (number, length) in [BYTES.start, 70_000, 600_000, BYTES.end - 1].into_iter().enumerate() {
            let (stream, mut far) = connected();
            let pages = pages(length, number as u8);
            let expected = [&b"front"[..], &pages, b"end"].concat();
            let reader = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(20));
                let mut received = Vec::new();
                far.read_to_end(&mut received).map(|_| received).unwrap()
            });
            let mut spliced = pipes.begin(&stream, b"front".to_vec(), &pages, b"end".to_vec()).unwrap();
            drop(pages);
            spliced.send(&stream).await.unwrap();
            assert_eq!(spliced.length(), expected.len());
            assert_eq!(spliced.into_front(), b"front");
            // Whoever maps memory now might be given the pages, were they free.
            let other = PagedBytes::copy_of(&vec![9; length], 0).unwrap();
            drop(stream);
            assert!(reader.join().unwrap() == expected, "message {number}");
            drop(other);
        }
        assert_eq!(pipes.0.free.borrow().len(), 1);
        assert_eq!(pipes.0.used.get(), 0);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_pipe_with_something_left_in_it_is_not_used_again() {
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
            begun.is_err_and(|(front, end)| front == [1] && end == [2])
        };
        assert!(is_refused(BYTES.start));
        drop(used);
        assert_eq!(pipes.0.free.borrow().len(), KEPT_MAX);
        assert!(is_refused(BYTES.start - 1) && is_refused(BYTES.end) && !is_refused(BYTES.start));
    }
}
