//! The choice of the store.

use super::defaults;
use super::setting::{ConfigError, Setting, value};
use super::store_service::StoreService;
use super::written::Written;
use mariadb_client::ServerUrl;
use server::Topology;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug)]
pub enum Store {
    /// The embedded store, in this directory.
    Embedded(PathBuf),
    /// A MariaDB server, by its URL.
    MariaDb(String),
    /// MariaDB in this process, with its data in this directory.
    EmbeddedMariaDb(PathBuf),
    /// The primary of a service.
    Service(StoreService),
}

/// How a MariaDB server is used.
#[derive(Clone, Debug)]
pub struct MariaDb {
    /// The most connections of each worker.
    pub connections: usize,
    /// The most transactions that may be open.
    pub transactions: usize,
    /// How long an operation waits for a connection.
    pub wait: Duration,
    pub gateway_name: Option<String>,
    /// The servers over which collections are distributed, if they are, by their names in MariaDB.
    pub shards: Option<Setting<Vec<String>>>,
}

impl MariaDb {
    pub fn resolve(written: &Written) -> MariaDb {
        let wait_seconds = value(written.mariadb_wait_seconds.clone());
        MariaDb {
            connections: value(written.mariadb_connections.clone()).unwrap_or(defaults::MARIADB_CONNECTIONS),
            transactions: value(written.mariadb_transactions.clone()).unwrap_or(defaults::MARIADB_TRANSACTIONS),
            wait: Duration::from_secs(wait_seconds.unwrap_or(defaults::MARIADB_WAIT_SECONDS)),
            gateway_name: value(written.gateway_name.clone()),
            shards: written.shards.clone(),
        }
    }

    /// Fails if there are shards, and the server does not present itself as their router.
    pub fn check_shards(&self, topology: &Topology) -> Result<(), ConfigError> {
        match &self.shards {
            Some(shards) if *topology != Topology::Router => {
                Err(shards.refuse("only a router has shards; set topology = \"router\", or leave shards out"))
            }
            _ => Ok(()),
        }
    }
}

impl Store {
    /// Returns the URL of the MariaDB server, if it is one.
    pub fn url(&self) -> Option<&str> {
        match self {
            Store::MariaDb(url) => Some(url),
            Store::Embedded(_) | Store::EmbeddedMariaDb(_) | Store::Service(_) => None,
        }
    }

    /// Returns whether the documents are in MariaDB servers of their own.
    pub fn is_in_servers(&self) -> bool {
        matches!(self, Store::MariaDb(_) | Store::Service(_))
    }

    pub fn resolve(written: &Written) -> Result<Store, ConfigError> {
        let data = written.data.as_ref().map(|it| (&it.origin, Store::Embedded(it.value.clone())));
        if let Some(setting) = &written.mariadb {
            let checked = ServerUrl::parse(&setting.value).and_then(|url| url.tls.config());
            checked.map_err(|error| setting.refuse(error.message()))?;
        }
        let mariadb = written.mariadb.as_ref().map(|it| (&it.origin, Store::MariaDb(it.value.clone())));
        let embedded =
            written.embedded_mariadb.as_ref().map(|it| (&it.origin, Store::EmbeddedMariaDb(it.value.clone())));
        let service = written.store_service.resolve(&written.services.services)?;
        let service = service.zip(written.store_service.service.as_ref());
        let service = service.map(|(service, setting)| (&setting.origin, Store::Service(service)));
        let shards = written.shards.as_ref();
        shards.map_or(Ok(()), |shards| check_shards(shards, mariadb.is_some()))?;
        let mut named = [data, mariadb, embedded, service].into_iter().flatten();
        let Some((first, store)) = named.next() else {
            return Ok(Store::Embedded(PathBuf::from(defaults::DATA)));
        };
        if let Some((second, _)) = named.next() {
            let message = format!(
                "documents are stored either in MariaDB or in a data directory, but {first} names one too; leave one of them out"
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
}

/// Checks the names of shards.
fn check_shards(shards: &Setting<Vec<String>>, has_mariadb: bool) -> Result<(), ConfigError> {
    if !has_mariadb {
        return Err(shards.refuse("shards belong to the server of mariadb, which is not set"));
    }
    let repeated = (1..shards.value.len()).find(|&at| shards.value[..at].contains(&shards.value[at]));
    match repeated.and_then(|at| shards.value.get(at)) {
        Some(name) => Err(shards.refuse(format!("the server {name:?} is named twice"))),
        None => Ok(()),
    }
}
