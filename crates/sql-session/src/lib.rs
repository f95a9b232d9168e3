//! SQL clients: connections in MariaDB's protocol, passed on to the MariaDB server, with a cache of answers between.
//!
//! What comes in is a [`selkie_runtime::Connection`]; each has a connection of its own to the server, which checks who the client is.
//! Commands and answers go by as they are, and are looked at only as far as to know where they end. Two things are added: a SELECT that
//! depends on nothing but rows is answered from memory while that is right, and what changes rows is announced to all who keep answers
//! before the server hears of it.
//!
//! In reading order: [`peer`] (a socket and its packets), [`login`], [`answer`] (where an answer
//! ends and what it says), [`statement`] (what a statement does, by its [`tokens`] and the names in
//! [`functions`]), [`reach`] (what it changes besides), [`execution`] (what a prepared one is
//! executed with), [`rules`], [`settings`] and [`rights`] (what else an answer depends on),
//! [`pending`] (writes under way), [`session`] (the loop).

mod answer;
mod bounded_parse;
mod execution;
mod functions;
mod login;
mod peer;
mod pending;
mod reach;
mod rights;
mod rules;
mod running;
mod session;
mod settings;
mod statement;
mod tokens;

pub use peer::Backend;
pub use reach::{Definition, Definitions, Forgetting, Known, TableKind};
pub use rights::RightsShown;
pub use rules::{Rules, pattern};
pub use running::Kill;

use cache::Cache;
use selkie_runtime::Connection;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use store::ChangeObserver;
use tokio::sync::Semaphore;

/// An answer that is kept: its packets.
#[derive(Debug)]
pub struct Kept(Box<[u8]>);

/// What sessions share.
pub struct SqlService {
    pub backend: Backend,
    pub connect_timeout: Duration,
    /// Connections that have not logged in yet, which there may be so many of: each takes one of
    /// the server's.
    pub logins: Arc<Semaphore>,
    /// How long a login may take, and waiting for others to end.
    pub login_timeout: Duration,
    /// Ends a session on the server.
    pub kill: Kill,
    /// Answers that are kept, if they are.
    pub cache: Option<Arc<Cache<Kept>>>,
    /// Which are.
    pub rules: Rules,
    /// Whether clients get them, by the number of the listener that they came to; they do, for listeners beyond.
    pub listeners: Vec<bool>,
    /// Who is told of changes, if anybody keeps answers.
    pub watch: Option<Arc<dyn ChangeObserver>>,
    /// What statements change beside the tables that they name.
    pub definitions: Arc<Known>,
    /// What clients may do.
    pub rights: RightsShown,
}

impl SqlService {
    fn uses_cache(&self, listener: usize) -> bool {
        self.listeners.get(listener).copied().unwrap_or(true)
    }

    /// Serves a connection until either side closes it.
    pub async fn serve(self: Arc<Self>, connection: Connection) {
        session::serve(self, connection).await;
    }
}

impl fmt::Debug for SqlService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SqlService({:?})", self.backend)
    }
}
