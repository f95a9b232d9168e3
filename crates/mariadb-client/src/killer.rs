//! Kills abandoned statements on the server.
//!
//! MariaDB does not notice that a client has left while it executes a statement. It goes on, holds
//! its locks, and executes the other commands it has received. Therefore the session of an
//! abandoned connection is killed, over a connection that belongs to a thread of its own: it needs
//! no share of a pool, and no worker's time. A user may kill its own sessions without further
//! privileges.

use crate::connection::Connection;
use crate::establish::establish;
use crate::event::Event;
use crate::failure::Failure;
use crate::server_url::{ServerLocation, ServerUrl};
use mariadb_wire::Param;
use std::fmt;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The connection is closed this long after its last use.
const IDLE: Duration = Duration::from_secs(5);

/// The order is dropped if the server does not answer for this long; such a server is unlikely to
/// execute anything.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Pause before the next attempt to connect, and the number of attempts.
const RETRY_AFTER: Duration = Duration::from_millis(200);
const ATTEMPTS_MAX: usize = 50;

/// MariaDB in this process needs a large stack.
const STACK_BYTES: usize = 16 << 20;

/// The session does not exist: it has ended by itself.
const NO_SUCH_THREAD: u16 = 1094;

/// Selects the server's uptime, in seconds.
const UPTIME: &str =
    "SELECT CAST(VARIABLE_VALUE AS UNSIGNED) FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'UPTIME'";

/// Selects whether a session may be killed. MariaDB (10.11) writes the files of a table's triggers
/// one by one, and a session killed meanwhile may leave them so that the table and its schema can
/// never be read again (1343). A session that waits for a lock has not begun. An idle session ends
/// by itself, because its connection is closed, or goes on with the next command it has received.
const MAY_BE_KILLED: &str = "SELECT COALESCE(COMMAND <> 'Sleep' AND \
     (STATE LIKE 'Waiting for%lock' OR INFO NOT REGEXP '^(DROP|CREATE|RENAME) '), 0) FROM information_schema.PROCESSLIST WHERE ID = ?";

/// Interval and number of the checks whether it may.
const CHECK_EVERY: Duration = Duration::from_millis(20);
const CHECKS_MAX: usize = 100;

/// A request to end a session or its statement.
#[derive(Clone, Copy, Debug)]
enum Order {
    /// Kill the statement that the session executes, but not the session.
    Query(u64),
    /// Kill the session; its transaction is rolled back and its locks are released.
    Session(u64),
    /// As `Session`, but not during a statement that writes files of triggers.
    Definer(u64),
}

/// Kills sessions on a MariaDB server, from any thread and without waiting.
pub struct Killer {
    location: ServerLocation,
    orders: OnceLock<UnboundedSender<(Order, Instant)>>,
}

impl fmt::Debug for Killer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Killer").field("is_started", &self.orders.get().is_some()).finish_non_exhaustive()
    }
}

impl Killer {
    /// Returns a killer for the server at a URL. Fails with 9 if the URL is malformed.
    pub fn at(url: &str) -> error::Result<Killer> {
        Ok(Killer::new(ServerLocation::Server(ServerUrl::parse(url)?)))
    }

    pub fn new(location: ServerLocation) -> Killer {
        Killer { location, orders: OnceLock::new() }
    }

    /// Kills the statement that a session executes.
    pub fn kill_query(&self, session: u64) {
        self.send(Order::Query(session));
    }

    /// Kills a session.
    pub fn kill_session(&self, session: u64) {
        self.send(Order::Session(session));
    }

    /// Kills a session that changes definitions, as soon as that is safe.
    pub fn kill_definer(&self, session: u64) {
        self.send(Order::Definer(session));
    }

    fn send(&self, order: Order) {
        let orders = self.orders.get_or_init(|| start(self.location.clone()));
        // Without the thread, the server ends the session when it next writes to the closed
        // connection.
        let _ = orders.send((order, Instant::now()));
    }
}

