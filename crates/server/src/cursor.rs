//! Cursors: reads that outlive their first batch.
//!
//! The registry belongs to the process, so that any worker may continue a cursor. It is split into
//! shards, and only commands whose cursor outlives its first batch touch it. A cursor in use is
//! checked out: the command that uses it owns its state, and its entry stays in the registry, so
//! that a kill is noticed when the cursor is checked in.

mod quota;

pub use quota::{Charge, CursorLimits, QuotaHolder};

use crate::logical_session::LogicalSessionId;
use crate::snapshots::KeptSnapshot;
use auth::{Action, Privilege, Privileges, Resource, UserName};
use document::Doc;
use error::{Code, Error, Result};
use hashbrown::HashMap;
use quota::Quotas;
use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use store::{Namespace, PlanSummary};

const SHARDS: usize = 64;

/// The namespace, session and user of a cursor, which a command that uses it must match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CursorOwner {
    pub namespace: Namespace,
    pub session: Option<LogicalSessionId>,
    /// The number of the session's transaction in which it was opened.
    pub transaction: Option<i64>,
    /// The snapshot that it reads outside of a transaction.
    pub snapshot: Option<Arc<KeptSnapshot>>,
    /// The user that was logged in.
    pub user: Option<UserName>,
    /// What the command that opened the cursor required.
    pub privileges: Vec<Privilege>,
    /// It is that of a change stream, which shows that its collection is dropped.
    pub outlives_collection: bool,
}

/// A user that wants to read a cursor.
#[derive(Clone, Copy)]
pub struct CursorReader<'a> {
    pub user: Option<&'a UserName>,
    pub privileges: &'a Privileges,
}

impl CursorReader<'_> {
    /// Fails with 13 if the cursor is another user's or another session's, or if the user has lost
    /// a privilege that the cursor's command required.
    fn check(&self, id: i64, owner: &CursorOwner, session: Option<LogicalSessionId>) -> Result<()> {
        let unauthorized = |message| Err(Error::new(Code::UNAUTHORIZED, message));
        if owner.session != session && !self.privileges.allows(Resource::Cluster, Action::Impersonate) {
            let text = |id: Option<LogicalSessionId>| id.map_or_else(|| "none".to_owned(), |id| id.to_string());
            return unauthorized(format!(
                "Cursor session id ({}) is not the same as the operation context's session id ({})",
                text(owner.session),
                text(session)
            ));
        }
        if owner.user.as_ref() != self.user {
            return unauthorized(format!("cursor id {id} was not created by the authenticated user"));
        }
        if !owner.privileges.iter().all(|privilege| self.privileges.includes(privilege)) {
            return unauthorized(format!("not authorized for getMore with cursor id {id}"));
        }
        Ok(())
    }
}

/// The read behind a cursor, as far as the registry and `$currentOp` know it.
pub trait CursorState: Any + Send {
    fn plan_summary(&self) -> PlanSummary;
    /// Returns the number of documents returned so far.
    fn returned(&self) -> u64;
    fn is_tailable(&self) -> bool;
    fn awaits_data(&self) -> bool;
}

/// The process's open cursors.
pub struct CursorRegistry {
    shards: [Mutex<HashMap<i64, Entry, ahash::RandomState>>; SHARDS],
    open: AtomicI64,
    quotas: Arc<Quotas>,
}

struct Entry {
    owner: CursorOwner,
    charge: Charge,
    /// `None` while checked out.
    state: Option<Box<dyn CursorState>>,
    history: CursorHistory,
    last_use_ms: i64,
    no_timeout: bool,
    /// Whether it was killed while checked out; the command that uses it checks this.
    killed: Arc<AtomicBool>,
    /// Its collection is gone: the next command that uses it fails with this error, and the cursor
    /// is closed.
    invalidated: Option<Error>,
}

impl Entry {
    fn is_killed(&self) -> bool {
        self.killed.load(Ordering::Relaxed)
    }
}

/// How a cursor was opened, and how often it was read.
#[derive(Clone, Debug, Default)]
pub struct CursorHistory {
    pub created_ms: i64,
    pub batches: u64,
    /// The command that opened it; empty if it exceeds [`COMMAND_BYTES_MAX`].
    pub command: Box<[u8]>,
}

/// The largest command that is stored with its cursor.
const COMMAND_BYTES_MAX: usize = 4096;

