//! Cursors: reads that outlive their first batch.
//!
//! The registry belongs to the process, so that any worker may continue a cursor; it is split into shards, and only commands
//! whose cursor outlives its first batch touch it. A cursor in use is checked out: its state is with the command that
//! uses it, its entry stays behind, so that killing it is noticed when it is checked in.

mod quota;

pub use quota::{Charge, CursorLimits, Holder};

use crate::logical_session::LogicalSessionId;
use crate::read::Reader;
use document::Doc;
use error::{Code, Error, Result};
use hashbrown::HashMap;
use quota::Quotas;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use store::{Namespace, PlanSummary};

const SHARDS: usize = 64;

/// Whom a cursor belongs to: what a later command must agree with to use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    pub namespace: Namespace,
    pub session: Option<LogicalSessionId>,
}

/// The process's open cursors.
pub struct Cursors {
    shards: [Mutex<HashMap<i64, Entry, ahash::RandomState>>; SHARDS],
    open: AtomicI64,
    quotas: Arc<Quotas>,
}

struct Entry {
    owner: Owner,
    charge: Charge,
    /// `None` while checked out.
    reader: Option<Box<Reader>>,
    /// What `$currentOp` shows of it.
    history: History,
    last_use_ms: i64,
    no_timeout: bool,
    /// Whether it was killed while checked out; the command that uses it looks at this.
    killed: Arc<AtomicBool>,
    /// What it read from has gone; whoever comes next is told so, and the entry goes too.
    lost: Option<Error>,
}

impl Entry {
    fn is_killed(&self) -> bool {
        self.killed.load(Ordering::Relaxed)
    }
}

/// How a cursor came to be, and how often it was read.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub created_ms: i64,
    pub batches: u64,
    /// The command that opened it; empty if that is too large to be kept.
    pub command: Box<[u8]>,
}

/// Larger commands are not kept beside their cursors.
const COMMAND_BYTES_MAX: usize = 4096;

impl History {
    pub fn of(command: Doc<'_>, now_ms: i64) -> History {
        let bytes = command.as_bytes();
        let kept = if bytes.len() <= COMMAND_BYTES_MAX { bytes } else { &[] };
        History { created_ms: now_ms, batches: 1, command: kept.into() }
    }
}

/// A cursor that no command reads at the moment.
#[derive(Debug)]
pub struct IdleCursor {
    pub id: i64,
    pub owner: Owner,
    pub history: History,
    pub last_use_ms: i64,
    pub no_timeout: bool,
    pub plan: PlanSummary,
    pub returned: u64,
    pub tailable: bool,
    pub awaits: bool,
}

/// What became of a cursor that was to be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Killed {
    Yes,
    NotFound,
}

impl fmt::Debug for Cursors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cursors {{ open: {} }}", self.open())
    }
}

impl Cursors {
    pub fn new(limits: CursorLimits) -> Cursors {
        let shards = std::array::from_fn(|_| Mutex::default());
        Cursors { shards, open: AtomicI64::new(0), quotas: Quotas::new(limits) }
    }

    /// Makes room for a cursor that holds so many bytes. Fails with 146 if there is none.
    pub fn charge(&self, holder: Holder, bytes: i64) -> Result<Charge> {
        self.quotas.charge(holder, bytes)
    }

