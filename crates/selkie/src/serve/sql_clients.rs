//! The services of SQL clients.

use super::caches::Caches;
use super::definitions::MariaDbDefinitions;
use super::sentence::sentence;
use super::service_caches::{self, ServiceCache};
use crate::config::choices::Selects;
use crate::config::{Cache, CacheMode, Config, Listener, Store};
use selkie_runtime::Service;
use server::Server;
use server::tls::{TlsListeners, TlsMode};
use sql_classify::{Definition, SchemaObject};
use sql_session::{ClientTls, DefinitionCache, PrivilegeCache, SqlContext, SqlService, StoredHashes, Timeouts};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use store_mariadb::TableDefinitions;
use tokio::sync::Semaphore;

/// How long connecting to MariaDB may take for an SQL client.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The most SQL clients that have connected but not logged in, each of which takes one of MariaDB's
/// connections; and how long a login may take, as in MariaDB (`connect_timeout`).
const LOGINS_MAX: usize = 24;
const LOGIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Starts the cache of table definitions, by which the writes of SQL clients are understood.
/// Returns `None` without SQL clients.
pub fn definitions(config: &Config) -> anyhow::Result<Option<Arc<DefinitionCache>>> {
    let Store::MariaDb(url) = &config.store else { return Ok(None) };
    if !config.has_sql_clients() {
        return Ok(None);
    }
    let definitions = TableDefinitions::start(url).map_err(sentence)?;
    Ok(Some(DefinitionCache::new(Box::new(MariaDbDefinitions(definitions)))))
}

/// Creates the services of SQL clients, for listeners.
pub struct SqlClients<'c> {
    pub config: &'c Config,
    pub caches: &'c Caches,
    /// Those of the server that stores the documents, if it has SQL clients.
    pub definitions: Option<Arc<DefinitionCache>>,
    /// The caches of services.
    pub service_caches: &'c [ServiceCache],
    pub server: &'c Arc<Server>,
}

impl SqlClients<'_> {
    /// Returns the service of a listener's clients. They use the caches on the server that stores
    /// the documents, whose log shows the writes of others, or that of their service.
    pub fn service(&self, listener: &Listener) -> anyhow::Result<Arc<dyn Service>> {
        let SqlClients { config, caches, server, .. } = *self;
        let name = listener.service.as_deref().unwrap_or_default();
        let service = server.sql_servers.service(name);
        let service = service.ok_or_else(|| anyhow::anyhow!("there is no service for {}", listener.address))?;
        let is_cached = listener.is_of_store_server() && config.cache.mode != CacheMode::Off;
        let own = service_caches::of(self.service_caches, &service);
        let definitions = match own {
            Some(own) => Some(own.definitions.clone()),
            None => self.definitions.clone().filter(|_| listener.is_of_store_server()),
        };
        Ok(Arc::new(SqlService(Arc::new(SqlContext {
            service,
            tls: server.settings.tls.as_ref().map(client_tls),
            server: server.clone(),
            timeouts: Timeouts {
                connect: CONNECT_TIMEOUT,
                login: LOGIN_TIMEOUT,
                stalled: config.limits.stalled,
                idle: config.limits.idle,
            },
            logins: Arc::new(Semaphore::new(LOGINS_MAX)),
            cache: match own {
                Some(own) => Some(own.results.clone()),
                None => caches.sql.clone().filter(|_| is_cached),
            },
            caches_primary: own.is_some(),
            cache_filter: cache_filter(&config.cache),
            listeners: config.listeners.iter().map(|listener| listener.cache.caches_results()).collect(),
            observer: match own {
                Some(own) => Some(own.observer()),
                None => is_cached.then(|| caches.observer()),
            },
            definitions: definitions.unwrap_or_else(|| DefinitionCache::new(Box::new(NoDefinitions))),
            stored_hashes: StoredHashes::default(),
            privileges: PrivilegeCache::new(config.cache.sql.privileges_age_max),
        }))))
    }
}

/// The definitions of servers whose writes no cache observes.
struct NoDefinitions;

impl sql_session::DefinitionSource for NoDefinitions {
    fn look_up(&self, _object: SchemaObject) -> Pin<Box<dyn Future<Output = Option<Definition>> + Send>> {
        Box::pin(std::future::ready(None))
    }
}

fn client_tls(tls: &TlsListeners) -> ClientTls {
    ClientTls { server: tls.certificates.clone(), is_required: tls.mode == TlsMode::Require }
}

fn cache_filter(cache: &Cache) -> sql_session::CacheFilter {
    // Invalid patterns were refused with the configuration.
    let patterns = |list: &[String]| list.iter().filter_map(|text| sql_session::pattern(text).ok()).collect();
    sql_session::CacheFilter {
        assume_pure: cache.sql.selects == Selects::AssumeCacheable,
        collections: cache::CollectionRules { only: cache.only.clone(), except: cache.except.clone() },
        only_users: cache.sql.only_users.clone(),
        except_users: cache.sql.except_users.clone(),
        only_statements: patterns(&cache.sql.only_statements),
        except_statements: patterns(&cache.sql.except_statements),
    }
}
