//! What is kept of answers: settings held against each other.

use super::parameter;
use super::{
    Cache, CacheMode, ConfigError, ForeignWrites, Invalidation, Selects, Setting, SqlCache, Storage, Store, Written,
};
use selkie_runtime::ListenAddress;
use std::time::Duration;

/// Parts of a cache, each with a lock and a share of the memory of its own.
pub fn shards(threads: usize, per_worker: bool) -> usize {
    // Where all workers go to all parts, more parts let fewer of them meet.
    if per_worker { threads } else { 2 * threads }
}

/// How old the knowledge of what an SQL client may do gets, unless it is set.
const RIGHTS_AGE_MS: u64 = 1000;

/// Less does not hold an answer of some documents.
const SHARD_BYTES_MIN: usize = 16 << 10;

pub fn resolve(
    written: &Written,
    store: &Store,
    listen: &[ListenAddress],
    sql_listen: &[ListenAddress],
    threads: usize,
) -> Result<Cache, ConfigError> {
    let mode = written.cache.as_ref().map_or(CacheMode::Off, |setting| setting.value);
    if let (Some(setting), Store::Embedded(_)) = (&written.cache, store)
        && mode.keeps_rows()
    {
        return Err(setting.refuse(
            "result sets are MariaDB's, and documents lie in the embedded store; write documents, or name a MariaDB server",
        ));
    }
    let foreign_writes = written.foreign_writes.as_ref().map_or(ForeignWrites::Follow, |setting| setting.value);
    check_ages(written)?;
    check_memory(written, mode, threads)?;
    check_stale(written, store, foreign_writes)?;
    check_sql(written, mode)?;
    let storage = storage(written, store, mode, foreign_writes)?;
    Ok(Cache {
        storage,
        invalidation: written.cache_invalidation.as_ref().map_or(Invalidation::Precise, |setting| setting.value),
        mode,
        bytes: written.cache_bytes.as_ref().map_or(parameter::DEFAULT_CACHE_BYTES, |setting| setting.value),
        foreign_writes,
        soft_ttl_ms: written.cache_soft_ttl_ms.as_ref().map(|setting| setting.value),
        hard_ttl_ms: written.cache_hard_ttl_ms.as_ref().map(|setting| setting.value),
        only: list(&written.cache_only),
        except: list(&written.cache_except),
        commands: list(&written.cache_commands),
        listeners: listeners(written, mode, listen, sql_listen)?,
        per_worker: is_per_worker(written),
        stale_ms: written.cache_stale_ms.as_ref().map(|setting| setting.value),
        sql: SqlCache {
            selects: written.cache_selects.as_ref().map_or(Selects::Verify, |setting| setting.value),
            rights_age_max: Duration::from_millis(
                written.cache_rights_age_ms.as_ref().map_or(RIGHTS_AGE_MS, |setting| setting.value as u64),
            ),
            only_users: list(&written.cache_only_users),
            except_users: list(&written.cache_except_users),
            only_statements: list(&written.cache_only_statements),
            except_statements: list(&written.cache_except_statements),
        },
    })
}

/// What clients use by listener.
fn listeners(
    written: &Written,
    mode: CacheMode,
    listen: &[ListenAddress],
    sql_listen: &[ListenAddress],
) -> Result<Vec<CacheMode>, ConfigError> {
    let mut modes = vec![mode; listen.len() + sql_listen.len()];
    let Some(setting) = &written.cache_listeners else { return Ok(modes) };
    for (address, wanted) in &setting.value {
        let found = listen.iter().chain(sql_listen).zip(&mut modes).filter(|(other, _)| *other == address);
        let mut is_known = false;
        for (_, place) in found {
            (*place, is_known) = (*wanted, true);
        }
        if !is_known {
            return Err(setting.refuse(format!("{address} is none of the addresses in listen and sql-listen")));
        }
        if !mode.includes(*wanted) {
            return Err(setting.refuse(format!(
                "the clients of {address} cannot use {}, which mode = \"{}\" does not keep",
                wanted.name(),
                mode.name()
            )));
        }
        if sql_listen.contains(address) && *wanted == CacheMode::Documents {
            return Err(
                setting.refuse(format!("{address} is for SQL clients, who get no documents; write off or results"))
            );
        }
    }
    Ok(modes)
}

