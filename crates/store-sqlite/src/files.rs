//! The database's files below SQLite: checksums of pages, identity, failed syncs, damage to the
//! write-ahead log.
//!
//! [`vfs`] passes SQLite's reads and writes on to SQLite's own VFS and checks each: a [`checksum`]
//! is written with a page and verified when the page is read. [`mark`] records beside the log how
//! far it was written and synced, so that [`wal`] can detect missing commits at the next start.
//! [`health`] stops writes once a write could be lost.

pub mod checksum;
pub mod health;
pub mod mark;
pub mod start;
pub mod sync;
mod verified;
mod vfs;
pub mod wal;

use ahash::AHashMap;
use checksum::Trailer;
use health::Health;
use mark::{Mark, MarkFile};
use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use verified::Verified;
pub use vfs::{VFS, register, reserve_bytes};

/// Damaged pages that are logged one by one.
const LOGGED_MAX: usize = 1000;

/// The bytes of a log's header, and of the header of each frame (SQLite's file format, section
/// 4.1).
pub const LOG_HEADER_BYTES: u64 = 32;
pub const FRAME_HEADER_BYTES: u64 = 24;

/// The state of one database file, shared by all connections to it.
pub struct FileState {
    pub path: PathBuf,
    /// Pages have checksums.
    checked: AtomicBool,
    page_bytes: AtomicUsize,
    log: Mutex<LogState>,
    /// The offset of the log's frame header written last, if the frame ends a commit; else 0.
    commit_header: AtomicU64,
    verified: Verified,
    logged: Mutex<HashSet<u64>>,
    pub health: Health,
}

/// The current generation of the write-ahead log, which began with its header.
#[derive(Default)]
struct LogState {
    salts: [u8; 8],
    /// The end of the last frame that ends a commit.
    commit_end: u64,
    synced: u64,
    checkpointed: u64,
    file: Option<MarkFile>,
}

type Registry = Mutex<AHashMap<PathBuf, Weak<FileState>>>;

fn registry() -> MutexGuard<'static, AHashMap<PathBuf, Weak<FileState>>> {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(Registry::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the state of a file that SQLite opens.
fn state_of(path: &Path) -> Arc<FileState> {
    let mut registry = registry();
    if let Some(state) = registry.get(path).and_then(Weak::upgrade) {
        return state;
    }
    let state = Arc::new(FileState::new(path.to_owned()));
    if let Ok(FirstPage::Checked(page_bytes)) = first_page(path) {
        state.set_checked(page_bytes);
    }
    registry.insert(path.to_owned(), Arc::downgrade(&state));
    state
}

impl FileState {
    fn new(path: PathBuf) -> FileState {
        FileState {
            path,
            checked: AtomicBool::new(false),
            page_bytes: AtomicUsize::new(0),
            log: Mutex::default(),
            commit_header: AtomicU64::new(0),
            verified: Verified::default(),
            logged: Mutex::default(),
            health: Health::default(),
        }
    }

    /// Registers the state of a file that is about to be opened. Files that are new, or whose first
    /// page has a checksum, are read and written with checksums.
    pub fn register(path: &Path, page_bytes: usize) -> std::io::Result<Arc<FileState>> {
        let path = match path.parent().map(Path::canonicalize) {
            Some(Ok(folder)) => folder.join(path.file_name().unwrap_or_default()),
            _ => path.to_owned(),
        };
        let state = FileState::new(path.clone());
        match first_page(&path)? {
            FirstPage::Missing => state.set_checked(page_bytes),
            FirstPage::Checked(page_bytes) => state.set_checked(page_bytes),
            FirstPage::Damaged => state.set_checked(page_bytes),
            FirstPage::Unchecked => {}
        }
        let state = Arc::new(state);
        let mut registry = registry();
        registry.retain(|_, state| state.strong_count() > 0);
        registry.insert(path, Arc::downgrade(&state));
        Ok(state)
    }

    fn set_checked(&self, page_bytes: usize) {
        self.page_bytes.store(page_bytes, Ordering::Relaxed);
        self.checked.store(true, Ordering::Release);
    }

    pub fn is_checked(&self) -> bool {
        self.checked.load(Ordering::Acquire)
    }

