//! The transport within the process: statements are calls of a library, which return when MariaDB is done.
//!
//! A connection has a thread for them, started with its first command, so that statements of one worker may wait for one another and its
//! other sessions go on. What is queued goes there at once and answers come back one by one. Only who asks for something that is done
//! in a moment has it executed on his own thread ([`Embedded::stay_here`]): handing a lookup over and back takes longer than the lookup.

use super::runner::{Answer, Command, Params, Runner, Thread};
use crate::event::Event;
use crate::failure::{Failure, Result};
use mariadb_embedded::{Database, Rows};
use mariadb_wire::ok::OkPacket;
use mariadb_wire::{ColumnType, Param};
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Memory for rows is used again up to this size.
const SPARE_BYTES_MAX: usize = 1 << 20;

pub struct Embedded {
    place: Place,
    stays_here: bool,
    database: Arc<Database>,
    session: u64,
    /// Not executed yet.
    queued: VecDeque<Command>,
    /// Commands on the thread whose answers have not come yet.
    away: usize,
    /// The answer that is being taken, and its next row.
    current: Option<(Answer, usize)>,
    types: Rc<[ColumnType]>,
    spare: Rows,
    broken: bool,
}

enum Place {
    Here(Box<Runner>),
    Away(Thread),
    /// The thread could not be started.
    Nowhere,
}

impl Embedded {
    pub fn open(database: &Arc<Database>) -> Result<Embedded> {
        let session = database.connect().map_err(Failure::from)?;
        Ok(Embedded {
            stays_here: false,
            database: database.clone(),
            session: session.id(),
            place: Place::Here(Box::new(Runner::new(session))),
            queued: VecDeque::new(),
            away: 0,
            current: None,
            types: Rc::new([]),
            spare: Rows::default(),
            broken: false,
        })
    }

    /// Executes a statement that gives no rows and takes next to no time, before there is a thread.
    pub fn run_here(&mut self, sql: &str) -> Result<OkPacket> {
        match &mut self.place {
            Place::Here(runner) => runner.run(Command::Query(sql.to_owned()), Rows::default()).outcome,
            _ => Err(Failure::Lost("the connection has a thread already".into())),
        }
    }

    /// Statements are executed on the thread that takes their answers, from now on.
    pub fn stay_here(&mut self) {
        self.stays_here = true;
        if self.is_idle()
            && let Place::Away(thread) = std::mem::replace(&mut self.place, Place::Nowhere)
            && let Some(runner) = thread.end()
        {
            self.place = Place::Here(runner);
        }
    }

    pub fn session(&self) -> u64 {
        self.session
    }

    /// Nothing is queued and no answer due.
    pub fn is_idle(&self) -> bool {
        !self.broken && self.queued.is_empty() && self.away == 0 && self.current.is_none()
    }

    pub fn has_hung_up(&self) -> bool {
        self.broken || matches!(self.place, Place::Nowhere)
    }

    // --- commands

    pub fn queue_query(&mut self, sql: &str) {
        self.queued.push_back(Command::Query(sql.to_owned()));
    }

    pub fn queue_execute(&mut self, sql: &Arc<str>, params: &[Param<'_>]) {
        self.queued.push_back(Command::Execute { sql: sql.clone(), params: Params::new(params), anew: false });
    }

    pub fn queue_execute_anew(&mut self, sql: &Arc<str>, params: &[Param<'_>]) {
        self.queued.push_back(Command::Execute { sql: sql.clone(), params: Params::new(params), anew: true });
    }

    pub fn queue_bulk(&mut self, sql: &Arc<str>, types: &[ColumnType], push_rows: impl FnOnce(&mut Vec<u8>)) {
        let mut rows = Vec::new();
        push_rows(&mut rows);
        self.queued.push_back(Command::Bulk { sql: sql.clone(), types: types.to_vec(), rows });
    }

    /// Has the thread begin with what is queued.
    pub async fn flush(&mut self) -> Result<()> {
        if !self.stays_here && !self.queued.is_empty() {
            self.hand_over()?;
        }
        Ok(())
    }

    fn hand_over(&mut self) -> Result<()> {
        if let Place::Here(_) = self.place
            && let Place::Here(runner) = std::mem::replace(&mut self.place, Place::Nowhere)
        {
            self.place = Place::Away(Thread::start(runner).map_err(|failure| self.breaks(failure))?);
        }
        let Place::Away(thread) = &self.place else { return Err(self.lost()) };
        self.away += self.queued.len();
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
        if answer.rows.payloads.capacity() <= SPARE_BYTES_MAX {
            self.spare = answer.rows;
        }
        Poll::Ready(answer.outcome.map(Event::Finished).map_err(|failure| self.breaks(failure)))
    }

    /// The answer of the oldest command.
    fn poll_answer(&mut self, context: &mut Context<'_>) -> Poll<Result<Answer>> {
        if self.stays_here && self.away == 0 {
            let Some(command) = self.queued.pop_front() else { return Poll::Ready(Err(self.lost())) };
            let Place::Here(runner) = &mut self.place else { return Poll::Ready(Err(self.lost())) };
            return Poll::Ready(Ok(runner.run(command, std::mem::take(&mut self.spare))));
        }
        if !self.queued.is_empty() {
            self.hand_over()?;
        }
        let Place::Away(thread) = &self.place else { return Poll::Ready(Err(self.lost())) };
        if self.away == 0 {
            return Poll::Ready(Err(self.lost()));
        }
        let answer = thread.poll_answer(context);
        if answer.is_ready() {
            self.away -= 1;
        }
        answer.map(|answer| answer.ok_or_else(|| self.lost()))
    }

    /// The row of an [`Event::Row`] as the client/server protocol has it, and the types of its columns.
    pub fn raw_row(&self, range: Range<usize>) -> (&[u8], &Rc<[ColumnType]>) {
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
    /// Nobody waits for what runs on the thread: it need not go on.
    fn drop(&mut self) {
        if self.away > 0 {
            self.database.kill(self.session);
        }
    }
}
