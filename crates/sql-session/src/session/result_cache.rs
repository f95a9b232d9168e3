//! The result cache on a session's path: whether it may be used, the cache key, and how results are
//! computed.

use super::cached_select::CachedSelect;
use super::com;
use super::query_packet::query_packet;
use super::state::{KEY_OF_TEXT, Session};
use crate::context::CachedResult;
use crate::reply_tracker::{AUTOCOMMIT, IN_TRANSACTION, ReplyKind, ReplyTracker};
use crate::{in_flight_writes, privileges, result_rows, settings_numbers};
use cache::{Cache, CacheLookup, ComputePermit, Dependencies, NotCached};
use server::clock::steady_ms;
use sql_classify::{
    Charset, DiagnosticsKept, DiagnosticsUse, Effects, SessionSettings, TableName, session_settings, table_definition,
};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

/// The longest reply to a query of the gateway's own.
const OWN_REPLY_BYTES_MAX: usize = 1 << 20;

/// Schemas whose tables are not tables, or change without a report.
const UNCACHED_SCHEMAS: [&str; 5] = ["mysql", "information_schema", "performance_schema", "sys", "selkie"];

/// The bytes of a cache key without its statement, as a rule.
const KEY_BYTES: usize = 64;

/// While a client is answered from the cache, the server is pinged after this fraction of
/// wait_timeout.
pub const PING_FRACTION: u32 = 20;

impl Session {
    /// Returns the session's settings if the cache may be used for this statement now.
    pub async fn settings_for_caching(&mut self, sql: &[u8]) -> io::Result<Option<Rc<SessionSettings>>> {
        match self.may_use_cache(sql) && self.is_on_cached_server() {
            true => self.settings_if_cacheable(sql).await,
            false => Ok(None),
        }
    }

    /// Returns whether the state of the session allows that a statement uses the cache.
    pub fn may_use_cache(&self, sql: &[u8]) -> bool {
        let is_autocommit = self.status.is_some_and(|status| status & (AUTOCOMMIT | IN_TRANSACTION) == AUTOCOMMIT);
        let filter = &self.context.cache_filter;
        is_autocommit
            && !self.may_see_private_tables
            && !self.has_next_transaction_settings
            && self.in_flight.is_empty()
            && self.listener_uses_cache
            && self.client_uses_cache
            && filter.allow_statement(sql)
    }

    /// Returns whether the server must be asked before the cache can be used: for the settings or
    /// the privileges.
    pub fn asks_for_caching(&self) -> bool {
        let Some(settings) = &self.settings else { return true };
        self.privileges.is_due(&self.context.privileges) && self.context.privileges.recent(&settings.account).is_none()
    }

    /// Returns the session's settings if results may be cached with them, and with the account's
    /// privileges.
    pub async fn settings_if_cacheable(&mut self, sql: &[u8]) -> io::Result<Option<Rc<SessionSettings>>> {
        let settings = self.settings().await?;
        if let Some(settings) = &settings
            && self.privileges.is_due(&self.context.privileges)
        {
            self.refresh_privileges(settings.clone()).await?;
        }
        Ok(settings.filter(|settings| self.may_cache_with(settings, sql)))
    }

    /// Returns whether the results of the session's server may be cached.
    pub fn is_on_cached_server(&self) -> bool {
        let is_primary =
            |target: service::targets::Target| Arc::ptr_eq(&target.backend, self.lease.assignment.backend());
        !self.context.caches_primary || self.context.service.primary().is_some_and(is_primary)
    }

    /// Returns the beginning of a cache key: everything but the statement, for which it has room.
    pub fn cache_key(&self, kind: u8, settings: &SessionSettings, statement_bytes: usize) -> Vec<u8> {
        let mut key = Vec::with_capacity(KEY_BYTES + statement_bytes);
        key.push(kind);
        key.extend_from_slice(&self.login.capabilities);
        key.extend_from_slice(&settings.number.to_le_bytes());
        self.privileges.write_key(&mut key);
        key
    }

    /// Returns the cached result of a text, if it can be found without asking the server. The text
    /// need not be classified: only results of texts that may be cached are found.
    pub fn cached_text(&self, sql: &[u8]) -> Option<(Arc<CachedResult>, Rc<SessionSettings>)> {
        let cache = self.context.cache.as_ref()?;
        let settings = self.settings.as_ref()?;
        let is_usable = sql.get(..6).is_some_and(|word| word.eq_ignore_ascii_case(b"SELECT"))
            && self.may_use_cache(sql)
            && !self.privileges.is_due(&self.context.privileges)
            && self.may_cache_with(settings, sql);
        if !is_usable {
            return None;
        }
        let mut key = self.cache_key(KEY_OF_TEXT, settings, sql.len());
        key.extend_from_slice(sql);
        Some((cache.get(&key, steady_ms())?, settings.clone()))
    }

