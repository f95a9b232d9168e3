//! What the program is told: on the command line and in one TOML file.
//!
//! [`parameter`] is the one table of everything that can be set: name, meaning, default, and how a value is read. The file
//! ([`file`]), the flags (`cli`), the reference page and the example file ([`reference`]) all go by it. "As written" ([`Written`])
//! and "as used" ([`Config`]) are two types: [`resolve`](Config::resolve) is the one place where defaults come in and where settings
//! are held against each other.

mod cache;
pub mod file;
pub mod limits;
pub mod parameter;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;
pub mod value;

pub use self::cache::shards;
use commands::Topology;
use mariadb_client::ServerUrl;
use mongo_wire::Compressor;
use selkie_runtime::{ListenAddress, busy_poll};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Settings as somebody wrote them: what is `None` was not mentioned.
#[derive(Clone, Debug, Default)]
pub struct Written {
    pub listen: Option<Setting<Vec<ListenAddress>>>,
    pub allow_remote: Option<Setting<bool>>,
    pub threads: Option<Setting<usize>>,
    pub log: Option<Setting<String>>,
    pub busy_poll_us: Option<Setting<u64>>,
    pub drain_seconds: Option<Setting<u64>>,
    pub data: Option<Setting<PathBuf>>,
    pub accept_lost_writes: Option<Setting<bool>>,
    pub mariadb: Option<Setting<String>>,
    pub mariadb_connections: Option<Setting<usize>>,
    pub mariadb_wait_seconds: Option<Setting<u64>>,
    pub gateway_name: Option<Setting<String>>,
    pub embedded_mariadb: Option<Setting<PathBuf>>,
    pub sql_listen: Option<Setting<Vec<ListenAddress>>>,
    pub topology: Option<Setting<TopologyKind>>,
    pub replica_set: Option<Setting<String>>,
    pub advertise: Option<Setting<String>>,
    pub compressors: Option<Setting<Vec<Compressor>>>,
    pub cursor_timeout_seconds: Option<Setting<u64>>,
    pub slow_ms: Option<Setting<i64>>,
    pub slow_log: Option<Setting<bool>>,
    pub cache: Option<Setting<CacheMode>>,
    pub cache_bytes: Option<Setting<usize>>,
    pub foreign_writes: Option<Setting<ForeignWrites>>,
    pub cache_soft_ttl_ms: Option<Setting<i64>>,
    pub cache_hard_ttl_ms: Option<Setting<i64>>,
    pub cache_only: Option<Setting<Vec<String>>>,
    pub cache_except: Option<Setting<Vec<String>>>,
    pub cache_commands: Option<Setting<Vec<String>>>,
    pub cache_selects: Option<Setting<Selects>>,
    pub cache_rights_age_ms: Option<Setting<i64>>,
    pub cache_only_users: Option<Setting<Vec<String>>>,
    pub cache_except_users: Option<Setting<Vec<String>>>,
    pub cache_only_statements: Option<Setting<Vec<String>>>,
    pub cache_except_statements: Option<Setting<Vec<String>>>,
    pub cache_stale_ms: Option<Setting<i64>>,
    pub cache_per_worker: Option<Setting<bool>>,
    pub cache_listeners: Option<Setting<Vec<(ListenAddress, CacheMode)>>>,
    pub cache_invalidation: Option<Setting<Invalidation>>,
    pub cache_storage: Option<Setting<String>>,
    pub cache_storage_ca: Option<Setting<PathBuf>>,
    pub cache_storage_timeout_ms: Option<Setting<i64>>,
    pub limits: limits::Written,
}

