//! One connection to MariaDB: commands are queued, sent together, and answered in their order.
//!
//! Whoever queues a command takes its answer with [`Connection::next`] until [`Event::Finished`]. A connection that is given up between
//! the two (a dropped future) is known by [`Connection::is_idle`] and is closed rather than used again. How commands get to MariaDB and
//! rows back is the transport's: `transport::protocol` to a server, `transport::embedded` within the process.

use crate::event::Event;
use crate::failure::Result;
use crate::own_writes::OwnWrites;
use crate::transport::{Transport, by_transport};
use mariadb_wire::ok::{OkPacket, STATUS_IN_TRANSACTION};
use mariadb_wire::row::BinaryRow;
use mariadb_wire::{ColumnType, Malformed, Param};
use std::future::poll_fn;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// A statement that meets a lock, of a row or of a table's definition, fails (1205).
const WAIT_FOR_NOTHING: &str = "SET SESSION lock_wait_timeout = 0, SESSION innodb_lock_wait_timeout = 0";

/// A session on MariaDB.
pub struct Connection {
    transport: Transport,
    /// Whether the server is in a transaction, as of the last answer.
    in_transaction: bool,
    /// Whether the session is set otherwise than others expect, for a while.
    pub altered: bool,
    /// How many named locks the session holds, or waits for.
    pub locks: usize,
    /// Where the session's transactions are noted.
    pub own_writes: Option<Arc<OwnWrites>>,
}

impl Connection {
    pub(crate) fn new(transport: Transport) -> Self {
        Connection { transport, in_transaction: false, altered: false, locks: 0, own_writes: None }
    }

    /// Nothing is on its way in either direction, the session holds no transaction and is set as usual: fit for whoever comes next.
    pub fn is_idle(&self) -> bool {
        let is_plain = !self.in_transaction && !self.altered && self.locks == 0;
        is_plain && by_transport!(&self.transport, transport => transport.is_idle())
    }

    /// The number of the server's session.
    pub fn session(&self) -> u64 {
        by_transport!(&self.transport, transport => transport.session())
    }

    /// The number of the server's session, if closing the connection would not end what it
    /// executes.
    pub fn session_in_flight(&self) -> Option<u64> {
        match &self.transport {
            Transport::Protocol(transport) => transport.session_in_flight(),
            // It ends that itself.
            #[cfg(feature = "embedded")]
            Transport::Embedded(_) => None,
        }
    }

    /// Whether the other end has hung up while the connection lay idle. Anything it sent unasked counts as that.
    pub fn has_hung_up(&mut self) -> bool {
        by_transport!(&mut self.transport, transport => transport.has_hung_up())
    }

    /// Whether results come whole, before their first row is given. Who asks for many rows then has to ask for some at a time.
    pub fn holds_results(&self) -> bool {
        match &self.transport {
            Transport::Protocol(_) => false,
            #[cfg(feature = "embedded")]
            Transport::Embedded(_) => true,
        }
    }

    /// From now on statements are for the moment, such as reading a row by its key: none may wait for another's, and where that saves
    /// something they are executed on the caller's thread.
    pub async fn be_quick(&mut self) -> Result<()> {
        self.altered = true;
        #[cfg(feature = "embedded")]
        if let Transport::Embedded(transport) = &mut self.transport {
            transport.stay_here();
        }
        self.queue_query(WAIT_FOR_NOTHING);
        self.finish().await.map(drop)
    }

    // --- commands

    /// Queues a statement without parameters, sent as text.
    pub fn queue_query(&mut self, sql: &str) {
        by_transport!(&mut self.transport, transport => transport.queue_query(sql));
    }

    /// Queues a prepared statement, preparing it first where this connection has not.
    pub fn queue_execute(&mut self, sql: &Arc<str>, params: &[Param<'_>]) {
        by_transport!(&mut self.transport, transport => transport.queue_execute(sql, params));
    }

    /// As [`Connection::queue_execute`], but prepares the statement again where it was before.
    ///
    /// MariaDB (10.11) decides once whether an index alone will do for a statement: executed a second time, it goes by
    /// what the table's last user left behind, and most often fetches each row. Preparing takes the time of some 50 rows.
    pub fn queue_execute_anew(&mut self, sql: &Arc<str>, params: &[Param<'_>]) {
        by_transport!(&mut self.transport, transport => transport.queue_execute_anew(sql, params));
    }

    /// Queues a prepared statement with parameters of these types, once for each of the rows that `push_rows` appends by
    /// [`mariadb_wire::com_stmt_bulk_execute::push`], as one command.
    pub fn queue_bulk(&mut self, sql: &Arc<str>, types: &[ColumnType], push_rows: impl FnOnce(&mut Vec<u8>)) {
        by_transport!(&mut self.transport, transport => transport.queue_bulk(sql, types, push_rows));
    }

    /// Sends what is queued, without waiting for answers: so that the server begins while more is being made ready.
    pub async fn flush(&mut self) -> Result<()> {
        by_transport!(&mut self.transport, transport => transport.flush().await)
    }

    // --- answers

    /// The next event of the oldest unfinished command. Sends what is queued first.
    pub async fn next(&mut self) -> Result<Event> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// As [`Connection::next`]. A refused statement is `Err(Failure::Sql)` and ends that command's answer.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Event>> {
        let event = ready!(by_transport!(&mut self.transport, transport => transport.poll_next(context)));
        if let Ok(Event::Finished(ok)) = &event {
            self.in_transaction = ok.status & STATUS_IN_TRANSACTION != 0;
            if let (Some(own_writes), Some(transaction)) = (&self.own_writes, ok.transaction) {
                own_writes.note(transaction);
            }
        }
        Poll::Ready(event)
    }

    /// Takes the whole answer of the oldest unfinished command, dropping rows.
    pub async fn finish(&mut self) -> Result<OkPacket> {
        loop {
            if let Event::Finished(ok) = self.next().await? {
                return Ok(ok);
            }
        }
    }

    /// The row of an [`Event::Row`].
    pub fn row(&self, range: Range<usize>) -> Result<BinaryRow<'_>, Malformed> {
        let (payload, types) = self.raw_row(range);
        BinaryRow::new(payload, types)
    }

    /// The row of an [`Event::Row`] as it came, and the types of its columns.
    pub fn raw_row(&self, range: Range<usize>) -> (&[u8], &Rc<[ColumnType]>) {
        by_transport!(&self.transport, transport => transport.raw_row(range))
    }
}