    /// Returns whether results may be cached with these settings and the account's privileges.
    fn may_cache_with(&self, settings: &SessionSettings, sql: &[u8]) -> bool {
        self.privileges.allows_caching()
            && settings.allows_caching
            && self.context.cache_filter.allow_user(&settings.user)
            && (settings.charset == Charset::Utf8 || sql.is_ascii())
    }

    /// Records the account's privileges: as another session of the account read them recently, or
    /// as the server lists them now.
    async fn refresh_privileges(&mut self, settings: Rc<SessionSettings>) -> io::Result<()> {
        if let Some(version) = self.context.privileges.recent(&settings.account) {
            self.privileges.record(&settings.account, version);
            return Ok(());
        }
        self.query_privileges(&settings).await
    }

    async fn query_privileges(&mut self, settings: &SessionSettings) -> io::Result<()> {
        let requested = Instant::now();
        self.server.send(&query_packet(privileges::PRIVILEGES_QUERY)).await?;
        self.read_privileges(settings, requested).await.map(drop)
    }

    /// Reads the reply to [`privileges::PRIVILEGES_QUERY`]. Returns whether they have not changed.
    pub async fn read_privileges(&mut self, settings: &SessionSettings, requested: Instant) -> io::Result<bool> {
        let packets = self.read_reply().await?;
        match packets.and_then(|packets| result_rows::rows(&packets, self.login.deprecates_eof)) {
            Some(rows) => {
                let version = self.context.privileges.record(&settings.account, rows, requested);
                Ok(self.privileges.record(&settings.account, version))
            }
            None => {
                self.privileges.forget_last();
                Ok(false)
            }
        }
    }

    /// Answers a SELECT from the cache, or forwards it and caches the result.
    pub async fn answer_through_cache(
        &mut self,
        cache: &Arc<Cache<CachedResult>>,
        key: &[u8],
        settings: &SessionSettings,
        tables: &[TableName],
        (packet, sql): (Vec<u8>, Option<Rc<[u8]>>),
    ) -> io::Result<()> {
        let mut alone = false;
        let permit = loop {
            match cache.look_up(key, steady_ms(), alone) {
                CacheLookup::Hit(result) => return self.send_cached(result, settings, packet, sql).await,
                CacheLookup::Wait(mut flight) => {
                    let _ = flight.changed().await;
                    alone = true;
                }
                CacheLookup::Compute(permit) => break Some(permit),
                CacheLookup::Bypass => break None,
            }
        };
        self.catch_up(DiagnosticsKept::Nothing, DiagnosticsUse::Nothing).await?;
        let dependencies = match &permit {
            Some(_) => self.dependencies(settings, tables).await?,
            None => None,
        };
        if dependencies.is_none() {
            let reading = Effects { reads: tables.to_vec(), ..Effects::default() };
            let effect = self.effect_of(&reading, DiagnosticsUse::Nothing).await?;
            self.begin_write(effect);
        }
        // The privileges are queried again right after the SELECT: they may have been granted and
        // revoked since they were read.
        let requested = Instant::now();
        let mut packets = packet;
        if dependencies.is_some() {
            packets.extend_from_slice(&query_packet(privileges::PRIVILEGES_QUERY));
        }
        self.server.send(&packets).await?;
        let mut reply = ReplyTracker::new(ReplyKind::Results, self.login.deprecates_eof);
        let limit = cache.settings().bytes / cache.settings().shards;
        let mut copy = dependencies.is_some().then(|| (Vec::new(), limit));
        self.relay(&mut reply, copy.as_mut()).await?;
        let is_allowed = dependencies.is_none() || self.read_privileges(settings, requested).await?;
        match permit {
            // It may have ceased to be the primary meanwhile.
            Some(permit) if is_allowed && self.is_on_cached_server() => store(permit, &reply, dependencies.zip(copy)),
            Some(permit) => permit.discard(NotCached::ConcurrentWrite),
            None => {}
        }
        self.record_status(&reply).await
    }

