//! The life of a worker thread: accept, hand over, serve, drain.

use crate::balance::Balance;
use crate::connection::{Connection, Life, Stream};
use crate::listener::Listener;
use crate::message::{Arrival, ArrivedStream, Handle, Message};
use crate::service::{OpenServices, Services};
use crate::unix_stream::UnixStream;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::os::unix::net;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::{AbortHandle, JoinHandle, spawn_local};
use tokio::time::{Instant, MissedTickBehavior};

/// The pause before accepting again when the process is out of file descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The shortest interval of log lines about refused connections.
const REFUSED_LOGGED_EVERY: Duration = Duration::from_secs(10);

/// The arguments of a worker thread.
pub(crate) struct Start {
    pub index: usize,
    pub services: Services,
    /// The interval of housekeeping.
    pub tick: Duration,
    pub listeners: Vec<(usize, Listener)>,
    pub messages: UnboundedReceiver<Message>,
    pub handle: Handle,
    pub balance: Balance,
    pub connection_ids: Arc<AtomicU64>,
    pub connections_max: usize,
}

struct Worker {
    index: usize,
    services: OpenServices,
    handle: Handle,
    balance: Balance,
    connection_ids: Arc<AtomicU64>,
    connections_max: usize,
    refused: Refused,
    connections: Rc<RefCell<HashMap<u64, Serving>>>,
}

struct Serving {
    life: Rc<Life>,
    task: AbortHandle,
}

/// Runs a worker to its end, on the calling thread. `ready` is called once it serves or has failed.
pub(crate) fn run(start: Start, ready: impl FnOnce(Result<(), String>)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build_local(Default::default());
    match runtime {
        Ok(runtime) => runtime.block_on(live(start, ready)),
        Err(error) => {
            ready(Err(format!("cannot set up a worker thread: {error}; check the limits of open files (ulimit -n)")))
        }
    }
}

async fn live(start: Start, ready: impl FnOnce(Result<(), String>)) {
    let services = match start.services.open(start.index) {
        Ok(services) => services,
        Err(error) => return ready(Err(error)),
    };
    let worker = Rc::new(Worker {
        index: start.index,
        services,
        handle: start.handle,
        balance: start.balance,
        connection_ids: start.connection_ids,
        connections_max: start.connections_max,
        refused: Refused::default(),
        connections: Rc::default(),
    });
    let mut accepting = Vec::new();
    for (number, listener) in start.listeners {
        match worker.clone().listen(number, listener) {
            Ok(task) => accepting.push(task),
            Err(error) => return ready(Err(format!("cannot listen: {error}"))),
        }
    }
    ready(Ok(()));
    worker.follow_messages(start.messages, start.tick, accepting).await;
}

impl Worker {
    async fn follow_messages(
        self: &Rc<Self>,
        mut messages: UnboundedReceiver<Message>,
        tick: Duration,
        accepting: Vec<JoinHandle<()>>,
    ) {
        let mut ticks = tokio::time::interval(tick);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let deadline = loop {
            tokio::select! {
                message = messages.recv() => match message {
                    Some(Message::Arrival(arrival)) => self.adopt(arrival),
                    Some(Message::Drain(deadline)) => break deadline,
                    None => break Duration::ZERO,
                },
                _ = ticks.tick() => self.services.tick(),
            }
        };
        accepting.iter().for_each(JoinHandle::abort);
        self.drain(deadline).await;
    }

    /// Closes idle connections and waits for the others.
    async fn drain(&self, deadline: Duration) {
        let until = Instant::now() + deadline;
        for serving in self.connections.borrow().values() {
            serving.life.set_draining();
        }
        loop {
            let idle: Vec<AbortHandle> = {
                let connections = self.connections.borrow();
                connections
                    .values()
                    .filter(|serving| !serving.life.is_busy())
                    .map(|serving| serving.task.clone())
                    .collect()
            };
            idle.iter().for_each(AbortHandle::abort);
            // Lets the aborted connections end before the next check.
            tokio::time::sleep(Duration::from_millis(5)).await;
            let left = self.connections.borrow().len();
            if left == 0 {
                return;
            }
            if Instant::now() >= until {
                tracing::warn!(
                    worker = self.index,
                    connections = left,
                    "requests still running at the deadline are aborted"
                );
                self.connections.borrow().values().for_each(|serving| serving.task.abort());
                tokio::task::yield_now().await;
                return;
            }
        }
    }

