//! A Unix socket that waits for incoming data, and for room to write only when there is none.
//!
//! Linux wakes a thread that waits for room on a Unix socket each time the other side reads from it
//! (`unix_write_space`), whether or not there was room before; over TCP it wakes only those that
//! found none. [`tokio::net::UnixStream`] waits for both. A thread that sent a request and sleeps
//! until the reply is then woken twice: when the request is read, and when the reply arrives.

use rustix::io::Errno;
use std::cell::RefCell;
use std::io::{self, IoSlice, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net;
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::unix::AsyncFd;
use tokio::io::{Interest, ReadBuf, Ready};

#[derive(Debug)]
pub struct UnixStream {
    incoming: AsyncFd<net::UnixStream>,
    /// Waits for room after a write that did not fit, until a write fits as a whole.
    room: RefCell<Option<Arc<AsyncFd<net::UnixStream>>>>,
}

impl AsFd for UnixStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.incoming.get_ref().as_fd()
    }
}

impl UnixStream {
    pub async fn connect(path: &Path) -> io::Result<UnixStream> {
        UnixStream::from_std(tokio::net::UnixStream::connect(path).await?.into_std()?)
    }

    /// Takes a stream in non-blocking mode.
    pub fn from_std(stream: net::UnixStream) -> io::Result<UnixStream> {
        let incoming = watch(stream, Interest::READABLE)?;
        Ok(UnixStream { incoming, room: RefCell::new(None) })
    }

    pub fn poll_read(&self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.incoming.poll_read_ready(context))?;
            match read(self.incoming.get_ref(), buffer) {
                Ok(count) => {
                    // New data is reported again, so the next read needs no system call to find
                    // that there is none.
                    if count > 0 && buffer.remaining() > 0 {
                        ready.clear_ready();
                    }
                    return Poll::Ready(Ok(()));
                }
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(Errno::INTR) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }

    /// Resolves when there is data to read.
    pub fn poll_read_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.incoming.poll_read_ready(context).map_ok(drop)
    }

    /// Writes as much as the socket accepts. Fails with `WouldBlock` if that is nothing.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.incoming.get_ref().write(bytes)?;
        Ok(self.wrote(written, bytes.len()))
    }

    /// As [`UnixStream::try_write`], of several slices.
    pub fn try_write_vectored(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let written = self.incoming.get_ref().write_vectored(pieces)?;
        Ok(self.wrote(written, pieces.iter().map(|piece| piece.len()).sum()))
    }

    pub fn poll_write(&self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            match self.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                written => return Poll::Ready(written),
            }
            ready!(self.poll_write_ready(context))?;
        }
    }

    /// Resolves when there is room to write, after [`UnixStream::try_write`] found none.
    pub fn poll_write_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.room()?.poll_write_ready(context))?.clear_ready();
        Poll::Ready(Ok(()))
    }

    /// Waits for data to read, or for room to write after [`UnixStream::try_write`] found none.
    pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        if interest.is_readable() {
            return Ok(self.incoming.readable().await?.ready());
        }
        let room = self.room()?;
        let mut ready = room.writable().await?;
        let found = ready.ready();
        // A caller that finds none again waits for more; an event in between is not lost by this.
        ready.clear_ready();
        Ok(found)
    }

    fn wrote(&self, written: usize, wanted: usize) -> usize {
        if written == wanted {
            self.room.take();
        }
        written
    }

    /// Returns a second descriptor that waits for room: a descriptor is registered only once.
    fn room(&self) -> io::Result<Arc<AsyncFd<net::UnixStream>>> {
        let mut room = self.room.borrow_mut();
        if let Some(room) = &*room {
            return Ok(room.clone());
        }
        let again = self.incoming.get_ref().try_clone()?;
        Ok(room.insert(Arc::new(watch(again, Interest::WRITABLE)?)).clone())
    }
}

fn watch(stream: net::UnixStream, interest: Interest) -> io::Result<AsyncFd<net::UnixStream>> {
    // SAFETY: a stream has the same descriptor throughout, and closes it when it is dropped, with
    // the `AsyncFd`.
    Ok(unsafe { AsyncFd::register_with_interest(stream, interest) }?)
}

