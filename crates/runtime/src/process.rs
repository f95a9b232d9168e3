//! The process's life: bind, start the workers, wait for a signal, drain.

use crate::Service;
use crate::address::ListenAddress;
use crate::balance::Balance;
use crate::busy_poll;
use crate::listener::{self, BindError};
use crate::message::Handle;
use crate::worker::{self, Start};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// The stack of a worker. Pipelines within pipelines are polled within one another, twenty of them at the most; what is not used
/// of it takes no memory.
const STACK_BYTES: usize = 16 * 1024 * 1024;

#[derive(Clone, Debug)]
pub struct Options {
    pub listen: Vec<ListenAddress>,
    /// Worker threads; at least one.
    pub workers: usize,
    /// Further connections are closed as soon as they come.
    pub connections_max: usize,
    /// How long running requests may go on once the process is asked to stop.
    pub drain_deadline: Duration,
    /// How often [`Service::tick`] is called.
    pub tick: Duration,
    /// For how long a wait that is expected to be short may look again before it sleeps; zero: not at all. See [`busy_poll`](crate::busy_poll).
    pub busy_poll: Duration,
}

/// Why the process cannot start; one sentence that says what to do.
#[derive(Debug)]
pub enum StartError {
    Bind(BindError),
    Thread(io::Error),
    /// The service refused, in its own words.
    Service(String),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Bind(error) => error.fmt(f),
            StartError::Thread(error) => {
                write!(f, "cannot start a thread: {error}; lower --threads or raise the limit of processes (ulimit -u)")
            }
            StartError::Service(sentence) => f.write_str(sentence),
        }
    }
}

impl std::error::Error for StartError {}

/// Sockets that are bound and do not serve yet: what comes next at start-up may take its time, or fail, without a client noticing.
pub struct Listening {
    options: Options,
    bound: listener::Bound,
}

impl Listening {
    pub fn bind(mut options: Options) -> Result<Self, StartError> {
        options.workers = options.workers.max(1);
        let bound = listener::bind(&options.listen, options.workers).map_err(StartError::Bind)?;
        Ok(Listening { options, bound })
    }

    /// The addresses in effect: where the configuration said port 0, the port that was given.
    pub fn addresses(&self) -> &[ListenAddress] {
        &self.bound.addresses
    }
}

/// Workers that serve.
pub struct Running<W> {
    handle: Handle<W>,
    threads: Vec<JoinHandle<()>>,
    addresses: Vec<ListenAddress>,
    drain_deadline: Duration,
    before_drain: Box<dyn Fn() + Send + Sync>,
}

impl<W: 'static> Running<W> {
    pub fn handle(&self) -> &Handle<W> {
        &self.handle
    }

    /// Stops accepting, closes what is idle, and lets running requests finish until the deadline.
    pub fn drain(&self) {
        (self.before_drain)();
        self.handle.drain(self.drain_deadline);
    }

    /// Waits until the workers have ended, which they do after [`Running::drain`].
    pub fn join(self) {
        self.threads.into_iter().for_each(join);
        listener::remove_socket_files(&self.addresses);
    }
}

/// Serves until the process is told to stop (SIGTERM, SIGINT), then drains. `started` is called once the workers serve.
/// A second signal ends the process at once.
pub fn run<S: Service>(
    listening: Listening,
    service: Arc<S>,
    started: impl FnOnce(&Handle<S::Worker>),
) -> Result<(), StartError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(StartError::Thread)?;
    let running = start(listening, service)?;
    runtime.block_on(async {
        let mut signals = Signals::new().map_err(StartError::Thread)?;
        started(running.handle());
        signals.next().await;
        tracing::info!("stopping: running requests may finish, new ones are not taken");
        running.drain();
        tokio::select! {
            _ = tokio::task::spawn_blocking(move || running.join()) => Ok(()),
            _ = signals.next() => {
                tracing::warn!("second signal: leaving at once");
                std::process::exit(1);
            }
        }
    })
}

/// Starts the workers and returns.
pub fn start<S: Service>(listening: Listening, service: Arc<S>) -> Result<Running<S::Worker>, StartError> {
    let Listening { options, bound } = listening;
    busy_poll::set_window(options.busy_poll);
    let balance = Balance::new(bound.listeners.len());
    let connection_ids = Arc::new(AtomicU64::new(1));
    let (senders, receivers): (Vec<_>, Vec<_>) = bound.listeners.iter().map(|_| mpsc::unbounded_channel()).unzip();
    let before_drain = service.clone();
    let mut running = Running {
        handle: Handle { workers: senders },
        threads: Vec::new(),
        addresses: bound.addresses,
        drain_deadline: options.drain_deadline,
        before_drain: Box::new(move || before_drain.drain()),
    };
    for (index, (listeners, messages)) in bound.listeners.into_iter().zip(receivers).enumerate() {
        let start = Start {
            index,
            service: service.clone(),
            tick: options.tick,
            listeners,
            messages,
            handle: running.handle.clone(),
            balance: balance.clone(),
            connection_ids: connection_ids.clone(),
            connections_max: options.connections_max,
        };
        if let Err(error) = start_worker(start).map(|thread| running.threads.push(thread)) {
            running.handle.drain(Duration::ZERO);
            running.join();
            return Err(error);
        }
    }
    Ok(running)
}

/// Starts one worker and waits until it serves or has refused.
fn start_worker<S: Service>(start: Start<S>) -> Result<JoinHandle<()>, StartError> {
    let (ready, is_ready) = std::sync::mpsc::channel();
    let thread = std::thread::Builder::new().name(format!("worker-{}", start.index)).stack_size(STACK_BYTES);
    // The receiver waits below, so sending cannot fail.
    let thread = thread.spawn(move || worker::run(start, |outcome| drop(ready.send(outcome))));
    let thread = thread.map_err(StartError::Thread)?;
    match is_ready.recv() {
        Ok(Ok(())) => Ok(thread),
        Ok(Err(sentence)) => {
            join(thread);
            Err(StartError::Service(sentence))
        }
        Err(_) => Err(StartError::Service("a worker thread ended before it began; the log says why".into())),
    }
}

fn join(thread: JoinHandle<()>) {
    if thread.join().is_err() {
        tracing::error!("a worker thread ended in a panic");
    }
}

/// The signals that ask the process to stop.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Signals { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
