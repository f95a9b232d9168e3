//! The result caches of services. Each follows the log of its service's primary.

use super::caches::Caches;
use super::definitions::MariaDbDefinitions;
use super::sentence::sentence;
use crate::config::{self, Config};
use anyhow::Context;
use cache::{Cache, CacheObserver, CacheSettings};
use server::document_cache::CacheStatistics;
use service::{Registry, Service};
use sql_session::{CachedResult, DefinitionCache, DefinitionObserver};
use std::sync::Arc;
use store::ChangeObserver;
use store::change_observer::ChangeObservers;
use store_mariadb::{ExternalWrites, ReportFollowing, TableDefinitions};

/// The cache of a service.
pub struct ServiceCache {
    service: Arc<Service>,
    pub results: Arc<Cache<CachedResult>>,
    pub definitions: Arc<DefinitionCache>,
    /// Follows the log while it lives.
    _external_writes: ExternalWrites,
}

impl ServiceCache {
    /// Starts the cache of a service, of so many bytes. Nothing is cached until the log of the
    /// primary is followed.
    fn start(config: &Config, service: Arc<Service>, bytes: usize) -> anyhow::Result<ServiceCache> {
        let state = service.state();
        let account = state.settings.account.clone().context("a service with a cache has no monitor")?;
        let primary = service.follow_primary(account).context("cannot start a thread")?;
        let results = Cache::new(settings(config, bytes));
        let definitions = TableDefinitions::follow_primary(primary.clone()).map_err(sentence)?;
        let definitions = DefinitionCache::new(Box::new(MariaDbDefinitions(definitions)));
        results.set_follower_lost(true);
        let (name, followed) = (service.name(), results.clone());
        let report: ReportFollowing = Box::new(move |outcome| {
            match outcome {
                Ok(()) => tracing::info!(service = name, "following the primary's log: the cache is on"),
                Err(why) => {
                    tracing::warn!(service = name, "cannot follow the primary's log, so the cache is off: {why}")
                }
            }
            followed.set_follower_lost(outcome.is_err());
        });
        let of_definitions = Arc::new(DefinitionObserver(definitions.clone())) as Arc<dyn ChangeObserver>;
        let of_results = Arc::new(CacheObserver(results.clone())) as Arc<dyn ChangeObserver>;
        let observer = Arc::new(ChangeObservers(vec![of_definitions, of_results]));
        let external_writes =
            ExternalWrites::follow_primary(primary, observer, Arc::default(), report).map_err(sentence)?;
        Ok(ServiceCache { service, results, definitions, _external_writes: external_writes })
    }

    /// Returns the observer of the writes of the service's sessions.
    pub fn observer(&self) -> Arc<dyn ChangeObserver> {
        Arc::new(CacheObserver(self.results.clone()))
    }
}

/// Starts the caches of the services that have some.
pub fn start(config: &Config, servers: &Registry) -> anyhow::Result<Arc<[ServiceCache]>> {
    let started = config.service_caches.iter().map(|(name, bytes)| {
        let service = servers.service(name).with_context(|| format!("there is no service {name}"))?;
        ServiceCache::start(config, service, *bytes)
    });
    started.collect()
}

/// Returns the statistics of all caches for SQL clients; `None` if there are none.
pub fn statistics(caches: &Caches, of_services: &Arc<[ServiceCache]>) -> Option<CacheStatistics> {
    let all: Vec<_> = caches.sql.iter().chain(of_services.iter().map(|of| &of.results)).cloned().collect();
    let sum = move || {
        let mut sum = cache::Statistics::default();
        all.iter().for_each(|cache| sum.add(&cache.statistics()));
        sum
    };
    (caches.sql.is_some() || !of_services.is_empty()).then(|| Box::new(sum) as CacheStatistics)
}

/// Returns the cache of a service. One that was removed and configured again has none until a
/// restart.
pub fn of<'c>(caches: &'c [ServiceCache], service: &Arc<Service>) -> Option<&'c ServiceCache> {
    caches.iter().find(|cache| Arc::ptr_eq(&cache.service, service))
}

fn settings(config: &Config, bytes: usize) -> CacheSettings {
    let cache = &config.cache;
    CacheSettings {
        bytes,
        shards: config::cache::shards(config.threads, cache.per_worker),
        per_thread: cache.per_worker,
        soft_ttl_ms: cache.soft_ttl_ms,
        hard_ttl_ms: cache.hard_ttl_ms,
        stale_ms: None,
        invalidate_by_collection: false,
        ignore_concurrent_writes: false,
    }
}
