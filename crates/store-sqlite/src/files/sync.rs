//! Durability beside the writer: the log is synced on request, and every 100 ms otherwise, and it
//! is checkpointed in the background.
//!
//! A commit reaches the operating system before it is acknowledged, so that killing the process
//! loses nothing. A write that needs the disk (`j: true`) waits for [`Syncer`], which syncs once
//! for all waiting writes while the writer continues with the next group.

use crate::connection::{self, Role};
use crate::files::{FileState, wal};
use crate::shared::Shared;
use error::Error;
use rusqlite::Connection;
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a commit without journaling may stay in the operating system's memory alone (MongoDB's
/// interval).
const INTERVAL: Duration = Duration::from_millis(100);

/// Called once the earlier commits are on disk, or with the reason why they are not.
pub type Acknowledge = Box<dyn FnOnce(Result<(), Error>) + Send>;

pub struct Syncer {
    shared: Arc<SyncShared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct SyncShared {
    state: Mutex<SyncState>,
    changed: Condvar,
}

#[derive(Default)]
struct SyncState {
    waiting: Vec<Acknowledge>,
    /// Commits exist since the last sync.
    dirty: bool,
    stopping: bool,
}

#[derive(Clone)]
pub struct SyncHandle(Arc<SyncShared>);

impl SyncHandle {
    /// Records a commit; it is synced within [`INTERVAL`].
    pub fn note_commit(&self) {
        let mut state = self.0.lock();
        if !std::mem::replace(&mut state.dirty, true) {
            drop(state);
            self.0.changed.notify_one();
        }
    }

    /// Calls these when everything committed so far is on disk.
    pub fn acknowledge(&self, waiting: Vec<Acknowledge>) {
        self.0.lock().waiting.extend(waiting);
        self.0.changed.notify_one();
    }
}

impl SyncShared {
    fn lock(&self) -> MutexGuard<'_, SyncState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Syncer {
    pub fn start(files: Arc<FileState>) -> std::io::Result<Syncer> {
        let shared = Arc::new(SyncShared::default());
        let mut log = Log { files, file: None };
        let in_thread = shared.clone();
        let thread = std::thread::Builder::new()
            .name("sqlite-sync".into())
            .stack_size(256 << 10)
            .spawn(move || run_syncer(&in_thread, &mut log))?;
        Ok(Syncer { shared, thread: Some(thread) })
    }

    pub fn handle(&self) -> SyncHandle {
        SyncHandle(self.shared.clone())
    }

