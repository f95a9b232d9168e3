//! The state shared by the writer and all workers, and the settings of the store.

use crate::catalog::Catalog;
use crate::files::FileState;
use crate::oplog::{Oplog, OplogOptions};
use crate::transaction::IdleConnections;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use store::ObserverSlot;

/// The file in the data directory that holds all databases.
pub const FILE_NAME: &str = "selkie.sqlite";

/// Settings of the store. The defaults are measured.
#[derive(Clone, Debug)]
pub struct Options {
    /// Page cache of each worker's connection.
    pub reader_cache_bytes: usize,
    /// Page cache of the writer's connection.
    pub writer_cache_bytes: usize,
    /// Page size of a new file.
    pub page_bytes: u32,
    /// The part of the file that is mapped into memory to read documents of several pages; 0: none.
    /// SQLite's limit is 2 GB.
    pub mmap_bytes: u64,
    /// A checkpoint starts in the background when the write-ahead log has grown by this much.
    pub checkpoint_bytes: u64,
    /// Past this size the log is reset once it is checkpointed; past twice this size, writers wait
    /// for that. The log's file is not truncated below this size.
    pub log_bytes_max: u64,
    /// Start without the commits that a damaged write-ahead log has lost.
    pub accept_lost_writes: bool,
    /// Files up to this size without checksums are rewritten with checksums at the start.
    pub add_checksums_up_to: u64,
    /// The log of changes, for change streams; `None`: changes are not logged.
    pub oplog: Option<OplogOptions>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            reader_cache_bytes: 24 << 20,
            writer_cache_bytes: 16 << 20,
            page_bytes: 4096,
            mmap_bytes: 2 << 30,
            checkpoint_bytes: 16 << 20,
            log_bytes_max: 64 << 20,
            accept_lost_writes: false,
            add_checksums_up_to: 256 << 20,
            oplog: None,
        }
    }
}

/// The state shared by the writer and all workers.
pub struct Shared {
    pub path: PathBuf,
    pub options: Options,
    /// The state of the file below SQLite.
    pub files: Arc<FileState>,
    catalog: RwLock<Arc<Catalog>>,
    /// Incremented with each new catalog, so that a worker checks without a lock whether its own is
    /// the latest.
    version: AtomicU64,
    /// The writer is about to reset the log, which needs a moment without reads.
    reads_paused: AtomicBool,
    pub change_observer: ObserverSlot,
    /// Snapshots of open transactions, which keep the log from being reset.
    pub pinned_snapshots: AtomicU64,
    pub idle_transactions: IdleConnections,
    /// The log of changes, if there is one.
    pub oplog: Option<Oplog>,
}

impl Shared {
    pub fn new(
        path: PathBuf,
        options: Options,
        files: Arc<FileState>,
        catalog: Arc<Catalog>,
        oplog: Option<Oplog>,
    ) -> Shared {
        Shared {
            path,
            options,
            files,
            catalog: RwLock::new(catalog),
            version: AtomicU64::new(0),
            reads_paused: AtomicBool::new(false),
            change_observer: ObserverSlot::default(),
            pinned_snapshots: AtomicU64::new(0),
            idle_transactions: IdleConnections::default(),
            oplog,
        }
    }

    /// Returns whether a new read must wait.
    pub fn are_reads_paused(&self) -> bool {
        self.reads_paused.load(Ordering::Relaxed)
    }

    /// Runs `work` while no read begins. Reads in progress end within a slice.
    pub fn with_reads_paused<T>(&self, work: impl FnOnce() -> T) -> T {
        self.reads_paused.store(true, Ordering::Relaxed);
        let done = work();
        self.reads_paused.store(false, Ordering::Relaxed);
        done
    }

    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Returns the latest catalog, and a version that is not newer than it.
    pub fn catalog(&self) -> (u64, Arc<Catalog>) {
        let version = self.version();
        (version, self.catalog.read().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Publishes a catalog as the latest one.
    pub fn publish(&self, catalog: Arc<Catalog>) {
        *self.catalog.write().unwrap_or_else(PoisonError::into_inner) = catalog;
        self.version.fetch_add(1, Ordering::Release);
    }
}
