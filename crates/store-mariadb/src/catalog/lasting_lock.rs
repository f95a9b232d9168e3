//! A lock on all nodes of a Galera cluster that is held across several calls.

use crate::catalog::cluster_lock::{self, ClusterLocks, RENEW_EVERY};
use mariadb_client::{Connection, DedicatedConnection, Pool, Result};
use std::rc::Rc;
use tokio::sync::oneshot;
use tokio::task::spawn_local;
use tokio::time::sleep;

/// A lock on all nodes, which a task renews. If it is dropped and not released, MariaDB may still
/// execute a statement of its holder: it is left to be taken over.
pub(crate) struct LastingLock(oneshot::Sender<()>);

/// What the task has.
struct Renewal {
    pool: Rc<Pool>,
    connection: DedicatedConnection,
    name: String,
    owner: [u8; 16],
}

impl LastingLock {
    /// Takes a lock; waits for its holder.
    pub async fn take(locks: &ClusterLocks, connection: &mut Connection, name: &str) -> Result<LastingLock> {
        let (pool, owner) = (locks.pool.clone(), rand::random());
        // Opened before: later the pool could be exhausted.
        let renewing = pool.dedicate(None).await?;
        cluster_lock::take(connection, name, &owner).await?;
        let (release, released) = oneshot::channel();
        let renewal = Renewal { pool, connection: renewing, name: name.to_owned(), owner };
        spawn_local(renewal.run(released));
        Ok(LastingLock(release))
    }

    pub fn release(self) {
        // The task runs until this is sent or dropped.
        let _ = self.0.send(());
    }
}

impl Renewal {
    async fn run(mut self, mut released: oneshot::Receiver<()>) {
        loop {
            let is_over = tokio::select! {
                biased;
                released = &mut released => Some(released.is_ok()),
                () = sleep(RENEW_EVERY) => None,
            };
            let done = match is_over {
                None => self.renew().await,
                Some(true) => self.release().await,
                Some(false) => return,
            };
            if let Err(failure) = done {
                tracing::debug!(lock = self.name, "a lock could not be renewed or released: {failure}");
            }
            if is_over.is_some() {
                return;
            }
        }
    }

    async fn renew(&mut self) -> Result<()> {
        self.reconnect().await?;
        cluster_lock::renew(&mut self.connection, &self.name, &self.owner).await
    }

    async fn release(&mut self) -> Result<()> {
        self.reconnect().await?;
        cluster_lock::release(&mut self.connection, &self.name, &self.owner).await
    }

    async fn reconnect(&mut self) -> Result<()> {
        if !(self.connection.is_current() && self.connection.is_at_rest()) {
            self.connection = self.pool.dedicate(None).await?;
        }
        Ok(())
    }
}
