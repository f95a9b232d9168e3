//! A worker's connections: opened on demand, bounded in number, shared fairly, used one at a time,
//! closed when idle.

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

/// How long to wait before another attempt where the server has too many connections.
const AGAIN_AFTER: Duration = Duration::from_millis(50);

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
    /// Where acknowledged transactions are recorded, for the follower of the binary log.
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
    place: ServerLocation,
    options: PoolOptions,
    killer: Arc<Killer>,
    owner: Option<Arc<SessionOwner>>,
    /// The one used last is at the end, so that those not needed fall idle.
    idle: RefCell<Vec<(Connection, Instant)>>,
    /// The connections that may be open, by who uses them.
    shares: RefCell<FairShares>,
    hasher: RandomState,
    /// Sessions of which a statement is being killed. Another one may be executed by the time when
    /// the server comes to it, so that none is used again.
    doomed: RefCell<AHashSet<u64>>,
}

impl Pool {
    pub fn new(
        place: ServerLocation,
        options: PoolOptions,
        killer: Arc<Killer>,
        owner: Option<Arc<SessionOwner>>,
    ) -> Rc<Pool> {
        let shares = RefCell::new(FairShares::new(options.connections_max));
        let hasher = RandomState::new();
        let (idle, doomed) = (RefCell::default(), RefCell::default());
        Rc::new(Pool { place, options, killer, owner, idle, shares, hasher, doomed })
    }

    /// Ends what a session executes; it belongs to a connection on loan, which nobody else gets
    /// after that.
    pub fn kill_query(&self, session: u64) {
        self.doomed.borrow_mut().insert(session);
        self.killer.kill_query(session);
    }

    /// A connection that nobody else uses until it is dropped, for work that has one already, or
    /// for all collections.
    ///
    /// Fails with 202 if none comes free in time.
    pub async fn lease(self: &Rc<Self>) -> Result<Lease> {
        self.lease_by(None).await
    }

    /// As [`Pool::lease`], for work on a collection, which gets its share of all connections.
    pub async fn lease_for(self: &Rc<Self>, group: &impl Hash) -> Result<Lease> {
        self.lease_by(Some(self.hasher.hash_one(group))).await
    }

    /// As [`Pool::lease`], for questions about all collections or many: together they get one
    /// collection's share.
    pub async fn lease_for_catalog(self: &Rc<Self>) -> Result<Lease> {
        self.lease_by(Some(0)).await
    }

    async fn lease_by(self: &Rc<Self>, group: Group) -> Result<Lease> {
        let place = self.place(group).await?;
        let until = Instant::now() + self.options.lease_timeout;
        loop {
            if let Some(connection) = self.take_idle() {
                return Ok(self.lend(connection, place));
            }
            match establish(&self.place, self.options.connect_timeout).await {
                Ok((mut connection, _)) => {
                    if let Some(owner) = &self.owner {
                        owner.mark(&mut connection).await?;
                    }
                    connection.own_writes.clone_from(&self.options.own_writes);
                    return Ok(self.lend(connection, place));
                }
                Err(Failure::Full(_)) if Instant::now() < until => tokio::time::sleep(AGAIN_AFTER).await,
                Err(Failure::Full(message)) => return Err(none_free(message)),
                Err(failure) => return Err(failure),
            }
        }
    }

    /// As [`Pool::lease_for`], but surely opened now: for a second try after a connection proved
    /// dead.
    pub async fn lease_fresh_for(self: &Rc<Self>, group: &impl Hash) -> Result<Lease> {
        // Where one has died, the others that lay idle are likely to have died with it.
        self.idle.borrow_mut().clear();
        self.lease_for(group).await
    }

    /// As [`Pool::lease`], if one is to be had without waiting: for a caller that others wait for.
    pub async fn lease_if_free(self: &Rc<Self>) -> Option<Lease> {
        if self.shares.borrow().free() > 0 { self.lease().await.ok() } else { None }
    }

    /// A further connection for somebody who could do without, if next to nobody else of this worker is using any: then the server has
    /// threads to spare.
    pub async fn lease_at_leisure(self: &Rc<Self>) -> Option<Lease> {
        // Out on loan are the caller's own and that of the lookups.
        let free = self.shares.borrow().free();
        let is_quiet = free > 0 && free + 2 >= self.options.connections_max;
        if is_quiet { self.lease().await.ok() } else { None }
    }

    /// A place among the connections that may be open.
    async fn place(self: &Rc<Self>, group: Group) -> Result<Share> {
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

    /// Whether a statement of this session is being killed; it is not asked twice about one.
    fn is_doomed(&self, session: u64) -> bool {
        let mut doomed = self.doomed.borrow_mut();
        !doomed.is_empty() && doomed.remove(&session)
    }

    fn lend(self: &Rc<Self>, connection: Connection, share: Share) -> Lease {
        Lease { connection: Some(connection), pool: self.clone(), _share: share }
    }

    fn give_back(&self, connection: Connection) {
        let is_doomed = self.is_doomed(connection.session());
        if !connection.is_idle() {
            // The server goes on with what is in flight, and would do so with the connection
            // closed.
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

/// A request for a connection in the queue. Dropped at the moment when it is met, it gives back
/// what it got.
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

/// A connection on loan. Dropping it gives it back, or closes it when an answer is still due or a
/// transaction open; what it executes is then killed on the server.
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
