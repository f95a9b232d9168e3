//! SQL clients: connections in MariaDB's protocol, forwarded to the MariaDB server through a result
//! cache.
//!
//! Each [`selkie_runtime::Connection`] of a client gets a connection of its own to the server,
//! which authenticates the client. Commands and replies are forwarded unchanged, and parsed only as
//! far as to find their ends. Two things are added. A SELECT that depends on nothing but rows is
//! answered from the cache while the cached result is right. A write is reported to the change
//! observer before the server receives it.
//!
//! In reading order: [`byte_stream`] (a socket, or TLS), [`packet_stream`] (its packets),
//! [`login`], [`reply_tracker`] (where a reply ends and the status it reports), [`reply_gate`] (the
//! replies that filters see), [`result_rows`],
//! [`execute_packet`] (the parameters of a prepared statement), [`definitions`] (effects of writes,
//! by cached table definitions), [`cache_filter`], [`privileges`] (on which cached results depend),
//! [`in_flight_writes`], [`backend_connection`] (to the server that the service chooses),
//! [`running_command`] (statements whose client has left), [`context`] (the
//! state shared by sessions), [`session`] (the protocol loop). What a statement does is a fact of
//! `sql_classify`.

mod backend_connection;
mod byte_stream;
mod cache_filter;
mod context;
mod counted_connection;
mod definitions;
mod execute_packet;
mod in_flight_writes;
mod login;
mod packet_stream;
mod privileges;
mod reply_gate;
mod reply_tracker;
mod result_rows;
mod running_command;
mod session;
mod settings_numbers;

pub use cache_filter::{CacheFilter, pattern};
pub use context::{CachedResult, ClientTls, SqlContext, Timeouts};
pub use definitions::{DefinitionCache, DefinitionObserver, DefinitionSource};
pub use login::elsewhere::StoredHashes;
pub use privileges::PrivilegeCache;

use self::session::IdleConnections;
use selkie_runtime::{Connection, Refusal, Service, Stream, WorkerService};
use sql_classify::ClassCache;
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

/// The service of SQL clients' listeners.
pub struct SqlService(pub Arc<SqlContext>);

struct SqlWorker {
    context: Arc<SqlContext>,
    idle_connections: Rc<IdleConnections>,
    classes: Rc<RefCell<ClassCache>>,
}

impl Service for SqlService {
    fn open(&self, _worker: usize) -> Result<Rc<dyn WorkerService>, String> {
        let context = self.0.clone();
        let idle_connections = Rc::new(IdleConnections::new(context.service.clone()));
        Ok(Rc::new(SqlWorker { context, idle_connections, classes: Rc::default() }))
    }
}

impl WorkerService for SqlWorker {
    fn serve(self: Rc<Self>, connection: Connection) -> Pin<Box<dyn Future<Output = ()>>> {
        let shared = (self.context.clone(), self.classes.clone(), self.idle_connections.clone());
        Box::pin(session::serve(shared, connection))
    }

    /// Sends MariaDB's error. It fits into the buffer of a new socket.
    fn refuse(&self, stream: Stream, refusal: Refusal) {
        let statistics = &self.context.server.sql_statistics;
        statistics.connections_rejected.increment();
        if refusal == Refusal::Rate {
            statistics.connections_rejected_by_rate.increment();
        }
        let _ = stream.try_write(&login::error_packet(0, 1040, "08004", "Too many connections"));
    }
}
