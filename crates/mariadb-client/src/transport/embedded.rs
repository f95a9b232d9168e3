//! The transport within the process: statements are calls of a library, which return when MariaDB
//! is done.
//!
//! A connection has a thread for them, started with its first command, so that statements of one
//! worker may wait for one another while its other sessions go on. Queued commands go there at once
//! and answers come back one by one. Lookups are executed on the caller's thread
//! ([`Embedded::execute_on_caller`]): handing one over and back takes longer than the lookup.

use super::runner::{Answer, Command, Params, Runner, Thread};
use crate::event::Event;
use crate::failure::{Failure, Result};
use mariadb_embedded::{Database, Rows};
use mariadb_wire::ok::OkPacket;
use mariadb_wire::{ColumnType, Param};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Row buffers up to this size are reused.
const REUSED_BYTES_MAX: usize = 1 << 20;

/// A session of the embedded MariaDB.
pub struct Embedded {
    runner: RunnerLocation,
    executes_on_caller: bool,
    database: Arc<Database>,
    session: u64,
    /// Not executed yet.
    queued: VecDeque<Command>,
    /// Commands on the thread whose answers have not arrived.
    in_flight: usize,
    /// The answer being taken, and the position of its next row.
    current: Option<(Answer, usize)>,
    types: Arc<[ColumnType]>,
    row_buffer: Rows,
    broken: bool,
}

/// The thread that executes the commands of the session.
enum RunnerLocation {
    Caller(Box<Runner>),
    Thread(Thread),
    /// The thread could not be started, or has ended.
    Lost,
}

impl Embedded {
    pub fn open(database: &Arc<Database>) -> Result<Embedded> {
        let session = database.connect().map_err(Failure::from)?;
        Ok(Embedded {
            executes_on_caller: false,
            database: database.clone(),
            session: session.id(),
            runner: RunnerLocation::Caller(Box::new(Runner::new(session))),
            queued: VecDeque::new(),
            in_flight: 0,
            current: None,
            types: Arc::new([]),
            row_buffer: Rows::default(),
            broken: false,
        })
    }

    /// Executes a fast statement without rows, before the thread is started.
    pub fn run_on_caller(&mut self, sql: &str) -> Result<OkPacket> {
        match &mut self.runner {
            RunnerLocation::Caller(runner) => runner.run(Command::Query(sql.to_owned()), Rows::default()).outcome,
            _ => Err(Failure::Lost("the connection already has a thread".into())),
        }
    }

    /// Executes statements on the thread that takes their answers from now on.
    pub fn execute_on_caller(&mut self) {
        self.executes_on_caller = true;
        if self.is_idle()
            && let RunnerLocation::Thread(thread) = std::mem::replace(&mut self.runner, RunnerLocation::Lost)
            && let Some(runner) = thread.end()
        {
            self.runner = RunnerLocation::Caller(runner);
        }
    }

    pub fn session(&self) -> u64 {
        self.session
    }

    /// Returns whether nothing is queued and no answer is due.
    pub fn is_idle(&self) -> bool {
        !self.broken && self.queued.is_empty() && self.in_flight == 0 && self.current.is_none()
    }

    pub fn has_hung_up(&self) -> bool {
        self.broken || matches!(self.runner, RunnerLocation::Lost)
    }

    // --- commands

    pub fn queue_query(&mut self, sql: &str) {
        self.queued.push_back(Command::Query(sql.to_owned()));
    }

