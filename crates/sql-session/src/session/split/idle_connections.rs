//! Connections of a worker that no session uses at the moment, where sessions share them.

use super::further_connection::FurtherConnection;
use super::remains::Unread;
use crate::login::elsewhere::Identity;
use service::{Backend, Service};
use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::spawn_local;
use tokio::time::timeout;

/// Connections that were idle for longer are closed.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// How long reading the remains from a connection that is closed may take.
const REMAINS_LIMIT: Duration = Duration::from_secs(1);

/// So many sessions of a worker wait at a time for the right to open a connection to a server.
/// Others wait until they may, or until a session of this worker gives one back.
const OPENING_MAX: usize = 8;

/// One in so many connections is closed when it is given back, for sessions of other workers that
/// wait for the right to open one.
const OTHERS_TURN: usize = 16;

/// The idle connections of a worker, to the servers of one service.
pub struct IdleConnections {
    /// The longest idle first.
    connections: RefCell<VecDeque<IdleConnection>>,
    servers: RefCell<Vec<Rc<WaitingFor>>>,
    service: Arc<Service>,
    /// A task closes connections that others want.
    serves_others: Cell<bool>,
}

/// The sessions of the worker that wait for a connection to a server.
pub struct WaitingFor {
    backend: Arc<Backend>,
    /// Notified when a connection was given back.
    pub released: Notify,
    waiting: Cell<usize>,
    opening: Cell<usize>,
    turns: Cell<usize>,
}

/// A session that waits, until it is dropped.
pub struct Waiting {
    pub server: Rc<WaitingFor>,
    /// It may wait for the right to open a connection.
    pub may_open: bool,
}

/// A connection that no session uses.
pub struct IdleConnection {
    pub connection: FurtherConnection,
    /// The session that used it last. Its state is as this session has left it.
    owner: u64,
    /// The place for the diagnostics of the last statement, if another session takes the
    /// connection.
    pub diagnostics: Option<Rc<RefCell<Diagnostics>>>,
    /// The remains of the session.
    pub unread: Option<Unread>,
    since: Instant,
}

/// The diagnostics of a session's last statement, read from its connection when another session
/// took it.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    /// The reply to SHOW WARNINGS.
    pub warnings: Option<Vec<u8>>,
    /// The value of FOUND_ROWS().
    pub found_rows: Option<u64>,
}

impl IdleConnections {
    pub fn new(service: Arc<Service>) -> IdleConnections {
        IdleConnections {
            connections: RefCell::default(),
            servers: RefCell::default(),
            service,
            serves_others: Cell::default(),
        }
    }

    /// Gives a connection back. `owner`: the session that has used it.
    pub fn put(
        self: &Rc<Self>,
        mut connection: FurtherConnection,
        owner: u64,
        diagnostics: Option<Rc<RefCell<Diagnostics>>>,
        unread: Option<Unread>,
    ) {
        if !self.serves_others.replace(true) {
            spawn_local(self.clone().serve_others());
        }
        let server = self.server(connection.assignment.backend());
        connection.server.free_buffer();
        let is_usable = connection.assignment.end().is_none() && !server.is_turn_of_others();
        let idle = IdleConnection { connection, owner, diagnostics, unread, since: Instant::now() };
        if is_usable {
            let mut connections = self.connections.borrow_mut();
            while connections.front().is_some_and(|first| first.since.elapsed() > IDLE_MAX) {
                connections.pop_front().into_iter().for_each(IdleConnection::close_soon);
            }
            connections.push_back(idle);
        } else {
            idle.close_soon();
        }
        server.released.notify_one();
    }

    /// Takes the connection to a server that a session used last.
    pub fn take_own(&self, backend: &Arc<Backend>, owner: u64) -> Option<FurtherConnection> {
        let mut idle = self.remove_own(backend, owner)?;
        // The server may have closed it.
        if !idle.connection.server.is_quiet() {
            return None;
        }
        idle.unread.into_iter().for_each(Unread::keep);
        Some(idle.connection)
    }

    /// Takes the connection to a server that a session used last, with its remains.
    pub fn remove_own(&self, backend: &Arc<Backend>, owner: u64) -> Option<IdleConnection> {
        let mut connections = self.connections.borrow_mut();
        let at = connections.iter().rposition(|one| one.owner == owner && one.connection.is_to(backend))?;
        connections.remove(at)
    }

