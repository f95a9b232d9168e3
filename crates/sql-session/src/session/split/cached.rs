//! SELECTs through the result cache. A result that is to be cached comes from the primary, whose
//! log the cache follows: a replica may not have the writes that were announced before.

use super::command::{Command, Need, Outcome};
use super::exchange::{Failure, exchange};
use super::home::is_no_primary;
use super::split_state::Split;
use crate::context::CachedResult;
use crate::execute_packet::{self, ExecutePacket};
use crate::privileges::PRIVILEGES_QUERY;
use crate::reply_tracker::{ReplyKind, ReplyTracker};
use crate::session::cached_select::CachedSelect;
use crate::session::com;
use crate::session::query_packet::query_packet;
use crate::session::result_cache::{PING_FRACTION, store};
use crate::session::state::{KEY_OF_PREPARED, KEY_OF_TEXT, Session};
use cache::{Cache, CacheLookup, ComputePermit, NotCached};
use server::clock::steady_ms;
use sql_classify::statement::STATEMENT_BYTES_MAX;
use sql_classify::{DiagnosticsKept, DiagnosticsUse, SessionSettings, TableName};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

/// A SELECT whose result may be cached.
pub struct Select<'s> {
    pub command: &'s Command<'s>,
    pub sql: &'s [u8],
    pub tables: &'s [TableName],
    /// Of a prepared statement: the number of its parameters, and the settings with which it was
    /// prepared. The command has the parameters with their types.
    pub prepared: Option<(usize, Rc<SessionSettings>)>,
}

impl Select<'_> {
    /// Appends the statement to a cache key. Returns `None` if the settings of the session or the
    /// parameters prevent caching.
    fn write_key(&self, settings: &SessionSettings, key: &mut Vec<u8>) -> Option<()> {
        let Some((params, prepared_with)) = &self.prepared else {
            key.extend_from_slice(self.sql);
            return Some(());
        };
        let packet = self.command.packet;
        let execution = ExecutePacket::parse(packet.get(4..)?, *params)?;
        let types = execution.types?;
        let is_cacheable = execution.is_without_cursor()
            && packet.len() <= STATEMENT_BYTES_MAX
            && execute_packet::are_date_independent(types)
            && settings.bytes == prepared_with.bytes;
        if !is_cacheable {
            return None;
        }
        key.extend_from_slice(&(self.sql.len() as u32).to_le_bytes());
        key.extend_from_slice(self.sql);
        execution.write_key(types, key);
        Some(())
    }
}

impl Session {
    /// Answers a SELECT from the cache, or on the primary. Returns `None` if the cache is not for
    /// it, so that it has another route.
    pub(super) async fn read_through_cache(
        &mut self,
        split: &mut Split,
        select: &Select<'_>,
    ) -> io::Result<Option<Outcome>> {
        let Some(cache) = self.context.cache.clone() else { return Ok(None) };
        if !split.may_use_cache() {
            return Ok(None);
        }
        let Some((settings, key)) = self.settings_and_key(split, select).await? else { return Ok(None) };
        let mut alone = false;
        let permit = loop {
            match cache.look_up(&key, steady_ms(), alone) {
                CacheLookup::Hit(result) => {
                    return self.send_hit(split, select, (result, settings)).await.map(Some);
                }
                CacheLookup::Wait(mut flight) => {
                    let _ = flight.changed().await;
                    alone = true;
                }
                CacheLookup::Compute(permit) => break permit,
                CacheLookup::Bypass => return Ok(None),
            }
        };
        if !self.reach_cached_server(split).await {
            return Ok(None);
        }
        // Another connection may have other settings and privileges.
        match self.settings_and_key(split, select).await? {
            Some((_, same)) if same == key => self.compute(split, select, &cache, permit, &settings).await,
            _ => Ok(None),
        }
    }

    /// Answers a text from the cache, if its result can be found without asking a server. Returns
    /// `None` if it is not there.
    pub(super) async fn answer_cached_text(&mut self, split: &mut Split, packet: &[u8]) -> io::Result<Option<Outcome>> {
        let sql = packet.get(5..).unwrap_or_default();
        if !split.may_use_cache() || !self.is_cache_of_home(split) {
            return Ok(None);
        }
        let Some(hit) = self.cached_text(sql) else { return Ok(None) };
        let select = Select { command: &Command::text(packet), sql, tables: &[], prepared: None };
        self.send_hit(split, &select, hit).await.map(Some)
    }

    /// Returns whether the cache is for the session's own connection, or for one that it may get.
    fn is_cache_of_home(&self, split: &Split) -> bool {
        match split.detached.is_some() {
            true => self.context.service.primary().is_some(),
            // It may be on another server because it can have no other connection.
            false => self.is_on_cached_server(),
        }
    }

