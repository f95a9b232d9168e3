//! One client connection, from its first byte to its last.

use crate::SessionWorker;
use crate::admission::SMALL_BYTES;
use crate::respond::{AtOnce, respond, respond_at_once};
use bytes::BytesMut;
use mongo_wire::DecodeError;
use selkie_runtime::busy_poll::{Awaited, BusyPoll, Expectation};
use selkie_runtime::connection::Life;
use selkie_runtime::{Connection, Stream};
use server::{ClientSession, memory_pressure};
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, ready};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::time::Instant;

/// A buffer for a message grows to four times the bytes that have arrived, up to the message's
/// length, and to at least this. So a client that announces 48 MB and sends a header gets no more
/// than this.
const GROWTH_BYTES_MIN: usize = 256 * 1024;

/// How often a client that has sent a part of a message, or has a reply to read, is checked for
/// delaying others.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// How long a client may leave its reply unread while memory is short.
const UNREAD_MAX_WHEN_SHORT: Duration = Duration::from_secs(2);

/// Why a conversation ended early.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The client sent a malformed message.
    Malformed(DecodeError),
    /// The client paused too long within a message, or sent it too slowly.
    Stalled(Duration),
    /// There was no memory for the client's message.
    NoMemory(usize),
    /// The client did not read its reply.
    Unread(Duration),
    /// The client sent no request.
    Idle(Duration),
    /// The socket failed, or the client hung up on a reply.
    Socket(io::Error),
}

impl From<DecodeError> for Broken {
    fn from(error: DecodeError) -> Self {
        Broken::Malformed(error)
    }
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Broken::Socket(error)
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::Malformed(error) => error.fmt(f),
            Broken::Stalled(waited) => write!(f, "a message was not finished within {} seconds", waited.as_secs()),
            Broken::NoMemory(bytes) => write!(f, "there was no memory for a message of {bytes} bytes"),
            Broken::Unread(waited) => write!(f, "a reply was not read within {} seconds", waited.as_secs()),
            Broken::Idle(waited) => write!(f, "no request came within {} seconds", waited.as_secs()),
            Broken::Socket(error) => error.fmt(f),
        }
    }
}

pub(crate) async fn serve(worker: Rc<SessionWorker>, connection: Connection) {
    let Connection { stream, id, listener, peer, ref life, .. } = connection;
    let mut conversation = Conversation {
        session: ClientSession::new(&worker.commands.server, id, peer, listener),
        counted: Counted::new(worker),
        stream,
        next_request: BusyPoll::new(Awaited::Client),
        expectation: Expectation::default(),
        life: life.clone(),
    };
    let outcome = conversation.converse().await;
    let worker = conversation.worker();
    worker.commands.server.cursors.connection_ended(id);
    match outcome {
        Ok(()) => {}
        Err(Broken::Socket(error)) => tracing::debug!(connection = id, %error, "connection lost"),
        Err(Broken::Idle(waited)) => {
            tracing::debug!(connection = id, seconds = waited.as_secs(), "connection was idle")
        }
        Err(reason) => worker.malformed_log.log_closed(id, peer, &reason),
    }
}

/// A connection and its session.
pub(crate) struct Conversation {
    pub session: ClientSession,
    pub stream: Stream,
    next_request: BusyPoll,
    /// How soon the next request usually arrives.
    expectation: Expectation,
    life: Rc<Life>,
    counted: Counted,
}

impl Conversation {
    pub fn worker(&self) -> &Rc<SessionWorker> {
        &self.counted.0
    }

    /// Returns whether the process is stopping.
    pub fn is_draining(&self) -> bool {
        self.life.is_draining()
    }

    /// Answers requests in their order until the client hangs up.
    async fn converse(&mut self) -> Result<(), Broken> {
        let worker = self.worker().clone();
        let mut unfinished = BytesMut::new();
        loop {
            let Some(mut buffer) = self.receive(unfinished).await? else { return Ok(()) };
            loop {
                let message = mongo_wire::decode(&mut buffer, &mut worker.codecs.borrow_mut())?;
                let Some(message) = message else { break };
                worker.commands.statistics().network_requests.add(1);
                let left = match respond_at_once(self, message)? {
                    AtOnce::Answered => continue,
                    left => left,
                };
                self.life.set_busy(true);
                // Boxed, so that idle connections do not reserve the size of the largest command's
                // future.
                Box::pin(self.respond_while_connected(left)).await?;
                self.life.set_busy(false);
                if self.is_draining() {
                    return Ok(());
                }
            }
            unfinished = move_unfinished(&worker, buffer)?;
        }
    }

    /// Answers a request. If the client hangs up meanwhile, its reads are stopped.
    async fn respond_while_connected(&self, left: AtOnce) -> Result<(), Broken> {
        let mut work = pin!(respond(self, left));
        tokio::select! {
            biased;
            done = &mut work => done,
            () = self.stream.hung_up() => loop {
                commands::stop_reads_of(&self.worker().commands, self.session.connection_id);
                // One request may be several operations, one after the other.
                tokio::select! {
                    biased;
                    done = &mut work => break done,
                    () = tokio::time::sleep(CHECK_INTERVAL) => {}
                }
            },
        }
    }

