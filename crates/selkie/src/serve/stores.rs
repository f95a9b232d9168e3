//! Opening the configured store.

use super::caches::Caches;
use super::sentence::sentence;
use crate::config::{BackendIdentity, Config, Protocol, Store};
use mariadb_client::PoolOptions;
use std::path::Path;
use std::sync::Arc;
use store::Engine;
use store_mariadb::MariaDbEngine;

/// Opens the store. `empty`: a directory for a store that nothing is written to, as there are no
/// MongoDB clients.
pub fn open(config: &Config, caches: &Caches, empty: &Path) -> anyhow::Result<Arc<dyn Engine>> {
    let engine = match &config.store {
        _ if !config.stores_documents() => store_sqlite::open(empty, store_sqlite::Options::default()),
        Store::Embedded(path) => {
            let accept_lost_writes = config.accept_lost_writes;
            store_sqlite::open(path, store_sqlite::Options { accept_lost_writes, ..Default::default() })
        }
        Store::MariaDb(url) => {
            // A trigger on a collection's table may write to tables that SQL clients read, which
            // only the log shows. So with SQL clients the log's own writes are not skipped.
            let own_writes = caches.own_writes.clone().filter(|_| caches.sql.is_none());
            let keeps_accounts = config.backend_identity == BackendIdentity::User;
            // The rows of one user's statement are not another's.
            let results = caches.results.clone().filter(|_| !keeps_accounts);
            let has_sql_clients = config.has_sql_clients();
            let options = store_mariadb::Options {
                pool: PoolOptions {
                    connections_max: config.mariadb.connections,
                    lease_timeout: config.mariadb.wait,
                    own_writes,
                    ..Default::default()
                },
                gateway: Some(config.mariadb.gateway_name.clone().unwrap_or_else(|| default_gateway_name(config))),
                results,
                has_sql_clients,
                keeps_accounts,
            };
            MariaDbEngine::connect(url, options)
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

/// Returns a name that no other gateway has, and that stays the same after a restart: no other
/// process listens on these addresses of the host.
fn default_gateway_name(config: &Config) -> String {
    let host = rustix::system::uname();
    let addresses = config.addresses(Protocol::MongoDb).map(|address| format!(" {address}")).collect::<String>();
    format!("{}{addresses}", host.nodename().to_string_lossy())
}
