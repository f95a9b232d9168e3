//! The life of the process: bind, start the workers, wait for a signal, drain.

use crate::address::ListenAddress;
use crate::balance::Balance;
use crate::busy_poll;
use crate::gate::ConnectionLimits;
use crate::listener::{self, BindError};
use crate::listeners::Listeners;
use crate::message::Handle;
use crate::service::{Service, Services};
use crate::worker::{self, Start};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// The stack of a worker. Nested pipelines poll one another, up to twenty levels deep. The unused
/// part takes no memory.
const STACK_BYTES: usize = 16 * 1024 * 1024;

#[derive(Clone, Debug)]
pub struct Options {
    /// The listeners' addresses. A listener is known by its index here.
    pub listen: Vec<ListenAddress>,
    /// Worker threads, at least one.
    pub workers: usize,
    /// Connections beyond these limits are refused.
    pub connections: ConnectionLimits,
    /// How long running requests may continue once the process is asked to stop.
    pub drain_deadline: Duration,
    /// The interval of [`WorkerService::tick`](crate::WorkerService::tick).
    pub tick: Duration,
    /// How long a wait that is expected to be short polls before it sleeps; zero: not at all. See
    /// [`busy_poll`](crate::busy_poll).
    pub busy_poll: Duration,
}

/// Why the process cannot start, as a sentence that says what to do.
#[derive(Debug)]
pub enum StartError {
    Bind(BindError),
    Thread(io::Error),
    /// A service cannot be opened.
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

/// Bound sockets that do not serve yet: the rest of the start-up may take time, or fail, without a
/// client noticing.
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

    /// Returns the effective addresses: with the port assigned where the configuration has port 0.
    pub fn addresses(&self) -> &[ListenAddress] {
        &self.bound.addresses
    }
}

/// Running workers.
pub struct Running {
    handle: Handle,
    threads: Vec<JoinHandle<()>>,
    listeners: Listeners,
    drain_deadline: Duration,
    services: Services,
}

impl Running {
    /// Stops accepting, closes idle connections, and lets running requests finish until the
    /// deadline.
    pub fn drain(&self) {
        self.services.drain();
        self.handle.drain(self.drain_deadline);
    }

    /// Waits for the workers to end, after [`Running::drain`].
    pub fn join(self) {
        self.threads.into_iter().for_each(join);
        listener::remove_socket_files(&self.listeners.addresses());
    }
}

/// Serves until the process is asked to stop (SIGTERM, SIGINT), then drains. A second signal ends
/// the process at once. `services`: that of each listener. `started`: called once the workers
/// serve, with the listeners, which may change from then on.
pub fn run(
    listening: Listening,
    services: Vec<Arc<dyn Service>>,
    started: impl FnOnce(Listeners),
) -> Result<(), StartError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(StartError::Thread)?;
    let running = start(listening, services)?;
    runtime.block_on(async {
        let mut signals = Signals::new().map_err(StartError::Thread)?;
        started(running.listeners.clone());
        signals.next().await;
        tracing::info!("stopping: running requests may finish, new ones are not accepted");
        running.drain();
        tokio::select! {
            _ = tokio::task::spawn_blocking(move || running.join()) => Ok(()),
            _ = signals.next() => {
                tracing::warn!("second signal: exiting at once");
                std::process::exit(1);
            }
        }
    })
}

/// Starts the workers and returns. `services`: that of each listener.
pub fn start(listening: Listening, services: Vec<Arc<dyn Service>>) -> Result<Running, StartError> {
    let Listening { options, bound } = listening;
    busy_poll::set_window(options.busy_poll);
    let balance = Balance::new(bound.listeners.len(), options.connections, Instant::now());
    let connection_ids = Arc::new(AtomicU64::new(1));
    let (senders, receivers): (Vec<_>, Vec<_>) = bound.listeners.iter().map(|_| mpsc::unbounded_channel()).unzip();
    let services = Services::new(services);
    let handle = Handle { workers: senders };
    let mut running = Running {
        handle: handle.clone(),
        threads: Vec::new(),
        listeners: Listeners::new(handle, bound.addresses),
        drain_deadline: options.drain_deadline,
        services: services.clone(),
    };
    for (index, (listeners, messages)) in bound.listeners.into_iter().zip(receivers).enumerate() {
        let start = Start {
            index,
            services: services.clone(),
            tick: options.tick,
            listeners,
            messages,
            handle: running.handle.clone(),
            balance: balance.clone(),
            connection_ids: connection_ids.clone(),
        };
        if let Err(error) = start_worker(start).map(|thread| running.threads.push(thread)) {
            running.handle.drain(Duration::ZERO);
            running.join();
            return Err(error);
        }
    }
    Ok(running)
}

/// Starts one worker and waits until it serves or has failed.
fn start_worker(start: Start) -> Result<JoinHandle<()>, StartError> {
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
