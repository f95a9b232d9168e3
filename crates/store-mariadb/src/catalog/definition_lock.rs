//! Locks that serialize changes of collections' definitions: creating, dropping, renaming, options,
//! indexes.
//!
//! MariaDB commits each DDL statement by itself, and Selkie's records of a collection are in other
//! tables. So each change holds a named lock ([`named_lock`]) of its collection, which all gateways
//! on the server observe. A second lock, of the database, is held while a schema gains or loses a
//! table, so that a schema is dropped only when it is empty. Locks of collections are taken in
//! order of their names and before a database's, so that no two changes deadlock.
//!
//! Named locks belong to one server. On a Galera cluster, [`ClusterLocks`] exclude the other nodes.
//! SQL clients take neither. A change that lost a race nevertheless ([`Failure::is_lost_race`])
//! starts over.

use crate::catalog::cluster_lock::{ClusterLocks, across_nodes};
use ahash::AHashMap;
use error::{Code, Error};
use mariadb_client::{Connection, Failure, Result, named_lock};
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::sync::{Arc, Weak};
use tokio::sync::Mutex;

/// How long a change waits for another one of the same collection: an index build may take long.
const LOCKED_SECONDS_MAX: u32 = 365 * 24 * 3600;

/// The changes of one worker, by the names of their locks. Changes of one collection wait for each
/// other here, without holding a connection.
#[derive(Default)]
pub(crate) struct ChangeQueue(RefCell<AHashMap<String, Weak<Mutex<()>>>>);

impl ChangeQueue {
    pub fn of(&self, name: &str) -> Arc<Mutex<()>> {
        let mut queues = self.0.borrow_mut();
        if let Some(queue) = queues.get(name).and_then(Weak::upgrade) {
            return queue;
        }
        queues.retain(|_, queue| queue.strong_count() > 0);
        let queue = Arc::new(Mutex::new(()));
        queues.insert(name.to_owned(), Arc::downgrade(&queue));
        queue
    }
}

/// Returns the name of a collection's lock.
pub(crate) fn collection_lock(schema: &str, table: &str) -> String {
    lock_name("collection", &[schema, table])
}

/// Returns the name of a database's lock. Databases whose names differ only in case share it.
pub(crate) fn database_lock(schema: &str) -> String {
    lock_name("database", &[&schema.to_lowercase()])
}

/// Returns a lock's name. MariaDB ignores case in names of locks, and limits them to 64 characters.
fn lock_name(kind: &str, parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    parts.iter().for_each(|part| hash.update(Sha256::digest(part)));
    hash.finalize().iter().take(16).fold(format!("selkie {kind} "), |name, byte| format!("{name}{byte:02x}"))
}

/// Runs `work` while the connection holds these locks. It may hold them already.
pub(crate) async fn locked<T>(
    cluster: Option<&ClusterLocks>,
    connection: &mut Connection,
    names: &[String],
    work: impl AsyncFnOnce(&mut Connection) -> Result<T>,
) -> Result<T> {
    let work = async |connection: &mut Connection| across_nodes(cluster, connection, names, work).await;
    locked_on_server(connection, names, work).await
}

/// As [`locked`], but other nodes of a Galera cluster are not excluded. MariaDB counts how often a
/// connection takes a lock.
///
/// If the future is dropped, the connection is returned to the pool with a lock, and closed there.
pub(crate) async fn locked_on_server<T>(
    connection: &mut Connection,
    names: &[String],
    work: impl AsyncFnOnce(&mut Connection) -> Result<T>,
) -> Result<T> {
    let mut taken = 0;
    let outcome = async {
        for name in names {
            connection.locks += 1;
            if !named_lock::take(connection, name, LOCKED_SECONDS_MAX).await? {
                connection.locks -= 1;
                return Err(Error::new(Code::LOCK_TIMEOUT, "another change of the collection takes too long").into());
            }
            taken += 1;
        }
        work(connection).await
    }
    .await;
    if outcome.as_ref().is_err_and(Failure::is_lost) {
        return outcome;
    }
    for name in &names[..taken] {
        named_lock::release(connection, name).await?;
        connection.locks -= 1;
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_locks_are_distinct() {
        let names = [
            collection_lock("a", "b.c"),
            collection_lock("a.b", "c"),
            collection_lock("A", "b.c"),
            collection_lock("a", "B.c"),
            database_lock("a"),
        ];
        for (position, name) in names.iter().enumerate() {
            assert!(name.len() <= 64 && !names[..position].contains(name), "{name}");
        }
        assert_eq!(database_lock("Shop"), database_lock("shop"));
    }
}
