//! Ends statements on the server that nobody waits for any more.
//!
//! MariaDB does not notice that a client has left while it executes a statement: it goes on, holds
//! its locks, and executes what else it has received. So whoever gives up a connection has its
//! session killed, over a connection that belongs to a thread of its own: it needs no place in a
//! pool, and no worker's time. A user may kill its own sessions without further rights.

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

/// The connection is kept for so long after it was last used.
const IDLE: Duration = Duration::from_secs(5);

/// A server that does not answer for so long is given up; it is likely not to execute anything
/// either.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long to wait before another attempt where the server takes no connection; and how many there
/// are.
const AGAIN_AFTER: Duration = Duration::from_millis(200);
const ATTEMPTS_MAX: usize = 50;

/// MariaDB in this process needs a large stack.
const STACK_BYTES: usize = 16 << 20;

/// There is no such session: it has ended by itself.
const NO_SUCH_THREAD: u16 = 1094;

/// How long the server has been running, in seconds.
const UPTIME: &str =
    "SELECT CAST(VARIABLE_VALUE AS UNSIGNED) FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'UPTIME'";

/// Whether a session may be killed. MariaDB (10.11) writes the files of a table's triggers one
/// after the other, and a session that is killed meanwhile may leave them such that nobody can read
/// the table or its schema again (1343). Whoever waits for a lock has not begun. One that does
/// nothing ends by itself, for its connection is closed; or it goes on with what it has received.
const MAY_BE_KILLED: &str = "SELECT COALESCE(COMMAND <> 'Sleep' AND \
     (STATE LIKE 'Waiting for%lock' OR INFO NOT REGEXP '^(DROP|CREATE|RENAME) '), 0) FROM information_schema.PROCESSLIST WHERE ID = ?";

/// How often it is looked whether it may, and how many times at most.
const LOOKS_EVERY: Duration = Duration::from_millis(20);
const LOOKS_MAX: usize = 100;

/// What to do with a session.
#[derive(Clone, Copy, Debug)]
enum Order {
    /// End what it executes, and nothing else.
    Query(u64),
    /// End it; its transaction is rolled back and its locks are released.
    Session(u64),
    /// End it as well, but in no statement that changes files of triggers.
    Definer(u64),
}

/// Kills sessions on a MariaDB server, from any thread and without waiting.
pub struct Killer {
    place: ServerLocation,
    orders: OnceLock<UnboundedSender<(Order, Instant)>>,
}

impl fmt::Debug for Killer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Killer").field("is_started", &self.orders.get().is_some()).finish_non_exhaustive()
    }
}

impl Killer {
    /// For the server at a URL. Errors say what is wrong with it (9).
    pub fn at(url: &str) -> error::Result<Killer> {
        Ok(Killer::new(ServerLocation::Server(ServerUrl::parse(url)?)))
    }

    pub fn new(place: ServerLocation) -> Killer {
        Killer { place, orders: OnceLock::new() }
    }

    /// Kills what a session executes.
    pub fn kill_query(&self, session: u64) {
        self.send(Order::Query(session));
    }

    /// Kills a session.
    pub fn kill_session(&self, session: u64) {
        self.send(Order::Session(session));
    }

    /// Kills a session that changes definitions, once that does no harm.
    pub fn kill_definer(&self, session: u64) {
        self.send(Order::Definer(session));
    }

    fn send(&self, order: Order) {
        let orders = self.orders.get_or_init(|| start(self.place.clone()));
        // Where the thread could not be started, the server ends the session when it next writes to
        // the closed connection.
        let _ = orders.send((order, Instant::now()));
    }
}

fn start(place: ServerLocation) -> UnboundedSender<(Order, Instant)> {
    let (sender, receiver) = unbounded_channel();
    let thread = std::thread::Builder::new().name("mariadb-kill".into()).stack_size(STACK_BYTES);
    let started = thread.spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        match runtime {
            Ok(runtime) => runtime.block_on(carry_out(&place, receiver)),
            Err(error) => tracing::warn!(%error, "statements in MariaDB cannot be killed"),
        }
    });
    if let Err(error) = started {
        tracing::warn!(%error, "statements in MariaDB cannot be killed");
    }
    sender
}

async fn carry_out(place: &ServerLocation, mut orders: UnboundedReceiver<(Order, Instant)>) {
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
            match tokio::time::timeout(PATIENCE, kill(place, &mut connection, &batch)).await {
                Ok(Ok(())) => break,
                Ok(Err(failure)) => {
                    tracing::debug!("sessions in MariaDB could not be killed: {failure}");
                    connection = None;
                    tokio::time::sleep(AGAIN_AFTER).await;
                }
                Err(_) => {
                    connection = None;
                    break;
                }
            }
        }
        if place.is_embedded() {
            // MariaDB in this process ends when all its connections have.
            connection = None;
        }
    }
}

/// A connection, and when the server had begun to run at the latest; `None` for one that runs in
/// this process.
type Link = (Connection, Option<Instant>);

/// Connects. A server that was started anew gives numbers of sessions to others.
async fn link(place: &ServerLocation) -> Result<Link, Failure> {
    let mut connection = establish(place, PATIENCE).await?.0;
    if place.is_embedded() {
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
    place: &ServerLocation,
    connection: &mut Option<Link>,
    orders: &[(Order, Instant)],
) -> Result<(), Failure> {
    let (connection, began) = match connection {
        Some(connection) => connection,
        None => connection.insert(link(place).await?),
    };
    let is_meant = |given: &Instant| began.is_none_or(|began| *given >= began);
    let orders: Vec<Order> = orders.iter().filter(|(_, given)| is_meant(given)).map(|(order, _)| *order).collect();
    for order in &orders {
        if let Order::Definer(session) = order
            && !is_harmless_soon(connection, *session).await?
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

/// Waits until killing a session does no harm; false where it ends without that.
async fn is_harmless_soon(connection: &mut Connection, session: u64) -> Result<bool, Failure> {
    for _ in 0..LOOKS_MAX {
        connection.queue_execute(&MAY_BE_KILLED.into(), &[Param::Unsigned(session)]);
        let mut answer = None;
        while let Event::Row(range) = connection.next().await? {
            answer = Some(connection.row(range)?.next_u64()? != 0);
        }
        match answer {
            Some(false) => tokio::time::sleep(LOOKS_EVERY).await,
            answer => return Ok(answer.unwrap_or(false)),
        }
    }
    Ok(false)
}
