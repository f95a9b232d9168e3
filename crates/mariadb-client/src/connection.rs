//! One connection to MariaDB: commands are queued, sent together, and answered in their order.
//!
//! The caller that queues a command takes its answer with [`Connection::next`] until
//! [`Event::Finished`]. A connection that is abandoned between the two (a dropped future) is
//! recognized by [`Connection::is_idle`], and closed rather than reused. The transport carries
//! commands to MariaDB and rows back: `transport::protocol` to a server, `transport::embedded`
//! within the process.

use crate::event::Event;
use crate::failure::{Failure, Result, server_error};
use crate::last_writes::LastWrites;
use crate::own_writes::OwnWrites;
use crate::transport::{Transport, by_transport};
use error::Error;
use futures_util::task::AtomicWaker;
use mariadb_wire::ok::{OkPacket, STATUS_IN_TRANSACTION};
use mariadb_wire::row::BinaryRow;
use mariadb_wire::{ColumnType, Malformed, Param};
use std::future::poll_fn;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker, ready};

/// Makes a statement that meets a lock, of a row or of a table's definition, fail with 1205.
const NEVER_WAIT: &str = "SET SESSION lock_wait_timeout = 0, SESSION innodb_lock_wait_timeout = 0";

/// See [`Connection::respect_read_only`]. Since 12.0, `read_only` is not a number but a word.
const RESPECT_READ_ONLY: &str = "SET SESSION tx_read_only = CONCAT(@@GLOBAL.read_only) NOT IN ('0', 'OFF')";

/// Selects whether the server is read-only.
const IS_READ_ONLY: &str = "SELECT CONCAT(@@GLOBAL.read_only) NOT IN ('0', 'OFF')";

/// A session on MariaDB.
pub struct Connection {
    transport: Transport,
    /// Whether the server is in a transaction, as of the last answer.
    in_transaction: bool,
    /// Whether session variables differ from the pool's defaults for the moment.
    pub altered: bool,
    /// Number of named locks that the session holds or waits for.
    pub locks: usize,
    /// Whether the session refused a write because it is read-only.
    pub(crate) refused_as_read_only: bool,
    /// Records acknowledged transactions of the session.
    pub own_writes: Option<Arc<OwnWrites>>,
    pub(crate) last_writes: Option<Arc<LastWrites>>,
    /// The quoted name of the account that executes statements on documents, if that is another
    /// one: it gets rights on tables that this connection creates beside a collection's.
    pub documents_account: Option<Arc<str>>,
    /// What its statements have met, if they are those of a transaction that belongs to a client.
    client_transaction: Option<Box<ClientTransaction>>,
    abandonment: Arc<Abandonment>,
}

/// A transaction that a client of the gateway begins and ends.
struct ClientTransaction {
    /// Reported instead of every conflict with another transaction.
    conflict: Error,
    /// Why nothing more may be executed in it.
    failed: Option<Failure>,
}

/// Ends the commands of a connection from outside, as if it were lost.
#[derive(Default)]
pub(crate) struct Abandonment {
    is_abandoned: AtomicBool,
    waker: AtomicWaker,
}

impl Abandonment {
    /// Fails the commands in flight, and all later ones.
    pub fn abandon(&self) {
        self.is_abandoned.store(true, Ordering::Release);
        self.waker.wake();
    }

    fn is_abandoned(&self) -> bool {
        self.is_abandoned.load(Ordering::Acquire)
    }

    /// Has the task woken if it waits when the connection is abandoned.
    fn register(&self, waker: &Waker) {
        self.waker.register(waker);
    }
}

impl ClientTransaction {
    /// Notes a failure; returns what to report.
    fn met(&mut self, failure: Failure) -> Failure {
        let failure = match failure.is_contention() {
            true => Failure::Other(self.conflict.clone()),
            false => failure,
        };
        if !failure.refuses_only_statement() {
            self.failed.get_or_insert_with(|| failure.clone());
        }
        failure
    }
}

impl Connection {
    pub(crate) fn new(transport: Transport) -> Self {
        Connection {
            transport,
            in_transaction: false,
            altered: false,
            locks: 0,
            refused_as_read_only: false,
            own_writes: None,
            last_writes: None,
            documents_account: None,
            client_transaction: None,
            abandonment: Arc::default(),
        }
    }

    pub(crate) fn abandonment(&self) -> Arc<Abandonment> {
        self.abandonment.clone()
    }

    /// Returns whether the connection may be reused: nothing is in flight in either direction, no
    /// transaction is open, no lock is held, and the session has its default settings.
    pub fn is_idle(&self) -> bool {
        let is_plain = !self.in_transaction && !self.altered && self.locks == 0;
        is_plain && by_transport!(&self.transport, transport => transport.is_idle())
    }

    /// Returns whether nothing is in flight in either direction.
    pub fn is_at_rest(&self) -> bool {
        by_transport!(&self.transport, transport => transport.is_idle())
    }