    /// Returns the page size if pages have checksums.
    fn checked_page_bytes(&self) -> Option<usize> {
        self.is_checked().then(|| self.page_bytes.load(Ordering::Relaxed))
    }

    fn log(&self) -> MutexGuard<'_, LogState> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over the log of an earlier process.
    fn adopt(&self, inspection: &wal::Inspection) {
        let wal::Log { salts, end, page_bytes, .. } = inspection.log;
        if end == 0 {
            return;
        }
        self.page_bytes.store(page_bytes as usize, Ordering::Relaxed);
        let mark = inspection.left.map(|left| left.mark).filter(|mark| mark.salts == salts).unwrap_or_default();
        let mut log = self.log();
        (log.salts, log.commit_end) = (salts, end);
        (log.synced, log.checkpointed) = (mark.synced, mark.checkpointed);
    }

    /// Records the log's state in a file from now on.
    pub fn set_mark_file(&self, file: MarkFile) {
        let mut log = self.log();
        log.file = Some(file);
        log.write_mark(false);
    }

    /// Records that a transaction is committed.
    pub fn note_committed(&self) {
        self.log().write_mark(false);
    }

    /// Returns the argument of [`FileState::note_synced`] for a sync that begins now.
    pub fn before_sync(&self) -> ([u8; 8], u64) {
        let log = self.log();
        (log.salts, log.commit_end)
    }

    /// Records that commits up to there are on disk.
    pub fn note_synced(&self, (salts, end): ([u8; 8], u64)) {
        let mut log = self.log();
        if log.salts == salts && log.synced < end {
            log.synced = end;
            log.write_mark(false);
        }
    }

    /// Records that this many frames of the log are in the database file.
    pub fn note_checkpointed(&self, salts: [u8; 8], frames: u64) {
        let page_bytes = self.page_bytes.load(Ordering::Relaxed) as u64;
        let mut log = self.log();
        if log.salts == salts && page_bytes > 0 {
            log.checkpointed = LOG_HEADER_BYTES + frames * (FRAME_HEADER_BYTES + page_bytes);
            log.write_mark(false);
        }
    }

    /// Logs a page with a wrong checksum, once.
    fn report(&self, page: u64) {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.len() < LOGGED_MAX && logged.insert(page) {
            tracing::error!("page {page} of {} is damaged: its checksum is wrong", self.path.display());
        }
    }
}

impl LogState {
    fn write_mark(&mut self, synced: bool) {
        let mark =
            Mark { salts: self.salts, written: self.commit_end, synced: self.synced, checkpointed: self.checkpointed };
        if let Some(file) = &mut self.file {
            file.write(&mark, synced);
        }
    }

    /// Called when the log starts with a new header, or is emptied.
    fn begin(&mut self, salts: [u8; 8], end: u64) {
        let file = self.file.take();
        *self = LogState { salts, commit_end: end, synced: 0, file, ..LogState::default() };
        self.write_mark(end == 0);
    }
}

/// The first page of a database file, judged by its checksum.
#[derive(Debug, PartialEq, Eq)]
pub enum FirstPage {
    /// The file does not exist or is empty.
    Missing,
    /// Its checksum is right. The value is the page size.
    Checked(usize),
    /// The file has no checksums.
    Unchecked,
    /// It had a checksum, and was changed since.
    Damaged,
}

/// Reads the first page of a database file.
pub fn first_page(path: &Path) -> std::io::Result<FirstPage> {
    let mut file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(FirstPage::Missing),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.by_ref().take(1 << 16).read_to_end(&mut bytes)?;
    if bytes.is_empty() {
        return Ok(FirstPage::Missing);
    }
    let sizes = (9..=16).map(|power| 1usize << power).filter(|size| *size <= bytes.len());
    let mut traces = bytes.get(20) == Some(&(checksum::TRAILER_BYTES as u8)) && checksum::is_sqlite(&bytes);
    for size in sizes {
        match checksum::trailer(1, &bytes[..size]) {
            Trailer::Right => return Ok(FirstPage::Checked(size)),
            Trailer::Wrong => traces = true,
            Trailer::Missing => {}
        }
    }
    Ok(if traces { FirstPage::Damaged } else { FirstPage::Unchecked })
}
