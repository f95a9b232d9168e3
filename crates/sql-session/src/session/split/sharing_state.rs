//! The state of a session that shares its connections, and the diagnostics of its last statement.

use super::command::DiagnosticsEffect;
use super::idle_connections::Diagnostics;
use super::remains::{Remains, Unread};
use crate::reply_tracker::ReplyTracker;
use ahash::AHashSet;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The state of a session that shares its connections.
pub struct Sharing {
    /// Distinguishes the session from all others.
    pub owner: u64,
    /// The session has no connection of its own at the moment, because others may use it.
    pub is_parked: bool,
    /// Its connection has the form of further ones, so others can use it.
    pub can_give_home: bool,
    /// Statements with an open cursor.
    pub cursors: AHashSet<u32>,
    pub row_count: i64,
    pub found_rows: Option<u64>,
    /// The session's connection does not know FOUND_ROWS(): it is another's since.
    pub has_moved: bool,
    pub diagnostics: Option<Rc<RefCell<Diagnostics>>>,
    has_warnings: bool,
    /// LAST_INSERT_ID() may differ from the id in replies: they also have the id of a row whose
    /// statement gives it.
    pub is_insert_id_unsure: bool,
    /// Its remains on the connection that others may have now.
    pub remains: Option<Rc<Remains>>,
    /// The last reply did not say whether a transaction is open.
    pub lacks_status: bool,
}

impl Sharing {
    pub fn new(can_give_home: bool) -> Sharing {
        static OWNERS: AtomicU64 = AtomicU64::new(0);
        Sharing {
            owner: OWNERS.fetch_add(1, Ordering::Relaxed),
            is_parked: false,
            can_give_home,
            cursors: AHashSet::default(),
            row_count: 0,
            found_rows: Some(0),
            has_moved: true,
            diagnostics: None,
            has_warnings: false,
            is_insert_id_unsure: false,
            remains: None,
            lacks_status: false,
        }
    }

    /// Records the diagnostics of a statement.
    pub fn note_reply(&mut self, reply: &ReplyTracker, effect: DiagnosticsEffect) {
        self.row_count = match reply.failed || reply.result_sets > 0 {
            true => -1,
            false => i64::try_from(reply.affected_rows).unwrap_or(i64::MAX),
        };
        let sets_found_rows = reply.result_sets > 0 && !effect.keeps_found_rows;
        self.has_moved &= !sets_found_rows;
        if effect.counts_rows {
            self.found_rows = None;
        } else if sets_found_rows {
            self.found_rows = Some(reply.rows);
        } else if let Some(diagnostics) = &self.diagnostics {
            self.found_rows = self.found_rows.or(diagnostics.borrow().found_rows);
        }
        self.lacks_status = reply.status.is_none();
        self.has_warnings = reply.failed || reply.warned || self.has_warnings && !effect.resets_warnings;
        let are_needed = self.has_warnings || self.found_rows.is_none();
        self.diagnostics = are_needed.then(Rc::default);
    }
}

impl Sharing {
    /// Returns the remains to be read from the session's connection before others use it.
    pub fn leave_remains(&mut self) -> Unread {
        let question = if self.is_insert_id_unsure { "VALUES (LAST_INSERT_ID())" } else { "" };
        let (remains, unread) = Remains::new(question.to_owned());
        self.remains = Some(remains);
        unread
    }

    /// Records that the session has another connection, or `is_own` again.
    pub fn note_move(&mut self, is_own: bool) {
        self.has_moved |= !is_own;
    }
}
