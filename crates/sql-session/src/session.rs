//! A session: commands of the client, one after the other, and the server's answers.

mod effect;
mod memory;
mod prepared;
mod unheard;

use self::effect::Effect;
use self::prepared::Prepared;
use self::unheard::{Asks, Leaves, Unheard};
use crate::answer::{Answer, IN_TRANSACTION, NO_BACKSLASH_ESCAPES, Shape};
use crate::login::{self, Login};
use crate::peer::{self, Peer};
use crate::pending::Pending;
use crate::rights::History;
use crate::running::Running;
use crate::settings::Settings;
use crate::statement::{self, Kind, Reading, STATEMENT_BYTES_MAX};
use crate::{Kept, SqlService};
use ahash::AHashMap;
use selkie_runtime::Connection;
use selkie_runtime::connection::Life;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::OwnedSemaphorePermit;

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

/// What tells keys of statements in text from those of prepared ones.
const TEXT: u8 = 0;
const PREPARED: u8 = 1;

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
    /// A transaction's characteristics are set for once, and no transaction has ended since.
    has_one_shot: bool,
    rights: History,
    /// When the server got a command last.
    server_used: Instant,
    /// The statement that was last answered from memory: the server has not heard of it.
    unheard: Option<Unheard>,
    /// The answer from memory that FOUND_ROWS() is about, where the server has heard of later
    /// statements and not of that.
    found_rows: Option<Arc<Kept>>,
    /// SHOW WARNINGS may have something to show, by what the server has heard of.
    has_warnings: bool,
    /// The statement under way begins with no warnings.
    resets_warnings: bool,
    /// Which definitions the effect of the statement under way was told by.
    effect_version: Option<u64>,
    prepared: AHashMap<u32, Prepared>,
    last_prepared: Option<u32>,
    /// Clients of this listener get answers from memory.
    may_use_cache: bool,
    /// The client wants them.
    uses_cache: bool,
}

