//! The state shared by the sessions of SQL clients.

use crate::cache_filter::CacheFilter;
use crate::definitions::DefinitionCache;
use crate::login::elsewhere::StoredHashes;
use crate::privileges::PrivilegeCache;
use cache::Cache;
use server::Server;
use service::Service;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use store::ChangeObserver;
use tokio::sync::Semaphore;

/// A cached result set: the packets of the server's reply.
#[derive(Debug)]
pub struct CachedResult(pub(crate) Box<[u8]>);

/// TLS that the listeners of SQL clients offer.
pub struct ClientTls {
    pub server: Arc<tls::ServerTls>,
    /// Clients over TCP must use it.
    pub is_required: bool,
}

/// How long SQL clients and their server may be inactive.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// For a connection to the server.
    pub connect: Duration,
    /// For a permit to log in, and again for the login.
    pub login: Duration,
    /// For a client within a command, or before it reads its reply.
    pub stalled: Duration,
    /// For a client between two commands; `None`: forever.
    pub idle: Option<Duration>,
}

/// What all sessions of SQL clients share.
pub struct SqlContext {
    /// Chooses the server of each session.
    pub service: Arc<Service>,
    /// TLS for clients; `None`: it is not offered.
    pub tls: Option<ClientTls>,
    /// The state of the process: statistics, and the throttle of logins.
    pub server: Arc<Server>,
    pub timeouts: Timeouts,
    /// Permits for connections that have not logged in yet: each takes one of the server's.
    pub logins: Arc<Semaphore>,
    /// The result cache; `None` if it is off.
    pub cache: Option<Arc<Cache<CachedResult>>>,
    /// The cache is for results of the service's primary alone, whose log shows the writes of
    /// others.
    pub caches_primary: bool,
    /// Selects the results that are cached.
    pub cache_filter: CacheFilter,
    /// Whether clients use the cache, by the number of their listener; true for others.
    pub listeners: Vec<bool>,
    /// Observes the writes of SQL clients; `None` if nothing is cached.
    pub observer: Option<Arc<dyn ChangeObserver>>,
    /// Finds what statements change beside the tables that they name.
    pub definitions: Arc<DefinitionCache>,
    /// The password hashes of clients' accounts, by which the gateway logs in to further servers.
    pub stored_hashes: StoredHashes,
    /// The privileges of clients' accounts.
    pub privileges: PrivilegeCache,
}

impl SqlContext {
    /// Returns whether a listener's clients use the cache.
    pub(crate) fn uses_cache(&self, listener: usize) -> bool {
        self.listeners.get(listener).copied().unwrap_or(true)
    }
}

impl fmt::Debug for SqlContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SqlContext({})", self.service.name())
    }
}
