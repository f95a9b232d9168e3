//! A worker's connections: opened on demand, bounded in number, shared fairly among collections,
//! lent to one caller at a time, closed when idle.

use crate::connection::Connection;
use crate::establish::establish;
use crate::failure::{Failure, Result};
use crate::fair_shares::{FairShares, Group};
use crate::killer::Killer;
use crate::own_writes::OwnWrites;
use crate::server_url::ServerLocation;
use crate::session_owner::SessionOwner;
use ahash::{AHashSet, RandomState};
use error::{Code, Error};
use std::cell::RefCell;
use std::hash::Hash;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Pause before the next attempt to connect when the server has reached max_connections.
const RETRY_AFTER: Duration = Duration::from_millis(50);

/// Limits of a worker's connections.
#[derive(Clone)]
pub struct PoolOptions {
    /// Connections that one worker keeps open at the most.
    pub connections_max: usize,
    /// A connection unused for this long is closed.
    pub idle_timeout: Duration,
    /// How long an operation waits for one of the worker's connections.
    pub lease_timeout: Duration,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// Records acknowledged transactions, for the follower of the binary log.
    pub own_writes: Option<Arc<OwnWrites>>,
}

impl Default for PoolOptions {
    fn default() -> Self {
        PoolOptions {
            connections_max: 32,
            idle_timeout: Duration::from_secs(60),
            lease_timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(10),
            own_writes: None,
        }
    }
}

/// A worker's connections.
pub struct Pool {
    location: ServerLocation,
    options: PoolOptions,
    killer: Arc<Killer>,
    owner: Option<Arc<SessionOwner>>,
    /// The most recently used is last, so that connections that are not needed stay idle.
    idle: RefCell<Vec<(Connection, Instant)>>,
    /// The connections that may be open, by group.
    shares: RefCell<FairShares>,
    hasher: RandomState,
    /// Sessions of which a statement is being killed. The kill may hit a later statement, so these
    /// connections are never reused.
    doomed: RefCell<AHashSet<u64>>,
}

impl Pool {
    pub fn new(
        location: ServerLocation,
        options: PoolOptions,
        killer: Arc<Killer>,
        owner: Option<Arc<SessionOwner>>,
    ) -> Rc<Pool> {
        let shares = RefCell::new(FairShares::new(options.connections_max));
        let hasher = RandomState::new();
        let (idle, doomed) = (RefCell::default(), RefCell::default());
        Rc::new(Pool { location, options, killer, owner, idle, shares, hasher, doomed })
    }

    /// Kills the statement of a lent connection, which is not reused after that.
    pub fn kill_query(&self, session: u64) {
        self.doomed.borrow_mut().insert(session);
        self.killer.kill_query(session);
    }

    /// Lends a connection, for work that holds one already or that concerns all collections.
    ///
    /// Fails with 202 if none becomes free in time.
    pub async fn lease(self: &Rc<Self>) -> Result<Lease> {
        self.lease_by(None).await
    }

    /// As [`Pool::lease`], for work on a collection, whose share of all connections is bounded.
    pub async fn lease_for(self: &Rc<Self>, group: &impl Hash) -> Result<Lease> {
        self.lease_by(Some(self.hasher.hash_one(group))).await
    }

    /// As [`Pool::lease`], for queries about many collections: together they get one collection's
    /// share.
    pub async fn lease_for_catalog(self: &Rc<Self>) -> Result<Lease> {
        self.lease_by(Some(0)).await
    }

    async fn lease_by(self: &Rc<Self>, group: Group) -> Result<Lease> {
        let share = self.take_share(group).await?;
        let until = Instant::now() + self.options.lease_timeout;
        loop {
            if let Some(connection) = self.take_idle() {
                return Ok(self.lend(connection, share));
            }
            match establish(&self.location, self.options.connect_timeout).await {
                Ok((mut connection, _)) => {
                    if let Some(owner) = &self.owner {
                        owner.mark(&mut connection).await?;
                    }
                    connection.own_writes.clone_from(&self.options.own_writes);
                    return Ok(self.lend(connection, share));
                }
                Err(Failure::Full(_)) if Instant::now() < until => tokio::time::sleep(RETRY_AFTER).await,
                Err(Failure::Full(message)) => return Err(none_free(message)),
                Err(failure) => return Err(failure),
            }
        }
    }