/// Serves a client until either side closes.
pub async fn serve(service: Arc<SqlService>, connection: Connection) {
    let life = connection.life.clone();
    life.set_busy(true);
    // Whoever does not log in takes a connection of the server's, which are few.
    let waiting = tokio::time::timeout(service.login_timeout, service.logins.clone().acquire_owned()).await;
    let Ok(Ok(logging_in)) = waiting else {
        tracing::warn!("too many SQL clients have not logged in yet: one more is refused");
        let sentence = "Too many connections: others have not logged in yet";
        let _ = connection.stream.write_all(&login::error_packet(0, 1040, "08004", sentence)).await;
        return;
    };
    let connecting = tokio::time::timeout(service.connect_timeout, Peer::connect(&service.backend)).await;
    let server = connecting.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    life.set_busy(false);
    let outcome = match server {
        Ok(server) => {
            let may_use_cache = service.uses_cache(connection.listener);
            let running = Running::new(&connection.stream, service.kill.clone());
            let client = Peer::new(connection.stream);
            run(service, (client, server), &life, may_use_cache, (logging_in, running)).await
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
    (mut client, mut server): (Peer, Peer),
    life: &Life,
    may_use_cache: bool,
    (logging_in, mut running): (OwnedSemaphorePermit, Running),
) -> io::Result<()> {
    let login = tokio::time::timeout(service.login_timeout, login::log_in(&mut client, &mut server)).await;
    let Some(login) = login.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))? else { return Ok(()) };
    drop(logging_in);
    running.session = login.session;
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
        has_one_shot: false,
        rights: History::default(),
        server_used: Instant::now(),
        unheard: None,
        found_rows: None,
        has_warnings: false,
        resets_warnings: false,
        effect_version: None,
        prepared: AHashMap::default(),
        last_prepared: None,
        may_use_cache,
        uses_cache: true,
    };
    if session.service.cache.is_some() && may_use_cache {
        // The rights that the login gave, before they become others.
        session.settings().await?;
    }
    while !life.is_draining() {
        life.set_busy(false);
        if !session.wait_for_command().await? {
            return peer::pass_everything(&mut session.client, &mut session.server).await;
        }
        life.set_busy(true);
        match running.while_connected(session.command()).await {
            Some(Ok(true)) => {}
            Some(Ok(false)) => break,
            Some(Err(error)) => {
                running.failed();
                return Err(error);
            }
            None => return Err(io::ErrorKind::UnexpectedEof.into()),
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
            // The server first: a session that was killed is given nothing more.
            let read = tokio::select! {
                biased;
                read = self.server.fill() => read,
                read = self.client.fill() => read,
            };
            if read.is_err() {
                // What has not been committed is undone: nobody will see it.
                self.settle();
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
                let mut asks = Asks::Anything;
                let prepared = self.numbered(number).and_then(|number| self.prepared.get_mut(&number));
                let does = prepared.map_or(prepared::Does::Anything, |prepared| {
                    prepared.types = None;
                    asks = prepared.asks;
                    prepared.does.clone()
                });
                self.execute_blindly(does, asks).await?;
            }
            com::QUERY | com::PROCESS_INFO => {
                self.catch_up(Leaves::All, Asks::Anything).await?;
                self.become_odd();
                self.pass(Shape::Results, Effect::Everything).await?;
            }
            com::STMT_PREPARE => {
                let answer = self.pass(Shape::Prepared, Effect::Nothing).await?;
                self.note_prepared(&answer, (prepared::Does::Anything, Asks::Anything), None);
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
                self.settle();
                return Ok(false);
            }
            com::CHANGE_USER => {
                self.client.pass_command(&self.server).await?;
                let status = login::authenticate(&mut self.client, &mut self.server).await?;
                self.forget_session();
                self.rights = History::default();
                match status {
                    Some(status) => self.status = status,
                    None => return Ok(false),
                }
                if self.service.cache.is_some() && self.may_use_cache {
                    self.settings().await?;
                }
            }
            com::RESET_CONNECTION => {
                self.pass(Shape::Single, Effect::Nothing).await?;
                self.forget_session();
                self.rights.note_move();
            }
            com::BINLOG_DUMP | com::TABLE_DUMP => {
                self.client.pass_command(&self.server).await?;
                peer::pass_everything(&mut self.client, &mut self.server).await?;
            }
            com::INIT_DB => {
                self.catch_up(Leaves::FoundRowsAndWarnings, Asks::Nothing).await?;
                self.settings = None;
                self.rights.note_move();
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
        self.settle();
        self.settings = None;
        self.is_odd = false;
        self.has_one_shot = false;
        self.unheard = None;
        self.found_rows = None;
        self.has_warnings = false;
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
        let asks = Asks::read(sql, &kind);
        let asks_of_the_last = !matches!(asks, Asks::Nothing | Asks::Anything);
        let leaves = leaves(&kind, sql, self.has_warnings);
        let (mut effect, mut ends_transaction) = (Effect::Nothing, false);
        let is_delayed = !matches!(kind, Kind::Cacheable(_)) && statement::is_delayed(sql);
        self.resets_warnings = false;
        match kind {
            Kind::Cacheable(tables) => {
                self.resets_warnings = true;
                if let Some(cache) = self.service.cache.clone()
                    && let Some(settings) = self.settings_to_keep_with(sql).await?
                {
                    let mut key = self.key(TEXT, &settings);
                    key.extend_from_slice(sql);
                    return self.keep(&cache, &key, &settings, &tables, (packet, None)).await;
                }
                effect = self.effect_of_reading(&tables, asks_of_the_last).await?;
            }
            Kind::Read(tables) => {
                self.resets_warnings = !tables.is_empty();
                effect = self.effect_of_reading(&tables, asks_of_the_last).await?;
            }
            Kind::Show => {}
            Kind::Settings => {
                self.settings = None;
                if statement::chooses_rights(sql) {
                    self.rights.note_move();
                }
            }
            Kind::OneShot => {
                self.settings = None;
                self.has_one_shot = true;
            }
            Kind::Transaction => ends_transaction = statement::ends_transaction(sql),
            Kind::Write(tables) => {
                self.resets_warnings = true;
                effect = self.effect_of_writing(&tables, asks_of_the_last).await?;
            }
            Kind::Calls => {
                self.become_odd();
                effect = Effect::AnyRows;
            }
            Kind::Unknown => {
                self.become_odd();
                effect = Effect::Everything;
            }
        }
        self.catch_up(leaves, asks).await?;
        self.announce(effect);
        self.server.send(&packet).await?;
        let mut answer = Answer::new(Shape::Results, self.login.deprecates_eof);
        self.relay(&mut answer, None).await?;
        if ends_transaction && !answer.failed {
            self.has_one_shot = false;
        }
        if is_delayed {
            self.pending.lose();
        }
        self.note_answer(&answer).await
    }

    fn reading(&self, is_prepared: bool) -> Reading {
        Reading { escapes: self.escapes, is_prepared, assumes_cacheable: self.service.rules.assumes_cacheable }
    }

    /// The session may have tables and settings that are not known; it gets no answers from memory
    /// any more.
    fn become_odd(&mut self) {
        self.is_odd = true;
        self.settings = None;
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
            if answer.is_over()
                && let Some(watch) = &self.service.watch
                && let Some(version) = self.effect_version.take()
                && version != self.service.definitions.version()
            {
                // The statement may have met a trigger that was made meanwhile.
                self.pending.announce(watch, None);
            }
            self.client.send(bytes).await?;
            self.server.take(used);
        }
        self.server_used = Instant::now();
        Ok(())
    }

    async fn ask_for_status(&mut self, packet: &[u8], shape: Shape) -> io::Result<Option<u16>> {
        self.server.send(packet).await?;
        let mut answer = Answer::new(shape, self.login.deprecates_eof);
        while !answer.is_over() {
            if self.server.bytes().is_empty() {
                self.server.fill().await?;
            }
            let used = answer.feed(self.server.bytes());
            self.server.take(used);
        }
        Ok(answer.status)
    }

    /// Takes note of what an answer says of the session. Outside of a transaction, everybody sees what has been written.
    async fn note_answer(&mut self, answer: &Answer) -> io::Result<()> {
        if answer.statement.is_some() {
            return Ok(());
        }
        self.status = answer.status;
        self.has_warnings = answer.warned || answer.failed || self.has_warnings && !self.resets_warnings;
        if self.status.is_none() && !self.pending.is_empty() {
            // An error does not tell whether there is a transaction still. This does, and leaves
            // ROW_COUNT(), FOUND_ROWS() and the error as they are.
            self.status = self.ask_for_status(&memory::query_packet("VALUES (0)"), Shape::Results).await?;
            if self.status.is_none() {
                self.status = self.ask_for_status(&[1, 0, 0, 0, com::PING], Shape::Single).await?;
            }
        }
        if let Some(status) = self.status {
            self.escapes = status & NO_BACKSLASH_ESCAPES == 0;
            if status & IN_TRANSACTION == 0 {
                self.settle();
            }
        }
        Ok(())
    }
}

/// What a statement of a kind leaves of what the one before it did.
fn leaves(kind: &Kind, sql: &[u8], has_warnings: bool) -> Leaves {
    match kind {
        Kind::Cacheable(_) => Leaves::Nothing,
        Kind::Read(tables) if !tables.is_empty() => Leaves::Nothing,
        Kind::Read(_) => Leaves::Warnings,
        Kind::Write(tables) if statement::may_find_rows(sql, tables) => Leaves::PerhapsFoundRows,
        Kind::Write(_) => Leaves::FoundRows,
        Kind::Settings | Kind::OneShot | Kind::Transaction => Leaves::FoundRowsAndWarnings,
        // Most kinds of SHOW select rows. Before SHOW WARNINGS nothing may be asked that would take
        // those away.
        Kind::Show if !has_warnings => Leaves::PerhapsFoundRows,
        Kind::Show | Kind::Calls | Kind::Unknown => Leaves::All,
    }
}
