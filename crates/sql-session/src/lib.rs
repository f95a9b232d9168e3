//! SQL clients: connections in MariaDB's protocol, forwarded to the MariaDB server through a result
//! cache.
//!
//! Each [`selkie_runtime::Connection`] of a client gets a connection of its own to the server,
//! which authenticates the client. Commands and replies are forwarded unchanged, and parsed only as
//! far as to find their ends. Two things are added. A SELECT that depends on nothing but rows is
//! answered from the cache while the cached result is right. A write is reported to the change
//! observer before the server receives it.
//!
//! In reading order: [`packet_stream`] (a socket and its packets), [`login`], [`reply_tracker`]
//! (where a reply ends and the status it reports), [`result_rows`], [`execute_packet`] (the
//! parameters of a prepared statement), [`definitions`] (effects of writes, by cached table
//! definitions), [`cache_filter`], [`privileges`] (on which cached results depend),
//! [`in_flight_writes`], [`running_command`] (statements whose client has left), [`session`] (the
//! protocol loop). What a statement does is a fact of `sql_classify`.

mod cache_filter;
mod definitions;
mod execute_packet;
mod in_flight_writes;
mod login;
mod packet_stream;
mod privileges;
mod reply_tracker;
mod result_rows;
mod running_command;
mod session;

pub use cache_filter::{CacheFilter, pattern};
pub use definitions::{DefinitionCache, DefinitionObserver, DefinitionSource};
pub use packet_stream::BackendAddress;
pub use privileges::PrivilegeCache;
pub use running_command::KillSession;

use cache::Cache;
use selkie_runtime::{Connection, Service, WorkerService};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use store::ChangeObserver;
use tokio::sync::Semaphore;

/// A cached result set: the packets of the server's reply.
#[derive(Debug)]
pub struct CachedResult(Box<[u8]>);

/// What all sessions of SQL clients share.
pub struct SqlContext {
    pub backend: BackendAddress,
    pub connect_timeout: Duration,
    /// Permits for connections that have not logged in yet: each takes one of the server's.
    pub logins: Arc<Semaphore>,
    /// How long a login may take, including the wait for a permit.
    pub login_timeout: Duration,
    /// Ends a session on the server.
    pub kill: KillSession,
    /// The result cache; `None` if it is off.
    pub cache: Option<Arc<Cache<CachedResult>>>,
    /// Selects the results that are cached.
    pub cache_filter: CacheFilter,
    /// Whether clients use the cache, by the number of their listener; true for others.
    pub listeners: Vec<bool>,
    /// Observes the writes of SQL clients; `None` if nothing is cached.
    pub observer: Option<Arc<dyn ChangeObserver>>,
    /// Finds what statements change beside the tables that they name.
    pub definitions: Arc<DefinitionCache>,
    /// The privileges of clients' accounts.
    pub privileges: PrivilegeCache,
}

impl SqlContext {
    fn uses_cache(&self, listener: usize) -> bool {
        self.listeners.get(listener).copied().unwrap_or(true)
    }
}

/// The service of SQL clients' listeners.
pub struct SqlService(pub Arc<SqlContext>);

struct SqlWorker(Arc<SqlContext>);

impl Service for SqlService {
    fn open(&self, _worker: usize) -> Result<Rc<dyn WorkerService>, String> {
        Ok(Rc::new(SqlWorker(self.0.clone())))
    }
}

impl WorkerService for SqlWorker {
    fn serve(self: Rc<Self>, connection: Connection) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(session::serve(self.0.clone(), connection))
    }
}

impl fmt::Debug for SqlContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SqlContext({:?})", self.backend)
    }
}
