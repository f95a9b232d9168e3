//! A connection that is outside of a pool's limits, and that any thread may use: for a transaction
//! that a client of the gateway begins and ends.

use crate::connection::{Abandonment, Connection};
use crate::killer::Killer;
use crate::pool_accounts::PoolAccounts;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// A connection taken out of its pool for good. Dropping it closes it; its statement is then killed
/// on the server, and its transaction rolled back.
pub struct DedicatedConnection {
    connection: Connection,
    killer: Arc<Killer>,
    /// Has changed when the server is no longer the primary; `None` if it is always the same.
    changes: Option<watch::Receiver<Option<Arc<PoolAccounts>>>>,
    /// Ends the task that abandons the connection.
    _watched: Option<oneshot::Sender<()>>,
}

impl DedicatedConnection {
    /// `changes`: the server, if it may change; commands to an earlier one fail after `grace`.
    /// To be called on a worker's thread.
    pub(crate) fn new(
        connection: Connection,
        killer: Arc<Killer>,
        changes: Option<watch::Receiver<Option<Arc<PoolAccounts>>>>,
        grace: Duration,
    ) -> DedicatedConnection {
        let watched = changes.clone().map(|changes| {
            let (alive, ended) = oneshot::channel();
            let abandonment = Arc::downgrade(&connection.abandonment());
            tokio::task::spawn_local(abandon_after_change(abandonment, changes, ended, grace));
            alive
        });
        DedicatedConnection { connection, killer, changes, _watched: watched }
    }

    /// Returns whether its server is still the one in use.
    pub fn is_current(&self) -> bool {
        self.changes.as_ref().is_none_or(|changes| !changes.has_changed().unwrap_or(false))
    }

    /// Returns a way to end its session from elsewhere.
    pub fn session_killer(&self) -> SessionKiller {
        SessionKiller { session: self.connection.session(), killer: self.killer.clone() }
    }
}

/// Ends the session of one connection.
pub struct SessionKiller {
    session: u64,
    killer: Arc<Killer>,
}

impl SessionKiller {
    pub fn kill(&self) {
        self.killer.kill_session(self.session);
    }
}

async fn abandon_after_change(
    abandonment: Weak<Abandonment>,
    mut changes: watch::Receiver<Option<Arc<PoolAccounts>>>,
    ended: oneshot::Receiver<()>,
    grace: Duration,
) {
    tokio::select! {
        _ = ended => {}
        Ok(()) = changes.changed() => {
            tokio::time::sleep(grace).await;
            abandonment.upgrade().iter().for_each(|abandonment| abandonment.abandon());
        }
    }
}

impl Deref for DedicatedConnection {
    type Target = Connection;
    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl DerefMut for DedicatedConnection {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }
}

impl Drop for DedicatedConnection {
    fn drop(&mut self) {
        if let Some(session) = self.connection.session_in_flight() {
            self.killer.kill_session(session);
        }
    }
}
