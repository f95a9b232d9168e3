//! Answers from memory: whether a session gets them, by what they are kept, and how they are made.

use super::unheard::{Asks, Leaves, Unheard};
use super::{Session, com};
use crate::answer::{AUTOCOMMIT, Answer, IN_TRANSACTION, PACKET_MAX, Shape};
use crate::settings::{self, Settings};
use crate::statement::Table;
use crate::{Kept, pending, rights};
use cache::{Cache, CacheLookup, ComputePermit, Dependencies, NotCached};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Answers to this program's own questions are short.
const OWN_ANSWER_BYTES_MAX: usize = 1 << 20;

/// Schemas whose tables are no tables, or change unannounced.
const HIDDEN: [&str; 5] = ["mysql", "information_schema", "performance_schema", "sys", "selkie"];

/// While a client gets answers from memory the server hears of it after this part of the time that
/// it waits for a command.
const IDLE_PARTS: u32 = 20;

impl Session {
    /// How the session is set, if its answers may be kept and given now.
    pub async fn settings_to_keep_with(&mut self, sql: &[u8]) -> io::Result<Option<Rc<Settings>>> {
        let alone = self.status.is_some_and(|status| status & (AUTOCOMMIT | IN_TRANSACTION) == AUTOCOMMIT);
        let rules = &self.service.rules;
        if !alone
            || self.is_odd
            || self.has_one_shot
            || !self.pending.is_empty()
            || !self.may_use_cache
            || !self.uses_cache
            || !rules.allow_statement(sql)
        {
            return Ok(None);
        }
        let settings = self.settings().await?;
        if let Some(settings) = &settings
            && self.rights.is_due(&self.service.rights)
        {
            self.look_at_rights(settings.clone()).await?;
        }
        let rules = &self.service.rules;
        let may = self.rights.allows_keeping();
        let allows = |settings: &Rc<Settings>| may && settings.allows_keeping && rules.allow_user(&settings.user);
        Ok(settings.filter(allows).filter(|settings| settings.is_utf8 || sql.is_ascii()))
    }

    /// The beginning of what an answer is kept by: everything but the statement.
    pub fn key(&self, kind: u8, settings: &Settings) -> Vec<u8> {
        let length = (settings.bytes.len() as u32).to_le_bytes();
        let mut key = [&[kind], &self.login.capabilities[..], &length, &settings.bytes].concat();
        self.rights.write_key(&mut key);
        key
    }

    /// Takes note of what the client may do: as other sessions of its account were shown a short
    /// while ago, or as the server shows it now.
    async fn look_at_rights(&mut self, settings: Rc<Settings>) -> io::Result<()> {
        if let Some(seen) = self.service.rights.recent(&settings.account) {
            self.rights.note(&settings.account, seen, &self.service.rights);
            return Ok(());
        }
        self.ask_for_rights(&settings).await
    }

    async fn ask_for_rights(&mut self, settings: &Settings) -> io::Result<()> {
        let asked = Instant::now();
        self.server.send(&query_packet(rights::QUESTION)).await?;
        self.take_rights(settings, asked).await.map(drop)
    }

    /// Takes the answer to a question about rights. Returns whether they are what they were.
    async fn take_rights(&mut self, settings: &Settings, asked: Instant) -> io::Result<bool> {
        let packets = self.take_answer().await?;
        match packets.and_then(|packets| settings::rows(&packets, self.login.deprecates_eof)) {
            Some(rows) => {
                let seen = self.service.rights.note(&settings.account, rows, asked);
                Ok(self.rights.note(&settings.account, seen, &self.service.rights))
            }
            None => {
                self.rights.forget_last();
                Ok(false)
            }
        }
    }

    /// Answers a SELECT from memory, or has the server answer it and keeps that.
    pub async fn keep(
        &mut self,
        cache: &Arc<Cache<Kept>>,
        key: &[u8],
        settings: &Settings,
        tables: &[Table],
        (packet, sql): (Vec<u8>, Option<Rc<[u8]>>),
    ) -> io::Result<()> {
        let mut alone = false;
        let fill = loop {
            match cache.look_up(key, now_ms(), alone) {
                CacheLookup::Hit(kept) => return self.give(kept, settings, packet, sql).await,
                CacheLookup::Wait(mut flight) => {
                    let _ = flight.changed().await;
                    alone = true;
                }
                CacheLookup::Compute(fill) => break Some(fill),
                CacheLookup::Bypass => break None,
            }
        };
        self.catch_up(Leaves::Nothing, Asks::Nothing).await?;
        let scope = match &fill {
            Some(_) => self.scope(settings, tables).await?,
            None => None,
        };
        if scope.is_none() {
            let effect = self.effect_of_reading(tables, false).await?;
            self.announce(effect);
        }
        // By which rights the answer was made is asked at once behind it: they may have come and
        // gone since they were looked at.
        let asked = Instant::now();
        let mut packets = packet;
        if scope.is_some() {
            packets.extend_from_slice(&query_packet(rights::QUESTION));
        }
        self.server.send(&packets).await?;
        let mut answer = Answer::new(Shape::Results, self.login.deprecates_eof);
        let limit = cache.settings().bytes / cache.settings().shards;
        let mut copy = scope.is_some().then(|| (Vec::new(), limit));
        self.relay(&mut answer, copy.as_mut()).await?;
        let is_allowed = scope.is_none() || self.take_rights(settings, asked).await?;
        match fill {
            Some(fill) if is_allowed => finish(fill, &answer, scope.zip(copy)),
            Some(fill) => fill.discard(NotCached::ConcurrentWrite),
            None => {}
        }
        self.note_answer(&answer).await
    }