    fn listen(self: Rc<Self>, number: usize, listener: Listener) -> io::Result<JoinHandle<()>> {
        Ok(match listener {
            Listener::Tcp(listener) => {
                let listener = TcpListener::from_std(listener)?;
                spawn_local(async move {
                    loop {
                        match listener.accept().await {
                            Ok((stream, peer)) => self.place_tcp(stream, number, peer),
                            Err(error) => pause_after(error).await,
                        }
                    }
                })
            }
            Listener::Unix(listener) => {
                let listener = UnixListener::from_std(listener)?;
                spawn_local(async move {
                    loop {
                        match listener.accept().await {
                            Ok((stream, _)) => match stream.into_std() {
                                Ok(stream) => self.place_unix(stream, number),
                                Err(error) => pause_after(error).await,
                            },
                            Err(error) => pause_after(error).await,
                        }
                    }
                })
            }
        })
    }

    /// Serves a new connection here, or hands it to the worker with the fewest.
    fn place_tcp(self: &Rc<Self>, stream: TcpStream, listener: usize, peer: SocketAddr) {
        if self.is_full() {
            return;
        }
        let seat = self.balance.seat(self.index);
        if seat.worker == self.index {
            return self.serve(Stream::Tcp(stream), listener, Some(peer), seat);
        }
        match stream.into_std() {
            Ok(stream) => {
                self.hand_over(Arrival { stream: ArrivedStream::Tcp(stream), listener, peer: Some(peer), seat })
            }
            Err(error) => tracing::warn!(%peer, %error, "a connection could not be handed to its worker"),
        }
    }

    /// Returns whether a new connection is one too many, so that it must be closed by dropping it.
    fn is_full(&self) -> bool {
        let is_full = self.balance.total() >= self.connections_max;
        if is_full {
            self.refused.note(self.connections_max);
        }
        is_full
    }

    fn place_unix(self: &Rc<Self>, stream: net::UnixStream, listener: usize) {
        if self.is_full() {
            return;
        }
        let seat = self.balance.seat(self.index);
        let arrival = Arrival { stream: ArrivedStream::Unix(stream), listener, peer: None, seat };
        if arrival.seat.worker == self.index { self.adopt(arrival) } else { self.hand_over(arrival) }
    }

    fn hand_over(&self, arrival: Arrival) {
        // A worker that no longer receives messages is draining: the connection closes with the
        // message.
        self.handle.send(arrival.seat.worker, Message::Arrival(arrival));
    }

    fn adopt(self: &Rc<Self>, arrival: Arrival) {
        let stream = match arrival.stream {
            ArrivedStream::Tcp(stream) => TcpStream::from_std(stream).map(Stream::Tcp),
            ArrivedStream::Unix(stream) => UnixStream::from_std(stream).map(Stream::Unix),
        };
        match stream {
            Ok(stream) => self.serve(stream, arrival.listener, arrival.peer, arrival.seat),
            Err(error) => tracing::warn!(%error, "a connection could not be taken over"),
        }
    }

    fn serve(self: &Rc<Self>, stream: Stream, listener: usize, peer: Option<SocketAddr>, seat: crate::balance::Seat) {
        let Some(service) = self.services.of(listener) else { return };
        let id = self.connection_ids.fetch_add(1, Ordering::Relaxed);
        let life = Rc::new(Life::default());
        let connection = Connection { stream, id, listener, peer, life: life.clone(), _seat: seat };
        let entry = Entry { id, connections: self.connections.clone() };
        let serving = service.serve(connection);
        let task = spawn_local(async move {
            let _entry = entry;
            serving.await;
        });
        self.connections.borrow_mut().insert(id, Serving { life, task: task.abort_handle() });
    }
}

/// Counts refused connections, and logs them from time to time.
#[derive(Default)]
struct Refused {
    count: Cell<u64>,
    logged: Cell<Option<Instant>>,
}

impl Refused {
    fn note(&self, connections_max: usize) {
        self.count.set(self.count.get() + 1);
        if self.logged.get().is_none_or(|logged| logged.elapsed() >= REFUSED_LOGGED_EVERY) {
            self.logged.set(Some(Instant::now()));
            let refused = self.count.take();
            tracing::warn!(
                refused,
                connections_max,
                "refused connections: there are too many; see `connections` in [limits]"
            );
        }
    }
}

/// Removes the connection from the worker's list, however its task ends.
struct Entry {
    id: u64,
    connections: Rc<RefCell<HashMap<u64, Serving>>>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.connections.borrow_mut().remove(&self.id);
    }
}

/// Pauses after an error that only time can cure, such as a lack of file descriptors; not after a
/// connection that failed before it was accepted.
async fn pause_after(error: io::Error) {
    match error.kind() {
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset => {}
        _ => {
            tracing::error!(%error, "cannot accept connections; raise the limit of open files (ulimit -n) if it is that");
            tokio::time::sleep(ACCEPT_PAUSE).await;
        }
    }
}
