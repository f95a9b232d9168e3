//! The transport to a server: the client/server protocol, over TCP or a Unix socket.
//!
//! Commands are pipelined: any number go out in one write, including the preparation of a statement
//! and its first execution.

use super::statements::Statements;
use super::stream::Stream;
use crate::event::Event;
use crate::failure::{Failure, Result};
use crate::identifier::quote;
use mariadb_wire::column_definition::ColumnDefinition;
use mariadb_wire::ok::OkPacket;
use mariadb_wire::packet::{PacketReader, write_packet};
use mariadb_wire::prepare_ok::PrepareOk;
use mariadb_wire::result_set::{Head, Next};
use mariadb_wire::{Capabilities, ColumnType, ERR, Malformed, Param, com, com_stmt_bulk_execute, com_stmt_execute};
use selkie_runtime::busy_poll::{Awaited, BusyPoll, Expectation};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// A connection to a server by its protocol.
pub struct Protocol {
    pub stream: Stream,
    pub incoming: PacketReader,
    pub outgoing: Vec<u8>,
    /// Number of bytes of `outgoing` that were sent.
    sent: usize,
    pub capabilities: Capabilities,
    /// The id of the server's session.
    pub session: u64,
    statements: Statements,
    /// Answers that have not arrived, in order.
    expected: VecDeque<Expected>,
    phase: Phase,
    /// Types of the columns of the rows that are arriving.
    row_types: Arc<[ColumnType]>,
    /// Names of these columns; `None`: they are not kept.
    row_names: Option<Vec<String>>,
    answer: BusyPoll,
    /// For answers of all but prepared statements, which have their own.
    expectation: Expectation,
    /// Set when the connection can no longer be used.
    broken: bool,
    /// The role that the session has, or will have when the queued commands are executed; `None`:
    /// none, or not known.
    role: Option<Arc<str>>,
    /// The role under which statements are to be executed from now on.
    wanted_role: Option<Arc<str>>,
}

enum Expected {
    /// An answer to a change of the role, which is not reported.
    Role,
    /// An answer to COM_STMT_PREPARE.
    Prepared(Arc<str>),
    /// An answer to COM_STMT_EXECUTE (of this statement) or another command.
    Result(Option<Arc<str>>),
}

/// The next part of the first answer in `expected`.
enum Phase {
    Head,
    /// Definitions that follow the answer to COM_STMT_PREPARE: parameters, then columns.
    PreparedDefinitions {
        prepared: PrepareOk,
        left: usize,
        types: Vec<ColumnType>,
    },
    Definitions {
        left: usize,
        types: Vec<ColumnType>,
    },
    Rows,
}

impl Protocol {
    pub fn new(stream: Stream, incoming: PacketReader, capabilities: Capabilities) -> Self {
        Protocol {
            stream,
            incoming,
            outgoing: Vec::with_capacity(4096),
            sent: 0,
            capabilities,
            session: 0,
            statements: Statements::default(),
            expected: VecDeque::new(),
            phase: Phase::Head,
            row_types: Arc::new([]),
            row_names: None,
            answer: BusyPoll::new(Awaited::ServerBehind),
            expectation: Expectation::default(),
            broken: false,
            role: None,
            wanted_role: None,
        }
    }

    /// Executes the statements queued from now on under a role.
    pub fn use_role(&mut self, role: &Arc<str>) {
        self.wanted_role = Some(role.clone());
    }

    /// Returns the role of [`Protocol::use_role`].
    pub fn wanted_role(&self) -> Option<&Arc<str>> {
        self.wanted_role.as_ref()
    }

    /// Returns the role of the session.
    pub fn role(&self) -> Option<&Arc<str>> {
        self.role.as_ref()
    }

    /// Returns whether nothing is in flight in either direction.
    pub fn is_idle(&self) -> bool {
        !self.broken && self.expected.is_empty() && self.outgoing.len() == self.sent && self.incoming.is_empty()
    }

    pub fn session(&self) -> u64 {
        self.session
    }

    /// Returns the id of the server's session if it may be executing something. If the connection
    /// was lost, the server may have been lost as well, and a restarted one may have given the id
    /// to another client.
    pub fn session_in_flight(&self) -> Option<u64> {
        (!self.expected.is_empty() && !self.broken).then_some(self.session)
    }

    // --- commands

    /// Queues a statement without parameters, sent as text.
    pub fn queue_query(&mut self, sql: &str) {
        self.assume_role();
        write_packet(0, &mut self.outgoing, |out| com::query(sql, out));
        self.expected.push_back(Expected::Result(None));
    }