    /// Waits for bytes and appends them to those of an unfinished message. Returns `None` when the
    /// client has hung up.
    async fn receive(&mut self, unfinished: BytesMut) -> Result<Option<BytesMut>, Broken> {
        match unfinished.is_empty() {
            true => match self.worker().timeouts.idle {
                None => self.receive_first().await,
                Some(timeout) => Box::pin(tokio::time::timeout(timeout, self.receive_first()))
                    .await
                    .unwrap_or(Err(Broken::Idle(timeout))),
            },
            // Boxed as above: most connections never send a message in pieces.
            false => Box::pin(self.receive_rest(unfinished)).await,
        }
    }

    /// Holds no buffer while there is nothing to read: it is borrowed for the one system call that
    /// finds something.
    async fn receive_first(&mut self) -> Result<Option<BytesMut>, Broken> {
        let Conversation { stream, next_request, expectation, counted: Counted(worker), .. } = self;
        let (received, buffer) = poll_fn(|cx| {
            let there = stream.poll_read_ready(cx);
            ready!(next_request.poll(cx, expectation, there))?;
            let mut buffer = worker.buffers.take_read();
            let polled = pin!(stream.read_buf(&mut buffer)).poll(cx);
            match polled {
                Poll::Ready(received) => Poll::Ready(received.map(|received| (received, buffer))),
                Poll::Pending => {
                    worker.buffers.give_read(buffer);
                    Poll::Pending
                }
            }
        })
        .await?;
        worker.commands.statistics().network_bytes_in.add(received as u64);
        if received == 0 {
            worker.buffers.give_read(buffer);
            return Ok(None);
        }
        Ok(Some(buffer))
    }

    async fn receive_rest(&mut self, mut unfinished: BytesMut) -> Result<Option<BytesMut>, Broken> {
        let worker = self.worker().clone();
        let began = Instant::now();
        let mut reservation = None;
        loop {
            let needed = mongo_wire::needed(&unfinished)?;
            if unfinished.len() >= needed {
                return Ok(Some(unfinished));
            }
            if needed > SMALL_BYTES && reservation.is_none() {
                let timeout = worker.timeouts.stalled;
                reservation = Some(worker.admission.admit(needed, timeout).await.ok_or(Broken::NoMemory(needed))?);
            }
            let there = unfinished.len();
            if there == unfinished.capacity() {
                reserve_for(&mut unfinished, there, needed);
            }
            let received = self.receive_some(&mut unfinished, began).await?;
            worker.commands.statistics().network_bytes_in.add(received as u64);
            if received == 0 {
                return Ok(None);
            }
        }
    }

    /// Waits for more bytes of an unfinished message.
    async fn receive_some(&mut self, unfinished: &mut BytesMut, began: Instant) -> Result<usize, Broken> {
        let worker = self.worker().clone();
        let waiting_since = Instant::now();
        loop {
            if worker.admission.is_too_slow(began, unfinished.len(), waiting_since.elapsed()) {
                return Err(Broken::Stalled(began.elapsed()));
            }
            if let Ok(received) = tokio::time::timeout(CHECK_INTERVAL, self.stream.read_buf(unfinished)).await {
                return Ok(received?);
            }
            if waiting_since.elapsed() >= worker.timeouts.stalled {
                return Err(Broken::Stalled(waiting_since.elapsed()));
            }
        }
    }

    /// Waits until the client has read enough of its replies that there is room for more.
    pub async fn writable(&self) -> Result<(), Broken> {
        let worker = self.worker();
        let waiting_since = Instant::now();
        loop {
            if let Ok(writable) = tokio::time::timeout(CHECK_INTERVAL, self.stream.writable()).await {
                return Ok(writable?);
            }
            let waited = waiting_since.elapsed();
            if waited >= worker.timeouts.stalled || waited >= UNREAD_MAX_WHEN_SHORT && memory_pressure::is_high() {
                return Err(Broken::Unread(waited));
            }
        }
    }
}

/// Moves the beginning of a message to memory of its own, no more than it needs, and returns the
/// buffer to the worker.
fn move_unfinished(worker: &SessionWorker, buffer: BytesMut) -> Result<BytesMut, DecodeError> {
    let mut unfinished = BytesMut::new();
    if !buffer.is_empty() {
        reserve_for(&mut unfinished, buffer.len(), mongo_wire::needed(&buffer)?);
        unfinished.extend_from_slice(&buffer);
    }
    worker.buffers.give_read(buffer);
    Ok(unfinished)
}

/// Reserves room for a message of `needed` bytes, of which `there` have arrived: for all of it, if
/// that is not much more.
fn reserve_for(unfinished: &mut BytesMut, there: usize, needed: usize) {
    let room = needed.min(there.saturating_mul(4).max(GROWTH_BYTES_MIN));
    unfinished.reserve(room.saturating_sub(unfinished.len()));
}

/// Counts the connection while it lives.
struct Counted(Rc<SessionWorker>);

impl Counted {
    fn new(worker: Rc<SessionWorker>) -> Self {
        let statistics = worker.commands.statistics();
        statistics.connections_created.add(1);
        statistics.connections_current.add(1);
        Counted(worker)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.commands.statistics().connections_current.subtract(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn future_size<A, B, F: Future>(_: impl Fn(A, B) -> F) -> usize {
        std::mem::size_of::<F>()
    }

    /// The cost of an idle connection must stay small; idle connections must not pay for what a
    /// request needs.
    #[test]
    fn an_idle_connection_is_small() {
        let bytes = future_size(serve);
        assert!(bytes <= 768, "{bytes} bytes");
    }
}
