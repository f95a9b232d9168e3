//! The transactions of logical sessions: their handles, life time and end.
//!
//! The registry belongs to the process, because a session's statements arrive at any worker: the
//! worker that receives one takes the session's turn, and executes it on a store that reads and
//! writes within the transaction ([`store::DocumentStore::in_transaction`]). This is simpler than
//! passing requests to the worker that began the transaction, and no statement waits for another
//! session's work. [`crate::session_state`] has the rules.

use crate::logical_session::{LogicalSessionId, TIMEOUT_MINUTES};
use crate::session_state::{self, SessionState, StatementRole, Step};
use error::Result;
use hashbrown::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use store::{RecordedWrite, Transaction};

/// The default of `transactionLifetimeLimitSeconds`.
const LIFETIME_SECONDS: i64 = 60;

/// How long the state of an unused session is kept. What the store has recorded outlives it.
const UNUSED_MS: i64 = TIMEOUT_MINUTES as i64 * 60 * 1000;

/// How often expired transactions are looked for, in milliseconds.
const EXPIRY_INTERVAL_MS: i64 = 500;

/// The sessions that have used transactions.
pub struct Transactions {
    sessions: Mutex<HashMap<LogicalSessionId, Entry, ahash::RandomState>>,
    /// Whether there is an entry, or was one: sessions without transactions cost nothing.
    are_used: AtomicBool,
    /// `transactionLifetimeLimitSeconds`.
    lifetime_seconds: AtomicI64,
    expired_ms: AtomicI64,
    open: AtomicI64,
    started: AtomicU64,
    committed: AtomicU64,
    aborted: AtomicU64,
}

#[derive(Default)]
struct Entry {
    state: SessionState,
    open: Option<Open>,
    last_use_ms: i64,
    /// A commit has failed so that only the store knows the outcome.
    is_in_doubt: bool,
    /// Held by the command that runs: a session executes one statement at a time.
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// A transaction in progress.
struct Open {
    /// `None` until the store has begun it.
    handle: Option<Arc<dyn Transaction>>,
    began_ms: i64,
    is_running: bool,
}

/// Counts of transactions, for `serverStatus`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionCounts {
    pub active: i64,
    pub open: i64,
    pub started: u64,
    pub committed: u64,
    pub aborted: u64,
    /// The age of the oldest open transaction, whose snapshot keeps the store's log.
    pub oldest_ms: i64,
}

impl Default for Transactions {
    fn default() -> Transactions {
        Transactions {
            sessions: Mutex::default(),
            are_used: AtomicBool::new(false),
            lifetime_seconds: AtomicI64::new(LIFETIME_SECONDS),
            expired_ms: AtomicI64::new(0),
            open: AtomicI64::new(0),
            started: AtomicU64::new(0),
            committed: AtomicU64::new(0),
            aborted: AtomicU64::new(0),
        }
    }
}

impl fmt::Debug for Transactions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transactions").field("open", &self.open.load(Relaxed)).finish_non_exhaustive()
    }
}

impl Transactions {
    /// Returns whether any session has used a transaction.
    #[inline]
    pub fn are_used(&self) -> bool {
        self.are_used.load(Relaxed)
    }

    pub fn lifetime_seconds(&self) -> i64 {
        self.lifetime_seconds.load(Relaxed)
    }

    pub fn set_lifetime_seconds(&self, seconds: i64) {
        self.lifetime_seconds.store(seconds, Relaxed);
    }

    /// Returns the lock that a session's statement must hold while it runs; `None` if the session
    /// is unknown, and its record must be read first. So must it if the statement commits the
    /// transaction `commits`, which began at another gateway.
    pub fn turn(&self, id: &LogicalSessionId, commits: Option<i64>) -> Option<Arc<tokio::sync::Mutex<()>>> {
        let is_known =
            |entry: &&Entry| !entry.is_in_doubt && commits.is_none_or(|number| entry.state.has_reached(number));
        self.lock().get(id).filter(is_known).map(|entry| entry.turn.clone())
    }

    /// Adds a session of which the store has this record, unless as much is known of it. Returns
    /// the lock for its statements.
    pub fn add(
        &self,
        id: LogicalSessionId,
        recorded: Option<RecordedWrite>,
        now_ms: i64,
    ) -> Arc<tokio::sync::Mutex<()>> {
        self.are_used.store(true, Relaxed);
        let mut sessions = self.lock();
        let entry = sessions.entry(id).or_insert_with(|| Entry { last_use_ms: now_ms, ..Entry::default() });
        let is_later = recorded.is_some_and(|write| !entry.state.has_reached(write.txn_number));
        if std::mem::take(&mut entry.is_in_doubt) || is_later {
            entry.state = SessionState::recorded(recorded);
            self.discard(entry.open.take());
        }
        entry.turn.clone()
    }

    /// Records that only the store knows whether a transaction was committed: its record is read
    /// before the session's next statement.
    pub fn doubt(&self, id: &LogicalSessionId, number: i64) {
        let mut sessions = self.lock();
        let Some(entry) = sessions.get_mut(id) else { return };
        if entry.state.end(number, false) {
            entry.is_in_doubt = true;
            self.discard(entry.open.take());
        }
    }

