//! Services: what a listener's connections get.

use crate::connection::{Connection, Stream};
use crate::gate::Refusal;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

/// Serves the connections of the listeners that name it.
pub trait Service: Send + Sync + 'static {
    /// Opens the service on a worker, on the worker's thread and within its tokio runtime. Fails
    /// with a sentence that says what to do, which ends the process.
    fn open(&self, worker: usize) -> Result<Rc<dyn WorkerService>, String>;

    /// Called once when the process is asked to stop, before connections are closed. It must wake
    /// requests that wait for something.
    fn drain(&self) {}
}

/// A service on one worker. It is created on the worker's thread and never leaves it.
pub trait WorkerService: 'static {
    /// Serves a connection until either side closes it.
    fn serve(self: Rc<Self>, connection: Connection) -> Pin<Box<dyn Future<Output = ()>>>;

    /// Refuses a connection because of a limit. The connection closes when `stream` is dropped. It
    /// must not wait for the client.
    fn refuse(&self, _stream: Stream, _refusal: Refusal) {}

    /// Called periodically for housekeeping (see [`Options::tick`](crate::Options::tick)).
    fn tick(&self) {}
}

/// The services of a process: one for each listener. Listeners may share a service, which is then
/// opened once per worker.
#[derive(Clone)]
pub(crate) struct Services {
    distinct: Vec<Arc<dyn Service>>,
    /// The index in `distinct` of each listener's service.
    by_listener: Arc<[usize]>,
}

impl Services {
    pub fn new(by_listener: Vec<Arc<dyn Service>>) -> Services {
        let mut distinct: Vec<Arc<dyn Service>> = Vec::new();
        let mut index_of = |service: Arc<dyn Service>| {
            let is_it = |other: &Arc<dyn Service>| Arc::ptr_eq(other, &service);
            distinct.iter().position(is_it).unwrap_or_else(|| {
                distinct.push(service);
                distinct.len() - 1
            })
        };
        let by_listener = by_listener.into_iter().map(&mut index_of).collect();
        Services { distinct, by_listener }
    }

    pub fn open(&self, worker: usize) -> Result<OpenServices, String> {
        let distinct = self.distinct.iter().map(|service| service.open(worker)).collect::<Result<_, _>>()?;
        Ok(OpenServices { distinct, by_listener: self.by_listener.clone() })
    }

    pub fn drain(&self) {
        self.distinct.iter().for_each(|service| service.drain());
    }
}

/// The services on one worker.
pub(crate) struct OpenServices {
    distinct: Vec<Rc<dyn WorkerService>>,
    by_listener: Arc<[usize]>,
}

impl OpenServices {
    /// Returns the service of a listener.
    pub fn of(&self, listener: usize) -> Option<Rc<dyn WorkerService>> {
        self.distinct.get(*self.by_listener.get(listener)?).cloned()
    }

    pub fn tick(&self) {
        self.distinct.iter().for_each(|service| service.tick());
    }
}
