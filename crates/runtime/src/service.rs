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
    by_listener: Vec<Arc<dyn Service>>,
}

impl Services {
    pub fn new(by_listener: Vec<Arc<dyn Service>>) -> Services {
        Services { by_listener }
    }

    pub fn open(&self, worker: usize) -> Result<OpenServices, String> {
        let mut open = OpenServices { worker, services: Vec::new() };
        for (listener, service) in self.by_listener.iter().enumerate() {
            open.add(listener, service)?;
        }
        Ok(open)
    }

    pub fn drain(&self) {
        for (listener, service) in self.by_listener.iter().enumerate() {
            if !self.by_listener[..listener].iter().any(|other| Arc::ptr_eq(other, service)) {
                service.drain();
            }
        }
    }
}

/// The services on one worker.
pub(crate) struct OpenServices {
    worker: usize,
    services: Vec<OpenService>,
}

struct OpenService {
    service: Arc<dyn Service>,
    open: Rc<dyn WorkerService>,
    /// The numbers of the listeners whose connections it serves.
    listeners: Vec<usize>,
}

impl OpenServices {
    /// Adds a listener, and opens its service if no other listener has it.
    pub fn add(&mut self, listener: usize, service: &Arc<dyn Service>) -> Result<(), String> {
        if let Some(known) = self.services.iter_mut().find(|known| Arc::ptr_eq(&known.service, service)) {
            known.listeners.push(listener);
            return Ok(());
        }
        let open = service.open(self.worker)?;
        self.services.push(OpenService { service: service.clone(), open, listeners: vec![listener] });
        Ok(())
    }

    /// Removes a listener, and its service if no other listener has it.
    pub fn remove(&mut self, listener: usize) {
        for service in &mut self.services {
            service.listeners.retain(|&other| other != listener);
        }
        self.services.retain(|service| !service.listeners.is_empty());
    }

    /// Returns the service of a listener.
    pub fn of(&self, listener: usize) -> Option<Rc<dyn WorkerService>> {
        self.services.iter().find(|service| service.listeners.contains(&listener)).map(|service| service.open.clone())
    }

    /// Returns all services.
    pub fn all(&self) -> Vec<Rc<dyn WorkerService>> {
        self.services.iter().map(|service| service.open.clone()).collect()
    }
}
