//! Statements that were answered from memory, of which the server does not know: what they would
//! have changed for those that ask of the last one (FOUND_ROWS(), ROW_COUNT(), SHOW WARNINGS).

use super::Session;
use crate::Kept;
use crate::answer::{Answer, Shape};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

/// A SELECT that was answered from memory after all that the server has heard.
pub struct Unheard {
    /// The command.
    pub packet: Vec<u8>,
    /// The statement, where the command does not say it.
    pub sql: Option<Rc<[u8]>>,
    pub kept: Arc<Kept>,
}

/// What the next statement asks of those before it, or leaves as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaves {
    /// It may ask anything.
    Asks,
    /// It has warnings, counts and rows of its own.
    Nothing,
    /// It changes everything but warnings.
    Warnings,
    /// It changes everything but FOUND_ROWS().
    FoundRows,
    /// It changes everything but FOUND_ROWS() and warnings.
    FoundRowsAndWarnings,
}

/// More rows than these are not made up for FOUND_ROWS().
const ROWS_MAX: u64 = 1_000_000;

impl Unheard {
    /// Whether FOUND_ROWS() gives the number of the answer's rows.
    fn counts_all_rows(&self) -> bool {
        let sql = self.sql.as_deref().unwrap_or(&self.packet).to_ascii_uppercase();
        ![&b"LIMIT"[..], b"OFFSET", b"FETCH", b"UNION", b"EXCEPT", b"INTERSECT"]
            .iter()
            .any(|word| memchr::memmem::find(&sql, word).is_some())
    }
}

impl Session {
    /// Brings the server up to what the client has been answered, as far as the next statement needs.
    pub async fn catch_up(&mut self, leaves: Leaves) -> io::Result<()> {
        let keeps_warnings = matches!(leaves, Leaves::Warnings | Leaves::FoundRowsAndWarnings) && self.has_warnings;
        let Some(unheard) = self.unheard.take() else {
            return match (leaves, self.found_rows.take()) {
                (Leaves::Asks, Some(kept)) => self.restore_found_rows(&kept).await,
                (Leaves::FoundRows | Leaves::FoundRowsAndWarnings, kept) => {
                    self.found_rows = kept;
                    Ok(())
                }
                _ => Ok(()),
            };
        };
        self.found_rows = None;
        match leaves {
            Leaves::Nothing | Leaves::Warnings if !keeps_warnings => Ok(()),
            Leaves::FoundRows | Leaves::FoundRowsAndWarnings if !keeps_warnings && unheard.counts_all_rows() => {
                self.found_rows = Some(unheard.kept);
                Ok(())
            }
            _ => {
                self.has_warnings = false;
                self.server.send(&unheard.packet).await?;
                self.take_answer().await.map(drop)
            }
        }
    }

    /// Makes FOUND_ROWS() give the number of an answer's rows. The statement itself may be another
    /// transaction's by now, so it is not repeated.
    async fn restore_found_rows(&mut self, kept: &Kept) -> io::Result<()> {
        let mut answer = Answer::new(Shape::Results, self.login.deprecates_eof);
        answer.feed(&kept.0);
        let rows = answer.rows.min(ROWS_MAX);
        let hundred = format!("(VALUES (0){})", ",(0)".repeat(99));
        let question = format!("SELECT 0 FROM {hundred} AS a, {hundred} AS b, {hundred} AS c LIMIT {rows}");
        self.ask(&question).await.map(drop)
    }
}
