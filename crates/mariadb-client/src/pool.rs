//! A worker's connections: opened on demand, bounded in number, shared fairly among collections,
//! lent to one caller at a time, closed when idle.
//!
//! A pool that follows a primary opens connections to the present one only, and waits while there
//! is none. Connections to an earlier one are closed when they are returned, or end after a grace
//! period.

use crate::connection::{Abandonment, Connection};
use crate::dedicated_connection::DedicatedConnection;
use crate::establish::establish;
use crate::failure::{Failure, Result};
use crate::fair_shares::{FairShares, Group};
use crate::last_writes::LastWrites;
use crate::own_writes::OwnWrites;
use crate::pool_accounts::{PoolAccount, PoolAccounts};
use crate::primary_source::PrimarySource;
use ahash::{AHashMap, AHashSet, RandomState};
use error::{Code, Error};
use std::cell::{Cell, RefCell};
use std::hash::Hash;
use std::ops::{Deref, DerefMut};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Pause before the next attempt to connect when the server has reached max_connections, or when
/// the primary cannot be reached.
const RETRY_AFTER: Duration = Duration::from_millis(50);

/// How long a statement on a server that is no longer the primary may still take.
const GRACE: Duration = Duration::from_secs(1);

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
    /// Records the last acknowledged transactions, for reads on replicas.
    pub last_writes: Option<Arc<LastWrites>>,
}

impl Default for PoolOptions {
    fn default() -> Self {
        PoolOptions {
            connections_max: 32,
            idle_timeout: Duration::from_secs(60),
            lease_timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(10),
            own_writes: None,
            last_writes: None,
        }
    }
}

/// The accounts of a pool, which change with its server.
#[derive(Clone)]
pub struct PoolServers {
    accounts: watch::Receiver<Option<Arc<PoolAccounts>>>,
    /// `None`: the server is always the same.
    primary: Option<PrimarySource>,
}

impl PoolServers {
    /// A server that is always the same.
    pub fn fixed(accounts: PoolAccounts) -> PoolServers {
        PoolServers { accounts: watch::Sender::new(Some(Arc::new(accounts))).subscribe(), primary: None }
    }

    /// The primary of servers that replicate. `accounts`: those on the present one.
    pub fn following(accounts: watch::Receiver<Option<Arc<PoolAccounts>>>, primary: PrimarySource) -> PoolServers {
        PoolServers { accounts, primary: Some(primary) }
    }
}

/// A worker's connections.
pub struct Pool {
    options: PoolOptions,
    servers: RefCell<PoolServers>,
    /// The server in use; `None`: there is no primary.
    current: RefCell<Option<Rc<Server>>>,
    /// The connections that may be open, by group.
    shares: RefCell<FairShares>,
    hasher: RandomState,
    /// Sessions of which a statement is being killed. The kill may hit a later statement, so these
    /// connections are never reused.
    doomed: RefCell<AHashSet<u64>>,
    /// The lent connections, if the pool follows a primary.
    lent: RefCell<AHashMap<u64, Lent>>,
    leases: Cell<u64>,
    /// The refusals of writes that the pool knows of.
    refusals: Cell<u64>,
}

/// A lent connection.
struct Lent {
    session: u64,
    server: Rc<Server>,
    abandonment: Arc<Abandonment>,
}

impl Pool {
    pub fn new(servers: PoolServers, options: PoolOptions) -> Rc<Pool> {
        let shares = RefCell::new(FairShares::new(options.connections_max));
        let current = servers.accounts.borrow().as_deref().cloned().map(Server::new);
        let mut changes = servers.primary.is_some().then(|| servers.accounts.clone());
        changes.iter_mut().for_each(watch::Receiver::mark_unchanged);
        let pool = Rc::new(Pool {
            options,
            servers: RefCell::new(servers),
            current: RefCell::new(current),
            shares,
            hasher: RandomState::new(),
            doomed: RefCell::default(),
            lent: RefCell::default(),
            leases: Cell::default(),
            refusals: Cell::default(),
        });
        if let Some(changes) = changes {
            tokio::task::spawn_local(abandon_after_changes(Rc::downgrade(&pool), changes));
        }
        pool
    }