    /// Takes a connection to a server that can become one of this account: the one whose takeover
    /// costs least.
    pub fn take(&self, backend: &Arc<Backend>, identity: &Identity) -> Option<IdleConnection> {
        let mut connections = self.connections.borrow_mut();
        let fitting = connections
            .iter()
            .enumerate()
            .filter(|(_, one)| one.is_to(backend) && one.connection.identity.has_form_of(identity));
        let (at, _) = fitting.min_by_key(|(at, one)| {
            (one.has_remains(), Reverse(one.connection.identity.is_account_of(identity)), *at)
        })?;
        connections.remove(at)
    }

    /// Takes the connection to a server that was idle longest, to be closed.
    pub fn take_oldest(&self, backend: &Arc<Backend>) -> Option<IdleConnection> {
        let mut connections = self.connections.borrow_mut();
        let at = connections.iter().position(|one| one.connection.is_to(backend))?;
        connections.remove(at)
    }

    fn close_one(&self, backend: &Arc<Backend>) {
        self.take_oldest(backend).into_iter().for_each(IdleConnection::close_soon);
    }

    /// Closes a connection on each server without a free one, for a login.
    pub fn make_room(&self) {
        for target in &self.service.state().targets {
            if target.backend.slots.is_full() {
                self.close_one(&target.backend);
                self.want(&target.backend);
            }
        }
    }

    /// Registers a session that waits for a connection to a server.
    pub fn wait(&self, backend: &Arc<Backend>) -> Waiting {
        let server = self.server(backend);
        server.waiting.set(server.waiting.get() + 1);
        let may_open = server.opening.get() < OPENING_MAX;
        if may_open {
            server.opening.set(server.opening.get() + 1);
        }
        Waiting { server, may_open }
    }

    /// Asks other workers and services for a connection to a server without a free one.
    pub fn want(&self, backend: &Backend) {
        if backend.slots.is_full() {
            self.service.connection_wanted().notify_waiters();
        }
    }

    /// Closes connections that sessions of other workers and services wait for.
    async fn serve_others(self: Rc<IdleConnections>) {
        loop {
            self.service.connection_wanted().notified().await;
            let servers = self.servers.borrow().clone();
            for server in servers.iter().filter(|server| server.backend.slots.is_full()) {
                self.close_one(&server.backend);
            }
        }
    }

    fn server(&self, backend: &Arc<Backend>) -> Rc<WaitingFor> {
        let mut servers = self.servers.borrow_mut();
        if let Some(server) = servers.iter().find(|server| Arc::ptr_eq(&server.backend, backend)) {
            return server.clone();
        }
        let server = Rc::new(WaitingFor {
            backend: backend.clone(),
            released: Notify::new(),
            waiting: Cell::new(0),
            opening: Cell::new(0),
            turns: Cell::new(0),
        });
        servers.push(server.clone());
        server
    }
}

impl WaitingFor {
    /// Returns whether a connection that is given back goes to another worker.
    fn is_turn_of_others(&self) -> bool {
        if self.backend.slots.queued() <= self.opening.get() {
            return false;
        }
        self.turns.set((self.turns.get() + 1) % OTHERS_TURN);
        self.waiting.get() == 0 || self.turns.get() == 0
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let server = &self.server;
        server.waiting.set(server.waiting.get().saturating_sub(1));
        if self.may_open {
            server.opening.set(server.opening.get().saturating_sub(1));
        }
    }
}

impl IdleConnection {
    fn is_to(&self, backend: &Arc<Backend>) -> bool {
        self.connection.is_to(backend) && self.connection.assignment.end().is_none()
    }

    fn has_remains(&self) -> bool {
        self.diagnostics.is_some() || self.unread.as_ref().is_some_and(Unread::asks)
    }

    /// Reads the remains of the session from its connection. Returns `None` if it has failed.
    pub async fn read_remains(self) -> Option<FurtherConnection> {
        let mut connection = self.connection;
        self.unread.iter().for_each(Unread::begin);
        if let Some(diagnostics) = self.diagnostics {
            connection.keep_diagnostics(&diagnostics).await.ok()?;
        }
        if let Some(unread) = self.unread {
            unread.read(&mut connection).await.ok()?;
        }
        Some(connection)
    }

    /// Closes the connection after its remains were read.
    pub async fn close(self) {
        if self.has_remains() {
            let _ = timeout(REMAINS_LIMIT, self.read_remains()).await;
        }
    }

    fn close_soon(self) {
        if self.has_remains() {
            spawn_local(self.close());
        }
    }
}
