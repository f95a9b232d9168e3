//! Execution of an embedded connection's commands, one by one, and the thread for it.

use crate::failure::{Failure, Result, server_error};
use ahash::AHashMap;
use mariadb_embedded::database::STACK_BYTES;
use mariadb_embedded::{Refused, Rows, Session, StatementId};
use mariadb_wire::ok::{OkPacket, STATUS_AUTOCOMMIT};
use mariadb_wire::{ColumnType, Param, com_stmt_bulk_execute};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;

/// Past this number the least recently used statement is closed.
const STATEMENTS_MAX: usize = 128;

/// Codes of the library's client half: the connection is lost.
const CLIENT_ERRORS: Range<u16> = 2000..3000;

pub enum Command {
    Query(String),
    Execute {
        sql: Arc<str>,
        params: Params,
        /// Prepare it again if it was prepared before.
        reprepare: bool,
    },
    /// Execute once per row of `rows`, which [`com_stmt_bulk_execute::push`] has encoded.
    Bulk {
        sql: Arc<str>,
        types: Vec<ColumnType>,
        rows: Vec<u8>,
    },
}

pub struct Answer {
    pub rows: Rows,
    pub outcome: Result<OkPacket>,
}

/// Owned parameters of a queued command.
pub struct Params {
    values: SmallVec<[Value; 4]>,
    bytes: Vec<u8>,
}

enum Value {
    /// A value without bytes of its own.
    Plain(Param<'static>),
    Text(Range<usize>),
    Bytes(Range<usize>),
}

impl Params {
    pub fn new(params: &[Param<'_>]) -> Params {
        let mut bytes = Vec::new();
        let mut copy = |text: &[u8]| {
            let start = bytes.len();
            bytes.extend_from_slice(text);
            start..bytes.len()
        };
        let values = params.iter().map(|param| match *param {
            Param::Text(text) => Value::Text(copy(text)),
            Param::Bytes(text) => Value::Bytes(copy(text)),
            Param::Null => Value::Plain(Param::Null),
            Param::Unsigned(number) => Value::Plain(Param::Unsigned(number)),
            Param::Signed(number) => Value::Plain(Param::Signed(number)),
            Param::Double(number) => Value::Plain(Param::Double(number)),
        });
        let values = values.collect();
        Params { values, bytes }
    }

    fn iter(&self) -> impl Iterator<Item = Param<'_>> {
        self.values.iter().map(|value| match value {
            Value::Plain(param) => *param,
            Value::Text(range) => Param::Text(&self.bytes[range.clone()]),
            Value::Bytes(range) => Param::Bytes(&self.bytes[range.clone()]),
        })
    }
}

/// A session and its prepared statements.
pub struct Runner {
    session: Session,
    statements: AHashMap<Arc<str>, Prepared>,
    clock: u64,
    /// Whether autocommit is on, as of the last answer.
    autocommits: bool,
}

struct Prepared {
    id: StatementId,
    used: u64,
}

impl Runner {
    pub fn new(session: Session) -> Runner {
        Runner { session, statements: AHashMap::new(), clock: 0, autocommits: true }
    }

    /// Executes a command; `rows` is a buffer for its rows.
    pub fn run(&mut self, command: Command, mut rows: Rows) -> Answer {
        rows.clear();
        let outcome = match command {
            Command::Query(sql) => self.session.query(&sql, &mut rows).map_err(Failure::from),
            Command::Execute { sql, params, reprepare } => self.execute(&sql, &params, reprepare, &mut rows),
            Command::Bulk { sql, types, rows: values } => self.bulk(&sql, &types, &values, &mut rows),
        };
        if let Ok(ok) = &outcome {
            self.autocommits = ok.status & STATUS_AUTOCOMMIT != 0;
        }
        if outcome.is_err() {
            rows.clear();
        }
        Answer { rows, outcome }
    }