    /// Returns whether there is a server: if it follows a primary, there may be none.
    pub fn has_server(&self) -> bool {
        self.server().is_some()
    }

    /// Kills the statement of a lent connection, which is not reused after that.
    pub fn kill_query(&self, session: u64) {
        self.doomed.borrow_mut().insert(session);
        let lent = self.lent.borrow();
        let of_session = lent.values().find(|lent| lent.session == session).map(|lent| lent.server.clone());
        // The server refuses this to the account that does not own the session.
        drop(lent);
        if let Some(server) = of_session.or_else(|| self.server()) {
            server.accounts().for_each(|pool| pool.account.killer.kill_query(session));
        }
    }

    /// Returns the server in use, after a change of it has taken effect.
    fn server(&self) -> Option<Rc<Server>> {
        let mut servers = self.servers.borrow_mut();
        let accounts = &mut servers.accounts;
        // Without a sender, nothing changes any more.
        if accounts.has_changed().unwrap_or(false) {
            *self.current.borrow_mut() = accounts.borrow_and_update().as_deref().cloned().map(Server::new);
        }
        let current = self.current.borrow().clone();
        if let (Some(primary), Some(server)) = (&servers.primary, &current)
            && self.refusals.replace(primary.refusals()) != primary.refusals()
        {
            server.close_idle();
        }
        current
    }

    /// Returns the server in use; waits for one if there is no primary.
    async fn server_in_time(&self, until: Instant) -> Result<Rc<Server>> {
        loop {
            if let Some(server) = self.server() {
                return Ok(server);
            }
            if !self.changes_before(until).await {
                return Err(self.no_primary(None));
            }
        }
    }

    /// Waits until the server has changed; returns false if it has not in time.
    async fn changes_before(&self, until: Instant) -> bool {
        let mut changes = self.servers.borrow().accounts.clone();
        matches!(tokio::time::timeout_at(until.into(), changes.changed()).await, Ok(Ok(())))
    }

