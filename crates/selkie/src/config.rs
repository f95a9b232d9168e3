//! The configuration: from the command line, the environment and one TOML file.
//!
//! [`parameter`] is the one table of all settings: name, meaning, default, and how a value is
//! parsed. The file ([`file`]), the flags (`cli`), the reference page and the example file
//! ([`reference`]) are derived from it. The settings as written ([`Written`]) and as used
//! ([`Config`]) are two types; [`Config::resolve`] applies the defaults and checks settings against
//! each other.
//!
//! In reading order: [`setting`], [`choices`], [`value`] (parsing), [`written`], [`parameter`],
//! [`file`], [`defaults`]; then the parts of [`Config`]: [`object`], [`servers`], [`filters`],
//! [`services`], [`store_service`], [`store`], [`listeners`], [`topology`], [`mod@oplog`],
//! [`cache`], [`limits`], [`mod@tls`], [`audit`].

pub mod audit;
pub mod cache;
pub mod choices;
pub mod defaults;
pub mod file;
pub mod filters;
mod identity;
pub mod limits;
pub mod listeners;
pub mod object;
mod oplog;
pub mod parameter;
#[cfg(test)]
mod reference;
pub mod security;
pub mod servers;
pub mod services;
pub mod setting;
pub mod store;
pub mod store_service;
#[cfg(test)]
mod tests;
pub mod tls;
pub mod topology;
pub mod value;
pub mod written;

pub use cache::Cache;
pub use choices::{BackendIdentity, CacheMode, Protocol};
pub use listeners::Listener;
pub use oplog::ChangeLog;
pub use setting::{ConfigError, Origin};
pub use store::{MariaDb, Store};
pub use tls::Tls;
pub use written::Written;

use auth::LoginMechanisms;
use mongo_wire::Compressor;
use selkie_runtime::{ListenAddress, busy_poll};
use server::Topology;
use setting::value;
use std::time::Duration;

/// Settings as the program uses them: complete and consistent.
#[derive(Clone, Debug)]
pub struct Config {
    /// The table of listeners.
    pub listeners: Vec<Listener>,
    pub threads: usize,
    pub log: String,
    pub busy_poll: Duration,
    pub drain_deadline: Duration,
    pub store: Store,
    /// Start without the writes that a damaged log of the embedded store has lost.
    pub accept_lost_writes: bool,
    /// The log of changes.
    pub oplog: ChangeLog,
    pub topology: Topology,
    pub compressors: Vec<Compressor>,
    pub cursor_timeout: Duration,
    /// Whether the commands for tests exist.
    pub test_commands: bool,
    pub slow_ms: i64,
    pub slow_log: bool,
    pub cache: Cache,
    pub limits: limits::Limits,
    pub audit: Option<audit::Audit>,
    pub mariadb: MariaDb,
    /// Whether MongoDB clients must log in.
    pub auth: bool,
    /// The ways to log in that are offered.
    pub login_mechanisms: LoginMechanisms,
    /// The account of MariaDB that executes statements on documents.
    pub backend_identity: BackendIdentity,
    /// `None`: clients cannot use TLS.
    pub tls: Option<Tls>,
    /// The MariaDB servers with a name, their monitors, and the services of SQL clients.
    pub servers: service::Settings,
    /// The services with a cache, and its bytes.
    pub service_caches: Vec<(String, usize)>,
}

impl Config {
    /// Applies the defaults and checks settings against each other.
    pub fn resolve(written: Written) -> Result<Config, ConfigError> {
        let store = Store::resolve(&written)?;
        let threads = value(written.threads.clone()).unwrap_or_else(cores);
        let cache = Cache::resolve(&written, &store, threads)?;
        let store_server = store.url().filter(|_| written.sql_listen.is_some());
        let servers = services::resolve((&written.servers, &written.filters), &written.services, store_server)?;
        let listeners = listeners::resolve(&written, &store, cache.mode, &servers)?;
        let mongodb: Vec<ListenAddress> = addresses(&listeners, Protocol::MongoDb).cloned().collect();
        let topology = topology::resolve(&written, &mongodb)?;
        let service_caches = services::caches(&written.services);
        let of_services: usize = service_caches.iter().map(|(_, bytes)| bytes).sum();
        let cache_bytes = of_services + if cache.mode == CacheMode::Off { 0 } else { cache.bytes };
        let cursor_timeout_seconds = value(written.cursor_timeout_seconds.clone());
        let drain_seconds = value(written.drain_seconds.clone());
        let mariadb = MariaDb::resolve(&written);
        mariadb.check_shards(&topology)?;
        let oplog = oplog::resolve(&written, &store, &topology)?;
        let tls = written.tls.resolve()?;
        Ok(Config {
            auth: written.security.requires_login(),
            login_mechanisms: written.security.login_mechanisms(tls.as_ref())?,
            backend_identity: identity::resolve(&written.security, (&store, &mariadb), &listeners)?,
            mariadb,
            tls,
            limits: written.limits.resolve(cache_bytes)?,
            servers,
            service_caches,
            audit: written.audit.resolve()?,
            listeners,
            cache,
            topology,
            oplog,
            store,
            threads,
            log: value(written.log).unwrap_or_else(|| defaults::LOG.to_owned()),
            busy_poll: value(written.busy_poll_us).map_or(busy_poll::DEFAULT_WINDOW, Duration::from_micros),
            drain_deadline: Duration::from_secs(drain_seconds.unwrap_or(defaults::DRAIN_SECONDS)),
            compressors: value(written.compressors).unwrap_or_else(|| defaults::COMPRESSORS.to_vec()),
            test_commands: value(written.test_commands).unwrap_or(false),
            slow_ms: value(written.slow_ms).unwrap_or(defaults::SLOW_MS),
            slow_log: value(written.slow_log).unwrap_or(true),
            accept_lost_writes: value(written.accept_lost_writes).unwrap_or(false),
            cursor_timeout: Duration::from_secs(cursor_timeout_seconds.unwrap_or(defaults::CURSOR_TIMEOUT_SECONDS)),
        })
    }

    /// Returns the addresses of a protocol's listeners.
    pub fn addresses(&self, protocol: Protocol) -> impl Iterator<Item = &ListenAddress> {
        addresses(&self.listeners, protocol)
    }

    /// Returns whether there are SQL clients of the server that stores the documents.
    pub fn has_sql_clients(&self) -> bool {
        self.listeners.iter().any(Listener::is_of_store_server)
    }

    /// Returns whether documents are stored: only MongoDB clients have some.
    pub fn stores_documents(&self) -> bool {
        self.addresses(Protocol::MongoDb).next().is_some()
    }
}

fn addresses(listeners: &[Listener], protocol: Protocol) -> impl Iterator<Item = &ListenAddress> {
    listeners.iter().filter(move |listener| listener.protocol == protocol).map(|listener| &listener.address)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