fn start(location: ServerLocation) -> UnboundedSender<(Order, Instant)> {
    let (sender, receiver) = unbounded_channel();
    let thread = std::thread::Builder::new().name("mariadb-kill".into()).stack_size(STACK_BYTES);
    let started = thread.spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        match runtime {
            Ok(runtime) => runtime.block_on(execute_orders(&location, receiver)),
            Err(error) => tracing::warn!(%error, "statements in MariaDB cannot be killed"),
        }
    });
    if let Err(error) = started {
        tracing::warn!(%error, "statements in MariaDB cannot be killed");
    }
    sender
}

async fn execute_orders(location: &ServerLocation, mut orders: UnboundedReceiver<(Order, Instant)>) {
    let mut connection = None;
    loop {
        let order = match connection {
            None => orders.recv().await,
            Some(_) => match tokio::time::timeout(IDLE, orders.recv()).await {
                Ok(order) => order,
                Err(_) => {
                    connection = None;
                    continue;
                }
            },
        };
        let Some(order) = order else { return };
        let mut batch = vec![order];
        while let Ok(order) = orders.try_recv() {
            batch.push(order);
        }
        for _ in 0..ATTEMPTS_MAX {
            match tokio::time::timeout(TIMEOUT, kill(location, &mut connection, &batch)).await {
                Ok(Ok(())) => break,
                Ok(Err(failure)) => {
                    tracing::debug!("sessions in MariaDB could not be killed: {failure}");
                    connection = None;
                    tokio::time::sleep(RETRY_AFTER).await;
                }
                Err(_) => {
                    connection = None;
                    break;
                }
            }
        }
        if location.is_embedded() {
            // MariaDB in this process shuts down only when all its connections are closed.
            connection = None;
        }
    }
}

/// A connection, and the latest moment at which the server can have started; `None` if MariaDB runs
/// in this process.
type KillerConnection = (Connection, Option<Instant>);

/// Connects. A restarted server gives the ids of sessions to others, so its start is needed.
async fn connect(location: &ServerLocation) -> Result<KillerConnection, Failure> {
    let mut connection = establish(location, TIMEOUT).await?.0;
    if location.is_embedded() {
        return Ok((connection, None));
    }
    connection.queue_execute(&UPTIME.into(), &[]);
    let mut uptime = 0;
    while let Event::Row(range) = connection.next().await? {
        uptime = connection.row(range)?.next_u64()?;
    }
    Ok((connection, Instant::now().checked_sub(Duration::from_secs(uptime))))
}

async fn kill(
    location: &ServerLocation,
    connection: &mut Option<KillerConnection>,
    orders: &[(Order, Instant)],
) -> Result<(), Failure> {
    let (connection, began) = match connection {
        Some(connection) => connection,
        None => connection.insert(connect(location).await?),
    };
    let is_current = |given: &Instant| began.is_none_or(|began| *given >= began);
    let orders: Vec<Order> = orders.iter().filter(|(_, given)| is_current(given)).map(|(order, _)| *order).collect();
    for order in &orders {
        if let Order::Definer(session) = order
            && !is_safe_soon(connection, *session).await?
        {
            continue;
        }
        let statement = match order {
            Order::Query(session) => format!("KILL HARD QUERY {session}"),
            Order::Session(session) | Order::Definer(session) => format!("KILL HARD CONNECTION {session}"),
        };
        connection.queue_query(&statement);
        match connection.finish().await {
            Ok(_) | Err(Failure::Sql { code: NO_SUCH_THREAD, .. }) => {}
            Err(failure) if failure.is_lost() => return Err(failure),
            Err(failure) => tracing::debug!("MariaDB refuses to end a session ({order:?}): {failure}"),
        }
    }
    Ok(())
}

/// Waits until a session may be killed safely; returns false if it ends by itself before.
async fn is_safe_soon(connection: &mut Connection, session: u64) -> Result<bool, Failure> {
    for _ in 0..CHECKS_MAX {
        connection.queue_execute(&MAY_BE_KILLED.into(), &[Param::Unsigned(session)]);
        let mut answer = None;
        while let Event::Row(range) = connection.next().await? {
            answer = Some(connection.row(range)?.next_u64()? != 0);
        }
        match answer {
            Some(false) => tokio::time::sleep(CHECK_EVERY).await,
            answer => return Ok(answer.unwrap_or(false)),
        }
    }
    Ok(false)
}
