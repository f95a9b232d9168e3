//! The table of listeners: the protocol, the address and the use of the cache of each.

use super::choices::{CacheMode, ExternalWrites, Protocol};
use super::defaults;
use super::object::{Object, known};
use super::services::{self, STORE_SERVICE, WrittenListener};
use super::setting::{ConfigError, Setting};
use super::store::Store;
use super::written::Written;
use mariadb_client::ServerUrl;
use selkie_runtime::ListenAddress;
use service::Settings;

/// A row of the table of listeners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    pub protocol: Protocol,
    pub address: ListenAddress,
    /// What its clients use of the cache.
    pub cache: CacheMode,
    /// The service of SQL clients.
    pub service: Option<String>,
    /// The section's name; `None` for those of `listen` and `sql-listen`.
    pub name: Option<String>,
}

impl Listener {
    /// Returns whether its SQL clients are forwarded to the server that stores the documents.
    pub fn is_of_store_server(&self) -> bool {
        self.service.as_deref() == Some(STORE_SERVICE)
    }
}

/// Resolves the table: the listeners of `listen`, those of `sql-listen`, then those with a name.
/// `mode`: the cache's.
pub fn resolve(
    written: &Written,
    store: &Store,
    mode: CacheMode,
    servers: &Settings,
) -> Result<Vec<Listener>, ConfigError> {
    let mongodb = mongodb_addresses(written)?.into_iter().map(|address| (Protocol::MongoDb, address));
    let mariadb = mariadb_addresses(written, store)?.into_iter().map(|address| (Protocol::MariaDb, address));
    let listener = |(protocol, address)| {
        let service = (protocol == Protocol::MariaDb).then(|| STORE_SERVICE.to_owned());
        Listener { protocol, address, cache: mode, service, name: None }
    };
    let mut listeners: Vec<Listener> = mongodb.chain(mariadb).map(listener).collect();
    for object in &written.services.listeners {
        let listener = named(object, written, mode, servers)?;
        let is_same = |other: &&Listener| other.address == listener.address && !has_any_port(&other.address);
        if let Some(other) = listeners.iter().find(is_same) {
            let other = other.name.as_ref().map_or("another listener".to_owned(), |name| format!("[listener.{name}]"));
            return Err(object.refuse(format!("{} has the address {} of {other}", object.name, listener.address)));
        }
        listeners.push(listener);
    }
    set_cache_modes(written, mode, &mut listeners)?;
    check_loops(written, servers, &listeners)?;
    check_cache(written, mode, &listeners)?;
    Ok(listeners)
}

fn has_any_port(address: &ListenAddress) -> bool {
    matches!(address, ListenAddress::Tcp(address) if address.port() == 0)
}

/// Resolves a listener with a name.
fn named(
    object: &Object<WrittenListener>,
    written: &Written,
    mode: CacheMode,
    servers: &Settings,
) -> Result<Listener, ConfigError> {
    let WrittenListener { protocol, address, service } = &object.written;
    let (protocol, address) = (object.required(protocol, "protocol")?.value, object.required(address, "address")?);
    match (protocol, service) {
        (Protocol::MongoDb, Some(service)) => {
            return Err(service.refuse("documents of MongoDB clients are in the store; service is for SQL clients"));
        }
        (Protocol::MongoDb, None) => check_reachable_by_mongodb(written, address, &address.value)?,
        (Protocol::MariaDb, service) => {
            let service = object.required(service, "service")?;
            known(service, &service.value, "service", servers.services.iter().map(|service| service.name.as_str()))?;
            check_reachable_by_mariadb(written, address, &address.value)?;
        }
    }
    let (address, service) = (address.value.clone(), service.as_ref().map(|service| service.value.clone()));
    // Results are cached only where all writes are known.
    let has_cache = |service: &str| services::caches(&written.services).iter().any(|(name, _)| name == service);
    let cache = match service.as_deref() {
        None | Some(STORE_SERVICE) => mode,
        Some(service) if has_cache(service) => CacheMode::Results,
        Some(_) => CacheMode::Off,
    };
    Ok(Listener { protocol, address, cache, service, name: Some(object.name.clone()) })
}

/// Refuses a server that is a listener of this process.
fn check_loops(written: &Written, servers: &Settings, listeners: &[Listener]) -> Result<(), ConfigError> {
    for server in &servers.servers {
        let listener = listeners.iter().find(|listener| services::leads_back(server, &listener.address));
        let object = written.servers.servers.iter().find(|object| object.name == server.name);
        if let (Some(listener), Some(object)) = (listener, object) {
            return Err(object.refuse(format!(
                "{} has the address {}, on which Selkie listens itself: it would forward clients to itself",
                server.name, listener.address
            )));
        }
    }
    Ok(())
}