    /// Sends a cached result to the client.
    pub async fn send_cached(
        &mut self,
        result: Arc<CachedResult>,
        settings: &SessionSettings,
        packet: Vec<u8>,
        sql: Option<Rc<[u8]>>,
    ) -> io::Result<()> {
        // Without a ping, the server would close the session of an active client as idle.
        let is_idle = self.server_used.elapsed() >= settings.wait_timeout / PING_FRACTION;
        if is_idle {
            self.server.send(&[1, 0, 0, 0, com::PING]).await?;
        }
        self.client.send(&result.0).await?;
        self.last_cached_select = Some(CachedSelect { packet, sql, prepared: None, result });
        self.found_rows = None;
        if is_idle {
            self.read_reply().await?;
        }
        Ok(())
    }

    /// Returns what a result computed from these tables depends on; `None` if one of them is not a
    /// plain table.
    pub async fn dependencies(
        &mut self,
        settings: &SessionSettings,
        tables: &[TableName],
    ) -> io::Result<Option<Dependencies>> {
        let namespaces = in_flight_writes::namespaces(tables, Some(settings));
        let Some(namespaces) = namespaces.filter(|tables| self.context.cache_filter.allow_tables(tables)) else {
            return Ok(None);
        };
        for namespace in &namespaces {
            let is_uncached = UNCACHED_SCHEMAS.iter().any(|schema| namespace.database.eq_ignore_ascii_case(schema));
            if is_uncached || namespace.collection.is_empty() {
                return Ok(None);
            }
            let query = format!("SHOW CREATE TABLE `{}`.`{}`", namespace.database, namespace.collection);
            let reply = self.query_server(&query).await?;
            let row = reply.and_then(|packets| result_rows::first_row(&packets, self.login.deprecates_eof));
            if !row.is_some_and(|row| table_definition::is_plain_table(&row)) {
                return Ok(None);
            }
        }
        let mut namespaces = namespaces.into_iter();
        Ok(namespaces.next().map(|first| Dependencies::all_documents(first, namespaces.collect())))
    }

    /// Returns the session's settings, queried from the server if they are not known. `None`: the
    /// query failed.
    pub async fn settings(&mut self) -> io::Result<Option<Rc<SessionSettings>>> {
        if self.settings.is_none() {
            let reply = self.query_server(session_settings::SETTINGS_QUERY).await?;
            let deprecates_eof = self.login.deprecates_eof;
            let settings = reply.and_then(|packets| {
                let row = result_rows::first_row(&packets, deprecates_eof)?;
                let bytes = result_rows::rows(&packets, deprecates_eof)?;
                SessionSettings::from_row(&row, bytes, settings_numbers::number)
            });
            self.settings = settings.map(Rc::new);
            if self.listener_uses_cache
                && self.context.cache.is_some()
                && let Some(settings) = self.settings.clone()
            {
                self.query_privileges(&settings).await?;
            }
        }
        Ok(self.settings.clone())
    }

    /// Sends a query of the gateway's own. Returns the packets of the reply, or `None` for an
    /// error.
    pub async fn query_server(&mut self, query: &str) -> io::Result<Option<Vec<u8>>> {
        self.server.send(&query_packet(query)).await?;
        self.read_reply().await
    }

    /// Reads the reply to a query of the gateway's own. Returns its packets, or `None` for an error
    /// and for a reply that is too long.
    pub async fn read_reply(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut reply = ReplyTracker::new(ReplyKind::Results, self.login.deprecates_eof);
        let taken = self.server.read_reply(&mut reply, OWN_REPLY_BYTES_MAX).await?;
        self.server_used = Instant::now();
        // Of privileges that are known in part, the others could be revoked unnoticed.
        Ok(taken.filter(|_| !reply.failed))
    }
}

/// Stores a result in the cache, or records why not.
pub fn store(
    permit: ComputePermit<CachedResult>,
    reply: &ReplyTracker,
    copy: Option<(Dependencies, (Vec<u8>, usize))>,
) {
    match copy {
        None => permit.discard(NotCached::NotACollection),
        Some(_) if reply.failed => permit.discard(NotCached::Failed),
        Some((_, (_, 0))) => permit.discard(NotCached::TooLarge),
        Some(_) if !reply.is_cacheable() => permit.discard(NotCached::Volatile),
        Some((dependencies, (packets, _))) => {
            let bytes = packets.len() + 64;
            // The cache counts the reason if it does not store the result.
            let _ = permit.store(Arc::new(CachedResult(packets.into())), bytes, dependencies, steady_ms());
        }
    }
}