    /// Enters a cursor and gives its id: random, positive.
    pub fn insert(&self, owner: Owner, charge: Charge, reader: Box<Reader>, no_timeout: bool, history: History) -> i64 {
        let now_ms = history.created_ms;
        let reader = Some(reader);
        let mut entry = Entry {
            owner,
            charge,
            reader,
            history,
            last_use_ms: now_ms,
            no_timeout,
            killed: Arc::default(),
            lost: None,
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

    /// Takes a cursor's state out for use.
    pub fn check_out(
        &self,
        id: i64,
        namespace: &Namespace,
        session: Option<LogicalSessionId>,
    ) -> Result<CheckedOut<'_>> {
        let mut shard = self.shard(id);
        let entry = shard.get_mut(&id).filter(|entry| !entry.is_killed()).ok_or_else(|| not_found(id))?;
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
        if let Some(error) = entry.lost.take() {
            shard.remove(&id);
            self.open.fetch_sub(1, Ordering::Relaxed);
            return Err(error);
        }
        let reader = entry
            .reader
            .take()
            .ok_or_else(|| Error::new(Code::CURSOR_IN_USE, format!("cursor id {id} is already in use")))?;
        Ok(CheckedOut { cursors: self, id, killed: entry.killed.clone(), reader: Some(reader) })
    }

    pub fn kill(&self, id: i64) -> Killed {
        let mut shard = self.shard(id);
        let Some(entry) = shard.get_mut(&id).filter(|entry| !entry.is_killed()) else {
            return Killed::NotFound;
        };
        if entry.reader.is_some() || entry.lost.is_some() {
            shard.remove(&id);
            self.open.fetch_sub(1, Ordering::Relaxed);
        } else {
            entry.killed.store(true, Ordering::Relaxed);
        }
        Killed::Yes
    }

    /// Kills the cursors whose owner is named; gives how many.
    pub fn kill_where(&self, named: impl Fn(&Owner) -> bool) -> u64 {
        let mut killed = 0;
        self.retain(|entry| {
            let kill = !entry.is_killed() && named(&entry.owner);
            killed += u64::from(kill);
            entry.killed.fetch_or(kill, Ordering::Relaxed);
            !kill || entry.reader.is_none() && entry.lost.is_none()
        });
        killed
    }

    /// Lets go of what the cursors hold whose owner is named; the next use of one fails with `error`.
    pub fn lose_where(&self, named: impl Fn(&Owner) -> bool, error: &Error) {
        self.retain(|entry| {
            if named(&entry.owner) {
                entry.reader = None;
                // Less is always possible.
                let _ = entry.charge.change(i64::MIN / 2);
                entry.lost = Some(error.clone());
            }
            true
        });
    }

    /// Ends the cursors that nobody has used for `timeout_ms`, and those whose logical session has gone; gives how many.
    pub fn expire(&self, now_ms: i64, timeout_ms: i64, session_lives: impl Fn(&LogicalSessionId) -> bool) -> u64 {
        let mut expired = 0;
        self.retain(|entry| {
            let idle_ms = now_ms - entry.last_use_ms;
            let timed_out = !entry.no_timeout && idle_ms >= timeout_ms;
            // A session is noted to the second and by a bounded list, so one that a cursor was used in a moment ago is not asked for.
            let orphaned =
                || idle_ms >= ORPHAN_MS && entry.owner.session.is_some_and(|session| !session_lives(&session));
            let in_use = entry.reader.is_none() && entry.lost.is_none();
            let expire = !in_use && (timed_out || orphaned());
            expired += u64::from(expire);
            !expire
        });
        expired
    }

    /// Has the cursors time out that were opened without a session over a connection that has
    /// ended: no client can use them but one that was told their ids.
    pub fn connection_ended(&self, connection_id: u64) {
        let holder = Holder::Connection(connection_id);
        if self.quotas.has(holder) {
            self.retain(|entry| {
                entry.no_timeout &= entry.charge.holder != holder;
                true
            });
        }
    }

    /// The bytes that all cursors hold between two batches.
    pub fn bytes(&self) -> i64 {
        self.quotas.bytes()
    }

    pub fn limits(&self) -> CursorLimits {
        self.quotas.limits()
    }

    /// The cursors that no command reads at the moment.
    pub fn idle(&self) -> Vec<IdleCursor> {
        let mut idle = Vec::new();
        for shard in &self.shards {
            for (id, entry) in lock(shard).iter().filter(|(_, entry)| !entry.is_killed()) {
                let Some(reader) = &entry.reader else { continue };
                idle.push(IdleCursor {
                    id: *id,
                    owner: entry.owner.clone(),
                    history: entry.history.clone(),
                    last_use_ms: entry.last_use_ms,
                    no_timeout: entry.no_timeout,
                    plan: reader.plan().map(|plan| plan.summary()).unwrap_or_default(),
                    returned: reader.returned,
                    tailable: reader.is_tail(),
                    awaits: reader.awaits(),
                });
            }
        }
        idle
    }

    /// How many cursors are open.
    pub fn open(&self) -> i64 {
        self.open.load(Ordering::Relaxed)
    }

    /// How many are checked out, and how many never time out.
    pub fn pinned_and_no_timeout(&self) -> (i64, i64) {
        let mut figures = (0, 0);
        for shard in &self.shards {
            for entry in lock(shard).values() {
                figures.0 += i64::from(entry.reader.is_none() && entry.lost.is_none());
                figures.1 += i64::from(entry.no_timeout);
            }
        }
        figures
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

/// How long a cursor without a timeout of its own outlives its logical session: as long as the session itself would have.
const ORPHAN_MS: i64 = crate::logical_session::TIMEOUT_MINUTES as i64 * 60 * 1000;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

pub fn not_found(id: i64) -> Error {
    Error::new(Code::CURSOR_NOT_FOUND, format!("cursor id {id} not found"))
}

fn check_session(id: i64, owner: Option<LogicalSessionId>, session: Option<LogicalSessionId>) -> Result<()> {
    match (owner, session) {
        (None, Some(_)) => Err(Error::new(
            Code(50736),
            format!(
                "Cannot run getMore on cursor {id}, which was not created in a session, in session {}",
                session_text(session)
            ),
        )),
        (Some(_), None) => Err(Error::new(
            Code(50737),
            format!(
                "Cannot run getMore on cursor {id}, which was created in session {}, without an lsid",
                session_text(owner)
            ),
        )),
        (Some(ours), Some(theirs)) if ours != theirs => Err(Error::new(
            Code(50738),
            format!(
                "Cannot run getMore on cursor {id}, which was created in session {}, in session {}",
                session_text(owner),
                session_text(session)
            ),
        )),
        _ => Ok(()),
    }
}

/// A session's id as MongoDB spells it: the UUID, and the digest of the user's name, which is that of nobody.
fn session_text(id: Option<LogicalSessionId>) -> String {
    const NOBODY: &str = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
    format!("{} - {NOBODY} -  - ", uuid_text(&id.unwrap_or_default()))
}

/// A UUID in its usual spelling.
pub fn uuid_text(id: &[u8; 16]) -> String {
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// A cursor in use. Dropped without being checked in (the command failed, or its connection went away), it is closed.
pub struct CheckedOut<'a> {
    cursors: &'a Cursors,
    id: i64,
    killed: Arc<AtomicBool>,
    reader: Option<Box<Reader>>,
}

impl CheckedOut<'_> {
    /// Whether somebody kills the cursor meanwhile.
    pub fn killed(&self) -> &Arc<AtomicBool> {
        &self.killed
    }

    /// The state; always there until the cursor is checked in.
    pub fn reader(&mut self) -> Option<&mut Reader> {
        self.reader.as_deref_mut()
    }

    /// Notes that the cursor holds so much more than before, or less. Fails with 146 if that is too
    /// much.
    pub fn recharge(&self, by: i64) -> Result<()> {
        let mut shard = self.cursors.shard(self.id);
        shard.get_mut(&self.id).map_or(Ok(()), |entry| entry.charge.change(by))
    }

    /// Puts the cursor back; one that was killed meanwhile is closed, which gives false.
    pub fn check_in(mut self, now_ms: i64) -> bool {
        let reader = self.reader.take();
        let mut shard = self.cursors.shard(self.id);
        match shard.get_mut(&self.id) {
            // What it read from may have gone meanwhile.
            Some(entry) if !entry.is_killed() => {
                entry.reader = reader.filter(|_| entry.lost.is_none());
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

    /// Closes the cursor: nothing is left to read.
    pub fn close(self) {}
}

impl Drop for CheckedOut<'_> {
    fn drop(&mut self) {
        if self.reader.is_some() && self.cursors.shard(self.id).remove(&self.id).is_some() {
            self.cursors.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
