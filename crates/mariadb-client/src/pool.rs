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

/// An account of MariaDB, and the killer of its sessions: a session may end those of its own
/// account without further privileges.
#[derive(Clone)]
pub struct PoolAccount {
    pub location: ServerLocation,
    pub killer: Arc<Killer>,
    /// The claim to the sessions of this gateway.
    pub owner: Option<Arc<SessionOwner>>,
}

/// The accounts of a pool.
#[derive(Clone)]
pub struct PoolAccounts {
    pub gateway: PoolAccount,
    /// The account for statements under a role. It has no rights on documents of its own.
    pub documents: Option<PoolAccount>,
    /// Its quoted name.
    pub documents_name: Option<Arc<str>>,
}

/// A worker's connections.
pub struct Pool {
    options: PoolOptions,
    gateway: AccountPool,
    documents: Option<AccountPool>,
    documents_name: Option<Arc<str>>,
    /// The connections that may be open, by group.
    shares: RefCell<FairShares>,
    hasher: RandomState,
    /// Sessions of which a statement is being killed. The kill may hit a later statement, so these
    /// connections are never reused.
    doomed: RefCell<AHashSet<u64>>,
}

impl Pool {
    pub fn new(accounts: PoolAccounts, options: PoolOptions) -> Rc<Pool> {
        let PoolAccounts { gateway, documents, documents_name } = accounts;
        let shares = RefCell::new(FairShares::new(options.connections_max));
        let (hasher, doomed) = (RandomState::new(), RefCell::default());
        let (gateway, documents) = (AccountPool::new(gateway), documents.map(AccountPool::new));
        Rc::new(Pool { options, gateway, documents, documents_name, shares, hasher, doomed })
    }

    /// Kills the statement of a lent connection, which is not reused after that.
    pub fn kill_query(&self, session: u64) {
        self.doomed.borrow_mut().insert(session);
        // The server refuses this to the account that does not own the session.
        self.accounts().for_each(|pool| pool.account.killer.kill_query(session));
    }

    /// Lends a connection, for work that holds one already or that concerns all collections.
    ///
    /// Fails with 202 if none becomes free in time.
    pub async fn lease(self: &Rc<Self>) -> Result<Lease> {
        self.lease_by(None, LeaseAccount::Gateway).await
    }

    /// As [`Pool::lease`], for work on a collection, whose share of all connections is bounded.
    pub async fn lease_for(self: &Rc<Self>, group: &impl Hash) -> Result<Lease> {
        self.lease_by(Some(self.hasher.hash_one(group)), LeaseAccount::Gateway).await
    }

    /// As [`Pool::lease_for`]; statements are executed under a role, by the account for that.
    pub async fn lease_under(self: &Rc<Self>, role: &Arc<str>, group: &impl Hash) -> Result<Lease> {
        self.lease_by(Some(self.hasher.hash_one(group)), LeaseAccount::Documents(Some(role))).await
    }

    /// Lends a connection of the account for statements under a role, without a role.
    pub(crate) async fn lease_without_role(self: &Rc<Self>) -> Result<Lease> {
        self.lease_by(None, LeaseAccount::Documents(None)).await
    }

    /// As [`Pool::lease`], for queries about many collections: together they get one collection's
    /// share.
    pub async fn lease_for_catalog(self: &Rc<Self>) -> Result<Lease> {
        self.lease_by(Some(0), LeaseAccount::Gateway).await
    }

