//! The cache's configuration.

use super::choices::{CacheMode, ExternalWrites, Invalidation, Selects};
use super::defaults;
use super::setting::{ConfigError, Origin, Setting};
use super::store::Store;
use super::written::Written;
use std::time::Duration;

/// The cache's mode, size, expiry and filters.
#[derive(Clone, Debug)]
pub struct Cache {
    pub mode: CacheMode,
    pub bytes: usize,
    pub external_writes: ExternalWrites,
    pub soft_ttl_ms: Option<i64>,
    pub hard_ttl_ms: Option<i64>,
    pub only: Vec<String>,
    pub except: Vec<String>,
    pub commands: Vec<String>,
    pub stale_ms: Option<i64>,
    /// Each worker has a cache of its own.
    pub per_worker: bool,
    pub invalidation: Invalidation,
    pub sql: SqlCache,
    pub storage: Option<Storage>,
}

/// The Redis server by which gateways share replies.
#[derive(Clone, Debug)]
pub struct Storage {
    pub address: shared_cache::Address,
    pub timeout: Duration,
    /// The origin of the setting.
    pub origin: Origin,
}

/// The rules for caching results of SQL clients.
#[derive(Clone, Debug)]
pub struct SqlCache {
    pub selects: Selects,
    /// A client's privileges are queried again when they are older.
    pub privileges_age_max: Duration,
    pub only_users: Vec<String>,
    pub except_users: Vec<String>,
    pub only_statements: Vec<String>,
    pub except_statements: Vec<String>,
}

/// Returns the number of a cache's shards, each with a lock and a share of the memory of its own.
pub fn shards(threads: usize, per_worker: bool) -> usize {
    // If all workers use all shards, more shards mean less contention.
    if per_worker { threads } else { 2 * threads }
}

/// The default of `privileges-age-ms`.
const PRIVILEGES_AGE_MS: u64 = 1000;

/// A smaller shard could not hold a reply of some documents.
const SHARD_BYTES_MIN: usize = 16 << 10;

impl Cache {
    pub fn resolve(written: &Written, store: &Store, threads: usize) -> Result<Cache, ConfigError> {
        let mode = written.cache.as_ref().map_or(CacheMode::Off, |setting| setting.value);
        if let (Some(setting), Store::Embedded(_)) = (&written.cache, store)
            && mode.caches_results()
        {
            return Err(setting.refuse(
            "result sets come from MariaDB, and documents are stored in the embedded store; write documents, or name a MariaDB server",
        ));
        }
        let external_writes = written.external_writes.as_ref().map_or(ExternalWrites::Follow, |setting| setting.value);
        if let (Some(setting), Store::Service(_)) = (&written.external_writes, store)
            && external_writes != ExternalWrites::Follow
        {
            return Err(setting.refuse(
                "with a service, the caches have to follow the log of its primary; write follow, or leave external-writes out",
            ));
        }
        check_ages(written)?;
        check_memory(written, mode, threads)?;
        check_stale(written, store, external_writes)?;
        check_sql(written, mode)?;
        let storage = storage(written, store, mode, external_writes)?;
        Ok(Cache {
            storage,
            invalidation: written.cache_invalidation.as_ref().map_or(Invalidation::Precise, |setting| setting.value),
            mode,
            bytes: written.cache_bytes.as_ref().map_or(defaults::CACHE_BYTES, |setting| setting.value),
            external_writes,
            soft_ttl_ms: written.cache_soft_ttl_ms.as_ref().map(|setting| setting.value),
            hard_ttl_ms: written.cache_hard_ttl_ms.as_ref().map(|setting| setting.value),
            only: list(&written.cache_only),
            except: list(&written.cache_except),
            commands: list(&written.cache_commands),
            per_worker: is_per_worker(written),
            stale_ms: written.cache_stale_ms.as_ref().map(|setting| setting.value),
            sql: SqlCache {
                selects: written.cache_selects.as_ref().map_or(Selects::Verify, |setting| setting.value),
                privileges_age_max: Duration::from_millis(
                    written.cache_privileges_age_ms.as_ref().map_or(PRIVILEGES_AGE_MS, |setting| setting.value as u64),
                ),
                only_users: list(&written.cache_only_users),
                except_users: list(&written.cache_except_users),
                only_statements: list(&written.cache_only_statements),
                except_statements: list(&written.cache_except_statements),
            },
        })
    }
}