/// Refuses a cache that would not notice the writes of services.
fn check_cache(written: &Written, mode: CacheMode, listeners: &[Listener]) -> Result<(), ConfigError> {
    let Some(external) = &written.external_writes else { return Ok(()) };
    let misses_writes = mode != CacheMode::Off && external.value == ExternalWrites::None;
    match listeners.iter().find(|listener| listener.service.is_some() && !listener.is_of_store_server()) {
        Some(listener) if misses_writes => Err(external.refuse(format!(
            "SQL clients of {} may write what is cached, and only MariaDB's log shows it; write follow or strict",
            listener.address
        ))),
        _ => Ok(()),
    }
}

fn mongodb_addresses(written: &Written) -> Result<Vec<ListenAddress>, ConfigError> {
    let Some(listen) = &written.listen else {
        // A configuration that names listeners names all of them.
        let is_default = written.services.listeners.is_empty();
        return Ok(is_default.then(defaults::default_listen).into_iter().collect());
    };
    listen.value.iter().try_for_each(|address| check_reachable_by_mongodb(written, listen, address))?;
    Ok(listen.value.clone())
}

/// Refuses an address that other machines can reach, if MongoDB clients need no login.
fn check_reachable_by_mongodb<T>(
    written: &Written,
    setting: &Setting<T>,
    address: &ListenAddress,
) -> Result<(), ConfigError> {
    if address.is_local() || written.security.admits_remote_clients() {
        return Ok(());
    }
    Err(setting.refuse(format!(
        "other machines can reach {address}, and clients need no login: every client that reaches it may read and write \
         everything; set --auth ([security] auth = true), or --insecure-without-auth if that is what you want"
    )))
}

/// SQL clients are MariaDB's own users, which it authenticates.
fn mariadb_addresses(written: &Written, store: &Store) -> Result<Vec<ListenAddress>, ConfigError> {
    let Some(listen) = &written.sql_listen else { return Ok(Vec::new()) };
    let Store::MariaDb(url) = store else {
        return Err(listen.refuse(match store {
            Store::Service(_) => {
                "sql-listen forwards SQL clients to the one server of mariadb; for a service, write a section [listener.NAME]"
            }
            Store::EmbeddedMariaDb(_) => {
                "SQL clients are forwarded to a MariaDB server, and the embedded MariaDB accepts no connections; name a MariaDB \
                 server with mariadb"
            }
            _ => {
                "SQL clients are forwarded to MariaDB, and documents are stored in the embedded store; name a MariaDB server with \
                 mariadb"
            }
        }));
    };
    if let Ok(mariadb_client::Address::Socket(path)) = ServerUrl::parse(url).map(|url| url.address) {
        return Err(listen.refuse(format!(
            "SQL clients cannot be forwarded over the Unix socket {}: MariaDB would take each of them for the user that this process \
             runs as, whose accounts may need no password there; name the server as mysql://user:password@host:3306",
            path.display()
        )));
    }
    listen.value.iter().try_for_each(|address| check_reachable_by_mariadb(written, listen, address))?;
    Ok(listen.value.clone())
}

/// Refuses an address that other machines can reach, unless that is allowed.
fn check_reachable_by_mariadb<T>(
    written: &Written,
    setting: &Setting<T>,
    address: &ListenAddress,
) -> Result<(), ConfigError> {
    if address.is_local() || is_remote_allowed(written) {
        return Ok(());
    }
    Err(setting.refuse(format!(
        "other machines can reach {address}, and MariaDB would take their clients for clients of this machine; set \
         --allow-remote (allow-remote = true) if that is what you want"
    )))
}

fn is_remote_allowed(written: &Written) -> bool {
    written.allow_remote.as_ref().is_some_and(|setting| setting.value)
}

fn set_cache_modes(written: &Written, mode: CacheMode, listeners: &mut [Listener]) -> Result<(), ConfigError> {
    let Some(setting) = &written.cache_listeners else { return Ok(()) };
    for (address, wanted) in &setting.value {
        let of_service = |listener: &&Listener| {
            listener.address == *address && listener.service.is_some() && !listener.is_of_store_server()
        };
        if listeners.iter().any(|listener| of_service(&listener)) {
            return Err(setting.refuse(format!(
                "nothing is cached for the SQL clients of {address}: writes on the servers of its service are not known"
            )));
        }
        let mut protocols = Vec::new();
        for listener in listeners.iter_mut().filter(|listener| listener.address == *address) {
            listener.cache = *wanted;
            protocols.push(listener.protocol);
        }
        if protocols.is_empty() {
            return Err(setting.refuse(format!("{address} is none of the addresses in listen and sql-listen")));
        }
        if !mode.includes(*wanted) {
            return Err(setting.refuse(format!(
                "the clients of {address} cannot use {}, which mode = \"{}\" does not cache",
                wanted.name(),
                mode.name()
            )));
        }
        if protocols.contains(&Protocol::MariaDb) && *wanted == CacheMode::Documents {
            return Err(
                setting.refuse(format!("{address} is for SQL clients, who get no documents; write off or results"))
            );
        }
    }
    Ok(())
}
