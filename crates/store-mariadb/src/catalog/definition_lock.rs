//! Serializes changes of collections' definitions: creating, dropping, renaming, options, indexes.
//!
//! MariaDB commits each DDL statement by itself, and what Selkie records of a collection is in other tables. So each
//! change holds a named lock ([`named_lock`]) of its collection, which all gateways on the server observe. A second lock, of
//! the database, is held while a schema gains or loses a table, so that a schema is dropped only when it is empty.
//! Collections' locks are taken in order of their names and before a database's, so that no two changes wait for each other.
//!
//! Named locks belong to one server of a cluster, and SQL clients do not take them. A change that met another one
//! all the same ([`Failure::is_lost_race`]) starts over.

use ahash::AHashMap;
use error::{Code, Error};
use mariadb_client::{Connection, Failure, Result, named_lock};
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Mutex;

/// How long a change waits for another one of the same collection: as long as an index build takes.
const LOCKED_SECONDS_MAX: u32 = 365 * 24 * 3600;

/// How often a change starts over.
pub(crate) const ATTEMPTS_MAX: u32 = 30;

/// The longest pause before that.
const PAUSE_MAX: Duration = Duration::from_millis(250);

/// The changes of one worker, by the names of their locks. Those of one collection wait here for each other, without a
/// connection.
#[derive(Default)]
pub(crate) struct Queue(RefCell<AHashMap<String, Weak<Mutex<()>>>>);

impl Queue {
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

/// Returns the name of the lock of a collection, by its schema and table.
pub(crate) fn of_collection(schema: &str, table: &str) -> String {
    lock_name("collection", &[schema, table])
}

/// Returns the name of the lock of a database, which it shares with those whose names differ in case only.
pub(crate) fn of_database(schema: &str) -> String {
    lock_name("database", &[&schema.to_lowercase()])
}

/// MariaDB compares names of locks without regard to case, and takes 64 characters.
fn lock_name(kind: &str, parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    parts.iter().for_each(|part| hash.update(Sha256::digest(part)));
    hash.finalize().iter().take(16).fold(format!("selkie {kind} "), |name, byte| format!("{name}{byte:02x}"))
}

/// Waits a little before another attempt, longer the more there were.
pub(crate) async fn pause(attempt: u32) {
    let most = Duration::from_millis(4 << attempt.min(8)).min(PAUSE_MAX);
    tokio::time::sleep(most.mul_f64(rand::random_range(0.2..1.0))).await;
}

/// Runs `work` while the connection has these locks. They may be held already: MariaDB counts.
///
/// A connection given back with a lock, for its future was dropped, is closed and loses it.
pub(crate) async fn locked<T>(
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
    fn locks_are_told_apart() {
        let names = [
            of_collection("a", "b.c"),
            of_collection("a.b", "c"),
            of_collection("A", "b.c"),
            of_collection("a", "B.c"),
            of_database("a"),
        ];
        for (position, name) in names.iter().enumerate() {
            assert!(name.len() <= 64 && !names[..position].contains(name), "{name}");
        }
        assert_eq!(of_database("Shop"), of_database("shop"));
    }
}