    /// Makes the statements from now on those of a transaction that a client begins and ends.
    ///
    /// If one of them meets another transaction, or fails in a way after which the server may have
    /// rolled back, the transaction has failed: then every further answer is a failure too, since
    /// the server would execute the rest in a new transaction. Each conflict is reported as
    /// `conflict`.
    pub fn begin_client_transaction(&mut self, conflict: Error) {
        self.client_transaction = Some(Box::new(ClientTransaction { conflict, failed: None }));
    }

    /// Ends what [`Connection::begin_client_transaction`] began.
    pub fn end_client_transaction(&mut self) {
        self.client_transaction = None;
    }

    /// Returns whether the statements are those of a transaction that a client begins and ends.
    pub fn is_in_client_transaction(&self) -> bool {
        self.client_transaction.is_some()
    }

    /// Makes the client's transaction fail, if there is one, because it has met another one.
    pub fn fail_client_transaction(&mut self) -> Result<()> {
        let Some(transaction) = &mut self.client_transaction else { return Ok(()) };
        let conflict = Failure::Other(transaction.conflict.clone());
        Err(transaction.failed.get_or_insert(conflict).clone())
    }

    /// Returns why the client's transaction has failed, if it has.
    pub fn transaction_failure(&self) -> Option<&Failure> {
        self.client_transaction.as_ref()?.failed.as_ref()
    }

    /// Executes the statements queued from now on with the privileges of a role.
    pub fn use_role(&mut self, role: &Arc<str>) {
        match &mut self.transport {
            Transport::Protocol(transport) => transport.use_role(role),
            // MariaDB in this process has no accounts.
            #[cfg(feature = "embedded")]
            Transport::Embedded(_) => {}
        }
    }

    /// Returns the role under which statements are executed from now on.
    pub fn wanted_role(&self) -> Option<&Arc<str>> {
        match &self.transport {
            Transport::Protocol(transport) => transport.wanted_role(),
            #[cfg(feature = "embedded")]
            Transport::Embedded(_) => None,
        }
    }

    /// Returns the role that the session has, if it has one.
    pub(crate) fn role(&self) -> Option<&Arc<str>> {
        match &self.transport {
            Transport::Protocol(transport) => transport.role(),
            #[cfg(feature = "embedded")]
            Transport::Embedded(_) => None,
        }
    }

    /// Returns the id of the server's session.
    pub fn session(&self) -> u64 {
        by_transport!(&self.transport, transport => transport.session())
    }

    /// Returns the id of the server's session if it may be executing something that closing the
    /// connection would not end.
    pub fn session_in_flight(&self) -> Option<u64> {
        match &self.transport {
            Transport::Protocol(transport) => transport.session_in_flight(),
            // Dropping it ends the statement.
            #[cfg(feature = "embedded")]
            Transport::Embedded(_) => None,
        }
    }

    /// Returns whether the server has closed the idle connection. Anything it sent unasked counts
    /// as that.
    pub fn has_hung_up(&mut self) -> bool {
        by_transport!(&mut self.transport, transport => transport.has_hung_up())
    }

    /// Returns whether a result is held as a whole before its first row is yielded. If so, callers
    /// must read many rows in pages.
    pub fn holds_results(&self) -> bool {
        match &self.transport {
            Transport::Protocol(_) => false,
            #[cfg(feature = "embedded")]
            Transport::Embedded(_) => true,
        }
    }

    /// Prepares the connection for short statements, such as reading a row by its key: they fail
    /// rather than wait for a lock, and the embedded transport executes them on the caller's
    /// thread.
    pub async fn use_for_lookups(&mut self) -> Result<()> {
        self.altered = true;
        #[cfg(feature = "embedded")]
        if let Transport::Embedded(transport) = &mut self.transport {
            transport.execute_on_caller();
        }
        self.queue_query(NEVER_WAIT);
        self.finish().await.map(drop)
    }

    /// Makes the session read-only if its server is (`read_only`). The server itself would let a
    /// user with the privilege READ_ONLY ADMIN write to a replica.
    pub(crate) async fn respect_read_only(&mut self) -> Result<()> {
        self.queue_query(RESPECT_READ_ONLY);
        self.finish().await.map(drop)
    }

    /// Fails with 1290 if the server is read-only. A node of a Galera cluster answers when it has
    /// applied all transactions that the cluster committed before: other nodes may have
    /// acknowledged some that this one has only received.
    pub(crate) async fn check_writable(&mut self) -> Result<()> {
        let waiting = format!("SET STATEMENT wsrep_sync_wait = 1 FOR {IS_READ_ONLY}");
        match self.check_writable_by(&waiting).await {
            // A server that is built without Galera.
            Err(failure) if failure.sql_code() == Some(server_error::UNKNOWN_VARIABLE) => {
                self.check_writable_by(IS_READ_ONLY).await
            }
            checked => checked,
        }
    }