    /// Syncs pending commits and ends the thread.
    pub fn stop(mut self) {
        self.shared.lock().stopping = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run_syncer(shared: &SyncShared, log: &mut Log) {
    loop {
        let mut state = shared.lock();
        while !state.dirty && state.waiting.is_empty() && !state.stopping {
            state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.waiting.is_empty() && !state.stopping {
            let quiet = |state: &mut SyncState| state.waiting.is_empty() && !state.stopping;
            let waited = shared.changed.wait_timeout_while(state, INTERVAL, quiet);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let waiting = std::mem::take(&mut state.waiting);
        let dirty = std::mem::take(&mut state.dirty);
        let stopping = state.stopping;
        drop(state);
        let outcome = if dirty || !waiting.is_empty() { log.sync() } else { Ok(()) };
        for acknowledge in waiting {
            acknowledge(outcome.clone());
        }
        if stopping {
            return;
        }
    }
}

/// The write-ahead log's file.
struct Log {
    files: Arc<FileState>,
    file: Option<File>,
}

impl Log {
    /// Syncs the log. After a failure nothing is synced any more: the system may report success
    /// later, which means nothing for the data that it could not write before.
    fn sync(&mut self) -> Result<(), Error> {
        self.files.health.check_now()?;
        let committed = self.files.before_sync();
        let mut sync = || -> std::io::Result<File> {
            let file = match self.file.take() {
                Some(file) => file,
                None => File::open(wal::path(&self.files.path))?,
            };
            file.sync_data()?;
            Ok(file)
        };
        match sync() {
            Ok(file) => {
                self.file = Some(file);
                self.files.note_synced(committed);
                Ok(())
            }
            Err(error) => {
                self.files.health.fail(&format!("the write-ahead log could not be synced to disk ({error})"));
                self.files.health.check()
            }
        }
    }
}

/// Moves the log's pages into the file, on a connection and a thread of its own.
pub struct Checkpointer {
    shared: Arc<CheckpointShared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct CheckpointShared {
    requested: AtomicBool,
    stopping: AtomicBool,
    busy: AtomicBool,
    lock: Mutex<()>,
    changed: Condvar,
}

#[derive(Clone)]
pub struct CheckpointHandle(Arc<CheckpointShared>);

impl CheckpointHandle {
    /// Requests a checkpoint in the background.
    pub fn ask(&self) {
        if !self.0.requested.swap(true, Ordering::AcqRel) {
            self.0.wake();
        }
    }

    /// Waits until no checkpoint is running or requested.
    pub fn wait_until_idle(&self, limit: Duration) {
        let end = Instant::now() + limit;
        while !self.is_idle() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns whether no checkpoint is running or requested.
    pub fn is_idle(&self) -> bool {
        !self.0.requested.load(Ordering::Acquire) && !self.0.busy.load(Ordering::Acquire)
    }
}

impl CheckpointShared {
    fn wake(&self) {
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_one();
    }
}

impl Checkpointer {
    pub fn start(shared: &Shared) -> rusqlite::Result<Checkpointer> {
        let connection = connection::open(&shared.path, Role::Checkpointer, &shared.options)?;
        // Stays open until the writer has stopped: closing it would release SQLite's lock of the
        // process.
        let file = File::open(&shared.path).map_err(|_| rusqlite::Error::InvalidPath(shared.path.clone()))?;
        let files = shared.files.clone();
        let shared = Arc::new(CheckpointShared::default());
        let in_thread = shared.clone();
        let thread = std::thread::Builder::new()
            .name("sqlite-checkpoint".into())
            .stack_size(512 << 10)
            .spawn(move || run_checkpointer(&in_thread, &connection, &file, &files))
            .map_err(|_| rusqlite::Error::InvalidQuery)?;
        Ok(Checkpointer { shared, thread: Some(thread) })
    }

    pub fn handle(&self) -> CheckpointHandle {
        CheckpointHandle(self.shared.clone())
    }

    pub fn stop(mut self) {
        self.shared.stopping.store(true, Ordering::Release);
        self.shared.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run_checkpointer(shared: &CheckpointShared, connection: &Connection, file: &File, files: &FileState) {
    loop {
        let mut guard = shared.lock.lock().unwrap_or_else(PoisonError::into_inner);
        while !shared.requested.load(Ordering::Acquire) && !shared.stopping.load(Ordering::Acquire) {
            guard = shared.changed.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        drop(guard);
        if shared.stopping.load(Ordering::Acquire) {
            return;
        }
        shared.busy.store(true, Ordering::Release);
        shared.requested.store(false, Ordering::Release);
        move_log(connection, file, files);
        shared.busy.store(false, Ordering::Release);
    }
}

/// Moves the log into the file, and then what was written meanwhile, until little is left. The
/// reset of the log moves the rest, and waits for it.
fn move_log(connection: &Connection, file: &File, files: &FileState) {
    let mut pages_before = None;
    for _ in 0..MOVES_MAX {
        let (salts, _) = files.before_sync();
        let pages = match checkpoint(connection, "PASSIVE") {
            Ok(pages) => pages,
            Err(error) => {
                tracing::warn!(%error, "the write-ahead log could not be checkpointed");
                return;
            }
        };
        // SQLite syncs the file only if all of the log is in it.
        if let Err(error) = file.sync_data() {
            files.health.fail(&format!("{} could not be synced to disk ({error})", files.path.display()));
            return;
        }
        files.note_checkpointed(salts, pages.max(0) as u64);
        if pages_before.is_some_and(|before| pages - before <= LEFT_PAGES_MAX) {
            return;
        }
        pages_before = Some(pages);
    }
}

/// The limit of passes: with a steady writer there would be no end.
const MOVES_MAX: usize = 4;

/// This many pages are moved and synced in the time of a few commits.
const LEFT_PAGES_MAX: i64 = 64;

/// Runs a checkpoint. Returns how many pages of the log are then in the file (-1: there is no log).
/// `PASSIVE` does not wait; `RESTART` waits for readers and resets the log.
pub fn checkpoint(connection: &Connection, mode: &str) -> rusqlite::Result<i64> {
    let mut pages = -1;
    connection.pragma(None, "wal_checkpoint", mode, |row| {
        pages = row.get(2)?;
        Ok(())
    })?;
    Ok(pages)
}
