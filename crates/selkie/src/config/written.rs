//! The configuration as written, before defaults are applied.

use super::audit;
use super::choices::{CacheMode, ExternalWrites, Invalidation, Selects, TopologyKind};
use super::setting::Setting;
use super::store_service::WrittenStoreService;
use super::{filters, limits, security, servers, services, tls};
use mongo_wire::Compressor;
use selkie_runtime::ListenAddress;
use std::path::PathBuf;

/// Settings of one source; `None`: not set there.
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
    pub oplog: Option<Setting<bool>>,
    pub oplog_mb: Option<Setting<u64>>,
    pub oplog_hours: Option<Setting<u64>>,
    pub mariadb: Option<Setting<String>>,
    pub mariadb_connections: Option<Setting<usize>>,
    pub mariadb_transactions: Option<Setting<usize>>,
    pub mariadb_wait_seconds: Option<Setting<u64>>,
    pub shards: Option<Setting<Vec<String>>>,
    pub gateway_name: Option<Setting<String>>,
    pub embedded_mariadb: Option<Setting<PathBuf>>,
    pub store_service: WrittenStoreService,
    pub sql_listen: Option<Setting<Vec<ListenAddress>>>,
    pub topology: Option<Setting<TopologyKind>>,
    pub replica_set: Option<Setting<String>>,
    pub advertise: Option<Setting<String>>,
    pub compressors: Option<Setting<Vec<Compressor>>>,
    pub cursor_timeout_seconds: Option<Setting<u64>>,
    pub test_commands: Option<Setting<bool>>,
    pub slow_ms: Option<Setting<i64>>,
    pub slow_log: Option<Setting<bool>>,
    pub cache: Option<Setting<CacheMode>>,
    pub cache_bytes: Option<Setting<usize>>,
    pub external_writes: Option<Setting<ExternalWrites>>,
    pub cache_soft_ttl_ms: Option<Setting<i64>>,
    pub cache_hard_ttl_ms: Option<Setting<i64>>,
    pub cache_only: Option<Setting<Vec<String>>>,
    pub cache_except: Option<Setting<Vec<String>>>,
    pub cache_commands: Option<Setting<Vec<String>>>,
    pub cache_selects: Option<Setting<Selects>>,
    pub cache_privileges_age_ms: Option<Setting<i64>>,
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
    pub security: security::Written,
    pub tls: tls::Written,
    pub audit: audit::Written,
    pub servers: servers::Written,
    pub services: services::Written,
    pub filters: filters::Written,
}

impl Written {
    /// Merges two sources: these settings take precedence over `beneath`. A store replaces the
    /// other source's store: a flag `--mariadb` takes precedence over a file's `data`.
    pub fn over(self, mut beneath: Written) -> Written {
        let is_elsewhere = self.embedded_mariadb.is_some() || self.store_service.service.is_some();
        if self.data.is_some() || self.mariadb.is_some() || is_elsewhere {
            (beneath.data, beneath.mariadb, beneath.embedded_mariadb) = (None, None, None);
            beneath.store_service = WrittenStoreService::default();
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
            oplog: self.oplog.or(beneath.oplog),
            oplog_mb: self.oplog_mb.or(beneath.oplog_mb),
            oplog_hours: self.oplog_hours.or(beneath.oplog_hours),
            mariadb: self.mariadb.or(beneath.mariadb),
            mariadb_connections: self.mariadb_connections.or(beneath.mariadb_connections),
            mariadb_transactions: self.mariadb_transactions.or(beneath.mariadb_transactions),
            mariadb_wait_seconds: self.mariadb_wait_seconds.or(beneath.mariadb_wait_seconds),
            shards: self.shards.or(beneath.shards),
            gateway_name: self.gateway_name.or(beneath.gateway_name),
            embedded_mariadb: self.embedded_mariadb.or(beneath.embedded_mariadb),
            store_service: self.store_service.over(beneath.store_service),
            sql_listen: self.sql_listen.or(beneath.sql_listen),
            topology: self.topology.or(beneath.topology),
            replica_set: self.replica_set.or(beneath.replica_set),
            advertise: self.advertise.or(beneath.advertise),
            compressors: self.compressors.or(beneath.compressors),
            cursor_timeout_seconds: self.cursor_timeout_seconds.or(beneath.cursor_timeout_seconds),
            test_commands: self.test_commands.or(beneath.test_commands),
            slow_ms: self.slow_ms.or(beneath.slow_ms),
            slow_log: self.slow_log.or(beneath.slow_log),
            cache: self.cache.or(beneath.cache),
            cache_bytes: self.cache_bytes.or(beneath.cache_bytes),
            external_writes: self.external_writes.or(beneath.external_writes),
            cache_soft_ttl_ms: self.cache_soft_ttl_ms.or(beneath.cache_soft_ttl_ms),
            cache_hard_ttl_ms: self.cache_hard_ttl_ms.or(beneath.cache_hard_ttl_ms),
            cache_only: self.cache_only.or(beneath.cache_only),
            cache_except: self.cache_except.or(beneath.cache_except),
            cache_commands: self.cache_commands.or(beneath.cache_commands),
            cache_selects: self.cache_selects.or(beneath.cache_selects),
            cache_privileges_age_ms: self.cache_privileges_age_ms.or(beneath.cache_privileges_age_ms),
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
            security: self.security.over(beneath.security),
            tls: self.tls.over(beneath.tls),
            audit: self.audit.over(beneath.audit),
            servers: self.servers.over(beneath.servers),
            services: self.services.over(beneath.services),
            filters: self.filters.over(beneath.filters),
        }
    }
}
