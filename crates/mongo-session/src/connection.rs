//! One client connection, from its first byte to its last.

use crate::SessionWorker;
use crate::incoming::SMALL_BYTES;
use crate::respond::{AtOnce, respond, respond_at_once};
use bytes::BytesMut;
use commands::{ClientSession, shortage};
use mongo_wire::DecodeError;
use selkie_runtime::busy_poll::{Awaited, BusyPoll, Expectation};
use selkie_runtime::connection::Life;
use selkie_runtime::{Connection, Stream};
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, ready};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::time::Instant;

/// A message longer than what is there of it gets room for four times as much, up to its length, and this at least. So a client
/// that announces 48 MB and sends a header gets no more than this.
const GROWTH_BYTES_MIN: usize = 256 * 1024;

/// How often it is looked whether a client that has sent a part of a message, or has a reply to
/// read, keeps others waiting.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How long a client may not read its reply while memory is short.
const READS_WITHIN: Duration = Duration::from_secs(2);

/// Why a conversation ended early.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The client sent what cannot be understood.
    Malformed(DecodeError),
    /// The client sent a part of a message, and then nothing, or too little.
    Stalled(Duration),
    /// There was no room for the client's message.
    NoRoom(usize),
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
            Broken::NoRoom(bytes) => write!(f, "there was no memory for a message of {bytes} bytes"),
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
        Err(reason) => worker.complaints.closed(id, peer, &reason),
    }
}

/// A connection and its session.
pub(crate) struct Conversation {
    pub session: ClientSession,
    pub stream: Stream,
    next_request: BusyPoll,
    /// Of how long the next request takes to come.
    expectation: Expectation,
    life: Rc<Life>,
    counted: Counted,
}

impl Conversation {
    pub fn worker(&self) -> &Rc<SessionWorker> {
        &self.counted.0
    }

    /// The process is going down.
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
                // Boxed, so that what the largest command needs is not set aside for every idle connection.
                Box::pin(self.respond_while_connected(left)).await?;
                self.life.set_busy(false);
                if self.is_draining() {
                    return Ok(());
                }
            }
            unfinished = put_aside(&worker, buffer)?;
        }
    }

    /// Answers a request. When the client hangs up meanwhile, what it alone wanted to know is given up.
    async fn respond_while_connected(&self, left: AtOnce) -> Result<(), Broken> {
        let mut work = pin!(respond(self, left));
        tokio::select! {
            biased;
            done = &mut work => done,
            () = self.stream.hung_up() => loop {
                self.worker().commands.stop_reads_of(self.session.connection_id);
                // One request may be several operations, one after the other.
                tokio::select! {
                    biased;
                    done = &mut work => break done,
                    () = tokio::time::sleep(LOOK_EVERY) => {}
                }
            },
        }
    }

    /// Waits for bytes and gives them behind those there are already. `None`: the client hung up, at the end of a message or not.
    async fn receive(&mut self, unfinished: BytesMut) -> Result<Option<BytesMut>, Broken> {
        match unfinished.is_empty() {
            true => match self.worker().patience.idle {
                None => self.receive_first().await,
                Some(patience) => Box::pin(tokio::time::timeout(patience, self.receive_first()))
                    .await
                    .unwrap_or(Err(Broken::Idle(patience))),
            },
            // Boxed as above: most connections never send a message in pieces.
            false => Box::pin(self.receive_rest(unfinished)).await,
        }
    }

    /// While there is nothing to read, no buffer is held: it is borrowed for the one system call that finds something.
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
        let mut room = None;
        loop {
            let needed = mongo_wire::needed(&unfinished)?;
            if unfinished.len() >= needed {
                return Ok(Some(unfinished));
            }
            if needed > SMALL_BYTES && room.is_none() {
                let patience = worker.patience.stalled;
                room = Some(worker.incoming.room_for(needed, patience).await.ok_or(Broken::NoRoom(needed))?);
            }
            let there = unfinished.len();
            if there == unfinished.capacity() {
                make_room_for(&mut unfinished, there, needed);
            }
            let received = self.receive_some(&mut unfinished, began).await?;
            worker.commands.statistics().network_bytes_in.add(received as u64);
            if received == 0 {
                return Ok(None);
            }
        }
    }

    /// Waits for more of a message that began a while ago.
    async fn receive_some(&mut self, unfinished: &mut BytesMut, began: Instant) -> Result<usize, Broken> {
        let worker = self.worker().clone();
        let waits_since = Instant::now();
        loop {
            if worker.incoming.is_too_slow(began, unfinished.len(), waits_since.elapsed()) {
                return Err(Broken::Stalled(began.elapsed()));
            }
            if let Ok(received) = tokio::time::timeout(LOOK_EVERY, self.stream.read_buf(unfinished)).await {
                return Ok(received?);
            }
            if waits_since.elapsed() >= worker.patience.stalled {
                return Err(Broken::Stalled(waits_since.elapsed()));
            }
        }
    }

    /// Waits until the client has read so much of its replies that there is room for more.
    pub async fn writable(&self) -> Result<(), Broken> {
        let worker = self.worker();
        let waits_since = Instant::now();
        loop {
            if let Ok(writable) = tokio::time::timeout(LOOK_EVERY, self.stream.writable()).await {
                return Ok(writable?);
            }
            let waited = waits_since.elapsed();
            if waited >= worker.patience.stalled || waited >= READS_WITHIN && shortage::is_there() {
                return Err(Broken::Unread(waited));
            }
        }
    }
}

/// The beginning of a message goes into memory of its own, no more than it needs, and the buffer goes back to the worker.
fn put_aside(worker: &SessionWorker, buffer: BytesMut) -> Result<BytesMut, DecodeError> {
    let mut unfinished = BytesMut::new();
    if !buffer.is_empty() {
        make_room_for(&mut unfinished, buffer.len(), mongo_wire::needed(&buffer)?);
        unfinished.extend_from_slice(&buffer);
    }
    worker.buffers.give_read(buffer);
    Ok(unfinished)
}

/// Room for a message of `needed` bytes, of which `there` have come: all of it, if it is not much more than that.
fn make_room_for(unfinished: &mut BytesMut, there: usize, needed: usize) {
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

    /// What every idle connection costs is a number to keep an eye on; what a request costs is not paid by idle ones.
    #[test]
    fn an_idle_connection_is_small() {
        let bytes = future_size(serve);
        assert!(bytes <= 768, "{bytes} bytes");
    }
}
