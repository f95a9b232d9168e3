//! One client connection, from its first byte to its last.

use crate::admission::SMALL_BYTES;
use crate::conversation::{Broken, CHECK_INTERVAL, Conversation, Counted};
use crate::negotiation::negotiate;
use crate::respond::{AtOnce, respond, respond_at_once};
use crate::worker::SessionWorker;
use bytes::BytesMut;
use mongo_wire::{DecodeError, MESSAGE_BYTES_MAX};
use selkie_runtime::Connection;
use selkie_runtime::busy_poll::{Awaited, BusyPoll, Expectation};
use server::ClientSession;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, ready};
use tls::client_hello;
use tokio::io::AsyncReadExt;
use tokio::time::Instant;

/// A buffer for a message grows to four times the bytes that have arrived, up to the message's
/// length, and to at least this. So a client that announces 48 MB and sends a header gets no more
/// than this, and ten thousand such clients no more than 640 MB.
const GROWTH_BYTES_MIN: usize = 64 * 1024;

/// The same for a client that has not sent a whole message yet: no client begins with a large one.
const GROWTH_BYTES_MIN_AT_FIRST: usize = 16 * 1024;

/// The longest message of a client that must log in first, as in MongoDB 8
/// (`preAuthMaximumMessageSizeBytes`).
const BYTES_MAX_BEFORE_LOGIN: usize = 16 * 1024;

pub(crate) async fn serve(worker: Rc<SessionWorker>, connection: Connection) {
    let counted = Counted::new(worker);
    let worker = &counted.0;
    let connection = match &worker.commands.server.settings.tls {
        None => connection,
        // Boxed, since it happens once for each connection.
        Some(tls) => match Box::pin(negotiate(worker, tls, connection)).await {
            Some(connection) => connection,
            None => return,
        },
    };
    let Connection { stream, id, listener, peer, ref life, tls, .. } = connection;
    let mut conversation = Conversation {
        is_introduced: false,
        session: Box::new(
            ClientSession::new(&worker.commands.server, id, peer, listener)
                .with_local_address(stream.local_address())
                .with_tls(tls),
        ),
        counted,
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
        Err(Broken::FailPoint) => tracing::debug!(connection = id, "a fail point closed the connection"),
        Err(reason) => worker.malformed_log.log_closed(id, peer, &reason),
    }
}

impl Conversation {
    /// Answers requests in their order until the client hangs up.
    async fn converse(&mut self) -> Result<(), Broken> {
        let worker = self.worker().clone();
        // Boxed, since it happens once for each connection.
        let Some(mut buffer) = Box::pin(self.shake_hands()).await? else { return Ok(()) };
        loop {
            loop {
                let bytes_max = self.message_bytes_max();
                let message = mongo_wire::decode_up_to(bytes_max, &mut buffer, &mut worker.codecs.borrow_mut())?;
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
            let received = self.receive(self.move_unfinished(buffer)?).await?;
            let Some(received) = received else { return Ok(()) };
            buffer = received;
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

    /// Waits for the first message. Returns a buffer that begins with it, or `None` when the client
    /// has hung up.
    async fn shake_hands(&mut self) -> Result<Option<BytesMut>, Broken> {
        let received = match self.worker().timeouts.handshake {
            None => self.receive_whole().await?,
            Some(timeout) => {
                tokio::time::timeout(timeout, self.receive_whole()).await.unwrap_or(Err(Broken::Handshake(timeout)))?
            }
        };
        self.is_introduced = true;
        Ok(received)
    }

    /// Waits until a whole message has arrived.
    async fn receive_whole(&mut self) -> Result<Option<BytesMut>, Broken> {
        let mut unfinished = BytesMut::new();
        loop {
            let Some(buffer) = self.receive(unfinished).await? else { return Ok(None) };
            if buffer.len() >= mongo_wire::needed(&buffer)? {
                return Ok(Some(buffer));
            }
            unfinished = self.move_unfinished(buffer)?;
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
            let (needed, bytes_max) = (mongo_wire::needed(&unfinished)?, self.message_bytes_max());
            if needed > bytes_max {
                return Err(DecodeError::TooLong { length: needed, bytes_max }.into());
            }
            if unfinished.len() >= needed {
                return Ok(Some(unfinished));
            }
            if needed > SMALL_BYTES && reservation.is_none() {
                let timeout = worker.timeouts.stalled;
                reservation = Some(worker.admission.admit(needed, timeout).await.ok_or(Broken::NoMemory(needed))?);
            }
            let there = unfinished.len();
            if there == unfinished.capacity() {
                self.reserve_for(&mut unfinished, there, needed);
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

    /// Returns the length that the client's next message may have.
    fn message_bytes_max(&self) -> usize {
        let must_log_in = self.worker().commands.server.access_control.is_enabled() && !self.session.is_logged_in();
        if must_log_in { BYTES_MAX_BEFORE_LOGIN } else { MESSAGE_BYTES_MAX }
    }

    /// Moves the beginning of a message to memory of its own, no more than it needs, and returns
    /// the buffer to the worker.
    fn move_unfinished(&self, buffer: BytesMut) -> Result<BytesMut, Broken> {
        let mut unfinished = BytesMut::new();
        if !buffer.is_empty() {
            // As the length of a message, it would be awaited for minutes.
            if client_hello::is_tls(&buffer) == Some(true) {
                return Err(Broken::Tls);
            }
            self.reserve_for(&mut unfinished, buffer.len(), mongo_wire::needed(&buffer)?);
            unfinished.extend_from_slice(&buffer);
        }
        self.worker().buffers.give_read(buffer);
        Ok(unfinished)
    }

    /// Reserves room for a message of `needed` bytes, of which `there` have arrived: for all of it,
    /// if that is not much more.
    fn reserve_for(&self, unfinished: &mut BytesMut, there: usize, needed: usize) {
        let least = if self.is_introduced { GROWTH_BYTES_MIN } else { GROWTH_BYTES_MIN_AT_FIRST };
        let room = needed.min(there.saturating_mul(4).max(least));
        unfinished.reserve(room.saturating_sub(unfinished.len()));
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
