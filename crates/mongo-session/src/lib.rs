//! MongoDB connections: from a socket's bytes to commands and back.
//!
//! What comes in is a [`selkie_runtime::Connection`]; what goes out are replies on it, in the order of the requests. [`MongoService`]
//! is what the workers run. In reading order: [`connection`] (the loop), [`respond`] (one request), [`buffers`] (memory that
//! connections share instead of owning), [`incoming`] (room for
//! large messages), [`complaints`] (log lines about clients that send nonsense).
//!
//! Nothing here knows what a command means.

mod buffers;
mod complaints;
mod connection;
mod incoming;
mod respond;

use buffers::Buffers;
use commands::Server;
use complaints::Complaints;
use incoming::Incoming;
use mongo_wire::Codecs;
use selkie_runtime::splice::Pipes;
use selkie_runtime::{Connection, Service};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Serves the MongoDB protocol on a process's workers.
pub struct MongoService {
    server: Arc<Server>,
    housekeeping: fn(),
    patience: Patience,
    incoming: Arc<Incoming>,
}

/// How long clients may do nothing.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Within a message, or before they read their reply.
    pub stalled: Duration,
    /// Between two requests; `None`: for ever.
    pub idle: Option<Duration>,
}

impl Default for Patience {
    fn default() -> Self {
        Patience { stalled: Duration::from_secs(300), idle: None }
    }
}

impl MongoService {
    pub fn new(server: Arc<Server>) -> Self {
        let incoming = Arc::new(Incoming::new(commands::shortage::process_bytes_max()));
        MongoService { server, housekeeping: || {}, patience: Patience::default(), incoming }
    }

    pub fn with_patience(self, patience: Patience) -> Self {
        MongoService { patience, ..self }
    }

    /// What each worker does now and then after letting go of its own large memory.
    pub fn with_housekeeping(self, housekeeping: fn()) -> Self {
        MongoService { housekeeping, ..self }
    }
}

/// What the connections of one worker share. Never leaves its thread.
pub struct SessionWorker {
    commands: Rc<commands::Worker>,
    buffers: Buffers,
    pipes: Pipes,
    codecs: RefCell<Codecs>,
    complaints: Complaints,
    patience: Patience,
    incoming: Arc<Incoming>,
    next_reply_id: Cell<i32>,
}

impl SessionWorker {
    fn reply_id(&self) -> i32 {
        let id = self.next_reply_id.get();
        self.next_reply_id.set(id.wrapping_add(1));
        id
    }
}

impl Service for MongoService {
    type Worker = SessionWorker;

    fn open(&self, _index: usize) -> Result<Rc<SessionWorker>, String> {
        let commands = commands::Worker::open(self.server.clone()).map_err(|error| error.message().to_owned())?;
        tokio::task::spawn_local(commands::time_to_live::run(commands.clone()));
        tokio::task::spawn_local(commands::profiling::run(commands.clone()));
        Ok(Rc::new(SessionWorker {
            commands,
            buffers: Buffers::default(),
            pipes: Pipes::default(),
            codecs: RefCell::default(),
            complaints: Complaints::default(),
            patience: self.patience,
            incoming: self.incoming.clone(),
            next_reply_id: Cell::new(1),
        }))
    }

    fn serve(&self, worker: Rc<SessionWorker>, connection: Connection) -> impl Future<Output = ()> + 'static {
        connection::serve(worker, connection)
    }

    fn tick(&self, worker: &SessionWorker) {
        worker.buffers.trim();
        (self.housekeeping)();
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        worker.commands.sweep(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX));
    }

    fn drain(&self) {
        self.server.announce_stop();
    }
}