/// A value and where it was written.
#[derive(Clone, Debug)]
pub struct Setting<T> {
    pub value: T,
    pub origin: Origin,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Flag(&'static str),
    Environment(&'static str),
    File { path: PathBuf, line: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopologyKind {
    Router,
    ReplicaSet,
    Standalone,
}

/// What is wrong, where, and what was meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    pub origin: Option<Origin>,
    pub message: String,
}

/// Settings as the program uses them: complete and in accord with each other.
#[derive(Clone, Debug)]
pub struct Config {
    pub listen: Vec<ListenAddress>,
    /// Where SQL clients connect.
    pub sql_listen: Vec<ListenAddress>,
    pub threads: usize,
    pub log: String,
    pub busy_poll: Duration,
    pub drain_deadline: Duration,
    pub store: Store,
    /// Go on without what a damaged log of the embedded store has lost.
    pub accept_lost_writes: bool,
    pub topology: Topology,
    pub compressors: Vec<Compressor>,
    pub cursor_timeout: Duration,
    pub slow_ms: i64,
    pub slow_log: bool,
    pub cache: Cache,
    pub limits: limits::Limits,
    pub mariadb: MariaDb,
}

/// How a MariaDB server is used.
#[derive(Clone, Debug)]
pub struct MariaDb {
    /// Of each worker.
    pub connections: usize,
    pub wait: Duration,
    pub gateway_name: Option<String>,
}

/// What is kept of answers.
#[derive(Clone, Debug)]
pub struct Cache {
    pub mode: CacheMode,
    pub bytes: usize,
    pub foreign_writes: ForeignWrites,
    pub soft_ttl_ms: Option<i64>,
    pub hard_ttl_ms: Option<i64>,
    pub only: Vec<String>,
    pub except: Vec<String>,
    pub commands: Vec<String>,
    pub stale_ms: Option<i64>,
    /// What clients use, by the listener that they come to: those of `listen`, and behind them those of `sql-listen`.
    pub listeners: Vec<CacheMode>,
    /// Each worker keeps answers of its own.
    pub per_worker: bool,
    pub invalidation: Invalidation,
    pub sql: SqlCache,
    pub storage: Option<Storage>,
}

/// Which answers a change takes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalidation {
    Precise,
    Collection,
}

/// Where replies are shared with other gateways.
#[derive(Clone, Debug)]
pub struct Storage {
    pub address: shared_cache::Address,
    pub timeout: Duration,
    /// Where it was written.
    pub origin: Origin,
}

/// Which answers to SQL clients are kept.
#[derive(Clone, Debug)]
pub struct SqlCache {
    pub selects: Selects,
    /// What clients may do is asked for again when it is older.
    pub rights_age_max: Duration,
    pub only_users: Vec<String>,
    pub except_users: Vec<String>,
    pub only_statements: Vec<String>,
    pub except_statements: Vec<String>,
}

/// Whether a SELECT is looked into for what makes its answer depend on more than rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selects {
    Verify,
    AssumeCacheable,
}

/// How writes are noticed that others make in MariaDB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignWrites {
    Follow,
    Strict,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheMode {
    Off,
    Results,
    Documents,
    Both,
}

impl CacheMode {
    pub fn keeps_replies(self) -> bool {
        matches!(self, CacheMode::Documents | CacheMode::Both)
    }

    pub fn keeps_rows(self) -> bool {
        matches!(self, CacheMode::Results | CacheMode::Both)
    }

    fn includes(self, part: CacheMode) -> bool {
        (self.keeps_replies() || !part.keeps_replies()) && (self.keeps_rows() || !part.keeps_rows())
    }

    fn name(self) -> &'static str {
        match self {
            CacheMode::Off => "off",
            CacheMode::Results => "results",
            CacheMode::Documents => "documents",
            CacheMode::Both => "both",
        }
    }
}