    /// As [`Pool::lease_for`], but opens a new connection: for a retry after one proved dead.
    pub async fn lease_fresh_for(self: &Rc<Self>, group: &impl Hash) -> Result<Lease> {
        // The other idle connections are likely to be dead as well.
        self.idle.borrow_mut().clear();
        self.lease_for(group).await
    }

    /// As [`Pool::lease`], but returns `None` rather than wait: for callers that others wait for.
    pub async fn lease_if_free(self: &Rc<Self>) -> Option<Lease> {
        if self.shares.borrow().free() > 0 { self.lease().await.ok() } else { None }
    }

    /// Lends a further connection to a caller that can do without, if this worker uses hardly any:
    /// then the server has idle threads.
    pub async fn lease_if_quiet(self: &Rc<Self>) -> Option<Lease> {
        // The caller's own connection and the shared one are lent.
        let free = self.shares.borrow().free();
        let is_quiet = free > 0 && free + 2 >= self.options.connections_max;
        if is_quiet { self.lease().await.ok() } else { None }
    }

    /// Takes a share of the connections that may be open; fails with 202 after the lease timeout.
    async fn take_share(self: &Rc<Self>, group: Group) -> Result<Share> {
        if self.shares.borrow_mut().take(group) {
            return Ok(Share { pool: self.clone(), group });
        }
        let mut waiting = Waiting { pool: self, group, granted: self.shares.borrow_mut().wait(group) };
        match tokio::time::timeout(self.options.lease_timeout, &mut waiting.granted).await {
            Ok(Ok(())) => Ok(Share { pool: self.clone(), group }),
            _ => Err(none_free(format!(
                "all of this worker's {} connections to MariaDB that the operation may use were busy for {} s",
                self.options.connections_max,
                self.options.lease_timeout.as_secs()
            ))),
        }
    }

    fn take_idle(&self) -> Option<Connection> {
        let mut idle = self.idle.borrow_mut();
        while let Some((mut connection, _)) = idle.pop() {
            if !connection.has_hung_up() {
                return Some(connection);
            }
        }
        None
    }

    /// Returns whether a statement of this session is being killed, and removes the mark.
    fn take_doomed(&self, session: u64) -> bool {
        let mut doomed = self.doomed.borrow_mut();
        !doomed.is_empty() && doomed.remove(&session)
    }

    fn lend(self: &Rc<Self>, connection: Connection, share: Share) -> Lease {
        Lease { connection: Some(connection), pool: self.clone(), _share: share }
    }

    fn give_back(&self, connection: Connection) {
        let is_doomed = self.take_doomed(connection.session());
        if !connection.is_idle() {
            // The server would go on with the commands in flight even with the connection closed.
            match connection.session_in_flight() {
                Some(session) if connection.locks > 0 => self.killer.kill_definer(session),
                Some(session) => self.killer.kill_session(session),
                None => {}
            }
            return;
        }
        if is_doomed {
            return;
        }
        let now = Instant::now();
        let mut idle = self.idle.borrow_mut();
        let timeout = self.options.idle_timeout;
        let expired = idle.iter().take_while(|(_, since)| now.duration_since(*since) > timeout).count();
        idle.drain(..expired);
        idle.push((connection, now));
    }
}

fn none_free(message: String) -> Failure {
    Error::new(Code::NETWORK_INTERFACE_EXCEEDED_TIME_LIMIT, message).into()
}

/// A queued request for a connection. Dropped just when it is granted, it returns the share.
struct Waiting<'p> {
    pool: &'p Rc<Pool>,
    group: Group,
    granted: tokio::sync::oneshot::Receiver<()>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.granted.close();
        if self.granted.try_recv().is_ok() {
            self.pool.shares.borrow_mut().give_back(self.group);
        }
    }
}

/// The right to have a connection open.
struct Share {
    pool: Rc<Pool>,
    group: Group,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.pool.shares.borrow_mut().give_back(self.group);
    }
}

/// A lent connection. Dropping it returns it to the pool. It is closed instead if an answer is due
/// or a transaction is open; its statement is then killed on the server.
pub struct Lease {
    connection: Option<Connection>,
    pool: Rc<Pool>,
    _share: Share,
}

#[allow(clippy::expect_used, reason = "the connection is taken in drop only")]
impl Deref for Lease {
    type Target = Connection;
    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("present until dropped")
    }
}

#[allow(clippy::expect_used, reason = "the connection is taken in drop only")]
impl DerefMut for Lease {
    fn deref_mut(&mut self) -> &mut Connection {
        self.connection.as_mut().expect("present until dropped")
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.pool.give_back(connection);
        }
    }
}
