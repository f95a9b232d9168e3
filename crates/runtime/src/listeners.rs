//! The listeners of a running process, which may change.

use crate::address::ListenAddress;
use crate::listener::{self, BindError};
use crate::message::{Handle, Message};
use crate::service::Service;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The listeners of the process, by their numbers.
#[derive(Clone)]
pub struct Listeners {
    handle: Handle,
    open: Arc<Mutex<Open>>,
}

struct Open {
    addresses: BTreeMap<usize, ListenAddress>,
    /// The number of the next listener. No number is used twice.
    next: usize,
}

impl Listeners {
    pub(crate) fn new(handle: Handle, addresses: Vec<ListenAddress>) -> Listeners {
        let next = addresses.len();
        let addresses = addresses.into_iter().enumerate().collect();
        Listeners { handle, open: Arc::new(Mutex::new(Open { addresses, next })) }
    }

    /// Listens on an address, and serves its connections. Returns the listener's number.
    pub fn add(&self, address: &ListenAddress, service: &Arc<dyn Service>) -> Result<usize, BindError> {
        let bound = listener::bind(std::slice::from_ref(address), self.handle.workers.len())?;
        let mut open = self.lock();
        let number = open.next;
        open.next += 1;
        open.addresses.extend(bound.addresses.into_iter().map(|address| (number, address)));
        // Each worker must know the service before another one hands it a connection. A connection
        // that comes earlier is closed.
        for (worker, listeners) in bound.listeners.into_iter().enumerate().rev() {
            let listener = listeners.into_iter().map(|(_, listener)| listener).next();
            self.handle.send(worker, Message::Listen { number, service: service.clone(), listener });
        }
        Ok(number)
    }

    /// Stops listening. The connections that were accepted stay.
    pub fn remove(&self, number: usize) {
        let Some(address) = self.lock().addresses.remove(&number) else { return };
        for worker in 0..self.handle.workers.len() {
            self.handle.send(worker, Message::Unlisten(number));
        }
        listener::remove_socket_files(&[address]);
    }

    pub(crate) fn addresses(&self) -> Vec<ListenAddress> {
        self.lock().addresses.values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
