//! The writer's tasks that span transactions: recovery, cleanup, an index build.

use ahash::AHashSet;
use rusqlite::Connection;
use std::time::{Duration, Instant};
use store::Namespace;

/// The time between two attempts.
const RECOVERY_INTERVAL: Duration = Duration::from_secs(1);

/// Collections with missing entries, and the first document that lacks them.
#[derive(Default)]
pub struct Recovery {
    pub collections: Vec<(i64, i64)>,
    pub tried_at: Option<Instant>,
    /// The reason of the failure has been logged.
    pub logged: bool,
}

impl Recovery {
    pub fn is_empty(&self) -> bool {
        self.collections.is_empty()
    }

    pub fn concerns(&self, collection: i64) -> bool {
        self.collections.iter().any(|(id, _)| *id == collection)
    }

    pub fn is_due(&self) -> bool {
        !self.is_empty() && self.tried_at.is_none_or(|at| at.elapsed() >= RECOVERY_INTERVAL)
    }
}

/// Under constant load, one cleanup step is done this often.
const OVERDUE: Duration = Duration::from_millis(200);

#[derive(Default)]
pub struct Cleanup {
    pub last: Option<Instant>,
    /// Tables of dropped collections and indexes.
    pub dropped: Vec<String>,
    pub sessions_looked_at: Option<Instant>,
    pub entries_looked_at: Option<Instant>,
}

impl Cleanup {
    /// Continues the work of an earlier process.
    pub fn find_dropped(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        self.last = Some(Instant::now());
        let mut statement = connection.prepare("SELECT name FROM dropped")?;
        self.dropped = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        Ok(())
    }

    /// Returns whether no step has been done for a while.
    pub fn is_overdue(&self) -> bool {
        self.last.is_some_and(|last| last.elapsed() > OVERDUE)
    }

    pub fn add_dropped(&mut self, tables: Vec<String>) {
        self.dropped.extend(tables);
    }
}

/// A running build.
pub struct Build {
    pub collection: i64,
    pub namespace: Namespace,
    /// Documents changed or deleted since the current chunk was read.
    pub touched: AHashSet<i64>,
}