    fn execute(&mut self, sql: &Arc<str>, params: &Params, reprepare: bool, rows: &mut Rows) -> Result<OkPacket> {
        if reprepare {
            self.forget(sql);
        }
        let id = self.prepare(sql)?;
        let params: SmallVec<[Param<'_>; 4]> = params.iter().collect();
        let outcome = self.session.execute(id, &params, rows).map_err(Failure::from);
        self.forget_if_stale(sql, &outcome);
        outcome
    }

    /// Forgets a statement that failed with a missing table. A statement that writes does not find
    /// the tables of triggers created after it was prepared (MariaDB 10.11).
    fn forget_if_stale(&mut self, sql: &Arc<str>, outcome: &Result<OkPacket>) {
        if outcome.as_ref().is_err_and(Failure::is_missing_table) {
            self.forget(sql);
        }
    }

    fn forget(&mut self, sql: &Arc<str>) {
        if let Some(prepared) = self.statements.remove(sql) {
            self.session.close_statement(prepared.id);
        }
    }

    /// Executes a bulk command; all rows or none, unless a transaction is open.
    fn bulk(&mut self, sql: &Arc<str>, types: &[ColumnType], values: &[u8], rows: &mut Rows) -> Result<OkPacket> {
        let id = self.prepare(sql)?;
        let own_transaction = self.autocommits;
        if own_transaction {
            self.session.query("START TRANSACTION", rows)?;
        }
        let outcome = self.each(id, types, values, rows);
        self.forget_if_stale(sql, &outcome);
        if own_transaction {
            let end = if outcome.is_ok() { "COMMIT" } else { "ROLLBACK" };
            let ended = self.session.query(end, rows)?;
            return outcome.map(|ok| OkPacket { status: ended.status, ..ok });
        }
        outcome
    }

    fn each(&mut self, id: StatementId, types: &[ColumnType], values: &[u8], rows: &mut Rows) -> Result<OkPacket> {
        let mut all = OkPacket::default();
        let mut reader = com_stmt_bulk_execute::ParameterRows::new(values, types);
        while let Some(params) = reader.next_row::<SmallVec<[Param<'_>; 4]>>()? {
            let ok = self.session.execute(id, &params, rows)?;
            let affected_rows = all.affected_rows + ok.affected_rows;
            // As in the protocol: the id of the first row.
            let last_insert_id = if all.last_insert_id == 0 { ok.last_insert_id } else { all.last_insert_id };
            all = OkPacket { affected_rows, last_insert_id, ..ok };
        }
        Ok(all)
    }

    fn prepare(&mut self, sql: &Arc<str>) -> Result<StatementId> {
        self.clock += 1;
        if let Some(prepared) = self.statements.get_mut(sql) {
            prepared.used = self.clock;
            return Ok(prepared.id);
        }
        if self.statements.len() >= STATEMENTS_MAX {
            let oldest = self.statements.iter().min_by_key(|(_, prepared)| prepared.used);
            if let Some(oldest) = oldest.map(|(sql, _)| sql.clone())
                && let Some(prepared) = self.statements.remove(&oldest)
            {
                self.session.close_statement(prepared.id);
            }
        }
        let id = self.session.prepare(sql)?;
        self.statements.insert(sql.clone(), Prepared { id, used: self.clock });
        Ok(id)
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Failure {
        match refused.code {
            server_error::CONNECTION_KILLED | server_error::SHUTDOWN => Failure::Lost(refused.message),
            code if CLIENT_ERRORS.contains(&code) => Failure::Lost(refused.message),
            code => Failure::Sql { code, message: refused.message },
        }
    }
}

/// A thread that executes the commands it is sent.
pub struct Thread {
    commands: Option<mpsc::Sender<Command>>,
    answers: Arc<Mutex<Answers>>,
    handle: JoinHandle<Box<Runner>>,
}

#[derive(Default)]
struct Answers {
    ready: VecDeque<Answer>,
    /// Wakes the task that waits for the next answer.
    waker: Option<Waker>,
    /// Set when the thread has ended: no more answers will come.
    ended: bool,
}

impl Thread {
    pub fn start(runner: Box<Runner>) -> Result<Thread> {
        let (commands, queue) = mpsc::channel();
        let answers = Arc::new(Mutex::new(Answers::default()));
        let thread = std::thread::Builder::new().name("mariadb".into()).stack_size(STACK_BYTES);
        let shared = answers.clone();
        let handle = thread.spawn(move || work(runner, &queue, &shared));
        let handle = handle.map_err(|error| Failure::Lost(format!("cannot start a thread for MariaDB: {error}")))?;
        Ok(Thread { commands: Some(commands), answers, handle })
    }

    /// Sends commands; fails if the thread has ended.
    pub fn send(&self, commands: impl Iterator<Item = Command>) -> Result<(), ()> {
        let sender = self.commands.as_ref().ok_or(())?;
        commands.into_iter().try_for_each(|command| sender.send(command).map_err(drop))
    }

    /// Returns the next answer; `None` if no more will come.
    pub fn poll_answer(&self, context: &mut Context<'_>) -> Poll<Option<Answer>> {
        let mut answers = lock(&self.answers);
        if let Some(answer) = answers.ready.pop_front() {
            return Poll::Ready(Some(answer));
        }
        if answers.ended {
            return Poll::Ready(None);
        }
        if !answers.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            answers.waker = Some(context.waker().clone());
        }
        Poll::Pending
    }

    /// Ends the idle thread and returns its runner.
    pub fn end(mut self) -> Option<Box<Runner>> {
        self.commands = None;
        self.handle.join().ok()
    }
}

fn work(mut runner: Box<Runner>, queue: &mpsc::Receiver<Command>, answers: &Mutex<Answers>) -> Box<Runner> {
    struct EndedGuard<'a>(&'a Mutex<Answers>);
    impl Drop for EndedGuard<'_> {
        fn drop(&mut self) {
            let mut answers = lock(self.0);
            answers.ended = true;
            if let Some(waker) = answers.waker.take() {
                waker.wake();
            }
        }
    }
    let _guard = EndedGuard(answers);
    while let Ok(command) = queue.recv() {
        let answer = runner.run(command, Rows::default());
        let mut answers = lock(answers);
        answers.ready.push_back(answer);
        let waker = answers.waker.take();
        drop(answers);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
    runner
}

fn lock(answers: &Mutex<Answers>) -> MutexGuard<'_, Answers> {
    answers.lock().unwrap_or_else(PoisonError::into_inner)
}
