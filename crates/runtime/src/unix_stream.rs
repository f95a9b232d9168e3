//! A Unix socket that is watched for what comes in, and for room only while there is none.
//!
//! Linux tells whoever watches a Unix socket for room each time the other side has read from it (`unix_write_space`), had there been
//! room before or not; over TCP it tells only those who found none. Watched for both, as [`tokio::net::UnixStream`] does, a thread that
//! sent a request and sleeps until it is answered is woken twice: when the request has been read, and when the answer comes.

use rustix::io::Errno;
use std::cell::RefCell;
use std::io::{self, IoSlice, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net;
use std::path::Path;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::unix::AsyncFd;
use tokio::io::{Interest, ReadBuf, Ready};

#[derive(Debug)]
pub struct UnixStream {
    incoming: AsyncFd<net::UnixStream>,
    /// Watched for room, since something could not be written; until something can be written whole.
    room: RefCell<Option<Rc<AsyncFd<net::UnixStream>>>>,
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

    /// Takes a stream that does not block.
    pub fn from_std(stream: net::UnixStream) -> io::Result<UnixStream> {
        let incoming = watch(stream, Interest::READABLE)?;
        Ok(UnixStream { incoming, room: RefCell::new(None) })
    }

    pub fn poll_read(&self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.incoming.poll_read_ready(context))?;
            match read(self.incoming.get_ref(), buffer) {
                Ok(count) => {
                    // What comes from now on is told again, so the next read needs no call to find that there is nothing.
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

    /// Whether there is something to read.
    pub fn poll_read_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.incoming.poll_read_ready(context).map_ok(drop)
    }

    /// Writes what the socket takes now; `WouldBlock` when it takes nothing.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.incoming.get_ref().write(bytes)?;
        Ok(self.wrote(written, bytes.len()))
    }

    /// As [`UnixStream::try_write`], of several pieces one behind the other.
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
            let room = self.room()?;
            ready!(room.poll_write_ready(context))?.clear_ready();
        }
    }

    /// Waits for something to read, or for room to write after [`UnixStream::try_write`] found none.
    pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        if interest.is_readable() {
            return Ok(self.incoming.readable().await?.ready());
        }
        let room = self.room()?;
        let mut ready = room.writable().await?;
        let found = ready.ready();
        // Whoever finds none again waits for more; what is told meanwhile is not forgotten by this.
        ready.clear_ready();
        Ok(found)
    }

    fn wrote(&self, written: usize, wanted: usize) -> usize {
        if written == wanted {
            self.room.take();
        }
        written
    }

    /// Watches for room. A file descriptor is watched once, hence a second one.
    fn room(&self) -> io::Result<Rc<AsyncFd<net::UnixStream>>> {
        let mut room = self.room.borrow_mut();
        if let Some(room) = &*room {
            return Ok(room.clone());
        }
        let again = self.incoming.get_ref().try_clone()?;
        Ok(room.insert(Rc::new(watch(again, Interest::WRITABLE)?)).clone())
    }
}

fn watch(stream: net::UnixStream, interest: Interest) -> io::Result<AsyncFd<net::UnixStream>> {
    // SAFETY: a stream has the same descriptor from beginning to end, and closes it when it is dropped, with the `AsyncFd`.
    Ok(unsafe { AsyncFd::register_with_interest(stream, interest) }?)
}

/// Reads what there is into the unfilled part; gives how many bytes.
fn read(stream: &net::UnixStream, buffer: &mut ReadBuf<'_>) -> rustix::io::Result<usize> {
    // SAFETY: nothing is written to it but what is read.
    let (read, _) = rustix::io::read(stream, unsafe { buffer.unfilled_mut() })?;
    let count = read.len();
    // SAFETY: these have just been read.
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
    async fn what_comes_in_is_read_in_pieces_to_its_end() {
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

    /// Both ways to write, to one who reads when the socket is full.
    #[tokio::test]
    async fn room_is_waited_for_and_then_no_longer_watched_for() {
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

    /// What it is for: the thread sleeps until the answer comes, also while the request is being read.
    #[tokio::test]
    async fn who_waits_for_an_answer_is_woken_once() {
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
