//! SELECTs that were answered from the cache, which the server has not received. Before a statement
//! that uses the diagnostics of the last one (FOUND_ROWS(), ROW_COUNT(), SHOW WARNINGS), the server
//! is brought to the state in which it would be.

use super::Session;
use crate::CachedResult;
use crate::reply_tracker::{ReplyKind, ReplyTracker};
use sql_classify::{DiagnosticsKept, DiagnosticsUse};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

/// A SELECT that was answered from the cache, after the last statement that the server received.
pub struct CachedSelect {
    /// The command.
    pub packet: Vec<u8>,
    /// The statement, where the command does not contain it.
    pub sql: Option<Rc<[u8]>>,
    pub result: Arc<CachedResult>,
}

/// The largest FOUND_ROWS() that is restored.
const FOUND_ROWS_MAX: u64 = 1_000_000;

impl CachedSelect {
    /// Returns whether FOUND_ROWS() is the number of the result's rows.
    fn counts_all_rows(&self) -> bool {
        let sql = self.sql.as_deref().unwrap_or(&self.packet).to_ascii_uppercase();
        ![&b"LIMIT"[..], b"OFFSET", b"FETCH", b"UNION", b"EXCEPT", b"INTERSECT"]
            .iter()
            .any(|word| memchr::memmem::find(&sql, word).is_some())
    }
}

impl Session {
    /// Brings the server's diagnostics up to the last statement of the client, as far as the next
    /// statement needs it.
    pub async fn catch_up(&mut self, kept: DiagnosticsKept, uses: DiagnosticsUse) -> io::Result<()> {
        let keeps_warnings =
            self.has_warnings && matches!(kept, DiagnosticsKept::Warnings | DiagnosticsKept::FoundRowsAndWarnings);
        let keeps_found_rows =
            matches!(kept, DiagnosticsKept::FoundRows | DiagnosticsKept::FoundRowsAndWarnings | DiagnosticsKept::All);
        let Some(select) = self.last_cached_select.take() else {
            return match self.found_rows.take() {
                Some(result) if uses.needs_found_rows(self.has_warnings) || kept == DiagnosticsKept::MaybeFoundRows => {
                    self.restore_found_rows(&result, uses).await
                }
                result => {
                    self.found_rows = result.filter(|_| keeps_found_rows);
                    Ok(())
                }
            };
        };
        self.found_rows = None;
        let is_needed = uses != DiagnosticsUse::Nothing
            || matches!(kept, DiagnosticsKept::All | DiagnosticsKept::MaybeFoundRows)
            || keeps_warnings;
        if !is_needed && !keeps_found_rows {
            return Ok(());
        }
        if !is_needed && select.counts_all_rows() {
            self.found_rows = Some(select.result);
            return Ok(());
        }
        self.has_warnings = false;
        self.server.send(&select.packet).await?;
        self.read_reply().await.map(drop)
    }

    /// Makes FOUND_ROWS() return the number of a cached result's rows. The SELECT itself is not
    /// repeated: it could run in another transaction by now.
    async fn restore_found_rows(&mut self, result: &CachedResult, uses: DiagnosticsUse) -> io::Result<()> {
        let mut reply = ReplyTracker::new(ReplyKind::Results, self.login.deprecates_eof);
        reply.feed(&result.0);
        let rows = reply.rows.min(FOUND_ROWS_MAX);
        let hundred = format!("(VALUES (0){})", ",(0)".repeat(99));
        let query = format!("SELECT 0 FROM {hundred} AS a, {hundred} AS b, {hundred} AS c LIMIT {rows}");
        self.query_server(&query).await?;
        if uses == DiagnosticsUse::FoundRowsAndOther {
            // The client's last statement was not a SELECT, and ROW_COUNT() differs after one.
            self.query_server("DO 0").await?;
        }
        Ok(())
    }
}