    /// Accepts or refuses a statement. Fails as [`SessionState::statement`] does.
    pub fn statement(&self, id: &LogicalSessionId, number: i64, role: StatementRole, now_ms: i64) -> Result<Step> {
        let mut sessions = self.lock();
        let entry = sessions.entry(*id).or_default();
        let step = entry.state.statement(id, number, role)?;
        entry.last_use_ms = now_ms;
        if step == Step::Begin {
            let replaced = entry.open.replace(Open { handle: None, began_ms: now_ms, is_running: true });
            self.started.fetch_add(1, Relaxed);
            self.open.fetch_add(1, Relaxed);
            self.discard(replaced);
        } else if let Some(open) = &mut entry.open {
            open.is_running = true;
        }
        Ok(step)
    }

    /// Accepts or refuses a retryable write. Fails as [`SessionState::retryable_write`] does.
    pub fn retryable_write(&self, id: &LogicalSessionId, number: i64) -> Result<()> {
        let mut sessions = self.lock();
        let Some(entry) = sessions.get_mut(id) else { return Ok(()) };
        if entry.state.retryable_write(id, number)? {
            self.discard(entry.open.take());
        }
        Ok(())
    }

    /// Sets the store's transaction of the one that has begun. Fails with 251 if it was aborted
    /// meanwhile.
    pub fn attach(&self, id: &LogicalSessionId, number: i64, handle: Arc<dyn Transaction>) -> Result<()> {
        let mut sessions = self.lock();
        let entry = sessions.get_mut(id).filter(|entry| entry.state.is_in_progress(number));
        match entry.and_then(|entry| entry.open.as_mut()) {
            Some(open) => {
                open.handle = Some(handle);
                Ok(())
            }
            None => {
                handle.abort();
                Err(session_state::aborted(number))
            }
        }
    }

    /// Returns the store's transaction of the one in progress. Fails with 251 if it was aborted.
    pub fn handle(&self, id: &LogicalSessionId, number: i64) -> Result<Arc<dyn Transaction>> {
        let sessions = self.lock();
        let entry = sessions.get(id).filter(|entry| entry.state.is_in_progress(number));
        let handle = entry.and_then(|entry| entry.open.as_ref()).and_then(|open| open.handle.clone());
        handle.ok_or_else(|| session_state::aborted(number))
    }

    /// Records that the statement of a transaction has ended. Fails with 251 if the transaction was
    /// aborted meanwhile.
    pub fn pause(&self, id: &LogicalSessionId, number: i64) -> Result<()> {
        let mut sessions = self.lock();
        let entry = sessions.get_mut(id).filter(|entry| entry.state.is_in_progress(number));
        match entry.and_then(|entry| entry.open.as_mut()) {
            Some(open) => {
                open.is_running = false;
                Ok(())
            }
            None => Err(session_state::aborted(number)),
        }
    }

    /// Records that a transaction was committed.
    pub fn commit(&self, id: &LogicalSessionId, number: i64) {
        let mut sessions = self.lock();
        let Some(entry) = sessions.get_mut(id) else { return };
        if entry.state.end(number, true) {
            entry.open = None;
            self.open.fetch_sub(1, Relaxed);
            self.committed.fetch_add(1, Relaxed);
        }
    }

    /// Aborts a transaction, if it is in progress.
    pub fn abort(&self, id: &LogicalSessionId, number: i64) {
        let mut sessions = self.lock();
        let Some(entry) = sessions.get_mut(id) else { return };
        if entry.state.end(number, false) {
            self.discard(entry.open.take());
        }
    }

    /// Aborts the transactions of the sessions that match.
    pub fn abort_where(&self, matches: impl Fn(&LogicalSessionId) -> bool) {
        if !self.are_used() {
            return;
        }
        for (_, entry) in self.lock().iter_mut().filter(|(id, _)| matches(id)) {
            if entry.state.abort().is_some() {
                self.discard(entry.open.take());
            }
        }
    }

    /// Aborts the transactions that have exceeded their life time, and forgets unused sessions.
    /// Returns the sessions of the aborted ones, with their numbers. Cheap while none is open.
    pub fn expire(&self, now_ms: i64) -> Vec<(LogicalSessionId, i64)> {
        let mut expired = Vec::new();
        if !self.are_used() || now_ms - self.expired_ms.load(Relaxed) < EXPIRY_INTERVAL_MS {
            return expired;
        }
        self.expired_ms.store(now_ms, Relaxed);
        let lifetime_ms = self.lifetime_seconds().saturating_mul(1000);
        self.lock().retain(|id, entry| {
            if entry.open.as_ref().is_some_and(|open| now_ms - open.began_ms >= lifetime_ms) {
                expired.extend(entry.state.abort().map(|number| (*id, number)));
                self.discard(entry.open.take());
            }
            entry.open.is_some() || now_ms - entry.last_use_ms < UNUSED_MS
        });
        expired
    }

    pub fn counts(&self, now_ms: i64) -> TransactionCounts {
        let sessions = self.lock();
        let open = sessions.values().filter_map(|entry| entry.open.as_ref());
        let (mut active, mut oldest_ms) = (0, 0);
        for open in open {
            active += i64::from(open.is_running);
            oldest_ms = oldest_ms.max(now_ms - open.began_ms);
        }
        TransactionCounts {
            active,
            open: self.open.load(Relaxed),
            started: self.started.load(Relaxed),
            committed: self.committed.load(Relaxed),
            aborted: self.aborted.load(Relaxed),
            oldest_ms,
        }
    }

    /// Aborts the store's transaction of one that was in progress.
    fn discard(&self, open: Option<Open>) {
        let Some(open) = open else { return };
        self.open.fetch_sub(1, Relaxed);
        self.aborted.fetch_add(1, Relaxed);
        if let Some(handle) = open.handle {
            handle.abort();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<LogicalSessionId, Entry, ahash::RandomState>> {
        self.sessions.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