fn storage(
    written: &Written,
    store: &Store,
    mode: CacheMode,
    foreign_writes: ForeignWrites,
) -> Result<Option<Storage>, ConfigError> {
    let Some(storage) = &written.cache_storage else {
        let ca = written.cache_storage_ca.as_ref().map(|setting| ("storage-ca", setting.refuse("")));
        let timeout =
            written.cache_storage_timeout_ms.as_ref().map(|setting| ("storage-timeout-ms", setting.refuse("")));
        return match ca.or(timeout) {
            Some((name, error)) => {
                Err(ConfigError { message: format!("{name} has a meaning only with storage"), ..error })
            }
            None => Ok(None),
        };
    };
    if !mode.keeps_replies() {
        return Err(storage.refuse(
            "replies to MongoDB clients are what is shared, and they are kept with documents or both as the mode",
        ));
    }
    if !matches!(store, Store::MariaDb(_)) {
        return Err(storage.refuse(
            "replies are shared by gateways to one MariaDB server, and an embedded store has one process; leave storage out",
        ));
    }
    if foreign_writes != ForeignWrites::Follow {
        return Err(storage.refuse(
            "whether a shared reply is right is known by MariaDB's log, which takes foreign-writes = \"follow\"",
        ));
    }
    let (mut address, wants_tls) =
        shared_cache::Address::parse(&storage.value).map_err(|message| storage.refuse(message))?;
    address.tls = match (wants_tls, &written.cache_storage_ca) {
        (true, Some(ca)) => Some(shared_cache::Tls::trusting(&ca.value).map_err(|why| ca.refuse(why))?),
        (true, None) => {
            return Err(storage.refuse(
                "with rediss://, storage-ca has to name a file with the certificate that Redis's is signed with",
            ));
        }
        (false, Some(ca)) => return Err(ca.refuse("storage-ca is for TLS, which storage says by rediss://")),
        (false, None) => None,
    };
    let timeout =
        written.cache_storage_timeout_ms.as_ref().map_or(parameter::DEFAULT_STORAGE_TIMEOUT_MS, |it| it.value);
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
            "soft-ttl-ms is {}, and hard-ttl-ms {}: an answer would be gone before it is made anew; the soft one has to be smaller",
            soft.value, hard.value
        ))),
        _ => Ok(()),
    }
}

/// Memory that is shared out so that no part holds an answer would keep nothing.
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
            "with {threads} threads, {} bytes are shared out to {parts} parts of {share} bytes each, which hold no answer; \
             at least {} are needed",
            bytes.value,
            parts * SHARD_BYTES_MIN
        ))),
        _ => Ok(()),
    }
}

fn check_stale(written: &Written, store: &Store, foreign_writes: ForeignWrites) -> Result<(), ConfigError> {
    let Some(stale) = &written.cache_stale_ms else { return Ok(()) };
    match (store, foreign_writes) {
        (Store::Embedded(_) | Store::EmbeddedMariaDb(_), _) => Err(stale.refuse(
            "stale-ms says what to do while a MariaDB server's log is not to be had, and documents lie in an embedded store; leave it out",
        )),
        (_, ForeignWrites::Strict) => Err(stale.refuse(
            "stale-ms allows answers that others' writes have overtaken, and foreign-writes = \"strict\" forbids them; leave one of them out",
        )),
        (_, ForeignWrites::None) => Err(stale.refuse(
            "stale-ms says what to do while MariaDB's log is not to be had, and with foreign-writes = \"none\" it is not read; \
             leave it out",
        )),
        (_, ForeignWrites::Follow) => Ok(()),
    }
}

/// Rules about SQL clients want some.
fn check_sql(written: &Written, mode: CacheMode) -> Result<(), ConfigError> {
    let keeps = matches!(mode, CacheMode::Results | CacheMode::Both);
    let selects = written.cache_selects.as_ref().map(|setting| ("selects", setting.refuse("")));
    let rights = written.cache_rights_age_ms.as_ref().map(|setting| ("rights-age-ms", setting.refuse("")));
    let lists = [
        ("only-users", &written.cache_only_users),
        ("except-users", &written.cache_except_users),
        ("only-statements", &written.cache_only_statements),
        ("except-statements", &written.cache_except_statements),
    ];
    let lists = lists.into_iter().filter_map(|(name, list)| Some((name, list.as_ref()?.refuse(""))));
    match selects.into_iter().chain(rights).chain(lists).next() {
        Some((name, error)) if !keeps || written.sql_listen.is_none() => Err(ConfigError {
            message: format!(
                "{name} is about answers to SQL clients, and none are kept; that takes sql-listen, and results or both as the cache's mode"
            ),
            ..error
        }),
        _ => Ok(()),
    }
}