impl CursorHistory {
    pub fn of(command: Doc<'_>, now_ms: i64) -> CursorHistory {
        let bytes = command.as_bytes();
        let command = if bytes.len() <= COMMAND_BYTES_MAX { bytes } else { &[] };
        CursorHistory { created_ms: now_ms, batches: 1, command: command.into() }
    }
}

/// A cursor that is not checked out.
#[derive(Debug)]
pub struct IdleCursor {
    pub id: i64,
    pub owner: CursorOwner,
    pub history: CursorHistory,
    pub last_use_ms: i64,
    pub no_timeout: bool,
    pub plan: PlanSummary,
    pub returned: u64,
    pub tailable: bool,
    pub awaits: bool,
}

/// The outcome of killing a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillOutcome {
    Yes,
    NotFound,
}

impl fmt::Debug for CursorRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CursorRegistry {{ open: {} }}", self.open())
    }
}

impl CursorRegistry {
    pub fn new(limits: CursorLimits) -> CursorRegistry {
        let shards = std::array::from_fn(|_| Mutex::default());
        CursorRegistry { shards, open: AtomicI64::new(0), quotas: Quotas::new(limits) }
    }

    /// Reserves memory for a cursor. Fails with 146 if a limit would be exceeded.
    pub fn charge(&self, holder: QuotaHolder, user: Option<&str>, bytes: i64) -> Result<Charge> {
        self.quotas.charge(holder, user, bytes)
    }

    /// Adds a cursor; returns its id, which is random and positive.
    pub fn insert(
        &self,
        owner: CursorOwner,
        charge: Charge,
        state: Box<dyn CursorState>,
        no_timeout: bool,
        history: CursorHistory,
    ) -> i64 {
        let now_ms = history.created_ms;
        let state = Some(state);
        let mut entry = Entry {
            owner,
            charge,
            state,
            history,
            last_use_ms: now_ms,
            no_timeout,
            killed: Arc::default(),
            invalidated: None,
        };
        loop {
            let id = (rand::random::<u64>() >> 1) as i64;
            match self.shard(id).entry(id) {
                hashbrown::hash_map::Entry::Vacant(vacant) if id != 0 => {
                    vacant.insert(entry);
                    self.open.fetch_add(1, Ordering::Relaxed);
                    return id;
                }
                _ => entry.last_use_ms = now_ms,
            }
        }
    }

