//! MongoDB connections: from a socket's bytes to commands and back.
//!
//! Each [`selkie_runtime::Connection`] gets replies in the order of its requests. [`MongoService`]
//! is the service of MongoDB listeners. In reading order: [`worker`] and [`conversation`] (the
//! state), [`negotiation`] (whether it uses TLS), [`connection`] (the loop), [`respond`] (one
//! request), [`buffers`] (memory shared by a worker's connections), [`admission`] (memory for large
//! messages), [`malformed_log`] (rate-limited log lines about malformed messages).
//!
//! Nothing here knows what a command means.

mod admission;
mod buffers;
mod connection;
mod conversation;
mod malformed_log;
mod negotiation;
mod respond;
mod worker;

pub use worker::Timeouts;

use admission::Admission;
use buffers::Buffers;
use malformed_log::MalformedLog;
use selkie_runtime::zero_copy::splice::Pipes;
use selkie_runtime::{Connection, RateLimit, Refusal, Service, Stream, WorkerService};
use server::Server;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use worker::SessionWorker;

/// The service of MongoDB listeners.
pub struct MongoService {
    server: Arc<Server>,
    housekeeping: fn(),
    timeouts: Timeouts,
    admission: Arc<Admission>,
    request_rate: Option<Arc<RateLimit>>,
}

impl MongoService {
    pub fn new(server: Arc<Server>) -> Self {
        let admission = Arc::new(Admission::new(server::memory_pressure::process_bytes_max()));
        MongoService { server, housekeeping: || {}, timeouts: Timeouts::default(), admission, request_rate: None }
    }

    pub fn with_timeouts(self, timeouts: Timeouts) -> Self {
        MongoService { timeouts, ..self }
    }

    /// Limits the requests per second that may be shed.
    pub fn with_request_rate(self, request_rate: Option<RateLimit>) -> Self {
        MongoService { request_rate: request_rate.map(Arc::new), ..self }
    }

    /// Sets the function that each worker calls periodically, after it has released its own large
    /// buffers.
    pub fn with_housekeeping(self, housekeeping: fn()) -> Self {
        MongoService { housekeeping, ..self }
    }
}

impl Service for MongoService {
    fn open(&self, _worker: usize) -> Result<Rc<dyn WorkerService>, String> {
        let commands = server::Worker::open(self.server.clone()).map_err(|error| error.message().to_owned())?;
        tokio::task::spawn_local(commands::ttl_monitor::run(commands.clone()));
        tokio::task::spawn_local(server::profiling::run(commands.clone()));
        tokio::task::spawn_local(server::user_polling::run(commands.clone()));
        Ok(Rc::new(SessionWorker {
            commands,
            buffers: Buffers::default(),
            pipes: Pipes::default(),
            codecs: RefCell::default(),
            malformed_log: MalformedLog::default(),
            timeouts: self.timeouts,
            housekeeping: self.housekeeping,
            admission: self.admission.clone(),
            request_rate: self.request_rate.clone(),
            next_reply_id: Cell::new(1),
        }))
    }

    fn drain(&self) {
        self.server.announce_stop();
    }
}

impl WorkerService for SessionWorker {
    fn serve(self: Rc<Self>, connection: Connection) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(connection::serve(self, connection))
    }

    /// Closes the connection without a word, as MongoDB does.
    fn refuse(&self, _stream: Stream, refusal: Refusal) {
        let statistics = self.commands.statistics();
        statistics.connections_rejected.add(1);
        if refusal == Refusal::Rate {
            statistics.connections_rejected_by_rate.add(1);
        }
    }

    fn tick(&self) {
        self.buffers.trim();
        (self.housekeeping)();
        self.commands.expire_idle(server::clock::steady_ms());
    }
}