    /// Returns the session's settings and the key of a SELECT, if the cache may be used for it now.
    async fn settings_and_key(
        &mut self,
        split: &mut Split,
        select: &Select<'_>,
    ) -> io::Result<Option<(Rc<SessionSettings>, Vec<u8>)>> {
        if !self.may_use_cache(select.sql) || self.context.service.primary().is_none() {
            return Ok(None);
        }
        if self.asks_for_caching() && !self.reach_cached_server(split).await {
            return Ok(None);
        }
        if !self.is_cache_of_home(split) {
            return Ok(None);
        }
        let settings = match self.settings_if_cacheable(select.sql).await {
            Ok(settings) => settings,
            Err(error) => {
                self.leave_failed_home(split, error)?;
                return Ok(None);
            }
        };
        let Some(settings) = settings else { return Ok(None) };
        let kind = if select.prepared.is_some() { KEY_OF_PREPARED } else { KEY_OF_TEXT };
        let mut key = self.cache_key(kind, &settings, select.sql.len());
        Ok(select.write_key(&settings, &mut key).map(|()| (settings, key)))
    }

    /// Makes the session's own connection one to the primary whose log the cache follows. Returns
    /// false if that is not possible now.
    async fn reach_cached_server(&mut self, split: &mut Split) -> bool {
        if split.detached.is_none() && self.is_on_cached_server() {
            return true;
        }
        split.can_move(false) && self.try_home(split, Need::Primary).await.is_ok() && self.is_on_cached_server()
    }

    /// Sends a cached result to the client.
    async fn send_hit(
        &mut self,
        split: &mut Split,
        select: &Select<'_>,
        (result, settings): (Arc<CachedResult>, Rc<SessionSettings>),
    ) -> io::Result<Outcome> {
        self.client.send(&result.0).await?;
        let packet = select.command.packet.to_vec();
        let sql = select.prepared.as_ref().map(|_| select.sql.into());
        let prepared = select.command.prepared.clone();
        self.last_cached_select = Some(CachedSelect { packet, sql, prepared, result });
        self.found_rows = None;
        // Without a ping, the server would close the connection of an active client as idle.
        if split.detached.is_none() && self.server_used.elapsed() >= settings.wait_timeout / PING_FRACTION {
            let pinged = match self.server.send(&[1, 0, 0, 0, com::PING]).await {
                Ok(()) => self.read_reply().await.map(drop),
                Err(error) => Err(error),
            };
            if let Err(error) = pinged {
                self.leave_failed_home(split, error)?;
            }
        }
        Ok(Outcome::Continues)
    }

    /// Executes a SELECT on the primary, and caches its result. Returns `None` if it depends on
    /// other things than plain tables, or if the primary is lost.
    async fn compute(
        &mut self,
        split: &mut Split,
        select: &Select<'_>,
        cache: &Cache<CachedResult>,
        permit: ComputePermit<CachedResult>,
        settings: &SessionSettings,
    ) -> io::Result<Option<Outcome>> {
        let dependencies = match self.dependencies(settings, select.tables).await {
            Ok(Some(dependencies)) => dependencies,
            Ok(None) => {
                permit.discard(NotCached::NotACollection);
                return Ok(None);
            }
            Err(error) => {
                self.leave_failed_home(split, error)?;
                return Ok(None);
            }
        };
        let requested = Instant::now();
        let mut reply = ReplyTracker::new(ReplyKind::Results, self.login.deprecates_eof);
        let mut copy = (Vec::new(), cache.settings().bytes / cache.settings().shards);
        match self.send_and_copy(split, select.command, &mut reply, &mut copy).await {
            Ok(()) => {}
            Err(Failure::Client(error)) => return Err(error),
            Err(Failure::Server(lost)) if lost.has_begun => return Err(io::Error::other(lost.reason)),
            Err(Failure::Server(lost)) => {
                self.leave_failed_home(split, io::Error::other(lost.reason))?;
                return Ok(None);
            }
        }
        self.lacks(DiagnosticsKept::Nothing, DiagnosticsUse::Nothing);
        self.resets_warnings = true;
        self.note_home_reply(split, &reply, select.command.diagnostics);
        self.end_announced(split, &reply).await;
        // They may have been granted and revoked since they were read.
        match self.read_privileges(settings, requested).await {
            Ok(true) if self.is_on_cached_server() => store(permit, &reply, Some((dependencies, copy))),
            Ok(_) => permit.discard(NotCached::ConcurrentWrite),
            Err(error) => self.leave_failed_home(split, error)?,
        }
        Ok(Some(Outcome::Continues))
    }

    /// Sends a SELECT and the query for the account's privileges to the primary. Forwards the
    /// SELECT's reply, and copies it.
    async fn send_and_copy(
        &mut self,
        split: &mut Split,
        command: &Command<'_>,
        reply: &mut ReplyTracker,
        (copied, limit): &mut (Vec<u8>, usize),
    ) -> Result<(), Failure> {
        let mut packets = self.packet_for_home(split, command).await?.into_owned();
        packets.extend_from_slice(&query_packet(PRIVILEGES_QUERY));
        let backend = split.assignment.backend().clone();
        let _running = backend.activity.begin();
        let observe = |bytes: &[u8], _: &ReplyTracker| match copied.len() + bytes.len() <= *limit {
            true => copied.extend_from_slice(bytes),
            false => (*copied, *limit) = (Vec::new(), 0),
        };
        let Session { client, server, .. } = self;
        exchange(client, server, &mut split.assignment, &packets, reply, is_no_primary, observe).await
    }
}