    /// Takes a cursor's state for use. Fails with 43 if it does not exist, 13 for another namespace
    /// or user, 143 if it is in use, 50736 to 50738 for another session, and 50739
    /// to 50741 for another transaction. `reader`: the user, with access control.
    pub fn check_out(
        &self,
        id: i64,
        namespace: &Namespace,
        (session, transaction): (Option<LogicalSessionId>, Option<i64>),
        reader: Option<CursorReader<'_>>,
    ) -> Result<CheckedOut<'_>> {
        let mut shard = self.shard(id);
        let entry = shard.get_mut(&id).filter(|entry| !entry.is_killed()).ok_or_else(|| not_found(id))?;
        if let Some(reader) = reader {
            reader.check(id, &entry.owner, session)?;
        }
        if entry.owner.namespace != *namespace {
            return Err(Error::new(
                Code::UNAUTHORIZED,
                format!(
                    "Requested getMore on namespace '{namespace}', but cursor belongs to a different namespace {}",
                    entry.owner.namespace
                ),
            ));
        }
        check_session(id, entry.owner.session, session)?;
        check_transaction(id, entry.owner.transaction, transaction)?;
        if let Some(error) = entry.invalidated.take() {
            shard.remove(&id);
            self.open.fetch_sub(1, Ordering::Relaxed);
            return Err(error);
        }
        let state = entry
            .state
            .take()
            .ok_or_else(|| Error::new(Code::CURSOR_IN_USE, format!("cursor id {id} is already in use")))?;
        Ok(CheckedOut { cursors: self, id, killed: entry.killed.clone(), state: Some(state) })
    }

    /// Returns the owner of a cursor; `None` if it does not exist.
    pub fn owner(&self, id: i64) -> Option<CursorOwner> {
        self.shard(id).get(&id).filter(|entry| !entry.is_killed()).map(|entry| entry.owner.clone())
    }

    pub fn kill(&self, id: i64) -> KillOutcome {
        let mut shard = self.shard(id);
        let Some(entry) = shard.get_mut(&id).filter(|entry| !entry.is_killed()) else {
            return KillOutcome::NotFound;
        };
        if entry.state.is_some() || entry.invalidated.is_some() {
            shard.remove(&id);
            self.open.fetch_sub(1, Ordering::Relaxed);
        } else {
            entry.killed.store(true, Ordering::Relaxed);
        }
        KillOutcome::Yes
    }

    /// Kills the cursors with a matching owner; returns how many.
    pub fn kill_where(&self, matches: impl Fn(&CursorOwner) -> bool) -> u64 {
        let mut killed = 0;
        self.retain(|entry| {
            let kill = !entry.is_killed() && matches(&entry.owner);
            killed += u64::from(kill);
            entry.killed.fetch_or(kill, Ordering::Relaxed);
            !kill || entry.state.is_none() && entry.invalidated.is_none()
        });
        killed
    }

    /// Releases the state of the cursors with a matching owner; the next use of one fails with
    /// `error`.
    pub fn invalidate_where(&self, matches: impl Fn(&CursorOwner) -> bool, error: &Error) {
        self.retain(|entry| {
            if !entry.owner.outlives_collection && matches(&entry.owner) {
                entry.state = None;
                // A decrease never fails.
                let _ = entry.charge.change(i64::MIN / 2);
                entry.invalidated = Some(error.clone());
            }
            true
        });
    }

    /// Closes the cursors that were idle for `timeout_ms`, and those whose logical session has
    /// ended; returns how many.
    pub fn expire(&self, now_ms: i64, timeout_ms: i64, is_session_alive: impl Fn(&LogicalSessionId) -> bool) -> u64 {
        let mut expired = 0;
        self.retain(|entry| {
            let idle_ms = now_ms - entry.last_use_ms;
            let timed_out = !entry.no_timeout && idle_ms >= timeout_ms;
            // Sessions are recorded once a second and in a bounded list: one that was just used may
            // be missing from it.
            let orphaned =
                || idle_ms >= ORPHAN_MS && entry.owner.session.is_some_and(|session| !is_session_alive(&session));
            let in_use = entry.state.is_none() && entry.invalidated.is_none();
            let expire = !in_use && (timed_out || orphaned());
            expired += u64::from(expire);
            !expire
        });
        expired
    }

    /// Lets the cursors of an ended connection time out, if they were opened without a session:
    /// only clients that know their ids could still use them.
    pub fn connection_ended(&self, connection_id: u64) {
        let holder = QuotaHolder::Connection(connection_id);
        if self.quotas.has(holder) {
            self.retain(|entry| {
                entry.no_timeout &= entry.charge.holder != holder;
                true
            });
        }
    }

    /// Returns the bytes that all cursors hold between batches.
    pub fn bytes(&self) -> i64 {
        self.quotas.bytes()
    }

    pub fn limits(&self) -> CursorLimits {
        self.quotas.limits()
    }

    /// Returns the cursors that are not checked out.
    pub fn idle(&self) -> Vec<IdleCursor> {
        let mut idle = Vec::new();
        for shard in &self.shards {
            for (id, entry) in lock(shard).iter().filter(|(_, entry)| !entry.is_killed()) {
                let Some(state) = &entry.state else { continue };
                idle.push(IdleCursor {
                    id: *id,
                    owner: entry.owner.clone(),
                    history: entry.history.clone(),
                    last_use_ms: entry.last_use_ms,
                    no_timeout: entry.no_timeout,
                    plan: state.plan_summary(),
                    returned: state.returned(),
                    tailable: state.is_tailable(),
                    awaits: state.awaits_data(),
                });
            }
        }
        idle
    }

    /// Returns the number of open cursors.
    pub fn open(&self) -> i64 {
        self.open.load(Ordering::Relaxed)
    }

    /// Returns how many cursors are checked out, and how many never time out.
    pub fn pinned_and_no_timeout(&self) -> (i64, i64) {
        let mut counts = (0, 0);
        for shard in &self.shards {
            for entry in lock(shard).values() {
                counts.0 += i64::from(entry.state.is_none() && entry.invalidated.is_none());
                counts.1 += i64::from(entry.no_timeout);
            }
        }
        counts
    }

    fn retain(&self, mut keep: impl FnMut(&mut Entry) -> bool) {
        for shard in &self.shards {
            let mut shard = lock(shard);
            let before = shard.len();
            shard.retain(|_, entry| keep(entry));
            self.open.fetch_sub((before - shard.len()) as i64, Ordering::Relaxed);
        }
    }

    fn shard(&self, id: i64) -> MutexGuard<'_, HashMap<i64, Entry, ahash::RandomState>> {
        lock(&self.shards[id.rem_euclid(SHARDS as i64) as usize])
    }
}

