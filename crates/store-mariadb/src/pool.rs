//! A worker's connections: opened on demand, bounded in number, used one at a time, closed when idle.

use crate::connection::{Connection, establish};
use crate::failure::{Failure, Result};
use crate::options::{Options, Place};
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Waiting longer than this for one of the worker's connections is an error.
const WAIT_MAX: Duration = Duration::from_secs(30);

pub(crate) struct Pool {
    place: Place,
    options: Options,
    /// The one used last is at the end, so that those not needed fall idle.
    idle: RefCell<Vec<(Connection, Instant)>>,
    /// One permit per connection that may be open.
    permits: Arc<Semaphore>,
}

impl Pool {
    pub fn new(place: Place, options: Options) -> Rc<Pool> {
        let permits = Arc::new(Semaphore::new(options.connections_per_worker_max));
        Rc::new(Pool { place, options, idle: RefCell::default(), permits })
    }

    /// A connection that nobody else uses until it is dropped.
    pub async fn lease(self: &Rc<Self>) -> Result<Lease> {
        let permit = match self.permits.clone().try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => self.wait().await?,
        };
        if let Some(connection) = self.take_idle() {
            return Ok(self.lend(connection, permit));
        }
        let (mut connection, _) = establish(&self.place, self.options.connect_timeout).await?;
        connection.own_writes.clone_from(&self.options.own_writes);
        Ok(self.lend(connection, permit))
    }

    /// As [`Pool::lease`], but surely opened now: for a second try after a connection proved dead.
    pub async fn lease_fresh(self: &Rc<Self>) -> Result<Lease> {
        // Where one has died, the others that lay idle are likely to have died with it.
        self.idle.borrow_mut().clear();
        self.lease().await
    }

    /// As [`Pool::lease`], if one is to be had without waiting: for a caller that others wait for.
    pub async fn lease_if_free(self: &Rc<Self>) -> Option<Lease> {
        if self.permits.available_permits() > 0 { self.lease().await.ok() } else { None }
    }

    /// A further connection for somebody who could do without, if next to nobody else of this worker is using any: then the server has
    /// threads to spare.
    pub async fn lease_at_leisure(self: &Rc<Self>) -> Option<Lease> {
        // Out on loan are the caller's own and that of the lookups.
        let free = self.permits.available_permits();
        let is_quiet = free > 0 && free + 2 >= self.options.connections_per_worker_max;
        if is_quiet { self.lease().await.ok() } else { None }
    }

    async fn wait(&self) -> Result<OwnedSemaphorePermit> {
        match tokio::time::timeout(WAIT_MAX, self.permits.clone().acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(Failure::Lost(format!(
                "all {} connections to MariaDB were busy for {} s",
                self.options.connections_per_worker_max,
                WAIT_MAX.as_secs()
            ))),
        }
    }

    fn take_idle(&self) -> Option<Connection> {
        let mut idle = self.idle.borrow_mut();
        while let Some((mut connection, _)) = idle.pop() {
            if !connection.has_hung_up() {
                return Some(connection);
            }
        }
        None
    }

    fn lend(self: &Rc<Self>, connection: Connection, permit: OwnedSemaphorePermit) -> Lease {
        Lease { connection: Some(connection), pool: self.clone(), _permit: permit }
    }

    fn give_back(&self, connection: Connection) {
        if !connection.is_idle() {
            return;
        }
        let now = Instant::now();
        let mut idle = self.idle.borrow_mut();
        let timeout = self.options.idle_timeout;
        let expired = idle.iter().take_while(|(_, since)| now.duration_since(*since) > timeout).count();
        idle.drain(..expired);
        idle.push((connection, now));
    }
}

/// A connection on loan; dropping gives it back, or closes it when an answer is still due or a transaction open.
pub(crate) struct Lease {
    connection: Option<Connection>,
    pool: Rc<Pool>,
    _permit: OwnedSemaphorePermit,
}

#[allow(clippy::expect_used, reason = "the connection is taken in drop only")]
impl Deref for Lease {
    type Target = Connection;
    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("present until dropped")
    }
}

#[allow(clippy::expect_used, reason = "the connection is taken in drop only")]
impl DerefMut for Lease {
    fn deref_mut(&mut self) -> &mut Connection {
        self.connection.as_mut().expect("present until dropped")
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.pool.give_back(connection);
        }
    }
}
