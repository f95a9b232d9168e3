//! SELECTs that were answered from the cache, which the server has not received. Before a statement
//! that uses the diagnostics of the last one (FOUND_ROWS(), ROW_COUNT(), SHOW WARNINGS), the server
//! is brought to the state in which it would be.

use super::cached_select::CachedSelect;
use super::state::Session;
use crate::context::CachedResult;
use crate::reply_tracker::{ReplyKind, ReplyTracker};
use sql_classify::{DiagnosticsKept, DiagnosticsUse};
use std::io;
use std::sync::Arc;

/// The largest FOUND_ROWS() that is restored.
const FOUND_ROWS_MAX: u64 = 1_000_000;

/// What the server lacks of the statements before.
pub enum CatchUp {
    Nothing,
    /// This SELECT has to be executed there.
    Repeat(CachedSelect),
    /// FOUND_ROWS() has to be the number of this result's rows.
    Restore(Arc<CachedResult>),
}

impl Session {
    /// Brings the server's diagnostics up to the last statement of the client, as far as the next
    /// statement needs it.
    pub async fn catch_up(&mut self, kept: DiagnosticsKept, uses: DiagnosticsUse) -> io::Result<()> {
        match self.lacks(kept, uses) {
            CatchUp::Nothing => Ok(()),
            CatchUp::Repeat(select) => {
                self.has_warnings = false;
                self.server.send(&select.packet).await?;
                self.read_reply().await.map(drop)
            }
            CatchUp::Restore(result) => self.restore_found_rows(&result, uses).await,
        }
    }

    /// Returns what the server lacks for the next statement, and takes it to be done.
    pub fn lacks(&mut self, kept: DiagnosticsKept, uses: DiagnosticsUse) -> CatchUp {
        let keeps_warnings =
            self.has_warnings && matches!(kept, DiagnosticsKept::Warnings | DiagnosticsKept::FoundRowsAndWarnings);
        let keeps_found_rows =
            matches!(kept, DiagnosticsKept::FoundRows | DiagnosticsKept::FoundRowsAndWarnings | DiagnosticsKept::All);
        let Some(select) = self.last_cached_select.take() else {
            return match self.found_rows.take() {
                Some(result) if uses.needs_found_rows(self.has_warnings) || kept == DiagnosticsKept::MaybeFoundRows => {
                    CatchUp::Restore(result)
                }
                result => {
                    self.found_rows = result.filter(|_| keeps_found_rows);
                    CatchUp::Nothing
                }
            };
        };
        self.found_rows = None;
        let is_needed = uses != DiagnosticsUse::Nothing
            || matches!(kept, DiagnosticsKept::All | DiagnosticsKept::MaybeFoundRows)
            || keeps_warnings;
        if !is_needed && !keeps_found_rows {
            return CatchUp::Nothing;
        }
        if !is_needed && select.counts_all_rows() {
            self.found_rows = Some(select.result);
            return CatchUp::Nothing;
        }
        CatchUp::Repeat(select)
    }

    /// Makes FOUND_ROWS() return the number of a cached result's rows. The SELECT itself is not
    /// repeated: it could run in another transaction by now.
    pub async fn restore_found_rows(&mut self, result: &CachedResult, uses: DiagnosticsUse) -> io::Result<()> {
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
