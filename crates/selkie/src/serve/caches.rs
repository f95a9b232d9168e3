//! The caches: of replies to MongoDB clients, of result sets of MariaDB, and of results of SQL
//! clients.

use crate::config::choices::Invalidation;
use crate::config::{self, Cache, CacheMode, Config};
use mariadb_client::OwnWrites;
use server::document_cache::{self, CachePolicy, CacheRules, CacheStatistics, CachedReply, DocumentCache};
use shared_cache::Shared;
use std::sync::Arc;
use std::time::Duration;
use store::ChangeObserver;
use store::change_observer::ChangeObservers;
use store_mariadb::ResultSet;

pub struct Caches {
    replies: Option<Arc<cache::Cache<CachedReply>>>,
    pub results: Option<Arc<cache::Cache<ResultSet>>>,
    /// Results of SQL clients.
    pub sql: Option<Arc<cache::Cache<sql_session::CachedResult>>>,
    /// The writes of this process, to distinguish them from external writes in the log; `None` if
    /// nothing is cached.
    pub own_writes: Option<Arc<OwnWrites>>,
    /// Replies that are shared with other gateways.
    pub shared: Option<Arc<Shared>>,
}

/// How long Redis keeps a reply, if no TTL is set.
const SHARED_TTL: Duration = Duration::from_secs(600);

impl Caches {
    /// Creates the configured caches. Fails if the Redis server for shared replies cannot be
    /// reached.
    pub fn new(config: &Config) -> anyhow::Result<Caches> {
        let Cache { mode, bytes, soft_ttl_ms, hard_ttl_ms, stale_ms, invalidation, per_worker, .. } = config.cache;
        let settings = |bytes| cache::CacheSettings {
            bytes,
            shards: config::cache::shards(config.threads, per_worker),
            per_thread: per_worker,
            soft_ttl_ms,
            hard_ttl_ms,
            stale_ms,
            invalidate_by_collection: invalidation == Invalidation::Collection,
            ignore_concurrent_writes: false,
        };
        let (replies, results) = match mode {
            CacheMode::Off => (None, None),
            CacheMode::Results => (None, Some(bytes)),
            CacheMode::Documents => (Some(bytes), None),
            // A request that hits a cached reply does not read result sets.
            CacheMode::Both => (Some(bytes - bytes / 2), Some(bytes / 2)),
        };
        // SQL clients share the memory for result sets.
        let shares = if config.has_sql_clients() { 2 } else { 1 };
        let sql = results.filter(|_| shares > 1).map(|bytes| bytes / shares);
        let results = results.map(|bytes| bytes / shares);
        let shared = config.cache.storage.as_ref().map(|storage| {
            let ttl = hard_ttl_ms.map_or(SHARED_TTL, |ms| Duration::from_millis(ms as u64));
            let shared = Shared::new(storage.address.clone(), storage.timeout, ttl);
            let config::cache::Storage { origin, address, .. } = storage;
            let unreachable =
                |why| anyhow::anyhow!("{origin}: cannot use Redis at {}:{}: {why}", address.host, address.port);
            shared.check().map(|()| shared).map_err(unreachable)
        });
        Ok(Caches {
            shared: shared.transpose()?,
            replies: replies.map(|bytes| cache::Cache::new(settings(bytes))),
            results: results.map(|bytes| cache::Cache::new(settings(bytes))),
            sql: sql.map(|bytes| cache::Cache::new(settings(bytes))),
            own_writes: (mode != CacheMode::Off).then(Arc::default),
        })
    }

    /// Returns the observer that invalidates all caches.
    pub fn observer(&self) -> Arc<dyn ChangeObserver> {
        fn observer<A: Send + Sync + 'static>(cache: &Option<Arc<cache::Cache<A>>>) -> Option<Arc<dyn ChangeObserver>> {
            cache.clone().map(|cache| Arc::new(cache::CacheObserver(cache)) as Arc<dyn ChangeObserver>)
        }
        let shared = self
            .shared
            .as_ref()
            .map(|shared| Arc::new(shared_cache::SharedCacheObserver(shared.view.clone())) as Arc<dyn ChangeObserver>);
        let observers = [observer(&self.replies), observer(&self.results), observer(&self.sql), shared];
        Arc::new(ChangeObservers(observers.into_iter().flatten().collect()))
    }

    /// Returns the function that switches all caches off while external writes cannot be followed.
    pub fn follower_lost_setter(&self) -> impl Fn(bool) + Send + 'static {
        let (replies, results, sql) = (self.replies.clone(), self.results.clone(), self.sql.clone());
        let shared = self.shared.clone();
        move |lost| {
            replies.iter().for_each(|cache| cache.set_follower_lost(lost));
            results.iter().for_each(|cache| cache.set_follower_lost(lost));
            sql.iter().for_each(|cache| cache.set_follower_lost(lost));
            shared.iter().for_each(|shared| shared.view.set_follower_lost(lost));
        }
    }

    /// Returns the observer that invalidates all caches; `None` if nothing is cached.
    pub fn observer_if_any(&self) -> Option<Arc<dyn ChangeObserver>> {
        self.own_writes.as_ref().map(|_| self.observer())
    }

    /// Returns the caches for the commands. `sql`: the statistics of those for SQL clients.
    pub fn for_commands(&self, config: &Config, sql: Option<CacheStatistics>) -> document_cache::Caches {
        let Cache { only, except, commands, .. } = config.cache.clone();
        let policy = |mode: CacheMode| CachePolicy { replies: mode.caches_replies(), rows: mode.caches_results() };
        let collections = cache::CollectionRules { only, except };
        document_cache::Caches {
            listeners: config.listeners.iter().map(|listener| policy(listener.cache)).collect(),
            documents: self.replies.clone().map(|cache| DocumentCache {
                cache,
                rules: CacheRules { collections, commands },
                shared: self.shared.clone(),
            }),
            result_sets: self.results.clone().map(|cache| Box::new(move || cache.statistics()) as Box<_>),
            sql,
        }
    }
}
