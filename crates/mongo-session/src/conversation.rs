//! A connection and its session, and why a conversation may end early.

use crate::worker::SessionWorker;
use mongo_wire::DecodeError;
use selkie_runtime::Stream;
use selkie_runtime::busy_poll::{BusyPoll, Expectation};
use selkie_runtime::connection::Life;
use server::{ClientSession, memory_pressure};
use std::fmt;
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::Instant;

/// How often a client that has sent a part of a message, or has a reply to read, is checked for
/// delaying others.
pub(crate) const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// How long a client may leave its reply unread while memory is short.
const UNREAD_MAX_WHEN_SHORT: Duration = Duration::from_secs(2);

/// Why a conversation ended early.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The client sent a malformed message.
    Malformed(DecodeError),
    /// The client sent no whole message in time after it connected.
    Handshake(Duration),
    /// The client began with TLS, which is off.
    Tls,
    /// The client paused too long within a message, or sent it too slowly.
    Stalled(Duration),
    /// There was no memory for the client's message.
    NoMemory(usize),
    /// The client did not read its reply.
    Unread(Duration),
    /// The client sent no request.
    Idle(Duration),
    /// A fail point closed the connection.
    FailPoint,
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
            Broken::Handshake(waited) => write!(f, "no message came within {} seconds", waited.as_secs()),
            // MongoDB's words.
            Broken::Tls => f.write_str("SSL handshake received but server is started without SSL support"),
            Broken::Stalled(waited) => write!(f, "a message was not finished within {} seconds", waited.as_secs()),
            Broken::NoMemory(bytes) => write!(f, "there was no memory for a message of {bytes} bytes"),
            Broken::Unread(waited) => write!(f, "a reply was not read within {} seconds", waited.as_secs()),
            Broken::Idle(waited) => write!(f, "no request came within {} seconds", waited.as_secs()),
            Broken::FailPoint => f.write_str("a fail point closed the connection"),
            Broken::Socket(error) => error.fmt(f),
        }
    }
}

/// A connection and its session.
pub(crate) struct Conversation {
    /// Boxed, so that moving a connection is cheap.
    pub session: Box<ClientSession>,
    pub stream: Stream,
    pub next_request: BusyPoll,
    /// How soon the next request usually arrives.
    pub expectation: Expectation,
    pub life: Rc<Life>,
    pub counted: Counted,
    /// Whether the client has sent a whole message.
    pub is_introduced: bool,
}

impl Conversation {
    pub fn worker(&self) -> &Rc<SessionWorker> {
        &self.counted.0
    }

    /// Returns whether the process is stopping.
    pub fn is_draining(&self) -> bool {
        self.life.is_draining()
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

impl Drop for Conversation {
    fn drop(&mut self) {
        commands::end_connection(&self.worker().commands, &self.session);
    }
}

/// Counts the connection while it lives.
pub(crate) struct Counted(pub Rc<SessionWorker>);

impl Counted {
    pub fn new(worker: Rc<SessionWorker>) -> Self {
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
