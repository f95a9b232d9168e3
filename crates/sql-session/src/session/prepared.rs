//! Prepared statements: what executing one does, and answers to SELECTs from memory.

use super::{Asks, Effect, Leaves, PREPARED, Session};
use crate::answer::{Answer, PACKET_MAX, Shape};
use crate::execution::{self, Execution};
use crate::pending;
use crate::settings::Settings;
use crate::statement::{self, Kind, STATEMENT_BYTES_MAX, Table};
use std::io;
use std::rc::Rc;
use store::Namespace;

/// The number that stands for the statement prepared last.
const LAST_PREPARED: u32 = u32::MAX;

/// Executions up to this length are read whole.
const EXECUTION_BYTES_MAX: usize = PACKET_MAX - (256 << 10);

/// A prepared statement.
pub struct Prepared {
    /// What executing it does.
    pub does: Does,
    /// What executing it asks of the statement before.
    pub asks: Asks,
    /// It is a SELECT whose answers can be kept.
    select: Option<Rc<Select>>,
    /// How many values it takes.
    params: usize,
    /// Their types, as they were said last.
    pub types: Option<Rc<[u8]>>,
    /// The server has not heard of them, for the answer came from memory.
    has_unheard_types: bool,
    /// Some of its values came ahead of the execution.
    has_long_data: bool,
}

/// What executing a statement does, as far as preparing it tells. What changes with its tables is
/// looked up at each execution.
#[derive(Clone)]
pub enum Does {
    Read(Rc<[Namespace]>),
    /// `finds_rows`: it may change what FOUND_ROWS() gives.
    Write {
        tables: Rc<[Namespace]>,
        finds_rows: bool,
    },
    /// Tells of the server, or ends a transaction.
    Nothing,
    /// Calls functions that are not known.
    Calls,
    Anything,
}

/// A prepared SELECT that depends on nothing but rows and its values.
pub struct Select {
    sql: Rc<[u8]>,
    tables: Vec<Table>,
    /// How the session was set: tables were looked up and words were read by that.
    settings: Rc<Settings>,
}

impl Session {
    pub async fn prepare(&mut self, packet: Vec<u8>) -> io::Result<()> {
        let sql = packet.get(5..).unwrap_or_default();
        let mut select = None;
        let kind = statement::classify(sql, self.reading(true));
        let asks = Asks::read(sql, &kind);
        let does = match kind {
            Kind::Cacheable(tables) => {
                let settings = self.settings().await?;
                let does = does(Does::Read, &tables, settings.as_deref());
                if self.service.cache.is_some()
                    && let Some(settings) = settings
                {
                    select = Some(Rc::new(Select { sql: sql.into(), tables, settings }));
                }
                does
            }
            Kind::Read(tables) if tables.is_empty() => Does::Nothing,
            // Which schema is meant is settled now.
            Kind::Read(tables) => does(Does::Read, &tables, self.settings().await?.as_deref()),
            Kind::Write(tables) => {
                let finds_rows = statement::may_find_rows(sql, &tables);
                let write = |tables| Does::Write { tables, finds_rows };
                does(write, &tables, self.settings().await?.as_deref())
            }
            Kind::Show | Kind::Transaction => Does::Nothing,
            Kind::Calls => Does::Calls,
            Kind::Settings | Kind::OneShot | Kind::Unknown => Does::Anything,
        };
        self.catch_up(Leaves::All, Asks::Anything).await?;
        self.server.send(&packet).await?;
        let mut answer = Answer::new(Shape::Prepared, self.login.deprecates_eof);
        self.relay(&mut answer, None).await?;
        self.note_prepared(&answer, (does, asks), select);
        self.note_answer(&answer).await
    }

    pub fn note_prepared(&mut self, answer: &Answer, (does, asks): (Does, Asks), select: Option<Rc<Select>>) {
        self.last_prepared = answer.statement;
        if let Some(number) = answer.statement {
            let params = answer.params;
            let (types, has_unheard_types, has_long_data) = (None, false, false);
            let prepared = Prepared { does, asks, select, params, types, has_unheard_types, has_long_data };
            self.prepared.insert(number, prepared);
        }
    }

    pub fn note_long_data(&mut self, number: u32, has_long_data: bool) {
        if let Some(prepared) = self.numbered(number).and_then(|number| self.prepared.get_mut(&number)) {
            prepared.has_long_data = has_long_data;
        }
    }

    /// The statement that is meant by a number.
    pub fn numbered(&self, number: u32) -> Option<u32> {
        if number == LAST_PREPARED { self.last_prepared } else { Some(number) }
    }

