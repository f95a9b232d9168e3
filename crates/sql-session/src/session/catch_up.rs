//! Statements that were answered from memory, of which the server does not know: what they would
//! have changed for those that ask of the last one (FOUND_ROWS(), ROW_COUNT(), SHOW WARNINGS).

use super::Session;
use crate::Kept;
use crate::answer::{Answer, Shape};
use crate::statement::Kind;
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

/// What the next statement leaves as the ones before it made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaves {
    /// It may leave anything.
    All,
    /// It has warnings, counts and rows of its own.
    Nothing,
    /// It changes everything but warnings.
    Warnings,
    /// It changes everything but FOUND_ROWS().
    FoundRows,
    /// It changes everything, but FOUND_ROWS() perhaps not.
    PerhapsFoundRows,
    /// It changes everything but FOUND_ROWS() and warnings.
    FoundRowsAndWarnings,
}

/// What the next statement asks of those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    Nothing,
    /// Warnings, ROW_COUNT().
    Other,
    FoundRows,
    FoundRowsAndMore,
    /// It may ask anything, in functions and procedures.
    Anything,
}

impl Asks {
    pub fn read(sql: &[u8], kind: &Kind) -> Asks {
        let upper = sql.to_ascii_uppercase();
        let has = |word: &[u8]| memchr::memmem::find(&upper, word).is_some();
        let others = [&b"ROW_COUNT"[..], b"WARNING", b"ERROR", b"DIAGNOSTICS"].into_iter().any(has);
        match (has(b"FOUND_ROWS"), others, kind) {
            (true, false, _) => Asks::FoundRows,
            (true, true, _) => Asks::FoundRowsAndMore,
            (false, true, _) => Asks::Other,
            (false, false, Kind::Unknown | Kind::Calls | Kind::Show) => Asks::Anything,
            (false, false, _) => Asks::Nothing,
        }
    }

    /// Whether FOUND_ROWS() has to be right, if that takes away warnings.
    fn of_found_rows(self, has_warnings: bool) -> bool {
        match self {
            Asks::Nothing | Asks::Other => false,
            Asks::FoundRows | Asks::FoundRowsAndMore => true,
            Asks::Anything => !has_warnings,
        }
    }
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
    /// Brings the server up to what the client has been answered, as far as the next statement
    /// needs.
    pub async fn catch_up(&mut self, leaves: Leaves, asks: Asks) -> io::Result<()> {
        let keeps_warnings = matches!(leaves, Leaves::Warnings | Leaves::FoundRowsAndWarnings) && self.has_warnings;
        let keeps_found_rows = matches!(leaves, Leaves::FoundRows | Leaves::FoundRowsAndWarnings | Leaves::All);
        let Some(unheard) = self.unheard.take() else {
            return match self.found_rows.take() {
                Some(kept) if asks.of_found_rows(self.has_warnings) || leaves == Leaves::PerhapsFoundRows => {
                    self.restore_found_rows(&kept, asks).await
                }
                kept => {
                    self.found_rows = kept.filter(|_| keeps_found_rows);
                    Ok(())
                }
            };
        };
        self.found_rows = None;
        let is_needed =
            asks != Asks::Nothing || matches!(leaves, Leaves::All | Leaves::PerhapsFoundRows) || keeps_warnings;
        if !is_needed && !keeps_found_rows {
            return Ok(());
        }
        if !is_needed && unheard.counts_all_rows() {
            self.found_rows = Some(unheard.kept);
            return Ok(());
        }
        self.has_warnings = false;
        self.server.send(&unheard.packet).await?;
        self.take_answer().await.map(drop)
    }

    /// Makes FOUND_ROWS() give the number of an answer's rows. The statement itself may be another
    /// transaction's by now, so it is not repeated.
    async fn restore_found_rows(&mut self, kept: &Kept, asks: Asks) -> io::Result<()> {
        let mut answer = Answer::new(Shape::Results, self.login.deprecates_eof);
        answer.feed(&kept.0);
        let rows = answer.rows.min(ROWS_MAX);
        let hundred = format!("(VALUES (0){})", ",(0)".repeat(99));
        let question = format!("SELECT 0 FROM {hundred} AS a, {hundred} AS b, {hundred} AS c LIMIT {rows}");
        self.ask(&question).await?;
        if asks == Asks::FoundRowsAndMore {
            // What was done last was no SELECT.
            self.ask("DO 0").await?;
        }
        Ok(())
    }
}
