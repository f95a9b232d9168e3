//! The process's life: bind, start the workers, wait for a signal, drain.

use crate::Service;
use crate::address::ListenAddress;
use crate::balance::Balance;
use crate::listener::{self, BindError};
use crate::message::Handle;
use crate::worker::{self, Start};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

#[derive(Clone, Debug)]
pub struct Options {
    pub listen: Vec<ListenAddress>,
    /// Worker threads; at least one.
    pub workers: usize,
    /// How long running requests may go on once the process is asked to stop.
    pub drain_deadline: Duration,
    /// How often [`Service::tick`] is called.
    pub tick: Duration,
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

/// Serves until the process is told to stop (SIGTERM, SIGINT), then drains. `started` is called once the workers serve.
/// A second signal ends the process at once.
pub fn run<S: Service>(
    listening: Listening,
    service: Arc<S>,
    started: impl FnOnce(Handle<S::Worker>),
) -> Result<(), StartError> {
    let Listening { options, bound } = listening;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(StartError::Thread)?;
    let outcome = runtime.block_on(async {
        let (handle, threads) = start_workers(&options, bound.listeners, &service).await?;
        started(handle.clone());
        wait_for_signal().await.map_err(StartError::Thread)?;
        tracing::info!("stopping: running requests may finish, new ones are not taken");
        service.drain();
        handle.drain(options.drain_deadline);
        drop(handle);
        let ended = tokio::task::spawn_blocking(move || threads.into_iter().for_each(join));
        tokio::select! {
            _ = ended => {}
            _ = wait_for_signal() => {
                tracing::warn!("second signal: leaving at once");
                std::process::exit(1);
            }
        }
        Ok(())
    });
    listener::remove_socket_files(&bound.addresses);
    outcome
}

type Started<W> = (Handle<W>, Vec<JoinHandle<()>>);

async fn start_workers<S: Service>(
    options: &Options,
    listeners: Vec<Vec<listener::Listener>>,
    service: &Arc<S>,
) -> Result<Started<S::Worker>, StartError> {
    let balance = Balance::new(listeners.len());
    let connection_ids = Arc::new(AtomicU64::new(1));
    let (senders, receivers): (Vec<_>, Vec<_>) = listeners.iter().map(|_| mpsc::unbounded_channel()).unzip();
    let handle = Handle { workers: senders };
    let mut threads = Vec::new();
    for (index, (listeners, messages)) in listeners.into_iter().zip(receivers).enumerate() {
        let start = Start {
            index,
            service: service.clone(),
            options: options.clone(),
            listeners,
            messages,
            handle: handle.clone(),
            balance: balance.clone(),
            connection_ids: connection_ids.clone(),
        };
        let (ready, is_ready) = oneshot::channel();
        let body = move || worker::run(start, |outcome| drop(ready.send(outcome)));
        let thread = std::thread::Builder::new().name(format!("worker-{index}")).spawn(body);
        threads.push(thread.map_err(StartError::Thread)?);
        let outcome =
            is_ready.await.unwrap_or_else(|_| Err("a worker thread ended before it began; see the log".into()));
        if let Err(sentence) = outcome {
            handle.drain(Duration::ZERO);
            threads.into_iter().for_each(join);
            return Err(StartError::Service(sentence));
        }
    }
    Ok((handle, threads))
}

fn join(thread: JoinHandle<()>) {
    if thread.join().is_err() {
        tracing::error!("a worker thread ended in a panic");
    }
}

async fn wait_for_signal() -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