    /// The SELECT with this number, if its answers can be kept.
    pub fn select(&self, number: u32) -> Option<Rc<Select>> {
        self.prepared.get(&self.numbered(number)?)?.select.clone()
    }

    /// Executes a SELECT: from memory, or by the server. Whatever the server gets says its types, for it may not have heard of them.
    pub async fn execute(&mut self, number: u32, length: usize) -> io::Result<()> {
        let (Some(number), Some(select)) = (self.numbered(number), self.select(number)) else { return Ok(()) };
        if length >= EXECUTION_BYTES_MAX {
            // Too long to be put together anew with types that the server may need and does not have.
            if self.prepared.get(&number).is_some_and(|prepared| prepared.has_unheard_types) {
                return Err(io::ErrorKind::InvalidData.into());
            }
            return self.execute_blindly(self.does(number), Asks::Nothing).await;
        }
        let packet = self.client.packet(EXECUTION_BYTES_MAX).await?;
        let payload = packet.get(4..).unwrap_or_default();
        let prepared = self.prepared.get_mut(&number);
        let (params, has_long_data) = prepared.as_ref().map_or((0, false), |it| (it.params, it.has_long_data));
        let execution = Execution::read(payload, params).filter(|_| !has_long_data);
        let types = match (&execution, prepared) {
            (Some(execution), Some(prepared)) => {
                prepared.types = execution.types.map(Rc::from).or(prepared.types.take());
                prepared.types.clone()
            }
            _ => None,
        };
        if let (Some(execution), Some(types)) = (&execution, &types) {
            let whole = execution.packet(types);
            if let Some(cache) = self.service.cache.clone()
                && execution.is_plain()
                && length <= STATEMENT_BYTES_MAX
                && execution::are_timeless(types)
                && let Some(settings) = self.settings_to_keep_with(&select.sql).await?
                && settings.bytes == select.settings.bytes
            {
                let mut key = self.key(PREPARED, &settings);
                key.extend_from_slice(&(select.sql.len() as u32).to_le_bytes());
                key.extend_from_slice(&select.sql);
                execution.write_key(types, &mut key);
                self.keep(&cache, &key, &settings, &select.tables, (whole, Some(select.sql.clone()))).await?;
                let is_unheard = self.unheard.is_some();
                if let Some(prepared) = self.prepared.get_mut(&number) {
                    prepared.has_unheard_types = is_unheard;
                }
                return Ok(());
            }
            return self.send_and_relay(number, &whole).await;
        }
        self.send_and_relay(number, &packet).await
    }

    async fn send_and_relay(&mut self, number: u32, packet: &[u8]) -> io::Result<()> {
        let effect = self.effect_of(self.does(number)).await;
        self.catch_up(Leaves::Nothing, Asks::Nothing).await?;
        self.announce(effect);
        self.server.send(packet).await?;
        let mut answer = Answer::new(Shape::Results, self.login.deprecates_eof);
        self.relay(&mut answer, None).await?;
        self.note_answer(&answer).await
    }

    fn does(&self, number: u32) -> Does {
        self.prepared.get(&number).map_or(Does::Anything, |prepared| prepared.does.clone())
    }

    /// Has the server execute a statement whose values are not looked at.
    pub async fn execute_blindly(&mut self, does: Does, asks: Asks) -> io::Result<()> {
        let leaves = match does {
            Does::Write { finds_rows: true, .. } => Leaves::PerhapsFoundRows,
            Does::Write { .. } => Leaves::FoundRows,
            Does::Read(_) => Leaves::Nothing,
            Does::Nothing | Does::Calls | Does::Anything => Leaves::All,
        };
        let effect = self.effect_of(does).await;
        self.catch_up(leaves, asks).await?;
        self.pass(Shape::Results, effect).await.map(drop)
    }

    async fn effect_of(&mut self, does: Does) -> Effect {
        self.resets_warnings = matches!(does, Does::Read(_) | Does::Write { .. });
        match does {
            Does::Read(tables) => self.effect_of_reading_from(Some(&tables)).await,
            Does::Write { tables, .. } => self.effect_of_writing_to(Some(&tables)).await,
            Does::Nothing => Effect::Nothing,
            Does::Calls => {
                self.become_odd();
                Effect::AnyRows
            }
            Does::Anything => {
                self.become_odd();
                Effect::Everything
            }
        }
    }
}

fn does(kind: impl FnOnce(Rc<[Namespace]>) -> Does, tables: &[Table], settings: Option<&Settings>) -> Does {
    pending::namespaces(tables, settings).map_or(Does::Anything, |tables| kind(tables.into()))
}
