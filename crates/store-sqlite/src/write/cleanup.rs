//! Work that can wait until the writer is idle: emptying dropped tables and deleting records of old
//! sessions.
//!
//! Dropping a large table takes as long as reading it. So a drop removes the collection from the
//! catalog at once, and its table is emptied here, a slice at a time, between other work.

use super::retry::{RETENTION_SECONDS, now_seconds};
use super::state::Writer;
use crate::failure::Attempt;
use std::time::{Duration, Instant};

/// Rows deleted in one step.
const SLICE_ROWS: i64 = 2_000;

/// Tables up to this many rows are dropped at once.
pub const SMALL_ROWS: u64 = 5_000;

const SESSIONS_INTERVAL: Duration = Duration::from_secs(300);

const ENTRIES_INTERVAL: Duration = Duration::from_secs(30);

impl Writer {
    /// Does one cleanup step. Returns false if there is nothing to do.
    pub(super) fn run_cleanup_step(&mut self) -> bool {
        self.cleanup.last = Some(Instant::now());
        self.retry_recovery();
        let work = match self.cleanup.dropped.last().cloned() {
            Some(table) => self.transaction(|writer| writer.empty_table(&table)).map(|empty| {
                if empty {
                    self.cleanup.dropped.pop();
                }
            }),
            None if self.sessions_are_due() => {
                self.cleanup.sessions_looked_at = Some(Instant::now());
                self.transaction(Writer::forget_sessions)
            }
            None if self.entries_are_due() => self.delete_expired_entries().map(|more| {
                self.cleanup.entries_looked_at = (!more).then(Instant::now);
            }),
            None => return false,
        };
        if let Err(failure) = work {
            tracing::warn!(?failure, "dropped tables and old sessions could not be cleaned up");
            self.cleanup.dropped.clear();
            return false;
        }
        true
    }

    /// Returns whether entries of the log may be beyond its age limit.
    fn entries_are_due(&self) -> bool {
        let has_limit = self.shared.oplog.as_ref().is_some_and(|log| log.options.age_max.is_some());
        has_limit && self.cleanup.entries_looked_at.is_none_or(|at| at.elapsed() > ENTRIES_INTERVAL)
    }

    fn sessions_are_due(&self) -> bool {
        self.cleanup.sessions_looked_at.is_none_or(|at| at.elapsed() > SESSIONS_INTERVAL)
    }

    fn forget_sessions(&mut self) -> Attempt<()> {
        let sql = "DELETE FROM retryable_writes WHERE at < ?1";
        self.connection.prepare_cached(sql)?.execute([now_seconds() - RETENTION_SECONDS])?;
        Ok(())
    }

    /// Drops a table, in the running transaction if it is small, otherwise in steps.
    pub(super) fn drop_table(&mut self, table: &str, rows: u64) -> Attempt<()> {
        if rows <= SMALL_ROWS {
            self.connection.execute_batch(&format!("DROP TABLE IF EXISTS {table}"))?;
            return Ok(());
        }
        self.connection.prepare_cached("INSERT OR REPLACE INTO dropped(name) VALUES(?1)")?.execute([table])?;
        self.effects.tables.push(table.to_owned());
        Ok(())
    }

    /// Deletes a slice of a table's rows, and the table with the last of them.
    fn empty_table(&mut self, table: &str) -> Attempt<bool> {
        // A table of documents has an index, which is small compared to it and slow to empty row by
        // row.
        self.connection.execute_batch(&format!("DROP INDEX IF EXISTS {table}_id"))?;
        let key = if table.starts_with('c') { "seq" } else { "key" };
        let sql = format!(
            "DELETE FROM {table} WHERE {key} <= coalesce(
                 (SELECT {key} FROM {table} ORDER BY {key} LIMIT 1 OFFSET ?1),
                 (SELECT max({key}) FROM {table}))"
        );
        let deleted = self.connection.prepare(&sql)?.execute([SLICE_ROWS]);
        match deleted {
            Ok(rows) if rows as i64 > SLICE_ROWS => return Ok(false),
            Ok(_) => {}
            Err(error) if crate::failure::is_missing_table(&error) => {}
            Err(error) => return Err(error.into()),
        }
        self.connection.execute_batch(&format!("DROP TABLE IF EXISTS {table}"))?;
        self.connection.prepare_cached("DELETE FROM dropped WHERE name = ?1")?.execute([table])?;
        Ok(true)
    }
}