    /// Returns the failure of an operation that has waited for a primary. `failure`: of the
    /// connection to it, if there seems to be one.
    fn no_primary(&self, failure: Option<Failure>) -> Failure {
        match (failure, &self.servers.borrow().primary) {
            (Some(failure), _) => Failure::NoPrimary(failure.to_string()),
            (None, Some(primary)) => Failure::NoPrimary(primary.monitor.why_none()),
            (None, None) => Failure::NoPrimary("there is no server".to_owned()),
        }
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

    /// Takes a connection out of the pool, after the waiting of [`Pool::lease`]. `role`: as in
    /// [`Pool::lease_under`].
    pub async fn dedicate(self: &Rc<Self>, role: Option<&Arc<str>>) -> Result<DedicatedConnection> {
        let account = role.map_or(LeaseAccount::Gateway, |role| LeaseAccount::Documents(Some(role)));
        let mut lease = self.lease_by(None, account).await?;
        let changes = match &*self.servers.borrow() {
            servers if servers.primary.is_some() => Some(servers.accounts.clone()),
            _ => None,
        };
        if !lease.is_current() {
            return Err(Failure::Lost("the MariaDB server is no longer the primary".into()));
        }
        self.lent.borrow_mut().remove(&lease.number);
        let killer = lease.server.of(account)?.account.killer.clone();
        match lease.connection.take() {
            Some(connection) => Ok(DedicatedConnection::new(connection, killer, changes, GRACE)),
            None => Err(Error::internal("a lease without a connection").into()),
        }
    }

    /// As [`Pool::lease`], for queries about many collections: together they get one collection's
    /// share.
    pub async fn lease_for_catalog(self: &Rc<Self>) -> Result<Lease> {
        self.lease_by(Some(0), LeaseAccount::Gateway).await
    }

    async fn lease_by(self: &Rc<Self>, group: Group, account: LeaseAccount<'_>) -> Result<Lease> {
        let share = self.take_share(group).await?;
        let primary = self.servers.borrow().primary.clone();
        let began = Instant::now();
        let until = began + self.options.lease_timeout;
        let primary_until = began + primary.as_ref().map_or(Duration::ZERO, |primary| primary.wait);
        loop {
            let server = self.server_in_time(primary_until).await?;
            let role = account.role();
            if let Some(mut connection) = server.of(account)?.take_idle(role) {
                role.iter().for_each(|role| connection.use_role(role));
                return Ok(self.lend(connection, share, account, server));
            }
            self.make_room(&server);
            let opened = tokio::select! {
                opened = self.open(&server, account, primary.is_some()) => opened,
                // The server that does not answer is not the primary any more.
                true = self.changes_before(primary_until), if primary.is_some() => continue,
            };
            match (opened, &primary) {
                (Ok(connection), _) => return Ok(self.lend(connection, share, account, server)),
                (Err(Failure::Full(_)), _) if Instant::now() < until => tokio::time::sleep(RETRY_AFTER).await,
                (Err(Failure::Full(message)), _) => return Err(none_free(message)),
                (Err(failure), Some(primary)) if failure.is_lost() || failure.is_not_writable() => {
                    primary.monitor.suspect();
                    let pause = Instant::now() + RETRY_AFTER;
                    if pause > primary_until {
                        return Err(self.no_primary(Some(failure)));
                    }
                    self.changes_before(pause).await;
                }
                (Err(failure), _) => return Err(failure),
            }
        }
    }

    /// Opens a connection. `must_be_writable`: fails if the server is read-only.
    async fn open(&self, server: &Server, account: LeaseAccount<'_>, must_be_writable: bool) -> Result<Connection> {
        let PoolAccount { location, owner, .. } = &server.of(account)?.account;
        let (mut connection, _) = establish(location, self.options.connect_timeout).await?;
        if !location.is_embedded() {
            connection.respect_read_only().await?;
        }
        if must_be_writable {
            connection.check_writable().await?;
        }
        if let Some(owner) = owner {
            owner.mark(&mut connection).await?;
        }
        connection.own_writes.clone_from(&self.options.own_writes);
        connection.last_writes.clone_from(&self.options.last_writes);
        if let LeaseAccount::Gateway = account {
            connection.documents_account.clone_from(&server.documents_name);
        }
        account.role().iter().for_each(|role| connection.use_role(role));
        Ok(connection)
    }

    /// Closes the idle connections, which are likely to be dead after one proved so.
    pub fn close_idle(&self) {
        self.current.borrow().iter().for_each(|server| server.close_idle());
    }

    /// Closes an idle connection if, with one more, there would be too many. Only connections of
    /// the other account are idle while one is opened.
    fn make_room(&self, server: &Server) {
        // The caller's share is taken.
        let free = self.shares.borrow().free();
        let idle: usize = server.accounts().map(|pool| pool.idle.borrow().len()).sum();
        if idle > free {
            let fullest = server.accounts().max_by_key(|pool| pool.idle.borrow().len());
            fullest.iter().for_each(|pool| drop(pool.idle.borrow_mut().drain(..1)));
        }
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
        let shared = self.current.borrow().as_ref().map_or(0, |server| server.accounts().count());
        let is_quiet = free > 0 && free + 1 + shared >= self.options.connections_max;
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

    fn lend(
        self: &Rc<Self>,
        connection: Connection,
        share: Share,
        account: LeaseAccount<'_>,
        server: Rc<Server>,
    ) -> Lease {
        let is_for_documents = matches!(account, LeaseAccount::Documents(_));
        let number = self.leases.get();
        if self.servers.borrow().primary.is_some() {
            self.leases.set(number + 1);
            let (session, abandonment) = (connection.session(), connection.abandonment());
            self.lent.borrow_mut().insert(number, Lent { session, server: server.clone(), abandonment });
        }
        let (connection, pool, refusals) = (Some(connection), self.clone(), self.refusals.get());
        Lease { connection, pool, server, is_for_documents, number, refusals, _share: share }
    }

    fn give_back(&self, connection: Connection, lease: &Lease) {
        let server = &lease.server;
        let pool = server.documents.as_ref().filter(|_| lease.is_for_documents).unwrap_or(&server.gateway);
        let killer = &pool.account.killer;
        self.lent.borrow_mut().remove(&lease.number);
        let is_doomed = self.take_doomed(connection.session());
        if connection.refused_as_read_only {
            // Its server may have become writable since: new sessions will know.
            server.close_idle();
            self.servers.borrow().primary.iter().for_each(PrimarySource::note_refusal);
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
        let is_doubtful =
            connection.refused_as_read_only || !lease.is_current() || lease.refusals != self.refusals.get();
        if is_doomed || is_doubtful {
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

/// Ends the connections to a server some time after it has ceased to be the primary: one that does
/// not answer would hold their statements for ever.
async fn abandon_after_changes(pool: Weak<Pool>, mut changes: watch::Receiver<Option<Arc<PoolAccounts>>>) {
    while changes.changed().await.is_ok() {
        let Some(present) = pool.upgrade() else { return };
        let server = present.server();
        let is_old = |lent: &Lent| server.as_ref().is_none_or(|server| !Rc::ptr_eq(server, &lent.server));
        let old: Vec<Arc<Abandonment>> =
            present.lent.borrow().values().filter(|lent| is_old(lent)).map(|lent| lent.abandonment.clone()).collect();
        drop(present);
        if !old.is_empty() {
            tokio::task::spawn_local(async move {
                tokio::time::sleep(GRACE).await;
                old.iter().for_each(|abandonment| abandonment.abandon());
            });
        }
    }
}

/// The account of a lease, and the role under which it executes statements.
#[derive(Clone, Copy)]
enum LeaseAccount<'r> {
    Gateway,
    Documents(Option<&'r Arc<str>>),
}

impl<'r> LeaseAccount<'r> {
    fn role(self) -> Option<&'r Arc<str>> {
        match self {
            LeaseAccount::Gateway => None,
            LeaseAccount::Documents(role) => role,
        }
    }
}

/// A server, with the idle connections to it.
struct Server {
    gateway: AccountPool,
    documents: Option<AccountPool>,
    documents_name: Option<Arc<str>>,
}

impl Server {
    fn new(accounts: PoolAccounts) -> Rc<Server> {
        let PoolAccounts { gateway, documents, documents_name } = accounts;
        let (gateway, documents) = (AccountPool::new(gateway), documents.map(AccountPool::new));
        Rc::new(Server { gateway, documents, documents_name })
    }

    fn accounts(&self) -> impl Iterator<Item = &AccountPool> {
        [Some(&self.gateway), self.documents.as_ref()].into_iter().flatten()
    }

    fn of(&self, account: LeaseAccount<'_>) -> Result<&AccountPool> {
        let missing = || Error::internal("the pool has no account for statements under a role");
        match account {
            LeaseAccount::Gateway => Ok(&self.gateway),
            LeaseAccount::Documents(_) => Ok(self.documents.as_ref().ok_or_else(missing)?),
        }
    }

    fn close_idle(&self) {
        self.accounts().for_each(|pool| pool.idle.borrow_mut().clear());
    }
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
    server: Rc<Server>,
    /// Whether it belongs to the account for statements under a role.
    is_for_documents: bool,
    /// Its number among the lent connections.
    number: u64,
    /// The refusals of writes when it was lent.
    refusals: u64,
    _share: Share,
}

impl Lease {
    /// Closes the idle connections to its server, which are likely to be dead after one proved so.
    pub fn close_idle(&self) {
        self.server.close_idle();
    }

    /// Returns whether it was lent by this pool.
    pub fn is_of(&self, pool: &Rc<Pool>) -> bool {
        Rc::ptr_eq(&self.pool, pool)
    }

    /// Returns whether its server is still the one in use.
    pub fn is_current(&self) -> bool {
        self.pool.server().is_some_and(|server| Rc::ptr_eq(&server, &self.server))
    }
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
            self.pool.give_back(connection, self);
        }
    }
}
