//! Locks that exclude changes of definitions and accounts on other nodes of a Galera cluster.
//!
//! Named locks belong to one node. If statements that define one table are executed on two nodes at
//! once, they do not only fail: MariaDB may stop to apply anything on the whole cluster. So a lock
//! is a row of `selkie.locks` besides. Galera commits it on all nodes or on none, in one order with
//! all other changes. Therefore a node that has inserted the row has applied everything that the
//! last holder of the lock has changed.
//!
//! The holder counts a number in its row up while it holds the lock. A row whose number stays the
//! same for [`ABANDONED_AFTER`] was left by a gateway that was killed, and is taken over.

use crate::catalog::attempts::pause;
use crate::catalog::own_schema;
use ahash::AHashSet;
use mariadb_client::{Connection, DedicatedConnection, Failure, Pool, Result};
use mariadb_wire::Param;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// How often a holder shows that it is alive.
pub(crate) const RENEW_EVERY: Duration = Duration::from_secs(2);

/// How long a row must stay the same before it is taken over. While a definition is changed, no
/// node commits anything. So the time starts again after a read of the row that took longer than
/// `LOOK_MAX`.
const ABANDONED_AFTER: Duration = Duration::from_secs(15);
const LOOK_MAX: Duration = Duration::from_secs(2);

const INSERT: &str = "INSERT IGNORE INTO selkie.locks (name, owner, renewals) VALUES (?, ?, 0)";
/// Waits until the node has applied all transactions that were committed before.
const LOOK: &str =
    "SET STATEMENT wsrep_sync_wait = 1 FOR SELECT owner, CAST(renewals AS CHAR) FROM selkie.locks WHERE name = ?";
const TAKE_OVER: &str =
    "UPDATE selkie.locks SET owner = ?, renewals = 0 WHERE name = ? AND owner = ? AND CAST(renewals AS CHAR) = ?";
const RENEW: &str = "UPDATE selkie.locks SET renewals = renewals + 1 WHERE name = ? AND owner = ?";
const RELEASE: &str = "DELETE FROM selkie.locks WHERE name = ? AND owner = ?";

/// Runs `work` while no other node of a cluster does that holds these locks.
pub(crate) async fn across_nodes<T>(
    cluster: Option<&ClusterLocks>,
    connection: &mut Connection,
    names: &[String],
    work: impl AsyncFnOnce(&mut Connection) -> Result<T>,
) -> Result<T> {
    match cluster {
        Some(cluster) => cluster.locked(connection, names, work).await,
        None => work(connection).await,
    }
}

/// The locks of one worker.
pub(crate) struct ClusterLocks {
    pub pool: Rc<Pool>,
    /// The connection that renews locks while the holders' connections are busy. It is opened
    /// before a lock is taken: later the pool could be exhausted.
    renewing: Mutex<Option<DedicatedConnection>>,
    /// Locks that connections hold: a connection's address, and the lock's name.
    held: RefCell<AHashSet<(usize, String)>>,
}

/// The locks that one call holds.
struct Held<'l> {
    locks: &'l ClusterLocks,
    owner: [u8; 16],
    connection: usize,
    names: Vec<&'l str>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut held = self.locks.held.borrow_mut();
        for name in &self.names {
            held.remove(&(self.connection, (*name).to_owned()));
        }
    }
}

impl ClusterLocks {
    pub fn new(pool: Rc<Pool>) -> ClusterLocks {
        ClusterLocks { pool, renewing: Mutex::default(), held: RefCell::default() }
    }

    /// Runs `work` while the connection holds these locks. It may hold them already.
    ///
    /// If the connection is lost, or the future is dropped, MariaDB may still execute a statement.
    /// So the locks are left to be taken over.
    pub async fn locked<T>(
        &self,
        connection: &mut Connection,
        names: &[String],
        work: impl AsyncFnOnce(&mut Connection) -> Result<T>,
    ) -> Result<T> {
        let address = std::ptr::from_ref(connection).addr();
        let mut held = Held { locks: self, owner: rand::random(), connection: address, names: Vec::new() };
        self.open_renewing().await?;
        for name in names {
            let is_new = self.held.borrow_mut().insert((address, name.clone()));
            if is_new {
                held.names.push(name);
                if let Err(failure) = take(connection, name, &held.owner).await {
                    held.release(connection).await?;
                    return Err(failure);
                }
            }
        }
        let outcome = tokio::select! {
            biased;
            outcome = work(connection) => outcome,
            never = self.renew(&held) => match never {},
        };
        if !outcome.as_ref().is_err_and(Failure::is_lost) {
            held.release(connection).await?;
        }
        outcome
    }