    async fn check_writable_by(&mut self, is_read_only: &str) -> Result<()> {
        self.queue_execute(&is_read_only.into(), &[]);
        let mut is_read_only = false;
        while let Event::Row(range) = self.next().await? {
            is_read_only |= self.row(range)?.next_u64()? != 0;
        }
        match is_read_only {
            true => {
                Err(Failure::Sql { code: server_error::READ_ONLY, message: "the server runs with --read-only".into() })
            }
            false => Ok(()),
        }
    }

    /// Keeps the names of columns from now on, for [`Connection::row_names`].
    pub fn keep_names(&mut self) {
        match &mut self.transport {
            Transport::Protocol(transport) => transport.keep_names(),
            // Nothing reads columns by their names there.
            #[cfg(feature = "embedded")]
            Transport::Embedded(_) => {}
        }
    }

    /// Returns the names of the columns of the rows that are arriving, if they are kept.
    pub fn row_names(&self) -> &[String] {
        match &self.transport {
            Transport::Protocol(transport) => transport.row_names(),
            #[cfg(feature = "embedded")]
            Transport::Embedded(_) => &[],
        }
    }

    // --- commands

    /// Queues a statement without parameters, sent as text.
    pub fn queue_query(&mut self, sql: &str) {
        by_transport!(&mut self.transport, transport => transport.queue_query(sql));
    }

    /// Queues a prepared statement; prepares it first if this connection has not done so.
    pub fn queue_execute(&mut self, sql: &Arc<str>, params: &[Param<'_>]) {
        by_transport!(&mut self.transport, transport => transport.queue_execute(sql, params));
    }

    /// As [`Connection::queue_execute`], but prepares the statement again if it was prepared
    /// before.
    ///
    /// MariaDB (10.11) decides once whether an index alone covers a statement. On a second
    /// execution it uses what the table's last user left behind, and most often fetches each row.
    /// Preparing takes the time of some 50 rows.
    pub fn queue_execute_reprepared(&mut self, sql: &Arc<str>, params: &[Param<'_>]) {
        by_transport!(&mut self.transport, transport => transport.queue_execute_reprepared(sql, params));
    }

    /// Queues one command that executes a prepared statement once per row of parameters. The rows
    /// have these types, and `push_rows` appends them with
    /// [`mariadb_wire::com_stmt_bulk_execute::push`].
    pub fn queue_bulk(&mut self, sql: &Arc<str>, types: &[ColumnType], push_rows: impl FnOnce(&mut Vec<u8>)) {
        by_transport!(&mut self.transport, transport => transport.queue_bulk(sql, types, push_rows));
    }

    /// Sends the queued commands without waiting for answers, so that the server begins while the
    /// caller prepares more.
    pub async fn flush(&mut self) -> Result<()> {
        by_transport!(&mut self.transport, transport => transport.flush().await)
    }

    // --- answers

    /// Returns the next event of the oldest unfinished command, after sending queued commands.
    pub async fn next(&mut self) -> Result<Event> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// As [`Connection::next`]. A refused statement fails with [`crate::Failure::Sql`], which ends
    /// that command's answer.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Event>> {
        if self.abandonment.is_abandoned() {
            return Poll::Ready(Err(Failure::Lost("the MariaDB server is no longer the primary".into())));
        }
        if let Some(failure) = self.transaction_failure() {
            return Poll::Ready(Err(failure.clone()));
        }
        let polled = by_transport!(&mut self.transport, transport => transport.poll_next(context));
        if polled.is_pending() {
            self.abandonment.register(context.waker());
        }
        let event = ready!(polled);
        match &event {
            Ok(Event::Finished(ok)) => {
                self.in_transaction = ok.status & STATUS_IN_TRANSACTION != 0;
                if let (Some(own_writes), Some(transaction)) = (&self.own_writes, ok.transaction) {
                    own_writes.record(transaction);
                }
                if let (Some(last_writes), Some(transaction)) = (&self.last_writes, ok.transaction) {
                    last_writes.record(transaction);
                }
            }
            Ok(_) => {}
            Err(failure) => {
                self.refused_as_read_only |= failure.is_not_writable();
            }
        }
        Poll::Ready(match (event, &mut self.client_transaction) {
            (Err(failure), Some(transaction)) => Err(transaction.met(failure)),
            (event, _) => event,
        })
    }

    /// Takes the whole answer of the oldest unfinished command and drops its rows.
    pub async fn finish(&mut self) -> Result<OkPacket> {
        loop {
            if let Event::Finished(ok) = self.next().await? {
                return Ok(ok);
            }
        }
    }

    /// Decodes the row of an [`Event::Row`].
    pub fn row(&self, range: Range<usize>) -> Result<BinaryRow<'_>, Malformed> {
        let (payload, types) = self.raw_row(range);
        BinaryRow::new(payload, types)
    }

    /// Returns the payload of an [`Event::Row`] and the types of its columns.
    pub fn raw_row(&self, range: Range<usize>) -> (&[u8], &Arc<[ColumnType]>) {
        by_transport!(&self.transport, transport => transport.raw_row(range))
    }
}