    /// Queues a prepared statement; prepares it first if this connection has not done so.
    pub fn queue_execute(&mut self, sql: &Arc<str>, params: &[Param<'_>]) {
        let id = self.prepare(sql);
        write_packet(0, &mut self.outgoing, |out| com_stmt_execute::encode(id, params, out));
        self.expected.push_back(Expected::Result(Some(sql.clone())));
    }

    pub fn queue_execute_reprepared(&mut self, sql: &Arc<str>, params: &[Param<'_>]) {
        if let Some(forgotten) = self.statements.forget(sql) {
            write_packet(0, &mut self.outgoing, |out| com::stmt_close(forgotten, out));
        }
        self.queue_execute(sql, params);
    }

    /// Queues one command that executes a prepared statement once per row of parameters, which
    /// `push_rows` appends with [`com_stmt_bulk_execute::push`].
    pub fn queue_bulk(&mut self, sql: &Arc<str>, types: &[ColumnType], push_rows: impl FnOnce(&mut Vec<u8>)) {
        let id = self.prepare(sql);
        write_packet(0, &mut self.outgoing, |out| {
            com_stmt_bulk_execute::begin(id, types, out);
            push_rows(out);
        });
        self.expected.push_back(Expected::Result(Some(sql.clone())));
    }

    /// Sends the queued commands.
    pub async fn flush(&mut self) -> Result<()> {
        poll_fn(|context| self.poll_flush(context)).await
    }

    /// Queues the change to the wanted role, unless the session has it. The role that a connection
    /// had before is given up first: if the wanted one is refused, the statements pipelined behind
    /// it are executed without a role, and refused as well.
    fn assume_role(&mut self) {
        if self.wanted_role == self.role {
            return;
        }
        let Some(role) = &self.wanted_role else { return };
        let sql = format!("BEGIN NOT ATOMIC SET ROLE NONE; SET ROLE {}; END", quote(role));
        write_packet(0, &mut self.outgoing, |out| com::query(&sql, out));
        self.expected.push_back(Expected::Role);
        self.role.clone_from(&self.wanted_role);
        self.statements.role_changes();
    }

    /// Returns the statement's id; queues COM_STMT_PREPARE if it has none yet.
    fn prepare(&mut self, sql: &Arc<str>) -> u32 {
        self.assume_role();
        if let Some(id) = self.statements.id(sql) {
            return id;
        }
        if let Some(forgotten) = self.statements.make_room() {
            write_packet(0, &mut self.outgoing, |out| com::stmt_close(forgotten, out));
        }
        write_packet(0, &mut self.outgoing, |out| com::stmt_prepare(sql, out));
        self.statements.begin(sql);
        self.expected.push_back(Expected::Prepared(sql.clone()));
        com::LAST_PREPARED
    }

    // --- answers

    /// Returns the next event of the oldest unfinished command, after sending queued commands. A
    /// refused statement fails with [`Failure::Sql`], which ends that command's answer.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Event>> {
        if self.sent < self.outgoing.len() || self.stream.needs_flush() {
            // Sending may block on a full socket; answers are read nevertheless.
            if let Poll::Ready(Err(failure)) = self.poll_flush(context) {
                return Poll::Ready(Err(failure));
            }
        }
        loop {
            match self.step() {
                Ok(Some(event)) => return Poll::Ready(Ok(event)),
                Ok(None) => {}
                Err(failure) => return Poll::Ready(Err(self.note_failure(failure))),
            }
            if let Err(failure) = ready!(self.poll_fill(context)) {
                return Poll::Ready(Err(self.note_failure(failure)));
            }
        }
    }

    /// Takes the whole answer of the oldest unfinished command and drops its rows.
    pub async fn finish(&mut self) -> Result<OkPacket> {
        loop {
            if let Event::Finished(ok) = poll_fn(|context| self.poll_next(context)).await? {
                return Ok(ok);
            }
        }
    }

    /// Returns the payload of an [`Event::Row`] and the types of its columns.
    pub fn raw_row(&self, range: Range<usize>) -> (&[u8], &Arc<[ColumnType]>) {
        (self.incoming.payload(range), &self.row_types)
    }

    /// Keeps the names of columns from now on.
    pub fn keep_names(&mut self) {
        self.row_names.get_or_insert_default();
    }

    /// Returns the names of the columns of the rows that are arriving, if they are kept.
    pub fn row_names(&self) -> &[String] {
        self.row_names.as_deref().unwrap_or_default()
    }

    /// Marks the connection as broken if the failure means that.
    fn note_failure(&mut self, failure: Failure) -> Failure {
        self.broken |= failure.is_lost();
        failure
    }

    /// Reads buffered packets until one completes an event; returns `None` if more bytes are
    /// needed.
    fn step(&mut self) -> Result<Option<Event>> {
        while let Some(range) = self.incoming.next_packet()? {
            let payload = self.incoming.payload(range.clone());
            match &mut self.phase {
                Phase::Rows => match Next::decode(payload)? {
                    Next::Row(_) => return Ok(Some(Event::Row(range))),
                    Next::End(ok) => return self.finished(ok).map(Some),
                    Next::Err(packet) => {
                        let failure = Failure::from_packet(&packet);
                        return Err(self.failed(failure));
                    }
                },
                Phase::Head => {
                    if let Some(event) = self.head(range)? {
                        return Ok(Some(event));
                    }
                }
                Phase::Definitions { left, types } => {
                    let definition = ColumnDefinition::decode(payload)?;
                    types.push(definition.column_type);
                    if let Some(names) = &mut self.row_names {
                        names.push(String::from_utf8_lossy(definition.name).into_owned());
                    }
                    *left -= 1;
                    if *left == 0 {
                        let types: Arc<[ColumnType]> = std::mem::take(types).into();
                        self.rows_follow(types);
                    }
                }
                Phase::PreparedDefinitions { prepared, left, types } => {
                    // Parameters come first; only the types of the columns are used.
                    if *left <= usize::from(prepared.columns) {
                        types.push(ColumnDefinition::decode(payload)?.column_type);
                    }
                    *left -= 1;
                    if *left == 0 {
                        let (prepared, types) = (*prepared, std::mem::take(types));
                        self.prepared(prepared, types);
                    }
                }
            }
        }
        Ok(None)
    }

    fn head(&mut self, range: Range<usize>) -> Result<Option<Event>> {
        let payload = self.incoming.payload(range);
        let Some(expected) = self.expected.front() else {
            return Err(unexpected_packet(payload));
        };
        if matches!(expected, Expected::Role) {
            match Head::decode(payload, self.capabilities)? {
                Head::Ok(_) => {}
                // Statements behind it report that they are refused.
                Head::Err(_) => self.role = None,
                Head::ResultSet { .. } => return Err(Malformed("answer to SET ROLE").into()),
            }
            self.expected.pop_front();
            return Ok(None);
        }
        if matches!(expected, Expected::Prepared(_)) {
            if payload.first() == Some(&ERR) {
                // The execution pipelined behind it fails too, and reports this error.
                let failure = Failure::from_packet(&mariadb_wire::err::ErrPacket::decode(payload)?);
                if let Some(Expected::Prepared(sql)) = self.expected.pop_front() {
                    self.statements.refused(&sql, failure);
                }
                return Ok(None);
            }
            let prepared = PrepareOk::decode(payload)?;
            let left = usize::from(prepared.params) + usize::from(prepared.columns);
            if left == 0 {
                self.prepared(prepared, Vec::new());
            } else {
                self.phase = Phase::PreparedDefinitions { prepared, left, types: Vec::new() };
            }
            return Ok(None);
        }
        match Head::decode(payload, self.capabilities)? {
            Head::Ok(ok) => self.finished(ok).map(Some),
            Head::Err(packet) => {
                let failure = Failure::from_packet(&packet);
                Err(self.failed(failure))
            }
            Head::ResultSet { columns, definitions_follow } => {
                if definitions_follow {
                    self.row_names.iter_mut().for_each(Vec::clear);
                    self.phase = Phase::Definitions { left: columns as usize, types: Vec::new() };
                } else {
                    let known = match self.expected.front() {
                        Some(Expected::Result(Some(sql))) => self.statements.types(sql),
                        _ => None,
                    };
                    self.row_types = known.ok_or(Malformed("result set"))?;
                    self.phase = Phase::Rows;
                }
                Ok(None)
            }
        }
    }

    fn rows_follow(&mut self, types: Arc<[ColumnType]>) {
        if let Some(Expected::Result(Some(sql))) = self.expected.front() {
            self.statements.set_types(sql, types.clone());
        }
        self.row_types = types;
        self.phase = Phase::Rows;
    }

    fn prepared(&mut self, prepared: PrepareOk, types: Vec<ColumnType>) {
        self.phase = Phase::Head;
        if let Some(Expected::Prepared(sql)) = self.expected.pop_front()
            && let Some(replaced) = self.statements.prepared(&sql, prepared.statement, types.into())
        {
            write_packet(0, &mut self.outgoing, |out| com::stmt_close(replaced, out));
        }
    }

    fn finished(&mut self, ok: OkPacket) -> Result<Event> {
        if ok.status & mariadb_wire::ok::STATUS_MORE_RESULTS != 0 {
            return Err(Failure::Lost("MariaDB sent several results for one statement".into()));
        }
        self.phase = Phase::Head;
        self.expected.pop_front();
        Ok(Event::Finished(ok))
    }

    /// Ends the answer of a refused command; returns the failure to report, which is that of the
    /// preparation if it failed.
    fn failed(&mut self, failure: Failure) -> Failure {
        self.phase = Phase::Head;
        let Some(Expected::Result(Some(sql))) = self.expected.pop_front() else { return failure };
        let mut failure = self.statements.refusal(&sql).unwrap_or(failure);
        if self.wanted_role.is_some() {
            failure = failure.under_role();
        }
        if failure.is_missing_table()
            && let Some(forgotten) = self.statements.forget(&sql)
        {
            // A statement that writes does not find the tables of triggers created after it was
            // prepared (MariaDB 10.11), so it is prepared again.
            write_packet(0, &mut self.outgoing, |out| com::stmt_close(forgotten, out));
        }
        failure
    }

    // --- bytes

    pub fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        let sent = ready!(self.poll_send(context));
        Poll::Ready(sent.map_err(|failure| self.note_failure(failure)))
    }

    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        while self.sent < self.outgoing.len() {
            match ready!(self.stream.poll_write(context, &self.outgoing[self.sent..])) {
                Ok(count) => self.sent += count,
                Err(error) => return Poll::Ready(Err(Failure::io(&error))),
            }
        }
        if let Err(error) = ready!(self.stream.poll_flush(context)) {
            return Poll::Ready(Err(Failure::io(&error)));
        }
        self.outgoing.clear();
        self.sent = 0;
        if self.outgoing.capacity() > 4 << 20 {
            self.outgoing = Vec::with_capacity(4096);
        }
        Poll::Ready(Ok(()))
    }

    pub fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        let mut read = self.stream.poll_read(context, self.incoming.space());
        // Busy polling is for requests only, not for idle or replicating connections.
        if let Some(awaited) = self.expected.front() {
            let of_statement = match awaited {
                Expected::Result(Some(sql)) => self.statements.expectation(sql),
                _ => None,
            };
            read = self.answer.poll(context, of_statement.unwrap_or(&mut self.expectation), read);
        }
        match ready!(read) {
            Ok(0) => Poll::Ready(Err(Failure::Lost("MariaDB closed the connection".into()))),
            Ok(count) => {
                self.incoming.filled(count);
                Poll::Ready(Ok(()))
            }
            Err(error) => Poll::Ready(Err(Failure::io(&error))),
        }
    }

    // --- packets of replication, which are no answers to commands

    /// Queues a command whose answer is an OK packet.
    pub fn queue_command(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write_packet(0, &mut self.outgoing, write);
        self.expected.push_back(Expected::Result(None));
    }

    /// Queues a packet that has no answer. From then on packets are taken with
    /// [`Protocol::next_payload`].
    pub fn queue_packet(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write_packet(0, &mut self.outgoing, write);
    }

    /// Returns the next buffered packet, for [`Protocol::payload`]; `None` if more bytes are
    /// needed.
    pub fn next_payload(&mut self) -> Result<Option<Range<usize>>> {
        self.incoming.next_packet().map_err(|error| self.note_failure(error.into()))
    }

    pub fn payload(&self, range: Range<usize>) -> &[u8] {
        self.incoming.payload(range)
    }

    /// Waits for more bytes.
    pub async fn fill(&mut self) -> Result<()> {
        poll_fn(|context| self.poll_fill(context)).await
    }

    /// Returns whether the server has closed the idle connection. Anything it sent unasked counts
    /// as that.
    pub fn has_hung_up(&mut self) -> bool {
        let mut context = Context::from_waker(std::task::Waker::noop());
        matches!(self.poll_fill(&mut context), Poll::Ready(_))
    }
}

impl Drop for Protocol {
    /// Sends COM_QUIT if that does not block, so that the server does not count an aborted
    /// connection.
    fn drop(&mut self) {
        if self.is_idle() {
            let mut context = Context::from_waker(std::task::Waker::noop());
            write_packet(0, &mut self.outgoing, com::quit);
            let _ = self.poll_flush(&mut context);
        }
    }
}

/// Translates a packet that answers no command: the server says why it hangs up, or is out of
/// protocol.
fn unexpected_packet(payload: &[u8]) -> Failure {
    match mariadb_wire::err::ErrPacket::decode(payload) {
        Ok(packet) => Failure::Lost(String::from_utf8_lossy(packet.message).into_owned()),
        Err(_) => Failure::Lost("MariaDB sent an unexpected packet".into()),
    }
}