/// How long a cursor outlives its logical session: the timeout of a session.
const ORPHAN_MS: i64 = crate::logical_session::TIMEOUT_MINUTES as i64 * 60 * 1000;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

pub fn not_found(id: i64) -> Error {
    Error::new(Code::CURSOR_NOT_FOUND, format!("cursor id {id} not found"))
}

fn check_session(id: i64, owner: Option<LogicalSessionId>, session: Option<LogicalSessionId>) -> Result<()> {
    let text = |id: Option<LogicalSessionId>| id.map_or_else(String::new, |id| id.to_string());
    match (owner, session) {
        (None, Some(_)) => Err(Error::new(
            Code(50736),
            format!(
                "Cannot run getMore on cursor {id}, which was not created in a session, in session {}",
                text(session)
            ),
        )),
        (Some(_), None) => Err(Error::new(
            Code(50737),
            format!("Cannot run getMore on cursor {id}, which was created in session {}, without an lsid", text(owner)),
        )),
        (Some(ours), Some(theirs)) if ours != theirs => Err(Error::new(
            Code(50738),
            format!(
                "Cannot run getMore on cursor {id}, which was created in session {}, in session {}",
                text(owner),
                text(session)
            ),
        )),
        _ => Ok(()),
    }
}

fn check_transaction(id: i64, owner: Option<i64>, transaction: Option<i64>) -> Result<()> {
    let (code, message) = match (owner, transaction) {
        (None, Some(theirs)) => (50739, format!("which was not created in a transaction, in transaction {theirs}")),
        (Some(ours), None) => (50740, format!("which was created in transaction {ours}, without a txnNumber")),
        (Some(ours), Some(theirs)) if ours != theirs => {
            (50741, format!("which was created in transaction {ours}, in transaction {theirs}"))
        }
        _ => return Ok(()),
    };
    Err(Error::new(Code(code), format!("Cannot run getMore on cursor {id}, {message}")))
}

/// A cursor in use. Dropping it without a check-in closes it: the command failed, or its connection
/// was closed.
pub struct CheckedOut<'a> {
    cursors: &'a CursorRegistry,
    id: i64,
    killed: Arc<AtomicBool>,
    state: Option<Box<dyn CursorState>>,
}

impl CheckedOut<'_> {
    /// Returns the flag that a kill sets.
    pub fn killed(&self) -> &Arc<AtomicBool> {
        &self.killed
    }

    /// Returns the state, if it is of this type.
    pub fn state<S: CursorState>(&mut self) -> Option<&mut S> {
        let state: &mut dyn Any = self.state.as_deref_mut()?;
        state.downcast_mut()
    }

    /// Changes the memory that the cursor is charged for. Fails with 146 if a limit would be
    /// exceeded.
    pub fn recharge(&self, by: i64) -> Result<()> {
        let mut shard = self.cursors.shard(self.id);
        shard.get_mut(&self.id).map_or(Ok(()), |entry| entry.charge.change(by))
    }

    /// Puts the cursor back; returns false if it was killed meanwhile and is closed.
    pub fn check_in(mut self, now_ms: i64) -> bool {
        let state = self.state.take();
        let mut shard = self.cursors.shard(self.id);
        match shard.get_mut(&self.id) {
            // Its collection may have been dropped meanwhile.
            Some(entry) if !entry.is_killed() => {
                entry.state = state.filter(|_| entry.invalidated.is_none());
                entry.last_use_ms = now_ms;
                entry.history.batches += 1;
                true
            }
            Some(_) => {
                shard.remove(&self.id);
                self.cursors.open.fetch_sub(1, Ordering::Relaxed);
                false
            }
            None => false,
        }
    }

    /// Closes the cursor, whose read has ended.
    pub fn close(self) {}
}

impl Drop for CheckedOut<'_> {
    fn drop(&mut self) {
        if self.state.is_some() && self.cursors.shard(self.id).remove(&self.id).is_some() {
            self.cursors.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