fn storage(
    written: &Written,
    store: &Store,
    mode: CacheMode,
    external_writes: ExternalWrites,
) -> Result<Option<Storage>, ConfigError> {
    let Some(storage) = &written.cache_storage else {
        let ca = written.cache_storage_ca.as_ref().map(|setting| ("storage-ca", setting.refuse("")));
        let timeout =
            written.cache_storage_timeout_ms.as_ref().map(|setting| ("storage-timeout-ms", setting.refuse("")));
        return match ca.or(timeout) {
            Some((name, error)) => {
                Err(ConfigError { message: format!("{name} has an effect only with storage"), ..error })
            }
            None => Ok(None),
        };
    };
    if !mode.caches_replies() {
        return Err(storage.refuse(
            "only replies to MongoDB clients are shared, and they are cached with documents or both as the mode",
        ));
    }
    if !store.is_in_servers() {
        return Err(storage.refuse(
            "replies are shared by gateways to one MariaDB server, and an embedded store has one process; leave storage out",
        ));
    }
    if external_writes != ExternalWrites::Follow {
        return Err(storage.refuse(
            "MariaDB's log shows whether a shared reply is right, which requires external-writes = \"follow\"",
        ));
    }
    let (mut address, wants_tls) =
        shared_cache::Address::parse(&storage.value).map_err(|message| storage.refuse(message))?;
    address.tls = match (wants_tls, &written.cache_storage_ca) {
        (true, Some(ca)) => Some(shared_cache::Tls::trusting(&ca.value).map_err(|why| ca.refuse(why))?),
        (true, None) => {
            return Err(storage
                .refuse("with rediss://, storage-ca has to name a file with the certificate that signed Redis's"));
        }
        (false, Some(ca)) => return Err(ca.refuse("storage-ca is for TLS, which takes rediss:// in storage")),
        (false, None) => None,
    };
    let timeout = written.cache_storage_timeout_ms.as_ref().map_or(defaults::STORAGE_TIMEOUT_MS, |it| it.value);
    Ok(Some(Storage { address, timeout: Duration::from_millis(timeout as u64), origin: storage.origin.clone() }))
}

fn is_per_worker(written: &Written) -> bool {
    written.cache_per_worker.as_ref().is_some_and(|setting| setting.value)
}

fn list(setting: &Option<Setting<Vec<String>>>) -> Vec<String> {
    setting.as_ref().map_or_else(Vec::new, |setting| setting.value.clone())
}

fn check_ages(written: &Written) -> Result<(), ConfigError> {
    match (&written.cache_soft_ttl_ms, &written.cache_hard_ttl_ms) {
        (Some(soft), Some(hard)) if soft.value >= hard.value => Err(soft.refuse(format!(
            "soft-ttl-ms is {}, and hard-ttl-ms {}: a reply would expire before it is recomputed; the soft one must be smaller",
            soft.value, hard.value
        ))),
        _ => Ok(()),
    }
}

/// Checks that each shard of the memory can hold a reply.
fn check_memory(written: &Written, mode: CacheMode, threads: usize) -> Result<(), ConfigError> {
    let Some(bytes) = &written.cache_bytes else { return Ok(()) };
    let kinds = match (mode, &written.sql_listen) {
        (CacheMode::Off | CacheMode::Documents, _) | (CacheMode::Results, None) => 1,
        (CacheMode::Results, Some(_)) | (CacheMode::Both, None) => 2,
        (CacheMode::Both, Some(_)) => 4,
    };
    let parts = kinds * shards(threads, is_per_worker(written));
    match bytes.value / parts {
        share if share < SHARD_BYTES_MIN && mode != CacheMode::Off => Err(bytes.refuse(format!(
            "with {threads} threads, {} bytes are divided into {parts} shards of {share} bytes each, which cannot hold a reply; \
             at least {} are needed",
            bytes.value,
            parts * SHARD_BYTES_MIN
        ))),
        _ => Ok(()),
    }
}

fn check_stale(written: &Written, store: &Store, external_writes: ExternalWrites) -> Result<(), ConfigError> {
    let Some(stale) = &written.cache_stale_ms else { return Ok(()) };
    match (store, external_writes) {
        (Store::Embedded(_) | Store::EmbeddedMariaDb(_), _) => Err(stale.refuse(
            "stale-ms applies while a MariaDB server's log cannot be followed, and documents are stored in an embedded store; leave it out",
        )),
        (_, ExternalWrites::Strict) => Err(stale.refuse(
            "stale-ms allows stale replies, and external-writes = \"strict\" forbids them; leave one of them out",
        )),
        (_, ExternalWrites::None) => Err(stale.refuse(
            "stale-ms applies while MariaDB's log cannot be followed, and with external-writes = \"none\" it is not read; leave it out",
        )),
        (_, ExternalWrites::Follow) => Ok(()),
    }
}

/// Checks that settings about SQL clients have an effect.
fn check_sql(written: &Written, mode: CacheMode) -> Result<(), ConfigError> {
    let caches = matches!(mode, CacheMode::Results | CacheMode::Both);
    let selects = written.cache_selects.as_ref().map(|setting| ("selects", setting.refuse("")));
    let privileges = written.cache_privileges_age_ms.as_ref().map(|setting| ("privileges-age-ms", setting.refuse("")));
    let lists = [
        ("only-users", &written.cache_only_users),
        ("except-users", &written.cache_except_users),
        ("only-statements", &written.cache_only_statements),
        ("except-statements", &written.cache_except_statements),
    ];
    let lists = lists.into_iter().filter_map(|(name, list)| Some((name, list.as_ref()?.refuse(""))));
    match selects.into_iter().chain(privileges).chain(lists).next() {
        Some((name, error)) if !caches || written.sql_listen.is_none() => Err(ConfigError {
            message: format!(
                "{name} applies to results of SQL clients, and none are cached; that takes sql-listen, and results or both as the cache's mode"
            ),
            ..error
        }),
        _ => Ok(()),
    }
}
