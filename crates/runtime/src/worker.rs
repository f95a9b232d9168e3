//! The life of a worker thread: accept, hand over, serve, drain.

use crate::balance::{Balance, Seat};
use crate::connection::{Connection, Life, Stream};
use crate::listener::Listener;
use crate::message::{Arrival, ArrivedStream, Handle, Message};
use crate::service::{OpenServices, Service, Services};
use crate::unix_stream::UnixStream;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::os::unix::net;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::{AbortHandle, JoinHandle, spawn_local};
use tokio::time::{Instant, MissedTickBehavior};

/// So many new connections are taken in before everything else that is ready gets its turn. In a
/// storm of connections, a request of another client then waits for a few handshakes, not for all.
const CONNECTIONS_PER_TURN: u32 = 4;

/// The pause before accepting again when the process is out of file descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

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
}

struct Worker {
    index: usize,
    services: RefCell<OpenServices>,
    handle: Handle,
    balance: Balance,
    connection_ids: Arc<AtomicU64>,
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
        services: RefCell::new(services),
        handle: start.handle,
        balance: start.balance,
        connection_ids: start.connection_ids,
        connections: Rc::default(),
    });
    let mut accepting = HashMap::new();
    for (number, listener) in start.listeners {
        match worker.clone().listen(number, listener) {
            Ok(task) => drop(accepting.insert(number, task)),
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
        mut accepting: HashMap<usize, JoinHandle<()>>,
    ) {
        let mut ticks = tokio::time::interval(tick);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut pace = Pace::default();
        let deadline = loop {
            tokio::select! {
                message = messages.recv() => match message {
                    Some(Message::Arrival(arrival)) => {
                        self.adopt(arrival);
                        pace.count().await;
                    }
                    Some(Message::Listen { number, service, listener }) => {
                        if let Some(task) = self.add_listener(number, &service, listener) {
                            accepting.insert(number, task);
                        }
                    }
                    Some(Message::Unlisten(number)) => {
                        if let Some(task) = accepting.remove(&number) {
                            task.abort();
                        }
                        self.services.borrow_mut().remove(number);
                    }
                    Some(Message::Drain(deadline)) => break deadline,
                    None => break Duration::ZERO,
                },
                _ = ticks.tick() => {
                    let services = self.services.borrow().all();
                    services.iter().for_each(|service| service.tick());
                }
            }
        };
        accepting.values().for_each(JoinHandle::abort);
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

    /// Serves the connections of a new listener.
    fn add_listener(
        self: &Rc<Self>,
        number: usize,
        service: &Arc<dyn Service>,
        listener: Option<Listener>,
    ) -> Option<JoinHandle<()>> {
        if let Err(sentence) = self.services.borrow_mut().add(number, service) {
            tracing::error!("a listener cannot be served: {sentence}");
            return None;
        }
        let task = listener.map(|listener| self.clone().listen(number, listener)).transpose();
        task.unwrap_or_else(|error| {
            tracing::error!(%error, "cannot accept connections of a new listener");
            None
        })
    }

    fn listen(self: Rc<Self>, number: usize, listener: Listener) -> io::Result<JoinHandle<()>> {
        Ok(match listener {
            Listener::Tcp(listener) => {
                let listener = TcpListener::from_std(listener)?;
                spawn_local(async move {
                    let mut pace = Pace::default();
                    loop {
                        pace.count().await;
                        match listener.accept().await {
                            Ok((stream, peer)) => self.arrive(AcceptedStream::Tcp(stream), number, Some(peer)),
                            Err(error) => self.pause_after(error).await,
                        }
                    }
                })
            }
            Listener::Unix(listener) => {
                let listener = UnixListener::from_std(listener)?;
                spawn_local(async move {
                    let mut pace = Pace::default();
                    loop {
                        pace.count().await;
                        match listener.accept().await {
                            Ok((stream, _)) => match stream.into_std() {
                                Ok(stream) => self.arrive(AcceptedStream::Unix(stream), number, None),
                                Err(error) => self.pause_after(error).await,
                            },
                            Err(error) => self.pause_after(error).await,
                        }
                    }
                })
            }
        })
    }

    /// Admits a new connection, refuses it, or lets it wait.
    fn arrive(self: &Rc<Self>, stream: AcceptedStream, listener: usize, peer: Option<SocketAddr>) {
        match self.balance.admit(stream.descriptor(), peer, std::time::Instant::now()) {
            Ok((seat, wait)) if wait.is_zero() => self.place(stream, listener, peer, seat),
            Ok((seat, wait)) => {
                let worker = self.clone();
                spawn_local(async move {
                    tokio::time::sleep(wait).await;
                    worker.place(stream, listener, peer, seat);
                });
            }
            Err(refusal) => {
                // Without a stream, the connection is closed in silence.
                if let (Some(service), Ok(stream)) = (self.services.borrow().of(listener), stream.into_stream()) {
                    service.refuse(stream, refusal);
                }
            }
        }
    }

    /// Pauses after an error that only time can cure, such as a lack of file descriptors; not after
    /// a connection that failed before it was accepted.
    async fn pause_after(&self, error: io::Error) {
        match error.kind() {
            io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset => {}
            _ => {
                self.balance.gate().note_failure(&error, std::time::Instant::now());
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }

    /// Serves a new connection here, or hands it to the worker with the fewest.
    fn place(self: &Rc<Self>, stream: AcceptedStream, listener: usize, peer: Option<SocketAddr>, mut seat: Seat) {
        if seat.choose_worker(self.index) == self.index {
            match stream.into_stream() {
                Ok(stream) => self.serve(stream, listener, peer, seat),
                Err(error) => tracing::warn!(%error, "a connection could not be taken over"),
            }
            return;
        }
        match stream.into_arrived() {
            Ok(stream) => self.hand_over(Arrival { stream, listener, peer, seat }),
            Err(error) => tracing::warn!(%error, "a connection could not be handed to its worker"),
        }
    }

    fn hand_over(&self, arrival: Arrival) {
        // A worker that no longer receives messages is draining: the connection closes with the
        // message.
        self.handle.send(arrival.seat.worker_or(self.index), Message::Arrival(arrival));
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

    fn serve(self: &Rc<Self>, stream: Stream, listener: usize, peer: Option<SocketAddr>, seat: Seat) {
        let Some(service) = self.services.borrow().of(listener) else { return };
        let id = self.connection_ids.fetch_add(1, Ordering::Relaxed);
        let life = Rc::new(Life::default());
        let connection = Connection { stream, id, listener, peer, life: life.clone(), tls: None, _seat: seat };
        let entry = Entry { id, connections: self.connections.clone() };
        let serving = service.serve(connection);
        let task = spawn_local(async move {
            let _entry = entry;
            serving.await;
        });
        self.connections.borrow_mut().insert(id, Serving { life, task: task.abort_handle() });
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

/// Yields after every few connections ([`CONNECTIONS_PER_TURN`]).
#[derive(Default)]
struct Pace(u32);

impl Pace {
    async fn count(&mut self) {
        self.0 = self.0.wrapping_add(1);
        if self.0.is_multiple_of(CONNECTIONS_PER_TURN) {
            tokio::task::yield_now().await;
        }
    }
}

/// A stream as it was accepted.
enum AcceptedStream {
    Tcp(TcpStream),
    Unix(net::UnixStream),
}

impl AcceptedStream {
    fn descriptor(&self) -> u64 {
        let descriptor = match self {
            AcceptedStream::Tcp(stream) => stream.as_raw_fd(),
            AcceptedStream::Unix(stream) => stream.as_raw_fd(),
        };
        u64::try_from(descriptor).unwrap_or_default()
    }

    /// Returns the stream to serve on this worker.
    fn into_stream(self) -> io::Result<Stream> {
        match self {
            AcceptedStream::Tcp(stream) => Ok(Stream::Tcp(stream)),
            AcceptedStream::Unix(stream) => UnixStream::from_std(stream).map(Stream::Unix),
        }
    }

    /// Returns the stream to hand to another worker.
    fn into_arrived(self) -> io::Result<ArrivedStream> {
        match self {
            AcceptedStream::Tcp(stream) => stream.into_std().map(ArrivedStream::Tcp),
            AcceptedStream::Unix(stream) => Ok(ArrivedStream::Unix(stream)),
        }
    }
}
