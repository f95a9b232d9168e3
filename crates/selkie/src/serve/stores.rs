//! Opening the configured store.

use super::caches::Caches;
use super::read_servers::ServiceReaders;
use super::sentence::sentence;
use super::server_settings::store_service;
use crate::config::{BackendIdentity, ChangeLog, Config, Protocol, Store};
use anyhow::Context;
use mariadb_client::{PoolOptions, PrimarySource};
use server::Server;
use service::Registry;
use std::path::Path;
use std::sync::Arc;
use store::Engine;
use store_mariadb::{MariaDbEngine, ShardNames};

/// Returns the primary of the service that stores the documents, if one does.
pub fn primary(config: &Config, servers: &Registry) -> anyhow::Result<Option<PrimarySource>> {
    let (Store::Service(store), Some(service)) = (&config.store, store_service(config, servers)) else {
        return Ok(None);
    };
    service.follow_primary(store.account.clone()).map(Some).context("cannot start a thread")
}

/// Announces to clients of a replica set that there is a primary, or none.
pub fn announce_primary(primary: PrimarySource, server: Arc<Server>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let announce = async move {
        let mut present = primary.server;
        while present.changed().await.is_ok() {
            server.announce_topology_change();
        }
    };
    let thread = std::thread::Builder::new().name("hello".into());
    thread.spawn(move || runtime.block_on(announce)).context("cannot start a thread")?;
    Ok(())
}

/// Opens the store. `primary`: that of the service that stores the documents. `empty`: a directory
/// for a store that nothing is written to, as there are no MongoDB clients.
pub fn open(
    config: &Config,
    (caches, servers): (&Caches, &Registry),
    primary: Option<&PrimarySource>,
    empty: &Path,
) -> anyhow::Result<Arc<dyn Engine>> {
    let engine = match &config.store {
        _ if !config.stores_documents() => store_sqlite::open(empty, store_sqlite::Options::default()),
        Store::Embedded(path) => {
            let accept_lost_writes = config.accept_lost_writes;
            let oplog = match config.oplog {
                ChangeLog::Embedded(options) => Some(options),
                ChangeLog::None | ChangeLog::BinaryLog(_) => None,
            };
            store_sqlite::open(path, store_sqlite::Options { accept_lost_writes, oplog, ..Default::default() })
        }
        Store::MariaDb(url) => MariaDbEngine::connect(url, mariadb_options(config, caches)),
        Store::Service(store) => {
            let missing = "the service that stores the documents does not exist";
            let (primary, service) = primary.zip(store_service(config, servers)).context(missing)?;
            let mut options = mariadb_options(config, caches);
            options.pool.last_writes = Some(Arc::default());
            options.read_servers = Some(Arc::new(ServiceReaders { service, account: store.account.clone() }));
            MariaDbEngine::follow(primary.clone(), options)
        }
        #[cfg(feature = "embedded-mariadb")]
        Store::EmbeddedMariaDb(path) => {
            let results = caches.results.clone();
            MariaDbEngine::embedded(path, store_mariadb::Options { results, ..Default::default() })
        }
        #[cfg(not(feature = "embedded-mariadb"))]
        Store::EmbeddedMariaDb(_) => return Err(anyhow::Error::msg("this Selkie has no MariaDB built in")),
    };
    engine.map_err(sentence)
}

/// Returns how documents are stored in MariaDB servers.
fn mariadb_options(config: &Config, caches: &Caches) -> store_mariadb::Options {
    // A trigger on a collection's table may write to tables that SQL clients read, which only the
    // log shows. So with SQL clients the log's own writes are not skipped.
    let own_writes = caches.own_writes.clone().filter(|_| caches.sql.is_none());
    let keeps_accounts = config.backend_identity == BackendIdentity::User;
    store_mariadb::Options {
        pool: PoolOptions {
            connections_max: config.mariadb.connections,
            lease_timeout: config.mariadb.wait,
            own_writes,
            ..Default::default()
        },
        gateway: Some(config.mariadb.gateway_name.clone().unwrap_or_else(|| default_gateway_name(config))),
        // The rows of one user's statement are not another's.
        results: caches.results.clone().filter(|_| !keeps_accounts),
        read_servers: None,
        transactions_max: Some(config.mariadb.transactions),
        has_sql_clients: config.has_sql_clients(),
        feed: match config.oplog {
            ChangeLog::BinaryLog(start) => Some(start),
            ChangeLog::None | ChangeLog::Embedded(_) => None,
        },
        keeps_accounts,
        shards: config
            .mariadb
            .shards
            .as_ref()
            .map(|shards| ShardNames { names: shards.value.clone(), written_at: shards.origin.to_string() }),
    }
}

/// Returns a name that no other gateway has, and that stays the same after a restart: no other
/// process listens on these addresses of the host.
fn default_gateway_name(config: &Config) -> String {
    let host = rustix::system::uname();
    let addresses = config.addresses(Protocol::MongoDb).map(|address| format!(" {address}")).collect::<String>();
    format!("{}{addresses}", host.nodename().to_string_lossy())
}
