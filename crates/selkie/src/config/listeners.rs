//! The table of listeners: the protocol, the address and the use of the cache of each.

use super::choices::CacheMode;
use super::defaults;
use super::setting::ConfigError;
use super::store::Store;
use super::written::Written;
use mariadb_client::ServerUrl;
use selkie_runtime::ListenAddress;

/// The protocol of a listener, which determines its service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// MongoDB clients: option `listen`.
    MongoDb,
    /// SQL clients, in MariaDB's protocol: option `sql-listen`.
    MariaDb,
}

/// A row of the table of listeners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    pub protocol: Protocol,
    pub address: ListenAddress,
    /// What its clients use of the cache.
    pub cache: CacheMode,
}

/// Resolves the table: the listeners of `listen`, then those of `sql-listen`. `mode`: the cache's.
pub fn resolve(written: &Written, store: &Store, mode: CacheMode) -> Result<Vec<Listener>, ConfigError> {
    let mongodb = mongodb_addresses(written)?.into_iter().map(|address| (Protocol::MongoDb, address));
    let mariadb = mariadb_addresses(written, store)?.into_iter().map(|address| (Protocol::MariaDb, address));
    let listener = |(protocol, address)| Listener { protocol, address, cache: mode };
    let mut listeners: Vec<Listener> = mongodb.chain(mariadb).map(listener).collect();
    set_cache_modes(written, mode, &mut listeners)?;
    Ok(listeners)
}

fn mongodb_addresses(written: &Written) -> Result<Vec<ListenAddress>, ConfigError> {
    let Some(listen) = &written.listen else { return Ok(vec![defaults::default_listen()]) };
    match listen.value.iter().find(|address| !address.is_local()) {
        Some(address) if !written.security.admits_remote_clients() => Err(listen.refuse(format!(
            "other machines can reach {address}, and clients need no login: every client that reaches it may read and write \
             everything; set --auth ([security] auth = true), or --insecure-without-auth if that is what you want"
        ))),
        _ => Ok(listen.value.clone()),
    }
}

/// SQL clients are MariaDB's own users, which it authenticates.
fn mariadb_addresses(written: &Written, store: &Store) -> Result<Vec<ListenAddress>, ConfigError> {
    let Some(listen) = &written.sql_listen else { return Ok(Vec::new()) };
    let Store::MariaDb(url) = store else {
        return Err(listen.refuse(match store {
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
    match listen.value.iter().find(|address| !address.is_local()) {
        Some(address) if !is_remote_allowed(written) => Err(listen.refuse(format!(
            "other machines can reach {address}, and MariaDB would take their clients for clients of this machine; set \
             --allow-remote (allow-remote = true) if that is what you want"
        ))),
        _ => Ok(listen.value.clone()),
    }
}

fn is_remote_allowed(written: &Written) -> bool {
    written.allow_remote.as_ref().is_some_and(|setting| setting.value)
}

fn set_cache_modes(written: &Written, mode: CacheMode, listeners: &mut [Listener]) -> Result<(), ConfigError> {
    let Some(setting) = &written.cache_listeners else { return Ok(()) };
    for (address, wanted) in &setting.value {
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