/// Reads into the unfilled part of a buffer. Returns the number of bytes.
fn read(stream: &net::UnixStream, buffer: &mut ReadBuf<'_>) -> rustix::io::Result<usize> {
    // SAFETY: only bytes that are read are written to it.
    let (read, _) = rustix::io::read(stream, unsafe { buffer.unfilled_mut() })?;
    let count = read.len();
    // SAFETY: these bytes have just been read.
    unsafe { buffer.assume_init(count) };
    buffer.advance(count);
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::task::Waker;
    use std::time::Duration;

    fn pair() -> (UnixStream, net::UnixStream) {
        let (near, far) = net::UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        (UnixStream::from_std(near).unwrap(), far)
    }

    async fn read_some(stream: &UnixStream, at_most: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(at_most);
        let mut buffer = ReadBuf::uninit(&mut bytes.spare_capacity_mut()[..at_most]);
        std::future::poll_fn(|context| stream.poll_read(context, &mut buffer)).await.unwrap();
        buffer.filled().to_vec()
    }

    #[tokio::test]
    async fn incoming_data_is_read_in_pieces_to_its_end() {
        let (near, mut far) = pair();
        far.write_all(b"a request").unwrap();
        assert_eq!(read_some(&near, 2).await, b"a ");
        assert_eq!(read_some(&near, 100).await, b"request");
        let mut context = Context::from_waker(Waker::noop());
        assert!(near.poll_read_ready(&mut context).is_pending(), "it was emptied");
        far.write_all(b"another").unwrap();
        assert_eq!(read_some(&near, 100).await, b"another");
        drop(far);
        assert_eq!(read_some(&near, 7).await, b"");
        assert!(near.ready(Interest::READABLE).await.unwrap().is_read_closed());
    }

    /// Writes in both ways to a reader that begins when the socket is full.
    #[tokio::test]
    async fn a_writer_waits_for_room_only_while_there_is_none() {
        let (near, mut far) = pair();
        let bytes: Vec<u8> = (0..3_000_000).map(|number: u32| (number % 251) as u8).collect();
        for by_polling in [true, false] {
            let mut reader = far.try_clone().unwrap();
            let reading = std::thread::spawn(move || {
                let mut read = vec![0; 3_000_000];
                reader.read_exact(&mut read).unwrap();
                read
            });
            let mut sent = 0;
            while sent < bytes.len() {
                let rest = &bytes[sent..];
                sent += match by_polling {
                    true => std::future::poll_fn(|context| near.poll_write(context, rest)).await.unwrap(),
                    false => match near.try_write_vectored(&[IoSlice::new(&rest[..1]), IoSlice::new(&rest[1..])]) {
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                            near.ready(Interest::WRITABLE).await.unwrap();
                            0
                        }
                        written => written.unwrap(),
                    },
                };
            }
            assert!(near.room.borrow().is_none());
            assert!(reading.join().unwrap() == bytes);
        }
        far.write_all(b"still").unwrap();
        assert_eq!(read_some(&near, 7).await, b"still");
    }

    /// The purpose: the thread sleeps until the reply comes, also while the request is being read.
    #[tokio::test]
    async fn a_waiting_reader_is_woken_once() {
        const ROUNDS: u64 = 10;
        let (near, mut far) = pair();
        let answering = std::thread::spawn(move || {
            for _ in 0..ROUNDS {
                std::thread::sleep(Duration::from_millis(5));
                far.read_exact(&mut [0; 7]).unwrap();
                std::thread::sleep(Duration::from_millis(5));
                far.write_all(b"answer").unwrap();
            }
        });
        let before = times_slept();
        for _ in 0..ROUNDS {
            near.try_write(b"request").unwrap();
            assert_eq!(read_some(&near, 100).await, b"answer");
        }
        let slept = times_slept() - before;
        assert!(slept < ROUNDS * 3 / 2, "slept {slept} times for {ROUNDS} answers");
        answering.join().unwrap();
    }

    fn times_slept() -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
        line.trim().parse().unwrap()
    }
}