    pub fn queue_execute(&mut self, sql: &Arc<str>, params: &[Param<'_>]) {
        self.queued.push_back(Command::Execute { sql: sql.clone(), params: Params::new(params), reprepare: false });
    }

    pub fn queue_execute_reprepared(&mut self, sql: &Arc<str>, params: &[Param<'_>]) {
        self.queued.push_back(Command::Execute { sql: sql.clone(), params: Params::new(params), reprepare: true });
    }

    pub fn queue_bulk(&mut self, sql: &Arc<str>, types: &[ColumnType], push_rows: impl FnOnce(&mut Vec<u8>)) {
        let mut rows = Vec::new();
        push_rows(&mut rows);
        self.queued.push_back(Command::Bulk { sql: sql.clone(), types: types.to_vec(), rows });
    }

    /// Hands the queued commands to the thread.
    pub async fn flush(&mut self) -> Result<()> {
        if !self.executes_on_caller && !self.queued.is_empty() {
            self.hand_over()?;
        }
        Ok(())
    }

    fn hand_over(&mut self) -> Result<()> {
        if let RunnerLocation::Caller(_) = self.runner
            && let RunnerLocation::Caller(runner) = std::mem::replace(&mut self.runner, RunnerLocation::Lost)
        {
            self.runner = RunnerLocation::Thread(Thread::start(runner).map_err(|failure| self.breaks(failure))?);
        }
        let RunnerLocation::Thread(thread) = &self.runner else { return Err(self.lost()) };
        self.in_flight += self.queued.len();
        if thread.send(self.queued.drain(..)).is_err() {
            return Err(self.lost());
        }
        Ok(())
    }

    // --- answers

    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Event>> {
        if self.broken {
            return Poll::Ready(Err(self.lost()));
        }
        if self.current.is_none() {
            match self.poll_answer(context) {
                Poll::Ready(Ok(answer)) => {
                    if !answer.rows.ends.is_empty() && answer.rows.types != *self.types {
                        self.types = answer.rows.types.as_slice().into();
                    }
                    self.current = Some((answer, 0));
                }
                Poll::Ready(Err(failure)) => return Poll::Ready(Err(failure)),
                Poll::Pending => return Poll::Pending,
            }
        }
        if let Some((answer, next)) = &mut self.current
            && let Some(range) = answer.rows.range(*next)
        {
            *next += 1;
            return Poll::Ready(Ok(Event::Row(range)));
        }
        let Some((answer, _)) = self.current.take() else { return Poll::Ready(Err(self.lost())) };
        if answer.rows.payloads.capacity() <= REUSED_BYTES_MAX {
            self.row_buffer = answer.rows;
        }
        Poll::Ready(answer.outcome.map(Event::Finished).map_err(|failure| self.breaks(failure)))
    }

    /// Returns the answer of the oldest command.
    fn poll_answer(&mut self, context: &mut Context<'_>) -> Poll<Result<Answer>> {
        if self.executes_on_caller && self.in_flight == 0 {
            let Some(command) = self.queued.pop_front() else { return Poll::Ready(Err(self.lost())) };
            let RunnerLocation::Caller(runner) = &mut self.runner else { return Poll::Ready(Err(self.lost())) };
            return Poll::Ready(Ok(runner.run(command, std::mem::take(&mut self.row_buffer))));
        }
        if !self.queued.is_empty() {
            self.hand_over()?;
        }
        let RunnerLocation::Thread(thread) = &self.runner else { return Poll::Ready(Err(self.lost())) };
        if self.in_flight == 0 {
            return Poll::Ready(Err(self.lost()));
        }
        let answer = thread.poll_answer(context);
        if answer.is_ready() {
            self.in_flight -= 1;
        }
        answer.map(|answer| answer.ok_or_else(|| self.lost()))
    }

    /// Returns the payload of an [`Event::Row`], encoded as in the client/server protocol, and the
    /// types of its columns.
    pub fn raw_row(&self, range: Range<usize>) -> (&[u8], &Arc<[ColumnType]>) {
        let payloads = self.current.as_ref().map_or(&[][..], |(answer, _)| &answer.rows.payloads);
        (payloads.get(range).unwrap_or_default(), &self.types)
    }

    fn breaks(&mut self, failure: Failure) -> Failure {
        self.broken |= failure.is_lost();
        failure
    }

    fn lost(&mut self) -> Failure {
        self.breaks(Failure::Lost("the connection to the embedded MariaDB is gone".into()))
    }
}

impl Drop for Embedded {
    /// Kills the statement that runs on the thread.
    fn drop(&mut self) {
        if self.in_flight > 0 {
            self.database.kill(self.session);
        }
    }
}
