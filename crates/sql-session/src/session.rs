//! A session: commands of the client, one after the other, and the server's answers.

mod prepared;

use self::prepared::Prepared;
use crate::answer::{AUTOCOMMIT, Answer, IN_TRANSACTION, NO_BACKSLASH_ESCAPES, PACKET_MAX, Shape};
use crate::login::{self, Login};
use crate::peer::{self, Peer};
use crate::pending::{self, Pending};
use crate::settings::{self, Settings};
use crate::statement::{self, Kind, Reading, STATEMENT_BYTES_MAX, Table};
use crate::{Kept, SqlService};
use ahash::AHashMap;
use cache::{Begun, Cache, Fill, Refusal, Scope};
use selkie_runtime::Connection;
use selkie_runtime::connection::Life;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use store::Namespace;

/// Commands, by their first byte.
mod com {
    pub const QUIT: u8 = 0x01;
    pub const INIT_DB: u8 = 0x02;
    pub const QUERY: u8 = 0x03;
    pub const FIELD_LIST: u8 = 0x04;
    pub const CREATE_DB: u8 = 0x05;
    pub const DROP_DB: u8 = 0x06;
    pub const PROCESS_INFO: u8 = 0x0A;
    pub const PING: u8 = 0x0E;
    pub const CHANGE_USER: u8 = 0x11;
    pub const BINLOG_DUMP: u8 = 0x12;
    pub const TABLE_DUMP: u8 = 0x13;
    pub const STMT_PREPARE: u8 = 0x16;
    pub const STMT_EXECUTE: u8 = 0x17;
    pub const STMT_SEND_LONG_DATA: u8 = 0x18;
    pub const STMT_CLOSE: u8 = 0x19;
    pub const STMT_RESET: u8 = 0x1A;
    pub const STMT_FETCH: u8 = 0x1C;
    pub const RESET_CONNECTION: u8 = 0x1F;
    pub const STMT_BULK_EXECUTE: u8 = 0xFA;
}

/// Answers to this program's own questions are short.
const OWN_ANSWER_BYTES_MAX: usize = 1 << 20;

/// What tells keys of statements in text from those of prepared ones.
const TEXT: u8 = 0;
const PREPARED: u8 = 1;

/// Schemas whose tables are no tables, or change unannounced.
const HIDDEN: [&str; 5] = ["mysql", "information_schema", "performance_schema", "sys", "selkie"];

struct Session {
    service: Arc<SqlService>,
    client: Peer,
    server: Peer,
    login: Login,
    /// The session's flags as the server last told them.
    status: Option<u16>,
    /// In a text, a backslash is an escape.
    escapes: bool,
    /// How the session is set, if that is known.
    settings: Option<Rc<Settings>>,
    /// Something happened after which tables may not be what they are for others.
    is_odd: bool,
    pending: Pending,
    /// The command that was last answered from memory: the server has not heard of it.
    unheard: Option<Vec<u8>>,
    prepared: AHashMap<u32, Prepared>,
    last_prepared: Option<u32>,
    /// Clients of this listener get answers from memory.
    may_use_cache: bool,
    /// The client wants them.
    uses_cache: bool,
}

/// What a command changes.
#[derive(Clone)]
enum Effect {
    Nothing,
    Tables(Vec<Namespace>),
    Everything,
}

/// Serves a client until either side closes.
pub async fn serve(service: Arc<SqlService>, connection: Connection) {
    let life = connection.life.clone();
    life.set_busy(true);
    let connecting = tokio::time::timeout(service.connect_timeout, Peer::connect(&service.backend)).await;
    let server = connecting.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    life.set_busy(false);
    let outcome = match server {
        Ok(server) => {
            let may_use_cache = service.uses_cache(connection.listener);
            run(service, Peer::new(connection.stream), server, &life, may_use_cache).await
        }
        Err(error) => {
            tracing::warn!(%error, "the MariaDB server cannot be reached for an SQL client");
            let sentence = format!("Selkie cannot reach the MariaDB server behind it: {error}");
            connection.stream.write_all(&login::error_packet(0, 2003, "HY000", &sentence)).await
        }
    };
    if let Err(error) = outcome
        && error.kind() != io::ErrorKind::UnexpectedEof
    {
        tracing::debug!(connection = connection.id, peer = ?connection.peer, %error, "an SQL session has ended");
    }
}