    async fn lease_by(self: &Rc<Self>, group: Group, account: LeaseAccount<'_>) -> Result<Lease> {
        let share = self.take_share(group).await?;
        let until = Instant::now() + self.options.lease_timeout;
        let (pool, role) = match account {
            LeaseAccount::Gateway => (&self.gateway, None),
            LeaseAccount::Documents(role) => {
                let missing = || Error::internal("the pool has no account for statements under a role");
                (self.documents.as_ref().ok_or_else(missing)?, role)
            }
        };
        loop {
            if let Some(mut connection) = pool.take_idle(role) {
                role.iter().for_each(|role| connection.use_role(role));
                return Ok(self.lend(connection, share, account));
            }
            self.make_room();
            match establish(&pool.account.location, self.options.connect_timeout).await {
                Ok((mut connection, _)) => {
                    match &pool.account.location {
                        ServerLocation::Server(_) => connection.respect_read_only().await?,
                        #[cfg(feature = "embedded")]
                        ServerLocation::Embedded(_) => {}
                    }
                    if let Some(owner) = &pool.account.owner {
                        owner.mark(&mut connection).await?;
                    }
                    connection.own_writes.clone_from(&self.options.own_writes);
                    if let LeaseAccount::Gateway = account {
                        connection.documents_account.clone_from(&self.documents_name);
                    }
                    role.iter().for_each(|role| connection.use_role(role));
                    return Ok(self.lend(connection, share, account));
                }
                Err(Failure::Full(_)) if Instant::now() < until => tokio::time::sleep(RETRY_AFTER).await,
                Err(Failure::Full(message)) => return Err(none_free(message)),
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Closes the idle connections, which are likely to be dead after one proved so.
    pub fn close_idle(&self) {
        self.accounts().for_each(|pool| pool.idle.borrow_mut().clear());
    }

    /// Closes an idle connection if, with one more, there would be too many. Only connections of
    /// the other account are idle while one is opened.
    fn make_room(&self) {
        // The caller's share is taken.
        let free = self.shares.borrow().free();
        let idle: usize = self.accounts().map(|pool| pool.idle.borrow().len()).sum();
        if idle > free {
            let fullest = self.accounts().max_by_key(|pool| pool.idle.borrow().len());
            fullest.iter().for_each(|pool| drop(pool.idle.borrow_mut().drain(..1)));
        }
    }

    fn accounts(&self) -> impl Iterator<Item = &AccountPool> {
        [Some(&self.gateway), self.documents.as_ref()].into_iter().flatten()
    }

    /// As [`Pool::lease`], but returns `None` rather than wait: for callers that others wait for.
    pub async fn lease_if_free(self: &Rc<Self>) -> Option<Lease> {
        if self.shares.borrow().free() > 0 { self.lease().await.ok() } else { None }
    }

    /// Lends a further connection, under the same role, to a caller that can do without, if this
    /// worker uses hardly any: then the server has idle threads.
    pub async fn lease_if_quiet(self: &Rc<Self>, role: Option<&Arc<str>>) -> Option<Lease> {
        // The caller's own connection and the shared ones are lent.
        let free = self.shares.borrow().free();
        let is_quiet = free > 0 && free + 1 + self.accounts().count() >= self.options.connections_max;
        let account = role.map_or(LeaseAccount::Gateway, |role| LeaseAccount::Documents(Some(role)));
        if is_quiet { self.lease_by(None, account).await.ok() } else { None }
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

    /// Returns whether a statement of this session is being killed, and removes the mark.
    fn take_doomed(&self, session: u64) -> bool {
        let mut doomed = self.doomed.borrow_mut();
        !doomed.is_empty() && doomed.remove(&session)
    }

    fn lend(self: &Rc<Self>, connection: Connection, share: Share, account: LeaseAccount<'_>) -> Lease {
        let is_for_documents = matches!(account, LeaseAccount::Documents(_));
        Lease { connection: Some(connection), pool: self.clone(), is_for_documents, _share: share }
    }

    fn give_back(&self, connection: Connection, is_for_documents: bool) {
        let pool = self.documents.as_ref().filter(|_| is_for_documents).unwrap_or(&self.gateway);
        let killer = &pool.account.killer;
        let is_doomed = self.take_doomed(connection.session());
        if connection.refused_as_read_only {
            // Its server may have become writable since: new sessions will know.
            self.close_idle();
        }
        if !connection.is_idle() {
            // The server would go on with the commands in flight even with the connection closed.
            match connection.session_in_flight() {
                Some(session) if connection.locks > 0 => killer.kill_definer(session),
                Some(session) => killer.kill_session(session),
                None => {}
            }
            return;
        }
        if is_doomed || connection.refused_as_read_only {
            return;
        }
        let now = Instant::now();
        let mut idle = pool.idle.borrow_mut();
        let timeout = self.options.idle_timeout;
        let expired = idle.iter().take_while(|(_, since)| now.duration_since(*since) > timeout).count();
        idle.drain(..expired);
        idle.push((connection, now));
    }
}

/// The account of a lease, and the role under which it executes statements.
#[derive(Clone, Copy)]
enum LeaseAccount<'r> {
    Gateway,
    Documents(Option<&'r Arc<str>>),
}

/// The idle connections of one account.
struct AccountPool {
    account: PoolAccount,
    /// The most recently used is last, so that connections that are not needed stay idle.
    idle: RefCell<Vec<(Connection, Instant)>>,
}

impl AccountPool {
    fn new(account: PoolAccount) -> AccountPool {
        AccountPool { account, idle: RefCell::default() }
    }

    /// Takes an idle connection, one that has the role already if there is one.
    fn take_idle(&self, role: Option<&Arc<str>>) -> Option<Connection> {
        let mut idle = self.idle.borrow_mut();
        while !idle.is_empty() {
            let having = role.and_then(|role| idle.iter().rposition(|(connection, _)| connection.role() == Some(role)));
            let last = idle.len() - 1;
            let (mut connection, _) = idle.remove(having.unwrap_or(last));
            if !connection.has_hung_up() {
                return Some(connection);
            }
        }
        None
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
    /// Whether it belongs to the account for statements under a role.
    is_for_documents: bool,
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
            self.pool.give_back(connection, self.is_for_documents);
        }
    }
}