    async fn open_renewing(&self) -> Result<()> {
        let mut renewing = self.renewing.lock().await;
        if !renewing.as_ref().is_some_and(|connection| connection.is_current() && connection.is_at_rest()) {
            *renewing = Some(self.pool.dedicate(None).await?);
        }
        Ok(())
    }

    async fn renew(&self, held: &Held<'_>) -> std::convert::Infallible {
        loop {
            tokio::time::sleep(RENEW_EVERY).await;
            if let Err(failure) = self.renew_once(held).await {
                tracing::debug!("locks of definitions could not be renewed: {failure}");
            }
        }
    }

    async fn renew_once(&self, held: &Held<'_>) -> Result<()> {
        self.open_renewing().await?;
        let mut renewing = self.renewing.lock().await;
        // Taken out meanwhile: if this is interrupted, the connection is closed.
        let Some(mut connection) = renewing.take() else { return Ok(()) };
        for name in &held.names {
            renew(&mut connection, name, &held.owner).await?;
        }
        *renewing = Some(connection);
        Ok(())
    }
}

impl Held<'_> {
    async fn release(&self, connection: &mut Connection) -> Result<()> {
        for name in &self.names {
            release(connection, name, &self.owner).await?;
        }
        Ok(())
    }
}

fn lock_params<'p>(name: &'p str, owner: &'p [u8; 16]) -> [Param<'p>; 2] {
    [Param::Text(name.as_bytes()), Param::Bytes(owner)]
}

/// The owner of a row, and its count as text.
type Row = (Vec<u8>, Vec<u8>);

/// Shows that the holder of a lock is alive.
pub(crate) async fn renew(connection: &mut Connection, name: &str, owner: &[u8; 16]) -> Result<()> {
    if own_schema::execute(connection, &RENEW.into(), &lock_params(name, owner)).await? == 0 {
        tracing::warn!(lock = name, "another gateway has taken a lock over, because this one was too slow");
    }
    Ok(())
}

pub(crate) async fn release(connection: &mut Connection, name: &str, owner: &[u8; 16]) -> Result<()> {
    own_schema::execute(connection, &RELEASE.into(), &lock_params(name, owner)).await.map(drop)
}

/// Takes a lock; waits for its holder.
pub(crate) async fn take(connection: &mut Connection, name: &str, owner: &[u8; 16]) -> Result<()> {
    let mut seen: Option<(Row, Instant)> = None;
    for attempt in 0.. {
        if own_schema::execute(connection, &INSERT.into(), &lock_params(name, owner)).await? == 1 {
            break;
        }
        let began = Instant::now();
        let row = match look(connection, name).await {
            Err(failure) if failure.is_contention() => None,
            row => row?,
        };
        let Some(row) = row.filter(|_| began.elapsed() < LOOK_MAX) else {
            seen = None;
            continue;
        };
        match &seen {
            Some((before, since)) if *before == row => {
                if since.elapsed() > ABANDONED_AFTER && take_over(connection, name, owner, &row).await? {
                    tracing::warn!(lock = name, "took a lock over that a gateway has left");
                    break;
                }
            }
            _ => seen = Some((row, Instant::now())),
        }
        pause(attempt).await;
    }
    Ok(())
}

async fn look(connection: &mut Connection, name: &str) -> Result<Option<Row>> {
    let mut found = None;
    own_schema::query(connection, &LOOK.into(), &[Param::Text(name.as_bytes())], |row| {
        if let [Some(owner), Some(renewals)] = row {
            found = Some((owner.clone(), renewals.clone()));
        }
        Ok(())
    })
    .await?;
    Ok(found)
}

async fn take_over(
    connection: &mut Connection,
    name: &str,
    owner: &[u8; 16],
    (before, renewals): &Row,
) -> Result<bool> {
    let params = [Param::Bytes(owner), Param::Text(name.as_bytes()), Param::Bytes(before), Param::Text(renewals)];
    Ok(own_schema::execute(connection, &TAKE_OVER.into(), &params).await? == 1)
}
