//! The log of changes: an entry for each change, written in the commit of the change.
//!
//! The log is the capped collection `local.oplog.rs`, which clients read as any other. The number
//! of an entry in natural order is its position, so a position is found without an index. Documents
//! before a change are in a table beside it. Without the setting, nothing is logged, and a log of
//! an earlier start is dropped, because it would have gaps.
//!
//! [`start`](mod@start) opens or creates the log. `write::oplog` appends to it and deletes its
//! oldest entries. [`feed`] is the contract's [`store::ChangeFeed`]: readers that are up to date
//! get the latest entries from memory, others from the file. [`rows`] finds the place of
//! a query.

mod feed;
mod rows;
mod start;

use crate::catalog::Collection;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use store::change_feed::RecentEntries;
use store::{FeedEntry, FeedPosition, Namespace};
use tokio::sync::watch;

pub use rows::{rows_of, rows_to_follow};
pub use start::{now_ms, start};

/// The table of the documents before changes.
pub const IMAGES_TABLE: &str = "oplog_images";

const IMAGES_SQL: &str = "CREATE TABLE IF NOT EXISTS oplog_images(seq INTEGER PRIMARY KEY, doc BLOB NOT NULL)";

/// The limits of the log.
#[derive(Clone, Copy, Debug)]
pub struct OplogOptions {
    /// The oldest entries are deleted while the log is larger.
    pub bytes_max: u64,
    /// Older entries are deleted.
    pub age_max: Option<Duration>,
}

/// The log, as all threads share it.
pub struct Oplog {
    pub options: OplogOptions,
    pub collection: Arc<Collection>,
    /// The `_id` key of entries, which have no `_id`.
    pub id_key: Vec<u8>,
    /// The first entry that was ever made, if the log began with the store: while it is there,
    /// nothing has been discarded.
    pub initial: Option<i64>,
    /// The position of the latest committed entry.
    latest: watch::Sender<FeedPosition>,
    recent: Mutex<RecentEntries>,
    /// New entries are behind this, by [`seq_of`].
    floor: AtomicI64,
}

impl Oplog {
    pub fn latest(&self) -> FeedPosition {
        *self.latest.borrow()
    }

    /// Returns the position that the next entry is behind.
    pub fn last_used(&self) -> FeedPosition {
        self.latest().max(position_of(self.floor.load(Relaxed)))
    }

    /// Gives later entries positions behind `to`.
    pub fn advance(&self, to: FeedPosition) {
        self.floor.fetch_max(seq_of(to), Relaxed);
    }

    /// Makes committed entries known to readers.
    pub fn publish(&self, entries: Vec<FeedEntry>) {
        let Some(last) = entries.last().map(|entry| entry.position) else { return };
        self.recent().extend(entries);
        self.latest.send_replace(last);
    }

    fn recent(&self) -> MutexGuard<'_, RecentEntries> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub fn namespace() -> Namespace {
    Namespace::new("local", "oplog.rs")
}

pub fn is_oplog(namespace: &Namespace) -> bool {
    (&*namespace.database, &*namespace.collection) == ("local", "oplog.rs")
}

/// Returns whether changes in this collection are never logged: it belongs to this server alone.
pub fn is_exempt(namespace: &Namespace) -> bool {
    &*namespace.database == "local" || &*namespace.collection == "system.profile"
}

/// Returns the number of the entry at a position. Increments have 31 bits, so that numbers stay
/// positive.
pub fn seq_of(position: FeedPosition) -> i64 {
    i64::from(position.time) << 31 | i64::from(position.increment.min(store::change_feed::INCREMENT_MAX))
}

pub fn position_of(seq: i64) -> FeedPosition {
    FeedPosition { time: (seq >> 31) as u32, increment: (seq & i64::from(i32::MAX)) as u32 }
}