async fn run(
    service: Arc<SqlService>,
    mut client: Peer,
    mut server: Peer,
    life: &Life,
    may_use_cache: bool,
) -> io::Result<()> {
    let Some(login) = login::log_in(&mut client, &mut server).await? else { return Ok(()) };
    let status = login.status;
    let mut session = Session {
        service,
        client,
        server,
        login,
        status,
        escapes: status.is_some_and(|status| status & NO_BACKSLASH_ESCAPES == 0),
        settings: None,
        is_odd: false,
        pending: Pending::default(),
        unheard: None,
        prepared: AHashMap::default(),
        last_prepared: None,
        may_use_cache,
        uses_cache: true,
    };
    while !life.is_draining() {
        life.set_busy(false);
        if !session.wait_for_command().await? {
            return peer::pass_everything(&mut session.client, &mut session.server).await;
        }
        life.set_busy(true);
        if !session.command().await? {
            break;
        }
    }
    Ok(())
}

impl Session {
    /// Waits for a command to begin; false when the server speaks first, as it does before it closes.
    async fn wait_for_command(&mut self) -> io::Result<bool> {
        while self.client.bytes().len() < 5 {
            if !self.server.bytes().is_empty() {
                return Ok(false);
            }
            let read = tokio::select! {
                read = self.client.fill() => read,
                read = self.server.fill() => read,
            };
            if read.is_err() {
                // What has not been committed is undone: nobody will see it.
                self.pending.settle();
            }
            read?;
        }
        Ok(true)
    }