#[derive(Clone, Debug)]
pub enum Store {
    /// The embedded store, in this directory.
    Embedded(PathBuf),
    /// A MariaDB server, by its URL.
    MariaDb(String),
    /// MariaDB in this process, with its data in this directory.
    EmbeddedMariaDb(PathBuf),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Flag(name) | Origin::Environment(name) => f.write_str(name),
            Origin::File { path, line } => write!(f, "{}:{line}", path.display()),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Some(origin) => write!(f, "{origin}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for ConfigError {}

impl<T> Setting<T> {
    fn refuse(&self, message: impl Into<String>) -> ConfigError {
        ConfigError { origin: Some(self.origin.clone()), message: message.into() }
    }
}

impl Written {
    /// These settings, and where they say nothing, `beneath`. Naming one store puts the other aside: a flag `--mariadb` goes before
    /// a file's `data`.
    pub fn over(self, mut beneath: Written) -> Written {
        if self.data.is_some() || self.mariadb.is_some() || self.embedded_mariadb.is_some() {
            (beneath.data, beneath.mariadb, beneath.embedded_mariadb) = (None, None, None);
        }
        Written {
            listen: self.listen.or(beneath.listen),
            allow_remote: self.allow_remote.or(beneath.allow_remote),
            threads: self.threads.or(beneath.threads),
            log: self.log.or(beneath.log),
            busy_poll_us: self.busy_poll_us.or(beneath.busy_poll_us),
            drain_seconds: self.drain_seconds.or(beneath.drain_seconds),
            data: self.data.or(beneath.data),
            accept_lost_writes: self.accept_lost_writes.or(beneath.accept_lost_writes),
            mariadb: self.mariadb.or(beneath.mariadb),
            mariadb_connections: self.mariadb_connections.or(beneath.mariadb_connections),
            mariadb_wait_seconds: self.mariadb_wait_seconds.or(beneath.mariadb_wait_seconds),
            gateway_name: self.gateway_name.or(beneath.gateway_name),
            embedded_mariadb: self.embedded_mariadb.or(beneath.embedded_mariadb),
            sql_listen: self.sql_listen.or(beneath.sql_listen),
            topology: self.topology.or(beneath.topology),
            replica_set: self.replica_set.or(beneath.replica_set),
            advertise: self.advertise.or(beneath.advertise),
            compressors: self.compressors.or(beneath.compressors),
            cursor_timeout_seconds: self.cursor_timeout_seconds.or(beneath.cursor_timeout_seconds),
            slow_ms: self.slow_ms.or(beneath.slow_ms),
            slow_log: self.slow_log.or(beneath.slow_log),
            cache: self.cache.or(beneath.cache),
            cache_bytes: self.cache_bytes.or(beneath.cache_bytes),
            foreign_writes: self.foreign_writes.or(beneath.foreign_writes),
            cache_soft_ttl_ms: self.cache_soft_ttl_ms.or(beneath.cache_soft_ttl_ms),
            cache_hard_ttl_ms: self.cache_hard_ttl_ms.or(beneath.cache_hard_ttl_ms),
            cache_only: self.cache_only.or(beneath.cache_only),
            cache_except: self.cache_except.or(beneath.cache_except),
            cache_commands: self.cache_commands.or(beneath.cache_commands),
            cache_selects: self.cache_selects.or(beneath.cache_selects),
            cache_rights_age_ms: self.cache_rights_age_ms.or(beneath.cache_rights_age_ms),
            cache_only_users: self.cache_only_users.or(beneath.cache_only_users),
            cache_except_users: self.cache_except_users.or(beneath.cache_except_users),
            cache_only_statements: self.cache_only_statements.or(beneath.cache_only_statements),
            cache_except_statements: self.cache_except_statements.or(beneath.cache_except_statements),
            cache_listeners: self.cache_listeners.or(beneath.cache_listeners),
            cache_per_worker: self.cache_per_worker.or(beneath.cache_per_worker),
            cache_stale_ms: self.cache_stale_ms.or(beneath.cache_stale_ms),
            cache_invalidation: self.cache_invalidation.or(beneath.cache_invalidation),
            cache_storage: self.cache_storage.or(beneath.cache_storage),
            cache_storage_ca: self.cache_storage_ca.or(beneath.cache_storage_ca),
            cache_storage_timeout_ms: self.cache_storage_timeout_ms.or(beneath.cache_storage_timeout_ms),
            limits: self.limits.over(beneath.limits),
        }
    }
}

impl Config {
    /// Brings defaults in and holds settings against each other.
    pub fn resolve(written: Written) -> Result<Config, ConfigError> {
        let listen = resolve_listen(&written)?;
        let topology = resolve_topology(&written, &listen)?;
        let store = resolve_store(&written)?;
        let sql_listen = resolve_sql_listen(&written, &store)?;
        let threads = value(written.threads.clone()).unwrap_or_else(cores);
        let cache = cache::resolve(&written, &store, &listen, &sql_listen, threads)?;
        let cache_bytes = if cache.mode == CacheMode::Off { 0 } else { cache.bytes };
        let limits = written.limits.resolve(cache_bytes)?;
        Ok(Config {
            sql_listen,
            cache,
            limits,
            topology,
            store,
            listen,
            threads,
            log: value(written.log).unwrap_or_else(|| parameter::DEFAULT_LOG.to_owned()),
            busy_poll: value(written.busy_poll_us).map_or(busy_poll::DEFAULT_WINDOW, Duration::from_micros),
            drain_deadline: Duration::from_secs(
                value(written.drain_seconds).unwrap_or(parameter::DEFAULT_DRAIN_SECONDS),
            ),
            compressors: value(written.compressors).unwrap_or_else(|| parameter::DEFAULT_COMPRESSORS.to_vec()),
            slow_ms: value(written.slow_ms).unwrap_or(parameter::DEFAULT_SLOW_MS),
            slow_log: value(written.slow_log).unwrap_or(true),
            accept_lost_writes: value(written.accept_lost_writes).unwrap_or(false),
            mariadb: MariaDb {
                connections: value(written.mariadb_connections).unwrap_or(parameter::DEFAULT_MARIADB_CONNECTIONS),
                wait: Duration::from_secs(
                    value(written.mariadb_wait_seconds).unwrap_or(parameter::DEFAULT_MARIADB_WAIT_SECONDS),
                ),
                gateway_name: value(written.gateway_name),
            },
            cursor_timeout: Duration::from_secs(
                value(written.cursor_timeout_seconds).unwrap_or(parameter::DEFAULT_CURSOR_TIMEOUT_SECONDS),
            ),
        })
    }
}

fn value<T>(setting: Option<Setting<T>>) -> Option<T> {
    setting.map(|setting| setting.value)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn resolve_listen(written: &Written) -> Result<Vec<ListenAddress>, ConfigError> {
    let Some(listen) = &written.listen else { return Ok(vec![parameter::default_listen()]) };
    let allowed = written.allow_remote.as_ref().is_some_and(|setting| setting.value);
    match listen.value.iter().find(|address| !address.is_local()) {
        Some(address) if !allowed => Err(listen.refuse(format!(
            "{address} can be reached from other machines, and there is no authentication yet: everybody who reaches it may \
             read and write everything; say --allow-remote (allow-remote = true) if that is what you want"
        ))),
        _ => Ok(listen.value.clone()),
    }
}

/// SQL clients are MariaDB's own users: it asks for their passwords.
fn resolve_sql_listen(written: &Written, store: &Store) -> Result<Vec<ListenAddress>, ConfigError> {
    let Some(listen) = &written.sql_listen else { return Ok(Vec::new()) };
    let Store::MariaDb(url) = store else {
        return Err(listen.refuse(match store {
            Store::EmbeddedMariaDb(_) => {
                "SQL clients are passed on to a MariaDB server, and the one in this process listens to nobody; name a MariaDB server with mariadb"
            }
            _ => "SQL clients are passed on to MariaDB, and documents lie in the embedded store; name a MariaDB server with mariadb",
        }));
    };
    if let Ok(mariadb_client::Address::Socket(path)) = ServerUrl::parse(url).map(|url| url.address) {
        return Err(listen.refuse(format!(
            "SQL clients cannot be passed on over the Unix socket {}: MariaDB would take each of them for the user that this process \
             runs as, whose accounts may need no password there; name the server as mysql://user:password@host:3306",
            path.display()
        )));
    }
    let allowed = written.allow_remote.as_ref().is_some_and(|setting| setting.value);
    match listen.value.iter().find(|address| !address.is_local()) {
        Some(address) if !allowed => Err(listen.refuse(format!(
            "{address} can be reached from other machines, and MariaDB would take who comes from there for clients of this machine; \
             say --allow-remote (allow-remote = true) if that is what you want"
        ))),
        _ => Ok(listen.value.clone()),
    }
}

fn resolve_store(written: &Written) -> Result<Store, ConfigError> {
    let data = written.data.as_ref().map(|it| (&it.origin, Store::Embedded(it.value.clone())));
    let mariadb = written.mariadb.as_ref().map(|it| (&it.origin, Store::MariaDb(it.value.clone())));
    let embedded = written.embedded_mariadb.as_ref().map(|it| (&it.origin, Store::EmbeddedMariaDb(it.value.clone())));
    let mut named = [data, mariadb, embedded].into_iter().flatten();
    let Some((first, store)) = named.next() else {
        return Ok(Store::Embedded(PathBuf::from(parameter::DEFAULT_DATA)));
    };
    if let Some((second, _)) = named.next() {
        let message = format!(
            "documents lie either in MariaDB or in a data directory, but {first} names one too; leave one of them out"
        );
        return Err(ConfigError { origin: Some(second.clone()), message });
    }
    if let (Store::EmbeddedMariaDb(_), false) = (&store, cfg!(feature = "embedded-mariadb")) {
        let message = "this Selkie has no MariaDB built in; build it with --features embedded-mariadb, or name a MariaDB server with \
                       mariadb";
        return Err(ConfigError { origin: Some(first.clone()), message: message.into() });
    }
    Ok(store)
}

fn resolve_topology(written: &Written, listen: &[ListenAddress]) -> Result<Topology, ConfigError> {
    let kind = written.topology.as_ref().map_or(TopologyKind::Router, |setting| setting.value);
    if kind != TopologyKind::ReplicaSet {
        for (setting, name) in [(&written.replica_set, "replica-set"), (&written.advertise, "advertise")] {
            if let Some(setting) = setting {
                return Err(setting.refuse(format!(
                    "{name} has a meaning only with topology = \"replica-set\"; add that, or leave it out"
                )));
            }
        }
    }
    match kind {
        TopologyKind::Router => Ok(Topology::Router),
        TopologyKind::Standalone => Ok(Topology::Standalone),
        TopologyKind::ReplicaSet => {
            let name = written.replica_set.as_ref().map_or(parameter::DEFAULT_REPLICA_SET, |setting| &setting.value);
            let advertised = written.advertise.as_ref().map(|setting| setting.value.clone());
            let advertised = match advertised.or_else(|| listen.iter().find_map(advertisable)) {
                Some(advertised) => advertised,
                None => {
                    let message = "drivers of a replica set connect to the address it advertises, and none of the addresses \
                                   to listen on can be one; set advertise = \"host:port\"";
                    let origin = written.topology.as_ref().map(|setting| setting.origin.clone());
                    return Err(ConfigError { origin, message: message.into() });
                }
            };
            Ok(Topology::ReplicaSet { name: name.to_owned(), advertised })
        }
    }
}

/// An address that drivers can connect to as it stands.
fn advertisable(address: &ListenAddress) -> Option<String> {
    match address {
        ListenAddress::Tcp(address) if !address.ip().is_unspecified() && address.port() != 0 => {
            Some(address.to_string())
        }
        _ => None,
    }
}