    /// Answers a SELECT from memory.
    async fn give(
        &mut self,
        kept: Arc<Kept>,
        settings: &Settings,
        packet: Vec<u8>,
        sql: Option<Rc<[u8]>>,
    ) -> io::Result<()> {
        // A client that is answered is not idle, and the server is to know it.
        let is_idle = self.server_used.elapsed() >= settings.wait_timeout / IDLE_PARTS;
        if is_idle {
            self.server.send(&[1, 0, 0, 0, com::PING]).await?;
        }
        self.client.send(&kept.0).await?;
        self.unheard = Some(Unheard { packet, sql, kept });
        self.found_rows = None;
        if is_idle {
            self.take_answer().await?;
        }
        Ok(())
    }

    /// What an answer made from these tables depends on; `None` where one of them is not just a
    /// table.
    async fn scope(&mut self, settings: &Settings, tables: &[Table]) -> io::Result<Option<Dependencies>> {
        let namespaces = pending::namespaces(tables, Some(settings));
        let Some(namespaces) = namespaces.filter(|tables| self.service.rules.allow_tables(tables)) else {
            return Ok(None);
        };
        for namespace in &namespaces {
            let is_hidden = HIDDEN.iter().any(|hidden| namespace.database.eq_ignore_ascii_case(hidden));
            if is_hidden || namespace.collection.is_empty() {
                return Ok(None);
            }
            let question = format!("SHOW CREATE TABLE `{}`.`{}`", namespace.database, namespace.collection);
            match self.ask(&question).await? {
                Some(shown) if settings::is_plain_table(&shown, self.login.deprecates_eof) => {}
                _ => return Ok(None),
            }
        }
        let mut namespaces = namespaces.into_iter();
        Ok(namespaces.next().map(|first| Dependencies::all_documents(first, namespaces.collect())))
    }

    /// How the session is set; the server is asked, if need be. `None`: it does not say.
    pub async fn settings(&mut self) -> io::Result<Option<Rc<Settings>>> {
        if self.settings.is_none() {
            let told = self.ask(settings::QUESTION).await?;
            let read = told.and_then(|told| Settings::read(&told, self.login.deprecates_eof));
            self.settings = read.map(Rc::new);
            if self.may_use_cache
                && self.service.cache.is_some()
                && let Some(settings) = self.settings.clone()
            {
                self.ask_for_rights(&settings).await?;
            }
        }
        Ok(self.settings.clone())
    }

    /// Asks the server a question of this program's own, for the packets of its answer; `None`
    /// where it refuses.
    pub async fn ask(&mut self, question: &str) -> io::Result<Option<Vec<u8>>> {
        self.server.send(&query_packet(question)).await?;
        self.take_answer().await
    }

    /// Takes an answer that is not the client's.
    pub async fn take_answer(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut answer = Answer::new(Shape::Results, self.login.deprecates_eof);
        let mut taken = Vec::new();
        while !answer.is_over() {
            if self.server.bytes().is_empty() {
                self.server.fill().await?;
            }
            let used = answer.feed(self.server.bytes());
            if taken.len() + used <= OWN_ANSWER_BYTES_MAX {
                taken.extend_from_slice(&self.server.bytes()[..used]);
            }
            self.server.take(used);
        }
        self.server_used = Instant::now();
        Ok((!answer.failed).then_some(taken))
    }
}

/// Keeps an answer, if it is to be kept.
fn finish(fill: ComputePermit<Kept>, answer: &Answer, kept: Option<(Dependencies, (Vec<u8>, usize))>) {
    match kept {
        None => fill.discard(NotCached::NotACollection),
        Some(_) if answer.failed => fill.discard(NotCached::Failed),
        Some((_, (_, 0))) => fill.discard(NotCached::TooLarge),
        Some(_) if !answer.may_be_kept() => fill.discard(NotCached::Volatile),
        Some((scope, (packets, _))) => {
            let bytes = packets.len() + 64;
            // Why it is not kept is counted there.
            let _ = fill.store(Arc::new(Kept(packets.into())), bytes, scope, now_ms());
        }
    }
}

pub fn query_packet(sql: &str) -> Vec<u8> {
    debug_assert!(sql.len() < PACKET_MAX);
    let mut packet = (sql.len() as u32 + 1).to_le_bytes()[..3].to_vec();
    packet.extend_from_slice(&[0, com::QUERY]);
    packet.extend_from_slice(sql.as_bytes());
    packet
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as i64)
}