    /// Carries out the command that has begun to come; false when it is the last.
    async fn command(&mut self) -> io::Result<bool> {
        let (length, payload) = self.client.peek(5).await?;
        let command = payload.first().copied().unwrap_or_default();
        let number = payload.get(1..5).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes);
        // Whoever keeps no answers has nothing to look for in statements.
        let looks = self.service.watch.is_some() && length <= STATEMENT_BYTES_MAX;
        match command {
            com::QUERY if looks => {
                let packet = self.client.packet(STATEMENT_BYTES_MAX).await?;
                self.query(packet).await?;
            }
            com::STMT_PREPARE if looks => {
                let packet = self.client.packet(STATEMENT_BYTES_MAX).await?;
                self.prepare(packet).await?;
            }
            com::STMT_EXECUTE if self.select(number).is_some() => self.execute(number, length).await?,
            com::STMT_EXECUTE | com::STMT_BULK_EXECUTE => {
                let prepared = self.numbered(number).and_then(|number| self.prepared.get_mut(&number));
                let effect = prepared.map_or(Effect::Everything, |prepared| {
                    prepared.types = None;
                    prepared.effect.clone()
                });
                if matches!(effect, Effect::Everything) {
                    self.is_odd = true;
                    self.settings = None;
                }
                self.hear_of_unheard().await?;
                self.pass(Shape::Results, effect).await?;
            }
            com::QUERY | com::PROCESS_INFO => {
                self.hear_of_unheard().await?;
                self.is_odd = true;
                self.settings = None;
                self.pass(Shape::Results, Effect::Everything).await?;
            }
            com::STMT_PREPARE => {
                let answer = self.pass(Shape::Prepared, Effect::Nothing).await?;
                self.note_prepared(&answer, Effect::Everything, None);
            }
            com::STMT_CLOSE => {
                self.prepared.remove(&number);
                self.client.pass_command(&self.server).await?;
            }
            com::STMT_SEND_LONG_DATA => {
                self.note_long_data(number, true);
                self.client.pass_command(&self.server).await?;
            }
            com::STMT_RESET => {
                self.note_long_data(number, false);
                self.pass(Shape::Single, Effect::Nothing).await?;
            }
            com::QUIT => {
                self.client.pass_command(&self.server).await?;
                self.pending.settle();
                return Ok(false);
            }
            com::CHANGE_USER => {
                self.client.pass_command(&self.server).await?;
                let status = login::authenticate(&mut self.client, &mut self.server).await?;
                self.forget_session();
                match status {
                    Some(status) => self.status = status,
                    None => return Ok(false),
                }
            }
            com::RESET_CONNECTION => {
                self.pass(Shape::Single, Effect::Nothing).await?;
                self.forget_session();
            }
            com::BINLOG_DUMP | com::TABLE_DUMP => {
                self.client.pass_command(&self.server).await?;
                peer::pass_everything(&mut self.client, &mut self.server).await?;
            }
            com::INIT_DB => {
                self.settings = None;
                self.pass(Shape::Single, Effect::Nothing).await?;
            }
            com::CREATE_DB | com::DROP_DB => {
                self.pass(Shape::Single, Effect::Everything).await?;
            }
            com::FIELD_LIST => {
                self.pass(Shape::Fields, Effect::Nothing).await?;
            }
            com::STMT_FETCH => {
                self.pass(Shape::Rows, Effect::Nothing).await?;
            }
            _ => {
                self.pass(Shape::Single, Effect::Nothing).await?;
            }
        }
        Ok(true)
    }

    /// The session is as new. Its transaction, if there was one, has been undone.
    fn forget_session(&mut self) {
        self.pending.settle();
        self.settings = None;
        self.is_odd = false;
        self.unheard = None;
        self.prepared.clear();
        self.last_prepared = None;
        self.uses_cache = true;
    }

    // --- statements

    async fn query(&mut self, packet: Vec<u8>) -> io::Result<()> {
        let sql = packet.get(5..).unwrap_or_default();
        match statement::switch(sql) {
            Some(Ok(uses_cache)) => self.uses_cache = uses_cache,
            Some(Err(())) => {
                let sentence = "@selkie_cache says whether this session gets answers from memory: set it to 0 or 1";
                return self.client.send(&login::error_packet(1, 1231, "42000", sentence)).await;
            }
            None => {}
        }
        let kind = statement::classify(sql, self.reading(false));
        let asks_of_the_last = statement::asks_of_the_last(sql);
        if asks_of_the_last || kind == Kind::Unknown {
            self.hear_of_unheard().await?;
        }
        let effect = match kind {
            Kind::Cacheable(tables) => {
                if let Some(cache) = self.service.cache.clone()
                    && let Some(settings) = self.settings_to_keep_with(sql).await?
                {
                    let mut key = self.key(TEXT, &settings);
                    key.extend_from_slice(sql);
                    return self.keep(&cache, &key, &settings, &tables, packet).await;
                }
                self.unheard = None;
                Effect::Nothing
            }
            Kind::Read => {
                self.unheard = None;
                Effect::Nothing
            }
            Kind::Settings => {
                self.settings = None;
                Effect::Nothing
            }
            Kind::Transaction => Effect::Nothing,
            Kind::Write(tables) => {
                self.unheard = None;
                self.effect_on(&tables, asks_of_the_last).await?
            }
            Kind::Unknown => {
                self.is_odd = true;
                self.settings = None;
                Effect::Everything
            }
        };
        self.announce(effect);
        self.server.send(&packet).await?;
        let mut answer = Answer::new(Shape::Results, self.login.deprecates_eof);
        self.relay(&mut answer, None).await?;
        self.note_answer(&answer).await
    }

    fn reading(&self, is_prepared: bool) -> Reading {
        Reading { escapes: self.escapes, is_prepared, assumes_cacheable: self.service.rules.assumes_cacheable }
    }

    /// What writing to tables changes. `must_not_ask`: the statement asks of the one before it, which there may be none between.
    async fn effect_on(&mut self, tables: &[Table], must_not_ask: bool) -> io::Result<Effect> {
        let settings = if must_not_ask { self.settings.clone() } else { self.settings().await? };
        let namespaces = pending::namespaces(tables, settings.as_deref());
        Ok(namespaces.map_or(Effect::Everything, Effect::Tables))
    }

    // --- answers that are kept

    /// How the session is set, if its answers may be kept and given now.
    async fn settings_to_keep_with(&mut self, sql: &[u8]) -> io::Result<Option<Rc<Settings>>> {
        let alone = self.status.is_some_and(|status| status & (AUTOCOMMIT | IN_TRANSACTION) == AUTOCOMMIT);
        let rules = &self.service.rules;
        if !alone
            || self.is_odd
            || !self.pending.is_empty()
            || !self.may_use_cache
            || !self.uses_cache
            || !rules.allow_statement(sql)
        {
            return Ok(None);
        }
        let settings = self.settings().await?;
        let rules = &self.service.rules;
        let allows = |settings: &Rc<Settings>| settings.allows_keeping && rules.allow_user(&settings.user);
        Ok(settings.filter(allows).filter(|settings| settings.is_utf8 || sql.is_ascii()))
    }

    /// The beginning of what an answer is kept by: everything but the statement.
    fn key(&self, kind: u8, settings: &Settings) -> Vec<u8> {
        let length = (settings.bytes.len() as u32).to_le_bytes();
        [&[kind], &self.login.capabilities[..], &length, &settings.bytes].concat()
    }

    /// Answers a SELECT from memory, or has the server answer it and keeps that.
    async fn keep(
        &mut self,
        cache: &Arc<Cache<Kept>>,
        key: &[u8],
        settings: &Settings,
        tables: &[Table],
        packet: Vec<u8>,
    ) -> io::Result<()> {
        let mut alone = false;
        let fill = loop {
            match cache.begin(key, now_ms(), alone) {
                Begun::Hit(kept) => {
                    self.client.send(&kept.0).await?;
                    self.unheard = Some(packet);
                    return Ok(());
                }
                Begun::Wait(mut flight) => {
                    let _ = flight.changed().await;
                    alone = true;
                }
                Begun::Fill(fill) => break Some(fill),
                Begun::Blind => break None,
            }
        };
        self.unheard = None;
        let scope = match &fill {
            Some(_) => self.scope(settings, tables).await?,
            None => None,
        };
        self.server.send(&packet).await?;
        let mut answer = Answer::new(Shape::Results, self.login.deprecates_eof);
        let limit = cache.settings().bytes / cache.settings().shards;
        let mut copy = scope.is_some().then(|| (Vec::new(), limit));
        self.relay(&mut answer, copy.as_mut()).await?;
        if let Some(fill) = fill {
            finish(fill, &answer, scope.zip(copy));
        }
        self.note_answer(&answer).await
    }

    /// What an answer made from these tables depends on; `None` where one of them is not just a table.
    async fn scope(&mut self, settings: &Settings, tables: &[Table]) -> io::Result<Option<Scope>> {
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
        Ok(namespaces.next().map(|first| Scope::everything(first, namespaces.collect())))
    }

    /// How the session is set; the server is asked, if need be. `None`: it does not say.
    async fn settings(&mut self) -> io::Result<Option<Rc<Settings>>> {
        if self.settings.is_none() {
            let told = self.ask(settings::QUESTION).await?;
            let read = told.and_then(|told| Settings::read(told, self.login.deprecates_eof));
            self.settings = read.map(Rc::new);
        }
        Ok(self.settings.clone())
    }

    /// Asks the server a question of this program's own, for the packets of its answer; `None` where it refuses.
    async fn ask(&mut self, question: &str) -> io::Result<Option<Vec<u8>>> {
        self.server.send(&query_packet(question)).await?;
        self.take_answer().await
    }

    /// Has the server hear of the statement that was last answered from memory: the next one asks of it.
    async fn hear_of_unheard(&mut self) -> io::Result<()> {
        if let Some(packet) = self.unheard.take() {
            self.server.send(&packet).await?;
            self.take_answer().await?;
        }
        Ok(())
    }

    /// Takes an answer that is not the client's.
    async fn take_answer(&mut self) -> io::Result<Option<Vec<u8>>> {
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
        Ok((!answer.failed).then_some(taken))
    }

    // --- passing on

    /// Passes a command and its answer on, as they come.
    async fn pass(&mut self, shape: Shape, effect: Effect) -> io::Result<Answer> {
        self.announce(effect);
        self.client.pass_command(&self.server).await?;
        let mut answer = Answer::new(shape, self.login.deprecates_eof);
        self.relay(&mut answer, None).await?;
        self.note_answer(&answer).await?;
        Ok(answer)
    }

    /// Passes an answer on, and copies it up to a limit: what is beyond, leaves nothing of the copy.
    async fn relay(&mut self, answer: &mut Answer, mut copy: Option<&mut (Vec<u8>, usize)>) -> io::Result<()> {
        while !answer.is_over() {
            if self.server.bytes().is_empty() {
                self.server.fill().await?;
            }
            let used = answer.feed(self.server.bytes());
            let bytes = &self.server.bytes()[..used];
            if let Some((copied, limit)) = copy.as_deref_mut() {
                match copied.len() + used <= *limit {
                    true => copied.extend_from_slice(bytes),
                    false => (*copied, *limit) = (Vec::new(), 0),
                }
            }
            self.client.send(bytes).await?;
            self.server.take(used);
        }
        Ok(())
    }

    fn announce(&mut self, effect: Effect) {
        let Some(watch) = &self.service.watch else { return };
        match effect {
            Effect::Nothing => {}
            Effect::Tables(tables) => self.pending.announce(watch, Some(tables)),
            Effect::Everything => self.pending.announce(watch, None),
        }
    }

    /// Takes note of what an answer says of the session. Outside of a transaction, everybody sees what has been written.
    async fn note_answer(&mut self, answer: &Answer) -> io::Result<()> {
        if answer.statement.is_some() {
            return Ok(());
        }
        self.status = answer.status;
        if self.status.is_none() && !self.pending.is_empty() {
            // An error does not tell whether there is a transaction still; this does.
            self.server.send(&[1, 0, 0, 0, com::PING]).await?;
            let mut pong = Answer::new(Shape::Single, self.login.deprecates_eof);
            while !pong.is_over() {
                if self.server.bytes().is_empty() {
                    self.server.fill().await?;
                }
                let used = pong.feed(self.server.bytes());
                self.server.take(used);
            }
            self.status = pong.status;
        }
        if let Some(status) = self.status {
            self.escapes = status & NO_BACKSLASH_ESCAPES == 0;
            if status & IN_TRANSACTION == 0 {
                self.pending.settle();
            }
        }
        Ok(())
    }
}

/// Keeps an answer, if it is to be kept.
fn finish(fill: Fill<Kept>, answer: &Answer, kept: Option<(Scope, (Vec<u8>, usize))>) {
    match kept {
        None => fill.refuse(Refusal::NoCollection),
        Some(_) if answer.failed => fill.refuse(Refusal::Failed),
        Some((_, (_, 0))) => fill.refuse(Refusal::TooLarge),
        Some(_) if !answer.may_be_kept() => fill.refuse(Refusal::Volatile),
        Some((scope, (packets, _))) => {
            let bytes = packets.len() + 64;
            // Why it is not kept is counted there.
            let _ = fill.finish(Arc::new(Kept(packets.into())), bytes, scope, now_ms());
        }
    }
}

fn query_packet(sql: &str) -> Vec<u8> {
    debug_assert!(sql.len() < PACKET_MAX);
    let mut packet = (sql.len() as u32 + 1).to_le_bytes()[..3].to_vec();
    packet.extend_from_slice(&[0, com::QUERY]);
    packet.extend_from_slice(sql.as_bytes());
    packet
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as i64)
}
